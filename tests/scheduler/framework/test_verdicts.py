"""Verdicts: the results of filters by row, and their messages."""

from collections import Counter

import numpy as np
import pytest

from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import Rejection, Rejections, unresolvable, unschedulable
from kubestow.scheduler.framework.verdicts import Verdicts
from kubestow.testing.builders import make_node
from support.scheduler.troupe import Refuses, evaluation_of, filtered, nodes

REJECTIONS = {1: unschedulable("no cpu"), 2: unschedulable("no cpu", "no memory"), 3: unresolvable("never")}


def kinds(*numbers: int) -> Rejections:
    return Rejections(np.array(numbers, np.int64), REJECTIONS.__getitem__)


def verdicts(*rows: int) -> Verdicts:
    return Verdicts(np.array(rows or range(4), np.int64), ("First", "Second"))


def test_the_first_rejection_counts() -> None:
    """The result of a later plugin for a row that is rejected already is not stored."""
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
    """The rejections of a plugin that was called for the remaining rows are attributed to those rows."""
    found = verdicts(10, 11, 12, 13)
    found.add(0, kinds(1, 0, 0, 1))
    assert found.add(1, kinds(0, 3), np.array([1, 2])) == 1
    assert found.feasible().tolist() == [11]
    assert found.rejection(2) == unresolvable("never")._replace(plugin="Second")


def test_a_plugin_without_rejections_is_not_mentioned() -> None:
    """It is neither among the rejecting plugins, nor in the reasons."""
    found = verdicts()
    assert found.add(0, kinds(0, 0, 0, 0)) == 0
    assert found.summary().refusing_plugins == set()
    assert found.summary().reasons == Counter()
    assert len(found.feasible()) == 4


def test_reasons_are_counted_by_row() -> None:
    """A row that is rejected for two reasons counts for both."""
    found = verdicts()
    found.add(0, kinds(1, 2, 0, 0))
    found.add(1, kinds(0, 0, 3, 1))
    assert found.summary().reasons == Counter({"no cpu": 3, "no memory": 1, "never": 1})


def test_rows_where_preemption_may_help() -> None:
    """These are the rejected rows without an unresolvable reason."""
    found = verdicts()
    found.add(0, kinds(1, 3, 0, 2))
    assert found.summary().resolvable_rows.tolist() == [0, 3]


def test_rejections_found_on_another_view_of_the_nodes() -> None:
    """They replace the previous result of the row, rejected or not."""
    found = verdicts()
    found.add(0, kinds(1, 1, 0, 0))
    found.override(np.array([1, 2]), unresolvable("crowded")._replace(plugin="Second"))
    assert found.feasible().tolist() == [3]
    assert found.summary().reasons == Counter({"crowded": 2, "no cpu": 1})
    assert found.summary().resolvable_rows.tolist() == [0]
    assert found.summary().refusing_plugins == {"First", "Second"}


def test_reasons_are_updated_after_a_further_rejection() -> None:
    """A summary that was returned before does not freeze the result."""
    found = verdicts()
    found.add(0, kinds(1, 0, 0, 0))
    assert found.summary().reasons == Counter({"no cpu": 1})
    found.add(1, kinds(0, 3, 0, 0))
    assert found.summary().reasons == Counter({"no cpu": 1, "never": 1})


def test_an_equal_result_of_a_second_evaluation_changes_nothing() -> None:
    """The summary stays the same object until a result changes."""
    found = verdicts()
    found.add(0, kinds(1, 1, 0, 0))
    same, other = unschedulable("no cpu")._replace(plugin="First"), unresolvable("never")._replace(plugin="Second")
    found.revise(0, same)
    before = found.summary()
    found.revise(1, same)
    found.revise(2, None)
    assert found.summary() is before
    found.revise(1, None)
    found.revise(2, other)
    assert before.reasons == Counter({"no cpu": 2})
    assert found.summary().reasons == Counter({"no cpu": 1, "never": 1})
    assert found.feasible().tolist() == [1, 3]


@pytest.mark.parametrize(("row", "position"), [(3, 0), (7, 1), (9, 2), (4, None), (0, None), (10, None)])
def test_the_position_of_a_row(row: int, position: int | None) -> None:
    """It is looked up by row number; None for rows that were not evaluated."""
    assert verdicts(3, 7, 9).position_of(row) == position


def test_rows_without_a_node_are_excluded() -> None:
    """A row whose node was removed is neither feasible nor rejected."""
    cluster = nodes(3)
    cluster.remove_node("n1")
    evaluation = evaluation_of(cluster, Refuses("A", {"n0": "no", "": "no node"}))
    assert filtered(evaluation) == ["n2"]
    assert evaluation.verdicts is not None
    assert evaluation.verdicts.summary().reasons == Counter({"no": 1})


def test_later_filters_get_the_remaining_rows() -> None:
    """If most rows are rejected, the next filter is called for the others only."""
    second = Refuses("Second", {"n4": "no"})
    evaluation = evaluation_of(nodes(6), Refuses("First", {f"n{i}": "no" for i in range(4)}), second)
    assert filtered(evaluation) == ["n5"]
    assert second.calls == [["n4", "n5"]]


def test_costly_filters_always_get_the_remaining_rows() -> None:
    """A filter with `costly_rows` is never called for a row that is rejected already."""
    costly = Refuses("Costly", {})
    costly.costly_rows = True  # type: ignore[attr-defined]
    evaluation = evaluation_of(nodes(6), Refuses("First", {"n2": "no"}), costly)
    filtered(evaluation)
    assert costly.calls == [["n0", "n1", "n3", "n4", "n5"]]


def test_no_filter_is_called_without_remaining_rows() -> None:
    """Once every row is rejected, the remaining filters are not called."""
    last = Refuses("Last", {})
    evaluation = evaluation_of(nodes(2), Refuses("First", {"n0": "no", "n1": "no"}), last)
    assert filtered(evaluation) == []
    assert last.calls == []


def test_rows_without_a_known_node() -> None:
    """Pods whose node is not known yet have a row, which has no verdict."""
    cluster = Cluster()
    cluster.set_node(make_node("n0"))
    cluster.nodes.row_for("unseen")
    evaluation = evaluation_of(cluster, Refuses("A", {}))
    assert filtered(evaluation) == ["n0"]
