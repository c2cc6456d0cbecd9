"""An evaluation: PreFilter with its Skip and Narrowed results, nominated pods, scores, and failure messages."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import (
    SKIP,
    Code,
    Narrowed,
    PluginError,
    Rejection,
    Rejections,
    unresolvable,
    unschedulable,
)
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.testing.builders import make_pod
from support.scheduler.troupe import Refuses, Scores, evaluation_of, filtered, nodes


class Prepares(Refuses):
    """Rejects every node, unless its PreFilter returns Skip or Narrowed."""

    def __init__(self, name: str, answer: Any) -> None:
        super().__init__(name, {f"n{i}": "refused" for i in range(9)})
        self._answer = answer

    def pre_filter(self, pod: PodInfo) -> Any:
        return self._answer


def narrowing(name: str, *allowed: str) -> Any:
    """Return a plugin whose PreFilter leaves only these nodes, and whose filter lets all pass."""
    plugin = Prepares(name, Narrowed(frozenset(allowed)))
    plugin._kind = {}
    return plugin


# PreFilter


def test_skip_switches_the_filter_off() -> None:
    """A plugin whose PreFilter returns Skip is not called for nodes; others are."""
    skipping, other = Prepares("Skipping", SKIP), Refuses("Other", {"n0": "no"})
    evaluation = evaluation_of(nodes(), skipping, other)
    assert filtered(evaluation) == ["n1", "n2"]
    assert skipping.calls == []
    assert evaluation.skipped == {"Skipping"}


def test_a_rejection_of_the_pod_as_a_whole() -> None:
    """It ends PreFilter; the message is the plugin's."""
    later = Prepares("Later", SKIP)
    evaluation = evaluation_of(nodes(), Prepares("No", unresolvable("pod is odd", "and late")), later)
    assert not evaluation.pre_filter()
    assert evaluation.rejected == unresolvable("pod is odd", "and late")._replace(plugin="No")
    assert evaluation.message() == "0/3 nodes are available: pod is odd, and late."
    assert evaluation.rejecting_plugins == {"No"}
    assert evaluation.skipped == set()


def test_narrowing_excludes_nodes() -> None:
    """Nodes that are not named are not filtered; the message counts them."""
    evaluation = evaluation_of(nodes(5), narrowing("A", "n1", "n3", "gone"), Refuses("B", {"n1": "no", "n3": "no"}))
    assert filtered(evaluation) == []
    assert evaluation.message() == "0/5 nodes are available: 2 no, 3 node(s) didn't satisfy plugin(s) [A]."
    assert evaluation.rejecting_plugins == {"A", "B"}


def test_several_plugins_narrow_to_what_they_share() -> None:
    """The nodes that all of them name are left."""
    evaluation = evaluation_of(nodes(5), narrowing("B", "n1", "n2"), narrowing("A", "n2", "n3"))
    assert filtered(evaluation) == ["n2"]
    assert evaluation.left_out_reason == "node(s) didn't satisfy plugin(s) [A B]"


def test_several_plugins_narrow_to_nothing() -> None:
    """The pod is rejected as a whole, and the message has the names of all plugins, sorted."""
    later = Prepares("Later", SKIP)
    evaluation = evaluation_of(nodes(5), narrowing("B", "n1"), narrowing("A", "n2"), later)
    assert not evaluation.pre_filter()
    assert evaluation.message() == "0/5 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
    assert evaluation.rejected is not None
    assert evaluation.rejected.code is Code.UNRESOLVABLE
    assert evaluation.rejecting_plugins == {"A", "B"}
    assert evaluation.skipped == set()


def test_one_plugin_narrows_to_nothing() -> None:
    """The message has the singular form."""
    evaluation = evaluation_of(nodes(2), narrowing("A"))
    assert not evaluation.pre_filter()
    assert evaluation.message() == "0/2 nodes are available: node(s) didn't satisfy plugin A."


def test_narrowing_to_nodes_that_do_not_exist() -> None:
    """This is no rejection by itself, but no node is left."""
    evaluation = evaluation_of(nodes(2), narrowing("A", "elsewhere"))
    assert filtered(evaluation) == []
    assert evaluation.message() == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [A]."


# Filter


def test_reasons_are_sorted_and_counted() -> None:
    """They are sorted as strings that start with the number."""
    refusals: dict[str, Rejection | str] = {
        "n0": "b",
        "n1": unschedulable("a", "b"),
        **{f"n{i}": "c" for i in range(2, 12)},
    }
    evaluation = evaluation_of(nodes(12), Refuses("A", refusals))
    assert filtered(evaluation) == []
    assert evaluation.message() == "0/12 nodes are available: 1 a, 10 c, 2 b."
    assert evaluation.message("preemption: no luck.") == (
        "0/12 nodes are available: 1 a, 10 c, 2 b. preemption: no luck."
    )


class NoneBeside:
    """Rejects a node that has pods; its PreFilter state counts pods over all nodes, and adapts to changes."""

    name = "NoneBeside"

    def __init__(self) -> None:
        self.changes: list[Sequence[Change]] = []

    def pre_filter(self, pod: PodInfo) -> int:
        return 0

    def with_changes(self, state: int, pod: PodInfo, changes: Sequence[Change]) -> int:
        self.changes.append(changes)
        return state + len(changes)

    def filter_rows(self, state: int, pod: PodInfo, view: Any, rows: Any) -> Rejections:
        crowded = view.pod_count[rows] + state > 0
        return Rejections(crowded.astype(np.int64), lambda _: unschedulable("crowded"))


def nominations(**priority_on: int) -> Nominator:
    nominator = Nominator()
    for node, priority in priority_on.items():
        nominator.nominate(make_pod(f"for-{node}", priority=priority), node)
    return nominator


class Crowded:
    """Rejects a node that has pods."""

    name = "Crowded"

    def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Rejections:
        return Rejections((view.pod_count[rows] > 0).astype(np.int64), lambda _: unschedulable("crowded"))


@pytest.mark.parametrize("plugin", [Crowded, NoneBeside])
def test_nominated_pods_count_on_their_node(plugin: Any) -> None:
    """A node must be feasible with the pods nominated to it, if they are at least as important; others do not count."""
    nominator = nominations(n0=0, n1=-1, gone=0)
    evaluation = evaluation_of(nodes(4), plugin(), nominator=nominator)
    assert filtered(evaluation) == ["n1", "n2", "n3"]
    assert evaluation.verdicts is not None
    assert evaluation.verdicts.rejection(0) == unschedulable("crowded")._replace(plugin=plugin.name)


def test_a_node_must_be_feasible_without_the_nominated_pods_too() -> None:
    """They may never be bound there."""

    class Lonely:
        name = "Lonely"

        def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Rejections:
            return Rejections((view.pod_count[rows] == 0).astype(np.int64), lambda _: unschedulable("lonely"))

    evaluation = evaluation_of(nodes(2), Lonely(), nominator=nominations(n0=0))
    assert filtered(evaluation) == []
    assert evaluation.message() == "0/2 nodes are available: 2 lonely."


def test_the_nomination_of_the_pod_itself_does_not_count() -> None:
    """A pod does not leave capacity for itself."""
    nominator = Nominator()
    nominator.nominate(make_pod("p"), "n0")
    assert filtered(evaluation_of(nodes(1), Crowded(), nominator=nominator)) == ["n0"]


def test_adapting_states_include_nominated_pods() -> None:
    """They are adapted for each node separately: pods nominated elsewhere are not included."""
    plugin = NoneBeside()
    filtered(evaluation_of(nodes(3), plugin, nominator=nominations(n0=0, n2=5)))
    changes = [[(change.pod.name, change.row, change.added) for change in changes] for changes in plugin.changes]
    assert changes == [[("for-n0", 0, True)], [("for-n2", 2, True)]]


def test_a_plugin_that_fails_to_adapt() -> None:
    """The error names the plugin."""

    class Clumsy(NoneBeside):
        name = "Clumsy"

        def with_changes(self, state: int, pod: PodInfo, changes: Sequence[Change]) -> int:
            raise KeyError("lost count")

    evaluation = evaluation_of(nodes(1), Clumsy(), nominator=nominations(n0=0))
    with pytest.raises(PluginError, match=r"running with_changes plugin \"Clumsy\": KeyError\('lost count'\)"):
        filtered(evaluation)


def test_single_rows_can_be_filtered() -> None:
    """The nominated node of a pod is filtered alone first."""
    plugin = Refuses("A", {"n0": "no"})
    evaluation = evaluation_of(nodes(3), plugin)
    assert evaluation.passing(np.array([2])).tolist() == [True]
    assert plugin.calls == [["n2"]]


# Score


class PreScores(Scores):
    """Scores, unless its PreScore returns Skip."""

    def __init__(self, name: str, answer: Any) -> None:
        super().__init__(name, {"n0": 10, "n1": 5})
        self._answer = answer

    def pre_score(self, pod: PodInfo, view: Any, rows: Any) -> Any:
        return self._answer


def test_skip_switches_the_score_off() -> None:
    """A plugin whose PreScore returns Skip adds nothing and is not listed."""
    evaluation = evaluation_of(nodes(2), PreScores("Skipping", SKIP), PreScores("Other", None))
    assert evaluation.score(evaluation.filter()).tolist() == [10, 5]
    assert [score.plugin for score in evaluation.scores] == ["Other"]


def test_totals_are_weighted_sums() -> None:
    """Raw, normalized and weighted scores are stored by plugin."""

    class Halves(Scores):
        def normalize(self, state: Any, pod: PodInfo, view: Any, rows: Any, scores: Any) -> Any:
            return scores // 2

    evaluation = evaluation_of(
        nodes(2), Halves("Halves", {"n0": 200, "n1": 100}), Scores("Plain", {"n1": 7}), weights={"Halves": 3}
    )
    assert evaluation.score(evaluation.filter()).tolist() == [300, 157]
    halves, plain = evaluation.scores
    assert (halves.raw.tolist(), halves.normalized.tolist(), halves.weighted.tolist()) == (
        [200, 100],
        [100, 50],
        [300, 150],
    )
    assert (plain.raw.tolist(), plain.weighted.tolist()) == ([0, 7], [0, 7])


def test_scores_of_nodes_that_did_not_pass_do_not_matter() -> None:
    """They are neither checked nor part of the result, whether many nodes are feasible or few."""
    for refused in (1, 4):
        names = {f"n{i}": "no" for i in range(refused)}
        scores = Scores("S", {"n0": 1000, "n5": 42})
        evaluation = evaluation_of(nodes(6), Refuses("A", names), scores)
        assert evaluation.score(evaluation.filter()).tolist() == [0] * (5 - refused) + [42]


def test_rows_are_scored_in_any_order() -> None:
    """Rows are in searching order, even if all rows are scored."""

    class ByRow:
        name = "ByRow"

        def score_rows(self, state: None, pod: PodInfo, view: Any, rows: Any) -> Any:
            return np.arange(view.size)[rows]

    evaluation = evaluation_of(nodes(4), ByRow())
    assert evaluation.score(np.array([2, 0, 3, 1])).tolist() == [2, 0, 3, 1]


@pytest.mark.parametrize("score", [101, -1, 10**12])
@pytest.mark.parametrize("normalizes", [False, True])
def test_scores_must_be_in_range(score: int, normalizes: bool) -> None:
    """After normalizing, a score outside 0..100 is an error that names plugin, score and node."""

    class Normalizes(Scores):
        def normalize(self, state: Any, pod: PodInfo, view: Any, rows: Any, scores: Any) -> Any:
            return scores

    made = (Normalizes if normalizes else Scores)("S", {"n1": score})
    evaluation = evaluation_of(nodes(3), made)
    with pytest.raises(
        PluginError, match=f'plugin "S": .* must score from 0 to 100: score {score} of node n1 is out of range'
    ):
        evaluation.score(evaluation.filter())


@pytest.mark.parametrize("score", [0, 100])
def test_the_ends_of_the_range_are_valid(score: int) -> None:
    """0 and 100 are valid scores."""
    evaluation = evaluation_of(nodes(2), Scores("S", {"n1": score}))
    assert evaluation.score(evaluation.filter()).tolist() == [0, score]
