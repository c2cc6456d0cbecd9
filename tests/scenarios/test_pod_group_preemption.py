"""Groups that preempt, and are preempted, as a whole."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.config import Features
from kubestow.plugin import Code, Handle, Rejection, TriedGroup
from kubestow.testing import SchedulerHarness, make_node, make_pod, make_pod_group
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
    refused = "pod group is unschedulable, 0/1 placements are available, first placement status: minCount (5) cannot be"
    assert condition(harness, "a").message == (
        f"{refused} satisfied: 0 scheduled, 4 remaining, deallocation and deletion of ResourceClaims completed, "
        f"pod group preemption: {refused} satisfied: 4 scheduled, 0 remaining"
    )
    assert message(harness, "a0") == "0/2 nodes are available: 2 Insufficient cpu."


def test_pods_of_the_same_priority_stay(start: Start) -> None:
    """There are no possible victims."""
    harness = start(features=features())
    add_nodes(harness, 1)
    fill(harness, 2, priority=10)
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    found = condition(harness, "a")
    assert running(harness, "low") == 2
    assert found.message.endswith(", pod group preemption: No preemption victims found for incoming preemptor")


@pytest.mark.parametrize("other", ["Never", "PreemptLowerPriority"])
def test_a_group_that_may_not_preempt(start: Start, other: str) -> None:
    """Its pods must have the same policy."""
    harness = start(features=features())
    add_nodes(harness, 1)
    fill(harness, 2)
    harness.cluster.add(make_pod_group("a", 2, priority=10))
    add_members(harness, "a", [0], priority=10, spec={"preemptionPolicy": "Never"})
    add_members(harness, "a", [1], priority=10, spec={"preemptionPolicy": other})
    harness.run_for(0.5)
    found = condition(harness, "a")
    assert running(harness, "low") == 2
    if other == "Never":
        assert found.message.endswith(", pod group preemption: not eligible due to preemptionPolicy=Never.")
    else:
        same = "all pods in a single pod group should have the same preemption policy"
        assert found.message == f"{same}, got PreemptLowerPriority and Never"


@pytest.mark.parametrize("policy", ["Never", None])
def test_a_group_may_have_a_preemption_policy(start: Start, policy: str | None) -> None:
    """With a gate of its own, that of the group counts, and its pods must have the same one."""
    harness = start(features=Features.parse("GenericWorkload=true,PodGroupPreemptionPolicy=true"))
    add_nodes(harness, 1)
    fill(harness, 2)
    group = make_pod_group("a", 2, priority=10)
    harness.cluster.add(replace(group, spec=replace(group.spec, preemptionPolicy=policy)))
    add_members(harness, "a", range(2), priority=10, spec={"preemptionPolicy": "Never"})
    harness.run_for(0.5)
    if policy == "Never":
        assert condition(harness, "a").message.endswith("not eligible due to preemptionPolicy=Never.")
    else:
        assert condition(harness, "a").message == (
            "all pods in a single pod group should have the same preemption policy as the pod group's preemption "
            "policy, got Never and PreemptLowerPriority"
        )
    assert running(harness, "low") == 2


def test_groups_with_constraints_preempt_in_one_domain(start: Start) -> None:
    """All victims are there, even if others are less important."""
    harness = start(features=features())
    add_nodes(harness, 4, cpu="1", racks=2)
    fill(harness, 4)
    add_gang(harness, "a", pods=2, priority=10, topology_key="rack")
    harness.run_until_idle()
    racks = {harness.cluster.node(name).metadata.labels["rack"] for name in bound(harness, "a")}
    assert (len(bound(harness, "a")), len(racks), running(harness, "low")) == (2, 1, 2)


@pytest.mark.parametrize("is_async", [True, False])
def test_pods_wait_for_the_end_of_their_victims_with_a_nominated_node(start: Start, is_async: bool) -> None:
    """The message of the pods that found a node names the number of victims; a retry does not preempt again."""
    gates = Features.parse(f"GenericWorkload=true,SchedulerAsyncPreemption={str(is_async).lower()}")
    harness = start(features=gates)
    add_nodes(harness, 1)
    for number in range(2):
        harness.cluster.add(make_pod(f"low{number}", cpu="1", priority=0, grace_seconds=30))
    harness.run_until_idle()
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_for(0.5)
    assert condition(harness, "a").message.endswith(
        ", pod group preemption: found a placement for podgroup, preempting 2 victims"
    )
    assert [harness.cluster.pod(f"a{number}").status.nominatedNodeName for number in range(2)] == ["n0", "n0"]
    harness.run_for(10.0)
    ongoing = condition(harness, "a").message.endswith(", pod group preemption: ongoing preemption on nominated nodes")
    assert ongoing is not is_async
    assert [harness.cluster.pod(f"a{number}").status.nominatedNodeName for number in range(2)] == ["n0", "n0"]
    harness.run_until_idle()
    assert len(bound(harness, "a")) == 2
    assert len(harness.events.notes("Preempted")) == 2


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
    add_nodes(harness, 1, cpu="4")
    harness.cluster.add(make_pod_group("v", 2, priority=1, disruption_mode="all"))
    add_members(harness, "v", range(2), priority=1, grace_seconds=0)
    fill(harness, 2, priority=1)
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert (len(bound(harness, "a")), len(bound(harness, "v")), running(harness, "low")) == (2, 2, 0)


def test_the_priority_of_a_group_counts_for_its_pods(start: Start) -> None:
    """That is so whatever their own priorities are."""
    harness = start(features=features())
    add_nodes(harness, 2, cpu="1")
    harness.cluster.add(make_pod_group("v", 2, priority=100, disruption_mode="all"))
    for number in range(2):
        harness.cluster.add(make_pod(f"v{number}", cpu="1", group="v", priority=1, node=f"n{number}"))
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert (len(bound(harness, "a")), len(bound(harness, "v"))) == (0, 2)


def test_budgets_are_respected_if_possible(start: Start) -> None:
    """Pods without a budget are evicted first."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="4")
    budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "db"}}}}
    harness.cluster.add(convert(PodDisruptionBudget, budget))
    fill(harness, 2, name="db", labels={"app": "db"})
    fill(harness, 2, name="web", labels={"app": "web"})
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert (running(harness, "db"), running(harness, "web"), len(bound(harness, "a"))) == (2, 0, 2)


def test_victims_are_chosen_on_the_nodes_that_the_pods_got_without_them(start: Start) -> None:
    """The pods keep these nodes, however important the victims there are."""
    harness = start(features=features())
    harness.cluster.add(make_node("large", cpu="8"))
    harness.cluster.add(make_node("small", cpu="2"))
    harness.cluster.add(make_pod("important", cpu="7", priority=5, node="large", grace_seconds=0))
    harness.cluster.add(make_pod("low", cpu="2", priority=1, node="small", grace_seconds=0))
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert bound(harness, "a") == ["large", "large"]
    assert (running(harness, "important"), running(harness, "low")) == (0, 1)


@pytest.mark.parametrize(("mode", "left"), [("all", 0), ("single", 2)])
def test_a_single_pod_evicts_a_whole_group_if_configured(start: Start, mode: str, left: int) -> None:
    """The pods on other nodes are evicted with it."""
    harness = start(features=features())
    add_nodes(harness, 3, cpu="1")
    harness.cluster.add(make_pod_group("v", 3, priority=1, disruption_mode=mode))
    add_members(harness, "v", range(3), priority=1, grace_seconds=0)
    harness.run_until_idle()
    harness.cluster.add(make_pod("urgent", cpu="1", priority=10))
    harness.run_until_idle()
    assert (running(harness, "urgent"), len(bound(harness, "v"))) == (1, left)
    assert len(harness.events.notes("Preempted")) == 3 - left


def test_a_single_pod_spares_a_whole_group_if_a_pod_is_enough(start: Start) -> None:
    """A node with one victim costs less than a node with a pod of a group; on one node, the group is more important."""
    harness = start(features=features())
    add_nodes(harness, 2, cpu="2")
    harness.cluster.add(make_pod_group("v", 3, priority=1, disruption_mode="all"))
    for number, node in enumerate(("n0", "n0", "n1")):
        harness.cluster.add(make_pod(f"v{number}", cpu="1", group="v", priority=1, node=node, grace_seconds=0))
    harness.cluster.add(make_pod("low", cpu="1", priority=1, node="n1", grace_seconds=0))
    harness.cluster.add(make_pod("urgent", cpu="1", priority=10))
    harness.run_until_idle()
    assert (harness.cluster.node_of("urgent"), len(bound(harness, "v")), running(harness, "low")) == ("n1", 3, 0)


def test_a_group_of_higher_priority_is_no_victim_of_a_single_pod(start: Start) -> None:
    """The priority of the group counts, not that of its pod."""
    harness = start(features=features())
    add_nodes(harness, 1, cpu="1")
    harness.cluster.add(make_pod_group("v", 1, priority=100))
    harness.cluster.add(make_pod("v0", cpu="1", group="v", priority=1, node="n0", grace_seconds=0))
    harness.cluster.add(make_pod("urgent", cpu="1", priority=10))
    harness.run_for(5.0)
    assert message(harness, "urgent").endswith("1 No preemption victims found for incoming pod.")


def test_evicting_a_whole_group_makes_a_domain_less_crowded(start: Start) -> None:
    """Filters that count pods across nodes see that the pods on other nodes end, too."""
    harness = start(features=features())
    for name in ("n0", "n1"):
        harness.cluster.add(make_node(name, cpu="1", labels={"zone": "z"}))
    harness.cluster.add(make_pod_group("v", 2, priority=1, disruption_mode="all"))
    for number in range(2):
        options: dict[str, Any] = {"node": f"n{number}", "labels": {"app": "v"}, "grace_seconds": 0}
        harness.cluster.add(make_pod(f"v{number}", cpu="1", group="v", priority=1, **options))
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "v"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    harness.cluster.add(make_pod("urgent", cpu="1", priority=10, spec={"affinity": apart}))
    harness.run_until_idle()
    assert (running(harness, "urgent"), len(bound(harness, "v"))) == (1, 0)


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
    """They follow the message of the failed placement, in the order of the plugins."""
    harness = start(
        with_plugins("{enabled: [{name: Reluctant}], disabled: [{name: DefaultPreemption}]}"),
        features=features(),
        plugins=[Reluctant],
    )
    add_nodes(harness, 1)
    add_gang(harness, "a", pods=5, priority=10)
    harness.run_until_idle()
    assert condition(harness, "a").message.endswith(
        ", deallocation and deletion of ResourceClaims completed, too early"
    )


def test_no_pod_is_evicted_without_a_plugin_for_groups(start: Start) -> None:
    """A profile may disable the plugins at podGroupPostFilter."""
    harness = start(with_plugins("{disabled: [{name: '*'}]}"), features=features())
    add_nodes(harness, 1)
    fill(harness, 2)
    add_gang(harness, "a", pods=2, priority=10)
    harness.run_until_idle()
    assert running(harness, "low") == 2
