"""Groups that preempt, and are preempted, as a whole."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.plugin import Code, Handle, Rejection, TriedGroup
from kubestow.testing import SchedulerHarness, make_pod, make_pod_group
from support.scenarios.extending import HEAD
from support.scenarios.gangs import add_gang, add_members, add_nodes, bound, condition, features, message
from support.scenarios.start import Start


def fill(harness: SchedulerHarness, count: int, priority: int = 0, name: str = "low", **options: object) -> None:
    """Add running pods of one CPU each."""
    for number in range(count):
        harness.cluster.add(make_pod(f"{name}{number}", cpu="1", priority=priority, grace_seconds=0, **options))  # type: ignore[arg-type]
    harness.run_until_idle()


def running(harness: SchedulerHarness, prefix: str) -> int:
    return sum(bool(pod.spec.nodeName) for pod in harness.cluster.all(Pod) if pod.metadata.name.startswith(prefix))


def test_only_necessary_pods_are_evicted(start: Start) -> None:
    """Each of them gets a condition, and the group is placed."""
    harness = start(features=features())
    add_nodes(harness, 4)
    fill(harness, 8)
    add_gang(harness, "a", pods=3, priority=10)
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 3
    assert running(harness, "low") == 5
    notes = harness.events.notes("Preempted")
    assert len(notes) == 3
    assert all(note.startswith("Preempted by podgroup ") and note.endswith(" on node cluster") for note in notes)


def test_no_pod_is_evicted_for_a_group_that_would_not_fit(start: Start) -> None:
    """That includes pods whose eviction would help some pods of the group."""
    harness = start(features=features())
    add_nodes(harness, 2)
    fill(harness, 4)
    add_gang(harness, "a", pods=5, priority=10)
    harness.run_until_idle()
    assert running(harness, "low") == 4
    refused = "0/1 placements are available, first placement status: pod group is unschedulable"
    found = condition(harness, "a")
    assert found.message == f"{refused}, {refused}"
    assert message(harness, "a0").endswith("preemption: not eligible due to workload aware preemption enabled")


def test_pods_of_the_same_priority_stay(start: Start) -> None:
    """There are no possible victims."""
    harness = start(features=features())
    add_nodes(harness, 1)
    fill(harness, 2, priority=10)
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    found = condition(harness, "a")
    assert running(harness, "low") == 2
    assert found.message.endswith(", No preemption victims found for incoming preemptor")


def test_a_group_that_may_not_preempt(start: Start) -> None:
    """One pod with the policy Never is enough."""
    harness = start(features=features())
    add_nodes(harness, 1)
    fill(harness, 2)
    harness.cluster.add(make_pod_group("a", 2, priority=10))
    add_members(harness, "a", [0], priority=10)
    add_members(harness, "a", [1], priority=10, spec={"preemptionPolicy": "Never"})
    harness.run_until_idle()
    found = condition(harness, "a")
    assert running(harness, "low") == 2
    assert found.message.endswith(", not eligible due to preemptionPolicy=Never.")


def test_groups_with_constraints_do_not_preempt(start: Start) -> None:
    """This is the behavior of kube-scheduler."""
    harness = start(features=features())
    add_nodes(harness, 1)
    fill(harness, 2)
    add_gang(harness, "a", pods=2, priority=10, topology_key="rack")
    harness.run_until_idle()
    found = condition(harness, "a")
    assert running(harness, "low") == 2
    assert "workload aware preemption is not supported for pod groups" in found.message


@pytest.mark.parametrize(("mode", "left"), [("all", 0), ("single", 2)])
def test_a_group_is_evicted_together_if_configured(start: Start, mode: str, left: int) -> None:
    """Otherwise it loses only the necessary pods."""
    harness = start(features=features())
    add_nodes(harness, 4, cpu="1")
    harness.cluster.add(make_pod_group("v", 2, priority=1, disruption_mode=mode))
    add_members(harness, "v", range(4), priority=1, grace_seconds=0)
    harness.run_until_idle()
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 2
    assert len(bound(harness, "v")) == left


def test_a_whole_group_is_spared_rather_than_single_pods(start: Start) -> None:
    """Both have the same priority."""
    harness = start(features=features())
    add_nodes(harness, 4, cpu="1")
    harness.cluster.add(make_pod_group("v", 2, priority=1, disruption_mode="all"))
    add_members(harness, "v", range(2), priority=1, grace_seconds=0)
    fill(harness, 2, priority=1)
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert (len(bound(harness, "a")), len(bound(harness, "v")), running(harness, "low")) == (2, 2, 0)


def test_the_priority_of_a_group_counts_for_its_pods(start: Start) -> None:
    """A group that is evicted together has its own priority, whatever the priorities of its pods."""
    harness = start(features=features())
    add_nodes(harness, 2, cpu="1")
    harness.cluster.add(make_pod_group("v", 2, priority=100, disruption_mode="all"))
    add_members(harness, "v", range(2), priority=1, grace_seconds=0)
    harness.run_until_idle()
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert (len(bound(harness, "a")), len(bound(harness, "v"))) == (0, 2)


def test_budgets_are_respected_if_possible(start: Start) -> None:
    """Pods without a budget are evicted first."""
    harness = start(features=features())
    add_nodes(harness, 4, cpu="1")
    budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "db"}}}}
    harness.cluster.add(convert(PodDisruptionBudget, budget))
    fill(harness, 2, name="db", labels={"app": "db"})
    fill(harness, 2, name="web", labels={"app": "web"})
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert (running(harness, "db"), running(harness, "web"), len(bound(harness, "a"))) == (2, 0, 2)


def test_no_further_pod_is_evicted_while_victims_terminate(start: Start) -> None:
    """Meanwhile no other pod takes their capacity, and the group does not preempt again."""
    harness = start(features=features())
    add_nodes(harness, 4, cpu="1")
    for number in range(4):
        harness.cluster.add(make_pod(f"low{number}", cpu="1", priority=0, grace_seconds=40))
    harness.run_until_idle()
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_for(1.0)
    harness.cluster.add(make_pod("late", cpu="1", priority=0))
    harness.run_until_idle()
    assert (len(bound(harness, "a")), running(harness, "low"), running(harness, "late")) == (2, 2, 0)


class Reluctant:
    """Has no pods to evict for a group; other plugins may have some, unless the group is named final."""

    name = "Reluctant"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pod_group_post_filter(self, group: TriedGroup) -> Rejection:
        return Rejection(("too early",), Code.UNRESOLVABLE if group.name == "final" else Code.UNSCHEDULABLE)


def with_plugins(plugins: str) -> str:
    return f"{HEAD}profiles: [{{plugins: {{podGroupPostFilter: {plugins}}}}}]\n"


def test_plugins_are_asked_for_victims_in_order(start: Start) -> None:
    """The first one with victims is the last one to be called, and so is one that finds preemption to be useless."""
    order = "{enabled: [{name: Reluctant}, {name: DefaultPreemption}], disabled: [{name: '*'}]}"
    harness = start(with_plugins(order), features=features(), plugins=[Reluctant])
    add_nodes(harness, 2)
    fill(harness, 4)
    for name, placed in (("final", 0), ("a", 2)):
        add_gang(harness, name, pods=2, priority=10)
        harness.run_until_idle()
        assert len(bound(harness, name)) == placed


def test_reasons_of_plugins_are_reported(start: Start) -> None:
    """They follow the message of the failed placement; DynamicResources has none."""
    harness = start(
        with_plugins("{enabled: [{name: Reluctant}], disabled: [{name: DefaultPreemption}]}"),
        features=features(),
        plugins=[Reluctant],
    )
    add_nodes(harness, 1)
    add_gang(harness, "a", pods=5, priority=10)
    harness.run_until_idle()
    assert condition(harness, "a").message.endswith("pod group is unschedulable, too early")


def test_no_pod_is_evicted_without_a_plugin_for_groups(start: Start) -> None:
    """A profile may disable the plugins at podGroupPostFilter."""
    harness = start(with_plugins("{disabled: [{name: '*'}]}"), features=features())
    add_nodes(harness, 1)
    fill(harness, 2)
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert running(harness, "low") == 2
