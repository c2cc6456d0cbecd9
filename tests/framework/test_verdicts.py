"""Verdicts: what the filters said of each row, and how it is put into words."""

from collections import Counter

import numpy as np
import pytest

from framework.troupe import Refuses, evaluation_of, judged, nodes
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import Rejection, Rejections, unresolvable, unschedulable
from kubestow.scheduler.framework.verdicts import Verdicts
from kubestow.testing.builders import make_node

WORDS = {1: unschedulable("no cpu"), 2: unschedulable("no cpu", "no memory"), 3: unresolvable("never")}


def kinds(*numbers: int) -> Rejections:
    return Rejections(np.array(numbers, np.int64), WORDS.__getitem__)


def verdicts(*rows: int) -> Verdicts:
    return Verdicts(np.array(rows or range(4), np.int64), ("First", "Second"))


def test_the_first_refusal_counts() -> None:
    """What a later plugin says of a row that is refused already is not remembered."""
    found = verdicts()
    assert found.add(0, kinds(1, 0, 0, 0)) == 1
    assert found.add(1, kinds(3, 3, 0, 0)) == 1
    assert [found.rejection(i) for i in range(4)] == [
        Rejection(("no cpu",), plugin="First"),
        unresolvable("never")._replace(plugin="Second"),
        None,
        None,
    ]
    assert found.feasible().tolist() == [2, 3]
    assert found.summary().refusing_plugins == {"First", "Second"}


def test_answers_on_some_positions() -> None:
    """A plugin that was asked about the remaining rows only is attributed to those."""
    found = verdicts(10, 11, 12, 13)
    found.add(0, kinds(1, 0, 0, 1))
    assert found.add(1, kinds(0, 3), np.array([1, 2])) == 1
    assert found.feasible().tolist() == [11]
    assert found.rejection(2) == unresolvable("never")._replace(plugin="Second")


def test_a_plugin_that_refuses_nobody_is_not_mentioned() -> None:
    """Neither among those who refused, nor in the reasons."""
    found = verdicts()
    assert found.add(0, kinds(0, 0, 0, 0)) == 0
    assert found.summary().refusing_plugins == set()
    assert found.summary().reasons == Counter()
    assert len(found.feasible()) == 4


def test_reasons_are_counted_by_row() -> None:
    """A row that is refused for two reasons counts for both."""
    found = verdicts()
    found.add(0, kinds(1, 2, 0, 0))
    found.add(1, kinds(0, 0, 3, 1))
    assert found.summary().reasons == Counter({"no cpu": 3, "no memory": 1, "never": 1})


def test_where_preempting_may_help() -> None:
    """Rows that were refused, but not for something that pods leaving cannot change."""
    found = verdicts()
    found.add(0, kinds(1, 3, 0, 2))
    assert found.summary().resolvable_rows.tolist() == [0, 3]


def test_refusals_found_on_another_view_of_the_nodes() -> None:
    """They replace what was said of the row, whether it had passed or not."""
    found = verdicts()
    found.add(0, kinds(1, 1, 0, 0))
    found.override(np.array([1, 2]), unresolvable("crowded")._replace(plugin="Second"))
    assert found.feasible().tolist() == [3]
    assert found.summary().reasons == Counter({"crowded": 2, "no cpu": 1})
    assert found.summary().resolvable_rows.tolist() == [0]
    assert found.summary().refusing_plugins == {"First", "Second"}


def test_reasons_are_told_anew_after_a_further_refusal() -> None:
    """Asking in between does not freeze the answer."""
    found = verdicts()
    found.add(0, kinds(1, 0, 0, 0))
    assert found.summary().reasons == Counter({"no cpu": 1})
    found.add(1, kinds(0, 3, 0, 0))
    assert found.summary().reasons == Counter({"no cpu": 1, "never": 1})


def test_a_row_that_is_judged_again_and_refused_alike_changes_nothing() -> None:
    """What was told stands for as long as the same is said; what is said anew is told."""
    found = verdicts()
    found.add(0, kinds(1, 1, 0, 0))
    same, other = unschedulable("no cpu")._replace(plugin="First"), unresolvable("never")._replace(plugin="Second")
    found.revise(0, same)
    told = found.summary()
    found.revise(1, same)
    found.revise(2, None)
    assert found.summary() is told
    found.revise(1, None)
    found.revise(2, other)
    assert told.reasons == Counter({"no cpu": 2})
    assert found.summary().reasons == Counter({"no cpu": 1, "never": 1})
    assert found.feasible().tolist() == [1, 3]


@pytest.mark.parametrize(("row", "position"), [(3, 0), (7, 1), (9, 2), (4, None), (0, None), (10, None)])
def test_where_a_row_is(row: int, position: int | None) -> None:
    """By row number; None for rows that were not judged."""
    assert verdicts(3, 7, 9).position_of(row) == position


def test_rows_without_a_node_are_left_out() -> None:
    """A row that was given back is neither feasible nor refused."""
    cluster = nodes(3)
    cluster.remove_node("n1")
    evaluation = evaluation_of(cluster, Refuses("A", {"n0": "no", "": "nobody"}))
    assert judged(evaluation) == ["n2"]
    assert evaluation.verdicts is not None
    assert evaluation.verdicts.summary().reasons == Counter({"no": 1})


def test_later_filters_see_what_is_left() -> None:
    """When most rows are refused, the next filter is asked about the others only."""
    second = Refuses("Second", {"n4": "no"})
    evaluation = evaluation_of(nodes(6), Refuses("First", {f"n{i}": "no" for i in range(4)}), second)
    assert judged(evaluation) == ["n5"]
    assert second.asked == [["n4", "n5"]]


def test_costly_filters_see_what_is_left_at_once() -> None:
    """A filter with `costly_rows` is never asked about a row that is refused already."""
    costly = Refuses("Costly", {})
    costly.costly_rows = True  # type: ignore[attr-defined]
    evaluation = evaluation_of(nodes(6), Refuses("First", {"n2": "no"}), costly)
    judged(evaluation)
    assert costly.asked == [["n0", "n1", "n3", "n4", "n5"]]


def test_nobody_is_asked_when_nothing_is_left() -> None:
    """Once every row is refused, the remaining filters are spared."""
    last = Refuses("Last", {})
    evaluation = evaluation_of(nodes(2), Refuses("First", {"n0": "no", "n1": "no"}), last)
    assert judged(evaluation) == []
    assert last.asked == []


def test_a_cluster_of_dead_rows() -> None:
    """Pods whose node is not known yet make a row that nothing is said of."""
    cluster = Cluster()
    cluster.set_node(make_node("n0"))
    cluster.nodes.row_for("unseen")
    evaluation = evaluation_of(cluster, Refuses("A", {}))
    assert judged(evaluation) == ["n0"]
