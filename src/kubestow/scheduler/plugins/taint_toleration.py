"""TaintToleration: rejects nodes with untolerated taints, and scores nodes by untolerated PreferNoSchedule taints."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from kubestow.api.node import Node, Taint
from kubestow.api.pod import Pod, Toleration
from kubestow.api.tolerations import REPELLING, tolerates
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import Rejections, unresolvable
from kubestow.scheduler.plugins.support.normalizing import proportional

_DISCOURAGING = "PreferNoSchedule"
_REJECTION = unresolvable("node(s) had untolerated taint(s)")


class TaintToleration:
    """Rejects nodes with untolerated taints; prefers nodes with few untolerated PreferNoSchedule taints."""

    name = "TaintToleration"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING
    normalizes_scores_alone = True

    def __init__(self, args: Any, handle: Handle) -> None:
        self._comparison = handle.features.taint_toleration_comparison_operators

    def sign(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.tolerations

    def pre_filter(self, pod: PodInfo) -> None:
        """Filter every pod."""

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        if view.taint_sets.are_all_empty:
            return None
        repelled = _by_taints(view, rows, lambda taints: self._is_repelled(pod.pod, taints))
        return Rejections(repelled, lambda _: _REJECTION) if repelled.any() else None

    def _is_repelled(self, pod: Pod, taints: tuple[Taint, ...]) -> bool:
        return any(
            taint.effect in REPELLING and not self._is_tolerated(taint, pod.spec.tolerations) for taint in taints
        )

    def _is_tolerated(self, taint: Taint, tolerations: Sequence[Toleration]) -> bool:
        return any(tolerates(toleration, taint, self._comparison) for toleration in tolerations)

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> tuple[Toleration, ...]:
        return tuple(t for t in pod.pod.spec.tolerations if t.effect in ("", _DISCOURAGING))

    def score_rows(self, state: tuple[Toleration, ...], pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        if view.taint_sets.are_all_empty:
            return np.zeros(row_count(rows), np.int64)
        return _by_taints(
            view,
            rows,
            lambda taints: sum(t.effect == _DISCOURAGING and not self._is_tolerated(t, state) for t in taints),
        )

    def normalize(
        self, state: tuple[Toleration, ...], pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray
    ) -> IntArray:
        return proportional(scores, reverse=True)

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._is_no_longer_repelled, alike=True),
            on(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION),
        ]

    def _is_no_longer_repelled(self, waiting: Pod, old: Node | None, new: Node) -> bool:
        was_repelled = old is None or self._is_repelled(waiting, old.spec.taints)
        return was_repelled and not self._is_repelled(waiting, new.spec.taints)


def _by_taints(view: NodeView, rows: Rows, judge: Callable[[tuple[Taint, ...]], int]) -> IntArray:
    """Return `judge(taints)` for each row; each distinct list of taints is evaluated once."""
    lists = view.taint_sets.taints
    return np.fromiter(map(judge, lists), np.int64, len(lists))[view.taint_set[rows]]
