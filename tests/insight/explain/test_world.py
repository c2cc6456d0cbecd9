"""Worlds made from objects: the supported kinds, and the state of a pod that is explained."""

import pytest

from kubestow import config
from kubestow.api.kinds import KINDS
from kubestow.api.meta import Base, ObjectMeta
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.world import Setup, World
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node, make_pod

SETUP = Setup(config.default())


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_every_kind_of_the_model_can_be_added(kind: type[Base]) -> None:
    """A dump of a cluster has all kinds; those that do not affect scheduling are ignored."""
    World(SETUP, [kind(metadata=ObjectMeta(name="x", namespace="default", uid="x"))], 0.0)


def test_finished_pods_occupy_no_node() -> None:
    """The API server still has finished pods."""
    for phase, chosen in (("Succeeded", "a"), ("Failed", "a"), ("Running", None)):
        done = make_pod("done", cpu=4, node="a", status={"phase": phase})
        world = World(SETUP, [make_node("a", cpu=4), done], 0.0)
        assert DryRun(world, PodInfo(make_pod("x", cpu=4))).chosen == chosen


def test_a_pod_that_is_explained_occupies_no_node() -> None:
    """It is evaluated as a new pod, wherever it runs."""
    bound = make_pod("x", cpu=4, node="a")
    world = World(SETUP, [make_node("a", cpu=4), bound], 0.0)
    assert DryRun(world, world.remove_for_scheduling(bound)).chosen == "a"


def test_a_nominated_node_comes_first() -> None:
    """It is chosen if it is feasible, even if others score higher; requests of other nominated pods are reserved."""
    nodes = [make_node("a", cpu=2), make_node("b", cpu=64)]
    pod = make_pod("x", cpu=2, status={"nominatedNodeName": "a"})
    world = World(SETUP, [*nodes, pod], 0.0)
    decision = DryRun(world, world.remove_for_scheduling(pod)).decision()
    assert decision.choice is not None
    assert (decision.chosen, decision.choice.reason) == ("a", "nominated")
    other = make_pod("y", cpu=2, priority=10, status={"nominatedNodeName": "a"})
    world = World(SETUP, [*nodes, pod, other], 0.0)
    decision = DryRun(world, world.remove_for_scheduling(pod)).decision()
    assert decision.chosen == "b"
    assert [(one.pod, one.node) for one in decision.nominated] == [("default/y", "a")]


def test_extenders_are_listed_and_not_called() -> None:
    """A dry run makes no HTTP requests by default."""
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    text += "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter, enableHTTPS: false}]\n"
    world = World(Setup(config.load(text)), [make_node("a")], 0.0)
    (call,) = DryRun(world, PodInfo(make_pod("x"))).decision().extenders
    assert (call.url, call.error) == ("http://127.0.0.1:1", "not called in a dry run")


def test_a_world_without_nodes() -> None:
    """The message is that of kube-scheduler."""
    decision = DryRun(World(SETUP, [], 0.0), PodInfo(make_pod("x"))).decision()
    assert (decision.outcome, decision.message) == ("unschedulable", "no nodes available to schedule pods")
