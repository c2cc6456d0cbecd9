"""What a scheduling cycle comes to: a pod placed, held, refused, or an error; and how it is undone."""

from typing import Any

import pytest
from msgspec.structs import replace

from framework.troupe import Refuses, Scores, nodes, profile_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.outcome import NO_NODES, Failed, Outcome, Placed
from kubestow.scheduler.cycle.scheduling import LONGEST_PERMIT_WAIT, SchedulingCycles
from kubestow.scheduler.framework.detached import NoNominations
from kubestow.scheduler.framework.results import Code, PostFilterResult, Rejection, Wait, unresolvable, unschedulable
from kubestow.testing.builders import make_pod
from settled import settled


class Takes:
    """Notes what it reserves and gives back, and answers what it is told."""

    def __init__(self, name: str, log: list[str], reserve: Any = None, permit: Any = None) -> None:
        self.name = name
        self._log, self._reserve, self._permit = log, reserve, permit

    def pre_filter(self, pod: PodInfo) -> str:
        return f"state of {self.name}"

    def reserve(self, state: Any, pod: PodInfo, node: str) -> Any:
        self._log.append(f"{self.name} reserves {node} with {state}")
        return _raised(self._reserve)

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
        self._log.append(f"{self.name} gives {node} back")

    def permit(self, state: Any, pod: PodInfo, node: str) -> Any:
        return _raised(self._permit)


def _raised(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


class MakesRoom:
    """A PostFilter that answers what it is told."""

    def __init__(self, name: str, answer: Any) -> None:
        self.name = name
        self._answer = answer
        self.asked = 0

    def post_filter(self, pod: PodInfo, cycle: Any) -> Any:
        self.asked += 1
        return _raised(self._answer)


def run(cluster: Cluster, *plugins: Any, **pod: Any) -> Outcome:
    cycles = SchedulingCycles(cluster, NoNominations(), lambda best: int(best[0]))
    return settled(cycles.run(profile_of(*plugins, cluster=cluster), PodInfo(make_pod("p", **pod))))


def test_a_pod_is_placed_on_the_best_node() -> None:
    """It is assumed there, as the pod that it will be once bound."""
    cluster = nodes(3)
    outcome = run(cluster, Refuses("A", {"n0": "no"}), Scores("S", {"n0": 9, "n1": 1, "n2": 5}))
    assert isinstance(outcome, Placed)
    assert (outcome.node, outcome.searched.evaluated, outcome.searched.feasible, outcome.waits) == ("n2", 3, 2, {})
    assert outcome.pod.pod.spec.nodeName == "n2"
    assert cluster.is_assumed(outcome.pod.uid)
    assert cluster.node_name_of(outcome.pod.uid) == "n2"


def test_only_plugins_that_act_later_keep_their_states() -> None:
    """What a filter wanted is not kept until the pod is bound."""

    class Wants(Refuses):
        def pre_filter(self, pod: PodInfo) -> str:
            return "something large"

    outcome = run(nodes(2), Wants("Filter", {}), Takes("Reserve", []))
    assert isinstance(outcome, Placed)
    assert outcome.states == {"Reserve": "state of Reserve"}


def failure(outcome: Outcome) -> Failed:
    """Return a failure without the search that led to it."""
    assert isinstance(outcome, Failed)
    return replace(outcome, searched=None)


def test_a_cluster_without_nodes() -> None:
    """Nobody is to blame, and preempting does not help."""
    assert failure(run(Cluster())) == Failed(Code.UNRESOLVABLE, NO_NODES)


def test_no_node_will_do() -> None:
    """The message counts reasons; the plugins that refused are named for the queue."""
    outcome = run(nodes(2), Refuses("A", {"n0": "no"}), Refuses("B", {"n0": "never", "n1": "busy"}))
    assert failure(outcome) == Failed(
        Code.UNSCHEDULABLE, "0/2 nodes are available: 1 busy, 1 no.", frozenset({"A", "B"}), nominated_node=""
    )


def test_reserve_takes_in_order_with_the_states() -> None:
    """What PreFilter computed is handed on."""
    log: list[str] = []
    outcome = run(nodes(1), Takes("A", log), Takes("B", log))
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
def test_the_chosen_node_cannot_be_taken(refusal: Any, outcome: Failed, point: str) -> None:
    """All reservations are given back, last first, the pod is forgotten, and the outcome says who refused and why."""
    cluster, log = nodes(3), list[str]()
    plugins = Takes("A", log), Takes("B", log, **{point: refusal}), Takes("C", log)
    found = run(cluster, *plugins)
    message = outcome.message.replace("{point}", point.capitalize())
    assert isinstance(found, Failed)
    assert (found.code, found.message, found.plugins, found.pending_plugins) == (
        outcome.code,
        message,
        outcome.plugins,
        outcome.pending_plugins,
    )
    assert log[-3:] == [f"{name} gives n0 back" for name in "CBA"]
    assert cluster.pod_count == 0
    assert not cluster.nodes.pod_count.any()


def test_unreserve_goes_on_when_a_plugin_fails() -> None:
    """The others still get to clean up."""
    log: list[str] = []

    class Fails(Takes):
        def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
            raise RuntimeError("cannot let go")

    cluster = nodes(1)
    run(cluster, Takes("A", log), Fails("B", log), Takes("C", log, reserve=unschedulable("no")))
    assert log[-2:] == ["C gives n0 back", "A gives n0 back"]
    assert cluster.pod_count == 0


def test_permit_can_make_a_pod_wait() -> None:
    """Every plugin that wants so is noted with its time, at most a quarter of an hour; the pod stays assumed."""
    cluster, log = nodes(1), list[str]()
    outcome = run(cluster, Takes("A", log, permit=Wait(10)), Takes("B", log), Takes("C", log, permit=Wait(3600)))
    assert isinstance(outcome, Placed)
    assert outcome.waits == {"A": 10, "C": LONGEST_PERMIT_WAIT}
    assert cluster.is_assumed(outcome.pod.uid)


def test_a_failing_plugin_is_an_outcome() -> None:
    """Not an exception: the next pod must not suffer."""

    class Fails(Refuses):
        def pre_filter(self, pod: PodInfo) -> Any:
            raise LookupError("no such thing")

    words = 'running PreFilter plugin "A": no such thing'
    assert failure(run(nodes(1), Fails("A", {}))) == Failed(Code.ERROR, words, failing_plugin="A")


def test_a_pod_that_makes_no_sense() -> None:
    """The error names the pod and what is wrong with it."""
    outcome = run(nodes(1), cpu="lots")
    assert isinstance(outcome, Failed)
    assert outcome.code is Code.ERROR
    assert outcome.message.startswith("pod default/p cannot be scheduled: ")
    assert "lots" in outcome.message


def test_the_nominated_node_comes_first() -> None:
    """If it will do it is taken, however good others are, and nothing else is looked at."""
    refuses = Refuses("A", {})
    outcome = run(nodes(3), refuses, Scores("S", {"n2": 99}), status={"nominatedNodeName": "n1"})
    assert isinstance(outcome, Placed)
    assert (outcome.node, outcome.searched.evaluated, outcome.searched.feasible) == ("n1", 1, 1)
    assert refuses.asked == [["n1"]]


@pytest.mark.parametrize("nominated", ["n1", "gone"])
def test_a_nominated_node_that_will_not_do(nominated: str) -> None:
    """All nodes are searched."""
    outcome = run(nodes(3), Refuses("A", {"n1": "no"}), Scores("S", {"n2": 9}), status={"nominatedNodeName": nominated})
    assert isinstance(outcome, Placed)
    assert (outcome.node, outcome.searched.evaluated, outcome.searched.feasible) == ("n2", 3, 2)


def test_post_filter_makes_room() -> None:
    """The first plugin that succeeds ends it; where the pod is expected and who must go is told."""
    victim = PodInfo(make_pod("victim", node="n0"))
    found = PostFilterResult(Code.SUCCESS, nominated_node="n0", victims=(victim,), to_unnominate=(victim,))
    spared = MakesRoom("Spared", found)
    first = MakesRoom("First", PostFilterResult(Code.UNSCHEDULABLE, "no luck"))
    outcome = run(nodes(1), Refuses("A", {"n0": "no"}), first, MakesRoom("Second", found), spared)
    assert isinstance(outcome, Failed)
    assert (outcome.nominated_node, outcome.victims, outcome.to_unnominate) == ("n0", (victim,), (victim,))
    assert outcome.message == "0/1 nodes are available: 1 no."
    assert (first.asked, spared.asked) == (1, 0)


def test_post_filters_that_cannot_help() -> None:
    """What they say is joined; the last one that speaks of a nomination counts."""
    plugins = [
        MakesRoom("First", PostFilterResult(Code.UNSCHEDULABLE, "no luck", nominated_node="")),
        MakesRoom("Second", PostFilterResult(Code.UNSCHEDULABLE, "none either")),
    ]
    outcome = run(nodes(1), Refuses("A", {"n0": "no"}), *plugins)
    assert isinstance(outcome, Failed)
    assert outcome.message == "0/1 nodes are available: 1 no. no luck, none either"
    assert outcome.nominated_node == ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (PostFilterResult(Code.UNRESOLVABLE, "nothing helps"), "nothing helps"),
        (PostFilterResult(Code.ERROR, "went wrong"), "went wrong"),
        (KeyError("x"), "running PostFilter plugin \"First\": KeyError('x')"),
    ],
)
def test_post_filters_that_end_it(answer: Any, words: str) -> None:
    """A plugin that knows nothing will help, or fails, is the last one asked."""
    second = MakesRoom("Second", PostFilterResult(Code.SUCCESS, nominated_node="n0"))
    outcome = run(nodes(1), Refuses("A", {"n0": "no"}), MakesRoom("First", answer), second)
    assert isinstance(outcome, Failed)
    assert outcome.message == f"0/1 nodes are available: 1 no. {words}"
    assert second.asked == 0
