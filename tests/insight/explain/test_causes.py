"""What stands in the way of a pod, by name, and that the first suggestion works: a scenario for each rejection."""

import pytest

from kubestow.insight.explain.causes import Cause, causes_of
from kubestow.insight.explain.changes import changed
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.explanation import explained
from kubestow.insight.explain.names import nearest
from kubestow.insight.explain.world import World
from kubestow.insight.explain.would_fit import found_changes
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.testing import make_node, make_pod
from support.insight.rejections import NODES, SCENARIOS, SETUP, Scenario, db, replica, run_of


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_cause_is_named(scenario: Scenario) -> None:
    run = run_of(scenario)
    assert scenario.plugin in run.decision().rejectedBy
    assert [one.text for one in causes_of(run)][:1] == ([scenario.text] if scenario.text else [])


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_first_suggestion_works(scenario: Scenario) -> None:
    """The pod gets a node in a world with this change, and gets none again without it."""
    run = run_of(scenario)
    first = found_changes(run, causes_of(run))[0].change
    assert first.text == scenario.change
    with changed(run.world, first):
        assert DryRun(run.world, PodInfo(scenario.pod if first.pod is None else first.pod)).chosen
    assert not DryRun(run.world, run.pod).chosen


def test_every_plugin_that_can_reject_has_a_scenario() -> None:
    """Plugins that only hold a pod on its node, or that old policies used, need a running scheduler or a policy."""
    profile = next(iter(World(SETUP, NODES, 0.0).profiles.values()))
    rejecting = {hook.name for hook in (*profile.pre_enqueue, *profile.pre_filter, *profile.filter)}
    assert rejecting - {one.plugin for one in SCENARIOS.values()} == {"DefaultPreemption"}
    assert rejecting <= set(in_tree_registry())


def test_a_pod_with_a_node_has_no_cause() -> None:
    run = DryRun(World(SETUP, NODES, 0.0), PodInfo(make_pod("x", cpu=1)))
    assert (run.chosen, causes_of(run)) == ("n0", [])


def test_holders_of_a_port_on_many_nodes_are_named_by_owner() -> None:
    nodes = [make_node(f"n{i}") for i in range(9)]
    holders = [replica(make_pod(f"h{i}", node=f"n{i}", host_ports=[80])) for i in range(9)]
    (cause,) = causes_of(run_of(Scenario("", [*nodes, *holders], make_pod("x", host_ports=[80]), "", "")))
    assert cause.text == "host port 80/TCP is taken on every node: 9 pods of ReplicaSet default/web-5d"


def test_causes_are_fields_of_the_explanation() -> None:
    """With the plugin, the text and the similar names."""
    tree = explained(run_of(SCENARIOS["value that differs in case"])).tree()
    text = SCENARIOS["value that differs in case"].text
    assert tree["causes"] == [{"plugin": "NodeAffinity", "text": text, "similar": ("zone-a",)}]


def test_an_unreadable_kind_is_not_taken_for_a_missing_object() -> None:
    """The user may not list claims, so nothing is known about them."""
    run = run_of(Scenario("", [*NODES], db(), "", ""))
    assert [type(one) for one in causes_of(run)] == [Cause]
    run.world.cluster.listers.claims.set_unreadable("forbidden")
    assert causes_of(run) == []


def test_the_nearest_of_many_names_is_found() -> None:
    """Only those with the same beginning and end are compared letter by letter; others are left out."""
    many = [f"ip-10-0-{number // 256}-{number % 256}.example.internal" for number in range(20_000)]
    assert nearest("ip-10-0-3-99.exmaple.internal", many)[0] == "ip-10-0-3-99.example.internal"
    assert nearest("NODE-1", ["node-1", "node-11"]) == ("node-1",)
    assert nearest("unlike", many) == ()
