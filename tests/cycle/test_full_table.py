"""The full table of an evaluation: every node against every plugin."""

from typing import Any

import numpy as np

from framework.troupe import Refuses, Scores, evaluation_of, nodes
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.table import ScoreCell, full_table
from kubestow.framework.results import SKIP, Narrowed, Rejections, unresolvable, unschedulable
from kubestow.queue.nominator import Nominator
from kubestow.testing.builders import make_pod


class Halves(Scores):
    """Normalizes to half."""

    def normalize(self, state: Any, pod: PodInfo, view: Any, rows: Any, scores: Any) -> Any:
        return scores // 2


class Narrows(Refuses):
    """Leaves two nodes."""

    def pre_filter(self, pod: PodInfo) -> Narrowed:
        return Narrowed(frozenset(("n1", "n2")))


class Skips(Refuses):
    """Has nothing to say."""

    def pre_filter(self, pod: PodInfo) -> Any:
        return SKIP


def test_every_filter_is_asked_about_every_node() -> None:
    """Also about nodes that are refused already; the refusal that counts is the first."""
    table = full_table(evaluation_of(nodes(2), Refuses("A", {"n0": "no"}), Refuses("B", {"n0": unresolvable("never")})))
    first, second = table.lines
    no, never = unschedulable("no")._replace(plugin="A"), unresolvable("never")._replace(plugin="B")
    assert (first.node, first.refused, first.filters) == ("n0", no, {"A": no, "B": never})
    assert (second.node, second.refused, second.filters) == ("n1", None, {"A": None, "B": None})
    assert table.message == ""


def test_scores_raw_normalized_and_weighted() -> None:
    """For nodes that passed; the total is what the choice is made by."""
    table = full_table(
        evaluation_of(
            nodes(2),
            Refuses("A", {"n0": "no"}),
            Halves("H", {"n0": 10, "n1": 80}),
            Scores("S", {"n1": 7}),
            weights={"H": 3},
        )
    )
    refused, passed = table.lines
    assert (refused.scores, refused.total) == ({}, None)
    assert passed.scores == {"H": ScoreCell(80, 40, 3), "S": ScoreCell(7, 7, 1)}
    assert passed.scores["H"].weighted == 120
    assert passed.total == 127


def test_nodes_that_pre_filter_left_out() -> None:
    """Have a line that says so; nobody was asked about them."""
    table = full_table(evaluation_of(nodes(4), Narrows("A", {"n2": "no"})))
    shown = {line.node: line.refused and (line.refused.plugin, line.refused.message) for line in table.lines}
    left_out = ("A", "node(s) didn't satisfy plugin(s) [A]")
    assert shown == {"n0": left_out, "n1": None, "n2": ("A", "no"), "n3": left_out}
    assert table.lines[0].filters == {}


def test_a_pod_that_is_refused_as_a_whole() -> None:
    """Has no lines, but the refusal and the message."""

    class Never(Refuses):
        def pre_filter(self, pod: PodInfo) -> Any:
            return unresolvable("never")

    table = full_table(evaluation_of(nodes(2), Never("A", {})))
    assert table.pre_filter == unresolvable("never")._replace(plugin="A")
    assert (table.lines, table.message) == ((), "0/2 nodes are available: never.")


def test_plugins_that_had_nothing_to_say() -> None:
    """Are listed, and are in no line."""
    table = full_table(evaluation_of(nodes(1), Skips("B", {"n0": "no"}), Skips("A", {}), Refuses("C", {})))
    assert table.skipped == ("A", "B")
    assert table.lines[0].filters == {"C": None}


def test_no_node_passes() -> None:
    """The message is that of the pod."""
    table = full_table(evaluation_of(nodes(2), Refuses("A", {"n0": "no", "n1": "no"})))
    assert table.message == "0/2 nodes are available: 2 no."
    assert [line.total for line in table.lines] == [None, None]


def test_refused_for_expected_pods() -> None:
    """A node that would do now, but not with the pods nominated to it: filters let it pass, the verdict does not."""

    class Crowded:
        name = "Crowded"

        def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Rejections:
            return Rejections((view.pod_count[rows] > 0).astype(np.int64), lambda _: unschedulable("crowded"))

    nominator = Nominator()
    nominator.nominate(make_pod("expected"), "n0")
    line, _ = full_table(evaluation_of(nodes(2), Crowded(), nominator=nominator)).lines
    assert line.refused == unschedulable("crowded")._replace(plugin="Crowded")
    assert line.filters == {"Crowded": None}


def test_an_evaluation_that_has_run_already() -> None:
    """Is laid out as it is; asking twice gives the same."""
    evaluation = evaluation_of(nodes(3), Refuses("A", {"n0": "no"}), Scores("S", {"n1": 5}))
    evaluation.pre_filter()
    evaluation.score(evaluation.filter())
    assert full_table(evaluation) == full_table(evaluation)
    assert [line.total for line in full_table(evaluation).lines] == [None, 5, 0]


def test_nodes_are_in_the_order_of_their_names() -> None:
    """Whatever their rows are; rows without a node have no line."""
    cluster = nodes(3)
    cluster.remove_node("n1")
    assert [line.node for line in full_table(evaluation_of(cluster, Refuses("A", {}))).lines] == ["n0", "n2"]
