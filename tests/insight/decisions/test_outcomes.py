"""The record of each outcome of an attempt."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow import config
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.recorder import Recorder
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.detached import FirstRng, FixedClock
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Rejection, Wait, unschedulable
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.records import archive_of, decisions, nodes_of, recorded
from support.scenarios import gangs
from support.scenarios.extending import FakeExtenders, only

UNSCORED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {score: {disabled: [{name: "*"}]}}
"""


class Permits:
    """A plugin that makes every pod wait until the test allows it."""

    name = "Permits"

    def __init__(self, args: Any, handle: Handle) -> None:
        self.handle = handle

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait:
        return Wait(60.0)


class Rejects:
    """A plugin that rejects every pod at Permit."""

    name = "Rejects"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def permit(self, state: Any, pod: PodInfo, node: str) -> Rejection:
        return unschedulable("no quota")


class Breaks:
    """A plugin that fails for every pod in PreFilter."""

    name = "Breaks"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def pre_filter(self, pod: PodInfo) -> None:
        raise RuntimeError("worn out")


def test_a_bound_pod() -> None:
    """The decision has the scores by node and plugin, the reason of the choice, and the steps of binding."""
    with recorded() as world:
        world.cluster.add(make_node("small", cpu="2"))
        world.cluster.add(make_node("large", cpu="8"))
        world.cluster.add(make_node("tainted", taints=["dedicated:NoSchedule"]))
        world.cluster.add(make_pod("p", cpu="1", memory="1Gi"))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
    assert (decision.version, decision.pod, decision.outcome) == (1, "default/p", "scheduled")
    assert (decision.chosen, decision.message, decision.profile) == ("large", "", "default-scheduler")
    assert (decision.nodeCount, decision.evaluated, decision.feasible) == (3, 3, 2)
    nodes = nodes_of(decision)
    assert nodes["tainted"].rejected == schema.Rejected(
        "TaintToleration", "UnschedulableAndUnresolvable", ("node(s) had untolerated taint(s)",)
    )
    for name in ("small", "large"):
        node = nodes[name]
        assert node.plugins is not None
        assert node.total == sum(node.plugins.values())
        assert node.plugins == {plugin: score * decision.weights[plugin] for plugin, score in node.normalized.items()}
        assert node.raw.keys() == node.plugins.keys()
        assert (node.raw["TaintToleration"], node.normalized["TaintToleration"]) == (0, 100)
    assert (nodes["large"].total or 0) > (nodes["small"].total or 0)
    assert decision.choice == schema.Choice("score", ("large",))
    assert decision.binding is not None
    assert (decision.binding.state, [(step.step, step.plugin) for step in decision.binding.steps]) == (
        "bound",
        [("Bind", "DefaultBinder")],
    )
    assert [(move.queue, move.event) for move in decision.queue.history] == [("active", "UnscheduledPodAdd")]


def test_a_deleted_node_does_not_count() -> None:
    """It does not count while its pods still exist, either, for pods that share results with earlier pods."""
    with recorded() as world:
        for name in ("a", "b", "c"):
            world.cluster.add(make_node(name))
        for number in range(6):
            world.cluster.add(make_pod(f"p{number}", cpu="1"))
        world.run_until_idle()
        world.cluster.delete(make_node("a"))
        world.cluster.add(make_pod("late", cpu="1"))
        world.run_until_idle()
        counts = [decision.nodeCount for name in ("p5", "late") for decision in decisions(world, name)]
    assert counts == [3, 2]


def test_a_tie_is_recorded() -> None:
    """The decision has all nodes with the highest score, and that the choice was random."""
    with recorded() as world:
        for name in ("a", "b", "c"):
            world.cluster.add(make_node(name))
        world.cluster.add(make_pod("p", cpu="1"))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
    assert decision.choice is not None
    assert (decision.choice.reason, sorted(decision.choice.best)) == ("random", ["a", "b", "c"])


def test_a_limit_of_nodes_keeps_the_best() -> None:
    """The chosen node is first, then nodes by score, rejected nodes last; the number of omitted nodes is reported."""
    with recorded() as world:
        for cpu in range(2, 10):
            world.cluster.add(make_node(f"n{cpu}", cpu=str(cpu)))
        world.cluster.add(make_pod("p", cpu="3"))
        world.cluster.add(make_pod("large", cpu="20"))
        world.run_until_idle()
        archive = archive_of(world)
        records = {record.name: record for record in archive}
        few = {name: archive.decision(record, most=3) for name, record in records.items()}
        many = archive.decision(records["p"], most=20)
        whole = archive.decision(records["p"])
    best = nodes_of(few["p"])
    assert best == {name: nodes_of(whole)[name] for name in ("n7", "n8", "n9")}
    assert (few["p"].choice, few["p"].nodesCut) == (whole.choice, 5)
    assert (many, many.nodesCut) == (whole, 0)
    rejected_nodes = nodes_of(few["large"])
    assert [one.rejected.plugin for one in rejected_nodes.values() if one.rejected] == ["NodeResourcesFit"] * 3
    assert few["large"].nodesCut == 5


def test_a_limit_of_nodes_keeps_the_best_for_a_pod_that_lost_its_node() -> None:
    """Its nodes were scored, but none is chosen."""
    with recorded(plugins=[Rejects]) as world:
        for name in "abcd":
            world.cluster.add(make_node(name, cpu="8"))
        world.cluster.add(make_pod("p", cpu="3"))
        world.run_for(0.1)
        archive = archive_of(world)
        record = next(iter(archive))
        cut, whole = archive.decision(record, most=2), archive.decision(record)
    assert (cut.chosen, len(nodes_of(whole))) == (None, 4)
    assert len(nodes_of(cut)) == 2
    assert nodes_of(cut).items() <= nodes_of(whole).items()


def test_a_limit_of_nodes_keeps_the_only_feasible_node() -> None:
    """The feasible node is kept with every limit."""
    with recorded() as world:
        for name in "abcdefgh":
            world.cluster.add(make_node(name, cpu="8" if name == "h" else "1"))
        world.cluster.add(make_pod("p", cpu="3"))
        world.run_until_idle()
        archive = archive_of(world)
        (record,) = archive
        cut = archive.decision(record, most=2)
    assert nodes_of(cut)["h"] == schema.NodeResult(unscored=True)
    (rejected,) = (one for one in nodes_of(cut).values() if one.rejected)
    assert rejected.rejected == schema.Rejected(
        "NodeResourcesFit", "UnschedulableAndUnresolvable", ("Insufficient cpu",)
    )
    assert cut.nodesCut == 6


def test_an_only_node_is_not_scored() -> None:
    """The node is only marked as feasible."""
    with recorded() as world:
        world.cluster.add(make_node("n", cpu="2"))
        world.cluster.add(make_node("full", cpu="100m"))
        world.cluster.add(make_pod("p", cpu="1"))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
    assert nodes_of(decision)["n"] == schema.NodeResult(unscored=True)
    assert decision.choice == schema.Choice("only", ("n",))


def test_the_first_feasible_node_is_not_called_the_only_one() -> None:
    """Without score plugins, the other nodes are not evaluated."""
    with recorded(configuration=config.load(UNSCORED)) as world:
        for name in ("a", "b", "c"):
            world.cluster.add(make_node(name))
        world.cluster.add(make_pod("p", cpu="1"))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
    assert (decision.evaluated, decision.feasible) == (1, 1)
    assert decision.choice == schema.Choice("first", (str(decision.chosen),))


def test_an_unschedulable_pod() -> None:
    """The decision has the rejection of each node, and the message of the pod's condition."""
    with recorded() as world:
        world.cluster.add(make_node("small", cpu="2"))
        world.cluster.add(make_node("cordoned", unschedulable=True))
        world.cluster.add(make_pod("p", cpu="4"))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
        assert decision.message == world.cluster.conditions("p")["PodScheduled"].message
    assert (decision.outcome, decision.chosen) == ("unschedulable", None)
    assert decision.rejectedBy == ("NodeResourcesFit", "NodeUnschedulable")
    rejected = {name: node.rejected for name, node in nodes_of(decision).items()}
    assert {name: (by.plugin, by.reasons) for name, by in rejected.items() if by is not None} == {
        "small": ("NodeResourcesFit", ("Insufficient cpu",)),
        "cordoned": ("NodeUnschedulable", ("node(s) were unschedulable",)),
    }
    assert (decision.evaluated, decision.binding) == (2, None)


def test_pre_filter_narrows_and_rejects() -> None:
    """The decision has the remaining nodes and the plugins that narrowed them, or the rejection of the pod."""
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [fields]}}
    with recorded() as world:
        world.cluster.add(make_node("a"))
        world.cluster.add(make_node("b"))
        world.cluster.add(make_pod("named", spec={"affinity": {"nodeAffinity": required}}))
        world.cluster.add(make_pod("claims", claims=["missing"]))
        world.run_until_idle()
        (named,), (claims,) = decisions(world, "named"), decisions(world, "claims")
    assert (named.preFilter.narrowedTo, named.preFilter.narrowedBy) == (("a",), ("NodeAffinity",))
    assert (named.chosen, set(nodes_of(named))) == ("a", {"a"})
    assert claims.preFilter.rejected is not None
    assert claims.preFilter.rejected.reasons == ('persistentvolumeclaim "missing" not found',)
    assert claims.nodes == {}


def test_a_pod_that_preempts() -> None:
    """The decision has the victims, the candidates with their costs, and the field that decided; later, the choice."""
    with recorded() as world:
        for name, priorities in {"cheap": [1], "dear": [5]}.items():
            world.cluster.add(make_node(name, cpu="1"))
            for priority in priorities:
                world.cluster.add(make_pod(f"low-{priority}", cpu="1", priority=priority, node=name))
        world.cluster.add(make_pod("high", cpu="1", priority=10))
        world.run_until_idle()
        first, *_, last = decisions(world, "high")
    assert (first.outcome, first.nominatedNode) == ("unschedulable", "cheap")
    found = first.preemption
    assert found is not None
    assert (found.plugin, found.nominated, found.why) == ("DefaultPreemption", "cheap", "highestPriority")
    assert found.victims == (schema.Victim("default/low-1", 1),)
    assert {(one.node, one.pdbViolations, one.highestPriority, one.victims) for one in found.candidates} == {
        ("cheap", 0, 1, 1),
        ("dear", 0, 5, 1),
    }
    assert (last.outcome, last.chosen) == ("scheduled", "cheap")
    assert last.choice == schema.Choice("nominated", ("cheap",))


def test_nominated_pods_are_recorded() -> None:
    """A pod does not fit on a node because another pod is nominated there."""
    with recorded() as world:
        world.cluster.add(make_node("n", cpu="2"))
        world.cluster.add(make_node("other", cpu="1"))
        world.cluster.add(
            make_pod("coming", cpu="2", priority=9, gates=["wait"], status={"nominatedNodeName": "n"}),
        )
        world.run_until_idle()
        nominator = world.core.queue.nominator
        nominator.nominate(world.cluster.pod("coming"), "n")
        world.cluster.add(make_pod("p", cpu="1"))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
    assert decision.chosen == "other"
    assert decision.nominated == (schema.Nominated("default/coming", "n", 9),)
    rejected = nodes_of(decision)["n"].rejected
    assert rejected is not None
    assert rejected.reasons == ("Insufficient cpu",)


def test_a_rejection_by_nominated_pods_does_not_change_earlier_decisions() -> None:
    """Equal pods share results: the scores of earlier pods stay when a nomination makes the node infeasible later."""
    with recorded() as world:
        for name in ("a", "b", "c"):
            world.cluster.add(make_node(name, cpu="2"))
            world.cluster.add(make_pod(f"full-{name}", cpu="2", node=name))
        for name in ("first", "second"):
            world.cluster.add(make_pod(name, cpu="1"))
        world.run_until_idle()
        for name in ("a", "b", "c"):
            world.cluster.delete(world.cluster.pod(f"full-{name}"))
        world.run_until_idle()
        before = decisions(world, "first")[-1]
        free = ({"a", "b", "c"} - {world.cluster.pod(name).spec.nodeName for name in ("first", "second")}).pop()
        world.cluster.add(make_pod("coming", cpu="2", priority=9, gates=["wait"]))
        world.run_until_idle()
        world.core.queue.nominator.nominate(world.cluster.pod("coming"), free)
        world.cluster.add(make_pod("third", cpu="1"))
        world.run_until_idle()
        after = decisions(world, "first")[-1]
        (third,) = decisions(world, "third")
    assert after == before
    assert before.feasible == 3
    rejected = nodes_of(third)[free].rejected
    assert rejected is not None
    assert rejected.reasons == ("Insufficient cpu",)


def test_an_error() -> None:
    """The failing plugin is named, and no node is evaluated."""
    with recorded(plugins=[Breaks]) as world:
        world.cluster.add(make_node("n"))
        world.cluster.add(make_pod("p"))
        world.run_for(0.5)
        (decision,) = decisions(world, "p")
    message, _, place = decision.message.partition(" (")
    assert (decision.outcome, message) == ("error", 'running PreFilter plugin "Breaks": worn out')
    assert place.partition(":")[0].endswith(".py")
    assert (decision.nodes, decision.evaluated) == ({}, 0)


def test_no_nodes_at_all() -> None:
    """An attempt without nodes is recorded, too."""
    with recorded() as world:
        world.cluster.add(make_pod("p"))
        world.run_for(0.5)
        (decision,) = decisions(world, "p")
    assert (decision.message, decision.nodes, decision.nodesDropped) == ("no nodes available to schedule pods", {}, "")


def test_waiting_for_permission() -> None:
    """The record has the plugins that the pod waits for, and after the timeout the failure and its step."""
    with recorded(plugins=[Permits]) as world:
        world.cluster.add(make_node("n"))
        world.cluster.add(make_pod("p"))
        world.run_for(1.0)
        (waiting,) = decisions(world, "p")
        world.run_for(60.0)
        failed, *_ = decisions(world, "p")
    assert waiting.binding == schema.Binding("waiting", (), ("Permits",), permits={"Permits": 60.0})
    assert (waiting.outcome, failed.outcome, failed.chosen) == ("scheduled", "unschedulable", "n")
    assert failed.binding is not None
    assert (failed.binding.state, failed.binding.waitsFor) == ("failed", ())
    (step,) = failed.binding.steps
    assert (step.step, step.plugin, step.seconds) == ("WaitOnPermit", "Permits", 60.0)
    assert "rejected due to timeout after waiting 1m0s at plugin Permits" in step.error
    assert failed.rejectedBy == ("Permits",)


def test_a_pod_that_permit_rejects_has_feasible_nodes() -> None:
    """The numbers of evaluated and feasible nodes are recorded."""
    with recorded(plugins=[Rejects]) as world:
        for name in ("a", "b"):
            world.cluster.add(make_node(name))
        world.cluster.add(make_node("tainted", taints=["dedicated:NoSchedule"]))
        world.cluster.add(make_pod("p"))
        world.run_for(0.5)
        decision, *_ = decisions(world, "p")
    assert (decision.outcome, decision.chosen, decision.rejectedBy) == ("unschedulable", None, ("Rejects",))
    assert (decision.nodeCount, decision.evaluated, decision.feasible) == (3, 3, 2)
    assert {name for name, node in nodes_of(decision).items() if node.rejected is None} == {"a", "b"}


def test_a_failed_binding_is_retried() -> None:
    """There are two records: one with the error of its step, and one that is bound in the second attempt."""
    with recorded() as world:
        world.cluster.add(make_node("n"))
        world.cluster.faults.fail("bind", "Conflict")
        world.cluster.add(make_pod("p"))
        world.run_until_idle()
        failed, bound = decisions(world, "p")
    assert (failed.outcome, bound.outcome, bound.queue.attempts) == ("error", "scheduled", 2)
    assert failed.binding is not None
    assert (failed.binding.state, failed.binding.steps[0].step) == ("failed", "Bind")
    assert failed.binding.steps[0].error == failed.message != ""
    assert [move.queue for move in bound.queue.history] == ["active", "backoff", "active"]


@pytest.mark.parametrize("keeps", [("n1",), ("n1", "n2")])
def test_extender_calls_are_recorded(keeps: tuple[str, ...]) -> None:
    """The decision has their URLs, the numbers of nodes, the rejected nodes, and their scores."""
    extenders = FakeExtenders(a="filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true")
    extenders.replies["a/filter"] = only(*keeps)
    with recorded(configuration=extenders.configuration, ask=extenders.ask) as world:
        for name in ("n1", "n2", "n3"):
            world.cluster.add(make_node(name))
        world.cluster.add(make_pod("p", cpu="1"))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
    call = decision.extenders[0]
    assert (call.verb, call.sent, call.kept, call.error) == ("filter", 3, len(keeps), "")
    nodes = nodes_of(decision)
    assert nodes["n3"].rejected is not None
    assert nodes["n3"].rejected.plugin == "Extender"
    assert (nodes["n1"].unscored, nodes["n1"].total is None) == (len(keeps) == 1, len(keeps) == 1)


WAKING: list[tuple[str, Callable[[SchedulerHarness], object], str, str]] = [
    ("room", lambda world: world.cluster.delete(world.cluster.pod("runs")), "AssignedPodDelete", "NodeResourcesFit"),
    ("node", lambda world: world.cluster.add(make_node("new", cpu="4")), "NodeAdd", "NodeResourcesFit"),
]


@pytest.mark.parametrize(("name", "happens", "event", "plugin"), WAKING, ids=[case[0] for case in WAKING])
def test_the_event_that_requeued_a_pod(
    name: str, happens: Callable[[SchedulerHarness], object], event: str, plugin: str
) -> None:
    """The move has the event, and the plugin whose hint requested it."""
    with recorded() as world:
        world.cluster.add(make_node("n", cpu="2"))
        world.cluster.add(make_pod("runs", cpu="2", node="n"))
        world.cluster.add(make_pod("p", cpu="2"))
        world.run_until_idle()
        world.run_for(30.0)
        happens(world)
        world.run_until_idle()
        _, decision = decisions(world, "p")
    assert decision.outcome == "scheduled"
    moves = [(move.queue, move.event, move.plugin) for move in decision.queue.history]
    assert moves == [
        ("active", "UnscheduledPodAdd", ""),
        ("unschedulable", "ScheduleAttemptFailure", ""),
        ("active", event, plugin),
    ]
    assert decision.queue.waited >= 30.0


def test_a_gate_is_recorded() -> None:
    """The move has the plugin that gated the pod."""
    with recorded() as world:
        world.cluster.add(make_node("n"))
        world.cluster.add(make_pod("p", gates=["later"]))
        world.run_until_idle()
        gated = world.cluster.pod("p")
        world.cluster.update(replace(gated, spec=replace(gated.spec, schedulingGates=())))
        world.run_until_idle()
        (decision,) = decisions(world, "p")
    first = decision.queue.history[0]
    assert (first.queue, first.plugin) == ("gated", "SchedulingGates")


def test_only_the_last_moves_are_kept() -> None:
    """The memory of a pod with many attempts is limited; the number of dropped moves is reported."""
    with recorded(plugins=[Breaks]) as world:
        world.cluster.add(make_node("n"))
        world.cluster.add(make_pod("p"))
        world.run_for(120.0)
        first, *_, last = decisions(world, "p")
    assert len(first.queue.history) == 1
    assert 0 < len(last.queue.history) <= 8
    assert len(last.queue.history) + last.queue.forgotten == 2 * last.queue.attempts - 1


def test_pods_of_a_group() -> None:
    """Each pod of a group has its own record, with the state of nodes at its attempt."""
    with recorded(features=gangs.features()) as world:
        gangs.add_nodes(world, 3)
        gangs.add_gang(world, "g", 3)
        world.run_until_idle()
        found = [decision for number in range(3) for decision in decisions(world, f"g{number}")]
    assert [decision.outcome for decision in found] == ["scheduled"] * 3
    for decision in found:
        assert decision.chosen in nodes_of(decision)
        assert decision.binding is not None
        assert decision.binding.state == "bound"


def test_the_times_of_steps_do_not_depend_on_when_they_are_read() -> None:
    """Clock and stopwatch are not read at the same instant, so small differences are ignored; a set clock counts."""
    clock = FixedClock()
    recorder = Recorder(clock=clock, stopwatch=lambda: 0.0, rng=FirstRng())
    before = recorder.clock_offset()
    clock.seconds += 0.000_002
    assert recorder.clock_offset() == before
    clock.seconds += 5.0
    assert recorder.clock_offset() == before + 5.000_002
