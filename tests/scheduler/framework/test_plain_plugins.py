"""Plugins in plain form: written node by node, called like the others."""

from typing import Any

import numpy as np
import pytest

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.framework.plain import NodeRow
from kubestow.scheduler.framework.results import SKIP, Code, PluginError, Rejection, Rejections, unresolvable
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scheduler.troupe import Refuses, Scores, evaluation_of, filtered, nodes


class Picky:
    """Rejects nodes by name; scores by the number of pods."""

    name = "Picky"

    def __init__(self, answers: dict[str, Any] | None = None, score: Any = None) -> None:
        self._answers = answers or {}
        self._score = score
        self.filtered: list[str] = []
        self.scored: list[str] = []

    def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> Any:
        self.filtered.append(node.name)
        return self._answers.get(node.name)

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> Any:
        self.scored.append(node.name)
        return len(node.pods) if self._score is None else self._score


def test_reasons_and_rejections() -> None:
    """A string is a reason that preemption may resolve; a Rejection has its own code; None lets the node pass."""
    never = unresolvable("never", "ever")
    evaluation = evaluation_of(nodes(4), Picky({"n0": "not now", "n1": never, "n2": "not now"}))
    assert filtered(evaluation) == ["n3"]
    assert evaluation.verdicts is not None
    assert evaluation.verdicts.summary().reasons == {"not now": 2, "never": 1, "ever": 1}
    assert evaluation.verdicts.rejection(1) == never._replace(plugin="Picky")
    assert evaluation.verdicts.rejection(0) == Rejection(("not now",), Code.UNSCHEDULABLE, "Picky")


def test_scores() -> None:
    """The score of each feasible node is the plugin's, weighted."""
    cluster = nodes(3)
    cluster.set_pod(make_pod("x", node="n1"))
    evaluation = evaluation_of(cluster, Picky(), weights={"Picky": 3})
    assert evaluation.score(evaluation.filter()).tolist() == [0, 3, 0]


def test_only_remaining_nodes_are_evaluated() -> None:
    """Every node costs a call, so filters skip nodes that were rejected, and scores those that are not feasible."""
    cluster = nodes(5)
    cluster.remove_node("n4")
    plugin = Picky({"n1": "no"})
    evaluation = evaluation_of(cluster, Refuses("First", {"n0": "no"}), plugin)
    evaluation.score(evaluation.filter())
    assert plugin.filtered == ["n1", "n2", "n3"]
    assert plugin.scored == ["n2", "n3"]


@pytest.mark.parametrize("answer", [True, 0, ["why not"], b"no"])
def test_a_filter_that_returns_another_type(answer: Any) -> None:
    """The error names the returned type and the valid ones."""
    evaluation = evaluation_of(nodes(1), Picky({"n0": answer}))
    message = (
        rf'Filter plugin "Picky": filter must return a reason \(str\), a Rejection or None, not {type(answer).__name__}'
    )
    with pytest.raises(PluginError, match=message):
        filtered(evaluation)


@pytest.mark.parametrize("answer", [0.5, "10", [1]])
def test_a_score_that_is_not_a_whole_number(answer: Any) -> None:
    """It is not rounded, but an error."""
    evaluation = evaluation_of(nodes(2), Picky(score=answer))
    message = rf'Score plugin "Picky": score must return a whole number \(int\), not {type(answer).__name__}'
    with pytest.raises(PluginError, match=message):
        evaluation.score(evaluation.filter())


def test_numpy_numbers_are_numbers() -> None:
    """A plugin may compute with NumPy."""
    evaluation = evaluation_of(nodes(2), Picky(score=np.int64(7)))
    assert evaluation.score(evaluation.filter()).tolist() == [7, 7]


def test_the_state_is_what_pre_filter_returned() -> None:
    """Filter gets the result of pre_filter, score that of pre_score."""

    class Stateful:
        name = "Stateful"
        seen: list[Any] = []

        def pre_filter(self, pod: PodInfo) -> str:
            return f"state of {pod.name}"

        def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> None:
            self.seen.append(state)

        def pre_score(self, pod: PodInfo, view: Any, rows: Any) -> int:
            return len(rows)

        def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
            self.seen.append(state)
            return 0

    evaluation = evaluation_of(nodes(2), Stateful())
    filtered(evaluation)
    assert evaluation.verdicts is not None
    evaluation.score(evaluation.verdicts.feasible())
    assert Stateful.seen == ["state of p", "state of p", 2, 2]


@pytest.mark.parametrize("signs", [False, True])
def test_without_pre_score_a_score_gets_the_state_of_pre_filter(signs: bool) -> None:
    """Also if equal pods share results. None after SKIP."""
    seen: dict[str, set[Any]] = {}

    class Stateful:
        name = "Stateful"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def sign(self, pod: PodInfo) -> str | None:
            return pod.name[:1] if signs else None

        def pre_filter(self, pod: PodInfo) -> Any:
            return SKIP if pod.name == "skipped" else f"state of {pod.name[:1]}"

        def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
            seen.setdefault(pod.name, set()).add(state)
            return 200

        def normalize(self, state: Any, pod: PodInfo, view: Any, rows: Any, scores: Any) -> Any:
            seen.setdefault(pod.name, set()).add(state)
            return scores - 150

    with SchedulerHarness(plugins=[Stateful]) as harness:
        for name in ("n1", "n2"):
            harness.cluster.add(make_node(name))
        for name in ("p1", "p2", "skipped"):
            harness.cluster.add(make_pod(name))
        harness.run_until_idle()
        assert len(harness.bindings) == 3
    assert seen.pop("skipped") == {None}
    assert set.union(*seen.values()) == {"state of p"}


def _shown(view: NodeView, row: int) -> NodeRow:
    node = view.nodes[row]
    assert node is not None
    return NodeRow(view, row, node)


def test_the_contents_of_a_node() -> None:
    """It has name, labels, pods, and amounts in thousandths of a CPU and whole units."""
    cluster = Cluster()
    cluster.set_node(make_node("n0", cpu="2", memory="1Gi", pods=5, labels={"disk": "ssd"}, resources={"x.io/gpu": 4}))
    cluster.set_pod(make_pod("a", node="n0", cpu="500m", resources={"x.io/gpu": 1}))
    node = _shown(cluster.nodes, 0)
    assert node.name == "n0"
    assert node.labels["disk"] == "ssd"
    assert [pod.name for pod in node.pods] == ["a"]
    shown = {name: (node.allocatable(name), node.requested(name)) for name in ("cpu", "memory", "pods", "x.io/gpu")}
    assert shown == {"cpu": (2000, 500), "memory": (2**30, 0), "pods": (5, 1), "x.io/gpu": (4, 1)}
    assert (node.allocatable("y.io/none"), node.requested("y.io/none")) == (0, 0)


def test_a_node_in_a_what_if() -> None:
    """It shows added and removed pods, on the rows of the what-if; the cluster does not change."""
    cluster = nodes(3)
    cluster.set_pod(make_pod("a", node="n2", cpu="1"))
    view = what_if(cluster.nodes, [2])
    view.remove_pod(0, next(iter(view.pods[0].values())))
    view.add_pod(0, PodInfo(make_pod("b", cpu="3")))
    node = _shown(view, 0)
    assert (node.name, node.requested("cpu"), [pod.name for pod in node.pods]) == ("n2", 3000, ["b"])
    assert _shown(cluster.nodes, 2).requested("cpu") == 1000


class Careless:
    """A vector plugin that returns an invalid result."""

    name = "Careless"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Any:
        return self._answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(2, np.int64), "filter_rows must return Rejections or None, not ndarray"),
        (True, "filter_rows must return Rejections or None, not bool"),
        (
            Rejections(np.zeros(3, np.int64), lambda _: unresolvable("x")),
            "filter_rows must return a value for each of 2 rows, not an array of shape \\(3,\\)",
        ),
    ],
)
def test_vector_filters_must_return_a_value_per_row(answer: Any, message: str) -> None:
    """The error names the plugin and the problem."""
    with pytest.raises(PluginError, match=f'running Filter plugin "Careless": {message}'):
        filtered(evaluation_of(nodes(2), Careless(answer)))


class CarelessRaw(Scores):
    """Returns invalid scores."""

    def __init__(self, answer: Any) -> None:
        super().__init__("Careless", {})
        self._answer = answer

    def score_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Any:
        return self._answer


class CarelessNormalized(Scores):
    """Returns invalid normalized scores."""

    def __init__(self, answer: Any) -> None:
        super().__init__("Careless", {})
        self._answer = answer

    def normalize(self, state: Any, pod: PodInfo, view: Any, rows: Any, scores: Any) -> Any:
        return self._answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(2), "must return an array of int64, not an array of float64"),
        ([0, 0], "must return an array of int64, not list"),
        (np.zeros(1, np.int64), "must return a value for each of 2 rows"),
    ],
)
@pytest.mark.parametrize("careless", [CarelessRaw, CarelessNormalized])
def test_vector_scores_must_be_whole_numbers_per_row(careless: Any, answer: Any, message: str) -> None:
    """That is checked for raw and normalized scores."""
    evaluation = evaluation_of(nodes(2), careless(answer))
    with pytest.raises(
        PluginError, match=f'running (Score|normalize) plugin "Careless": (score_rows|normalize) {message}'
    ):
        evaluation.score(evaluation.filter())
