"""NodeLabel: filters and scores nodes by the presence and absence of labels, with any value and for every pod."""

from collections.abc import Hashable, Sequence

import numpy as np

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import NodeLabelArgs
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.labels import ABSENT
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import MAX_SCORE, Rejections, unresolvable

_REJECTION = unresolvable("node(s) didn't have the requested labels")


class NodeLabel:
    """Rejects and scores nodes by the presence of labels."""

    name = "NodeLabel"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: NodeLabelArgs, handle: Handle) -> None:
        self._args = args

    def sign(self, pod: PodInfo) -> Hashable:
        """Return a constant: the result does not depend on the pod."""
        return ""

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        rejected = np.zeros(row_count(rows), np.bool_)
        for label in self._args.presentLabels:
            rejected |= view.label_ids(label)[rows] == ABSENT
        for label in self._args.absentLabels:
            rejected |= view.label_ids(label)[rows] != ABSENT
        return Rejections(rejected.astype(np.int64), lambda _: _REJECTION) if rejected.any() else None

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        satisfied: IntArray = np.zeros(row_count(rows), np.int64)
        for label in self._args.presentLabelsPreference:
            satisfied += view.label_ids(label)[rows] != ABSENT
        for label in self._args.absentLabelsPreference:
            satisfied += view.label_ids(label)[rows] == ABSENT
        preferences = len(self._args.presentLabelsPreference) + len(self._args.absentLabelsPreference)
        return MAX_SCORE * satisfied // max(preferences, 1)

    def requeue_on(self) -> Sequence[Registration]:
        changes = Action.ADD | Action.UPDATE_NODE_LABEL
        return [on(Resource.NODE, changes, self._is_labelled_now, alike=True)]

    def _is_labelled_now(self, _waiting: Pod, old: Node | None, new: Node) -> bool:
        return self._is_labelled(new) and (old is None or not self._is_labelled(old))

    def _is_labelled(self, node: Node) -> bool:
        labels = node.metadata.labels
        return labels.keys() >= set(self._args.presentLabels) and labels.keys().isdisjoint(self._args.absentLabels)
