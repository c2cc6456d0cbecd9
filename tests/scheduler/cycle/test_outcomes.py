"""Outcomes of a scheduling cycle: a pod placed, waiting, rejected, or failed; and how reservations are undone."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.outcome import NO_NODES, Failed, Outcome, Placed
from kubestow.scheduler.cycle.scheduling import LONGEST_PERMIT_WAIT, SchedulingCycles
from kubestow.scheduler.framework.detached import NoNominations
from kubestow.scheduler.framework.results import Code, PostFilterResult, Rejection, Wait, unresolvable, unschedulable
from kubestow.testing.builders import make_pod
from support.scheduler.troupe import Refuses, Scores, nodes, profile_of
from support.settled import settled


class Takes:
    """Logs what it reserves and releases, and returns the given answers."""

    def __init__(self, name: str, log: list[str], reserve: Any = None, permit: Any = None) -> None:
        self.name = name
        self._log, self._reserve, self._permit = log, reserve, permit

    def pre_filter(self, pod: PodInfo) -> str:
        return f"state of {self.name}"

    def reserve(self, state: Any, pod: PodInfo, node: str) -> Any:
        self._log.append(f"{self.name} reserves {node} with {state}")
        return _raised(self._reserve)

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
        self._log.append(f"{self.name} releases {node}")

    def permit(self, state: Any, pod: PodInfo, node: str) -> Any:
        return _raised(self._permit)


def _raised(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


class MakesRoom:
    """A PostFilter that returns the given answer."""

    def __init__(self, name: str, answer: Any) -> None:
        self.name = name
        self._answer = answer
        self.calls = 0

    def post_filter(self, pod: PodInfo, cycle: Any) -> Any:
        self.calls += 1
        return _raised(self._answer)


def schedule(cluster: Cluster, *plugins: Any, **pod: Any) -> Outcome:
    cycles = SchedulingCycles(cluster, NoNominations(), lambda best: int(best[0]))
    return settled(cycles.run(profile_of(*plugins, cluster=cluster), PodInfo(make_pod("p", **pod))))


def test_a_pod_is_placed_on_the_best_node() -> None:
    """It is assumed there, as the pod that it will be once bound."""
    cluster = nodes(3)
    outcome = schedule(cluster, Refuses("A", {"n0": "no"}), Scores("S", {"n0": 9, "n1": 1, "n2": 5}))
    assert isinstance(outcome, Placed)
    assert (outcome.node, outcome.searched.evaluated, outcome.searched.feasible, outcome.waits) == ("n2", 3, 2, {})
    assert outcome.pod.pod.spec.nodeName == "n2"
    assert cluster.is_assumed(outcome.pod.uid)
    assert cluster.node_name_of(outcome.pod.uid) == "n2"


def test_only_plugins_that_act_later_keep_their_states() -> None:
    """The state of a filter is not kept until the pod is bound."""

    class Wants(Refuses):
        def pre_filter(self, pod: PodInfo) -> str:
            return "something large"

    outcome = schedule(nodes(2), Wants("Filter", {}), Takes("Reserve", []))
    assert isinstance(outcome, Placed)
    assert outcome.states == {"Reserve": "state of Reserve"}


def failure(outcome: Outcome) -> Failed:
    """Return a failure without the search that led to it."""
    assert isinstance(outcome, Failed)
    return replace(outcome, searched=None)


def test_a_cluster_without_nodes() -> None:
    """No plugin rejected the pod, and preemption does not help."""
    assert failure(schedule(Cluster())) == Failed(Code.UNRESOLVABLE, NO_NODES)


def test_no_feasible_node() -> None:
    """The message counts reasons; the plugins that rejected nodes are named for the queue."""
    outcome = schedule(nodes(2), Refuses("A", {"n0": "no"}), Refuses("B", {"n0": "never", "n1": "busy"}))
    assert failure(outcome) == Failed(
        Code.UNSCHEDULABLE, "0/2 nodes are available: 1 busy, 1 no.", frozenset({"A", "B"}), nominated_node=""
    )


def test_reserve_runs_in_order_with_the_states() -> None:
    """Each plugin gets the state that its PreFilter returned."""
    log: list[str] = []
    outcome = schedule(nodes(1), Takes("A", log), Takes("B", log))
    assert isinstance(outcome, Placed)
    assert log == ["A reserves n0 with state of A", "B reserves n0 with state of B"]
    assert outcome.states == {"A": "state of A", "B": "state of B"}


@pytest.mark.parametrize(
    ("refusal", "outcome"),
    [
        (unschedulable("sold out"), Failed(Code.UNSCHEDULABLE, "0/1 nodes are available: 1 sold out.", frozenset("B"))),
        (unresolvable("b", "a"), Failed(Code.UNRESOLVABLE, "0/1 nodes are available: 1 a, 1 b.", frozenset("B"))),
        (Rejection((), Code.UNSCHEDULABLE), Failed(Code.UNSCHEDULABLE, "0/1 nodes are available:", frozenset("B"))),
        (
            Rejection(("later",), Code.PENDING),
            Failed(Code.PENDING, "0/1 nodes are available: 1 later.", pending_plugins=frozenset("B")),
        ),
        (Rejection(("odd",), Code.ERROR), Failed(Code.ERROR, "odd")),
        (KeyError("x"), Failed(Code.ERROR, "running {point} plugin \"B\": KeyError('x')")),
    ],
)
@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_the_pod_is_rejected_on_the_chosen_node(refusal: Any, outcome: Failed, point: str) -> None:
    """All reservations are released in reverse order, the pod is forgotten, and the outcome names plugin and reason."""
    cluster, log = nodes(3), list[str]()
    plugins = Takes("A", log), Takes("B", log, **{point: refusal}), Takes("C", log)
    found = schedule(cluster, *plugins)
    message = outcome.message.replace("{point}", point.capitalize())
    assert isinstance(found, Failed)
    assert (found.code, found.message, found.plugins, found.pending_plugins) == (
        outcome.code,
        message,
        outcome.plugins,
        outcome.pending_plugins,
    )
    assert log[-3:] == [f"{name} releases n0" for name in "CBA"]
    assert cluster.pod_count == 0
    assert not cluster.nodes.pod_count.any()


def test_unreserve_goes_on_when_a_plugin_fails() -> None:
    """The other plugins are called as well."""
    log: list[str] = []

    class Fails(Takes):
        def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
            raise RuntimeError("cannot let go")

    cluster = nodes(1)
    schedule(cluster, Takes("A", log), Fails("B", log), Takes("C", log, reserve=unschedulable("no")))
    assert log[-2:] == ["C releases n0", "A releases n0"]
    assert cluster.pod_count == 0


def test_permit_can_make_a_pod_wait() -> None:
    """Every such plugin is stored with its timeout, at most 15 minutes; the pod stays assumed."""
    cluster, log = nodes(1), list[str]()
    outcome = schedule(cluster, Takes("A", log, permit=Wait(10)), Takes("B", log), Takes("C", log, permit=Wait(3600)))
    assert isinstance(outcome, Placed)
    assert outcome.waits == {"A": 10, "C": LONGEST_PERMIT_WAIT}
    assert cluster.is_assumed(outcome.pod.uid)


def test_a_failing_plugin_is_an_outcome() -> None:
    """No exception is raised, so that the next pod is scheduled."""

    class Fails(Refuses):
        def pre_filter(self, pod: PodInfo) -> Any:
            raise LookupError("no such thing")

    message = 'running PreFilter plugin "A": no such thing'
    failed = failure(schedule(nodes(1), Fails("A", {})))
    assert failed == Failed(Code.ERROR, message, failing_plugin="A", at=failed.at)
    assert failed.at.startswith(f"{__file__}:")


def test_an_invalid_pod() -> None:
    """The error names the pod and the problem."""
    outcome = schedule(nodes(1), cpu="lots")
    assert isinstance(outcome, Failed)
    assert outcome.code is Code.ERROR
    assert outcome.message.startswith("pod default/p cannot be scheduled: ")
    assert "lots" in outcome.message


def test_the_nominated_node_comes_first() -> None:
    """If it is feasible it is chosen, without evaluating other nodes."""
    refuses = Refuses("A", {})
    outcome = schedule(nodes(3), refuses, Scores("S", {"n2": 99}), status={"nominatedNodeName": "n1"})
    assert isinstance(outcome, Placed)
    assert (outcome.node, outcome.searched.evaluated, outcome.searched.feasible) == ("n1", 1, 1)
    assert refuses.calls == [["n1"]]


@pytest.mark.parametrize("nominated", ["n1", "gone"])
def test_a_nominated_node_that_is_not_feasible(nominated: str) -> None:
    """All nodes are searched."""
    outcome = schedule(
        nodes(3), Refuses("A", {"n1": "no"}), Scores("S", {"n2": 9}), status={"nominatedNodeName": nominated}
    )
    assert isinstance(outcome, Placed)
    assert (outcome.node, outcome.searched.evaluated, outcome.searched.feasible) == ("n2", 3, 2)


def test_post_filter_nominates_a_node() -> None:
    """The first plugin that succeeds is the last one called; the outcome has the node and the victims."""
    victim = PodInfo(make_pod("victim", node="n0"))
    found = PostFilterResult(Code.SUCCESS, nominated_node="n0", victims=(victim,), to_unnominate=(victim,))
    unused = MakesRoom("Unused", found)
    first = MakesRoom("First", PostFilterResult(Code.UNSCHEDULABLE, "no luck"))
    outcome = schedule(nodes(1), Refuses("A", {"n0": "no"}), first, MakesRoom("Second", found), unused)
    assert isinstance(outcome, Failed)
    assert (outcome.nominated_node, outcome.victims, outcome.to_unnominate) == ("n0", (victim,), (victim,))
    assert outcome.message == "0/1 nodes are available: 1 no."
    assert (first.calls, unused.calls) == (1, 0)


def test_post_filters_that_cannot_help() -> None:
    """Their messages are joined; the last one that sets a nomination counts."""
    plugins = [
        MakesRoom("First", PostFilterResult(Code.UNSCHEDULABLE, "no luck", nominated_node="")),
        MakesRoom("Second", PostFilterResult(Code.UNSCHEDULABLE, "none either")),
    ]
    outcome = schedule(nodes(1), Refuses("A", {"n0": "no"}), *plugins)
    assert isinstance(outcome, Failed)
    assert outcome.message == "0/1 nodes are available: 1 no. no luck, none either"
    assert outcome.nominated_node == ""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (PostFilterResult(Code.UNRESOLVABLE, "nothing helps"), "nothing helps"),
        (PostFilterResult(Code.ERROR, "went wrong"), "went wrong"),
        (KeyError("x"), "running PostFilter plugin \"First\": KeyError('x')"),
    ],
)
def test_post_filters_that_end_the_search(answer: Any, message: str) -> None:
    """No plugin is called after one that finds preemption useless, or fails."""
    second = MakesRoom("Second", PostFilterResult(Code.SUCCESS, nominated_node="n0"))
    outcome = schedule(nodes(1), Refuses("A", {"n0": "no"}), MakesRoom("First", answer), second)
    assert isinstance(outcome, Failed)
    assert outcome.message == f"0/1 nodes are available: 1 no. {message}"
    assert second.calls == 0
