"""`check_forms` detects differences between the plain and fast forms of a plugin."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from kubestow.config import plugin_args
from kubestow.plugin import SKIP, PodInfo, PriorityClass, Rejection, unschedulable
from kubestow.plugin.fast import IntArray, PodsRead, Rejections
from kubestow.testing import check_forms, make_object


class Twofold:
    """Rejects nodes with more pods than the pod has labels; scores by the number of pods. Has all forms."""

    name = "Twofold"
    reads_pods = PodsRead.SUMS

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        return len(pod.labels)

    def pre_filter(self, pod: PodInfo) -> int:
        return len(pod.labels)

    def filter(self, state: int, pod: PodInfo, node: Any) -> str | None:
        return "too full" if len(node.pods) > state else None

    def filter_rows(self, state: int, pod: PodInfo, view: Any, rows: Any) -> Rejections:
        return Rejections((view.pod_count[rows] > state).astype(np.int64), lambda _: unschedulable("too full"))

    def passing_rows(self, state: int, pod: PodInfo, view: Any, rows: Any) -> Any:
        return view.pod_count[rows] <= state

    def row_rejection(self, state: int, view: Any, row: int) -> Rejection | None:
        return unschedulable("too full") if view.pod_count[row] > state else None

    def score(self, state: Any, pod: PodInfo, node: Any) -> int:
        return 2 * len(node.pods)

    def score_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> IntArray:
        scores: IntArray = 2 * view.pod_count[rows]
        return scores

    def row_score(self, state: Any, view: Any, row: int) -> int:
        return 2 * int(view.pod_count[row])


def test_forms_that_agree() -> None:
    """Thousands of results are compared."""
    assert check_forms(Twofold) > 3_000


def _with_wrong(method: str, wrong: Any) -> type:
    return type("Lying", (Twofold,), {method: wrong})


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        ("filter", lambda *_: None, "filter and filter_rows disagree about pod"),
        ("score", lambda *_: 0, "score and score_rows disagree about pod"),
        ("row_rejection", lambda *_: None, "filter and row_rejection disagree about pod"),
        ("row_score", lambda *_: 1, "score and row_score disagree about pod"),
        ("passing_rows", lambda _s, _t, _p, view, rows: view.live[rows], "filter and passing_rows disagree"),
        ("sign", lambda *_: "all pods are alike", "pods with the same signature disagree about pod"),
    ],
)
def test_forms_that_disagree(method: str, wrong: Any, message: str) -> None:
    """The message names plugin, methods, pod, node and both results."""
    with pytest.raises(AssertionError, match=f"Twofold: {message}.* on node n"):
        check_forms(_with_wrong(method, wrong))


def test_a_vector_form_that_depends_on_positions() -> None:
    """The result for a row must not depend on the other rows."""

    def by_place(_self: Any, _state: Any, _pod: Any, view: Any, rows: Any) -> Any:
        return np.arange(len(view.pod_count[rows]))

    with pytest.raises(AssertionError, match="score_rows on all rows and on some disagree"):
        check_forms(type("Lying", (Twofold,), {"score_rows": by_place, "score": property()}))


def test_objects_are_in_every_cluster() -> None:
    """A plugin that watches a kind does nothing without them."""

    class Watching(Twofold):
        watches = (PriorityClass,)

        def __init__(self, args: Any, handle: Any) -> None:
            self._classes = handle.objects(PriorityClass)

        def pre_filter(self, pod: PodInfo) -> Any:
            return len(pod.labels) if self._classes.get("high") else SKIP

        def pre_score(self, pod: PodInfo, view: Any, rows: Any) -> Any:
            return SKIP

    with pytest.raises(AssertionError, match="no two forms to compare"):
        check_forms(Watching)
    assert check_forms(Watching, objects=[make_object(PriorityClass, "high")]) > 1_000


def test_nothing_to_compare() -> None:
    """A check that compares nothing fails, because it would always pass."""

    class Idle:
        name = "Idle"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def permit(self, state: Any, pod: PodInfo, node: str) -> None:
            pass

    with pytest.raises(AssertionError, match="Idle has no two forms to compare"):
        check_forms(Idle)


def test_in_tree_plugins() -> None:
    """They pass the same check."""
    from kubestow.scheduler.plugins.node_ports import NodePorts
    from kubestow.scheduler.plugins.node_resources_fit import NodeResourcesFit
    from kubestow.scheduler.plugins.node_unschedulable import NodeUnschedulable
    from kubestow.scheduler.plugins.taint_toleration import TaintToleration

    check_forms(NodeResourcesFit, plugin_args.NodeResourcesFitArgs())
    for plugin in (NodeUnschedulable, TaintToleration, NodePorts):
        check_forms(plugin)
