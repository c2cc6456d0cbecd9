"""Worlds made from objects: which kinds they take, and what a pod to be explained is in them."""

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
def test_every_kind_of_the_model_may_be_there(kind: type[Base]) -> None:
    """A dump of a cluster has them all; those that decide nothing are left out."""
    World(SETUP, [kind(metadata=ObjectMeta(name="x", namespace="default", uid="x"))], 0.0)


def test_pods_that_are_done_take_no_room() -> None:
    """The API server keeps them, their node does not."""
    for phase, chosen in (("Succeeded", "a"), ("Failed", "a"), ("Running", None)):
        done = make_pod("done", cpu=4, node="a", status={"phase": phase})
        world = World(SETUP, [make_node("a", cpu=4), done], 0.0)
        assert DryRun(world, PodInfo(make_pod("x", cpu=4))).chosen == chosen


def test_a_pod_that_is_explained_takes_no_room_either() -> None:
    """Wherever it is: it is tried as if it were new."""
    bound = make_pod("x", cpu=4, node="a")
    world = World(SETUP, [make_node("a", cpu=4), bound], 0.0)
    assert DryRun(world, world.take_out(bound)).chosen == "a"


def test_a_nominated_node_comes_first() -> None:
    """As long as it will do, even if others score higher; room is left there for whoever else is nominated."""
    nodes = [make_node("a", cpu=2), make_node("b", cpu=64)]
    pod = make_pod("x", cpu=2, status={"nominatedNodeName": "a"})
    world = World(SETUP, [*nodes, pod], 0.0)
    decision = DryRun(world, world.take_out(pod)).decision()
    assert decision.choice is not None
    assert (decision.chosen, decision.choice.reason) == ("a", "nominated")
    other = make_pod("y", cpu=2, priority=10, status={"nominatedNodeName": "a"})
    world = World(SETUP, [*nodes, pod, other], 0.0)
    decision = DryRun(world, world.take_out(pod)).decision()
    assert decision.chosen == "b"
    assert [(one.pod, one.node) for one in decision.nominated] == [("default/y", "a")]


def test_extenders_are_named_and_not_asked() -> None:
    """A dry run talks to nobody."""
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    text += "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter, enableHTTPS: false}]\n"
    world = World(Setup(config.load(text)), [make_node("a")], 0.0)
    (call,) = DryRun(world, PodInfo(make_pod("x"))).decision().extenders
    assert (call.url, call.error) == ("http://127.0.0.1:1", "not asked in a dry run")


def test_without_nodes_there_is_nothing_to_judge() -> None:
    """In kube-scheduler's words."""
    decision = DryRun(World(SETUP, [], 0.0), PodInfo(make_pod("x"))).decision()
    assert (decision.outcome, decision.message) == ("unschedulable", "no nodes available to schedule pods")
