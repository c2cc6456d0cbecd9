"""Computes how many pods of a group fit on the nodes, without a cycle for each pod.

If only the free capacity of a node decides, each node takes the same number of equal pods in any order. The other pods
do not fit, and the verdicts of the filters on the full nodes are the reason. This requires that every filter either
reads no pods or can return how many copies of a pod a node takes, and that Reserve does nothing for the pods.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed, SearchedNodes, no_nodes_message
from kubestow.scheduler.framework.filtering import run_filters
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.placements import Placement, TriedGroup
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection
from kubestow.scheduler.framework.verdicts import Verdicts

_MIN_PODS = 4
"""Minimum number of pods for which counting is faster than trying them."""
_UNLIMITED = 1 << 31
"""A number of copies larger than any group."""


class GroupCounts:
    """How many pods of a group of equal pods fit on the nodes."""

    def __init__(self, group: TriedGroup, evaluation: Evaluation, copies: IntArray, revision: int) -> None:
        self._group = group
        self._evaluation = evaluation
        self._copies = copies
        """By row, how many of the pods fit."""
        self._revision = revision

    def fitting(self, rows: IntArray | None) -> int:
        """Return how many pods of the group fit on some rows; None: on all."""
        copies = self._copies if rows is None else self._copies[rows]
        return min(int(copies.sum()), len(self._group.pods))

    def outcomes(self, placement: Placement | None, within: IntArray | None, failed: int) -> list[Outcome] | None:
        """Return the outcomes of the pods that fit, and of `failed` others; None if it takes a trial to find out.

        `within` are the rows of the placement, None for all.
        """
        fitting = self.fitting(within)
        placed = Placed(self._evaluation.pod, "", {}, self._searched(placement, within))
        try:
            full = self.evaluation_of_pod(within, fits=False)
        except PluginError:
            return None
        plugins, searched = frozenset(full.rejecting_plugins), self._searched(placement, within, fits=False)
        refused = Failed(Code.UNSCHEDULABLE, full.message(), plugins, nominated_node=None, searched=searched)
        return [placed] * fitting + [refused] * failed

    def reasons(self, placements: Sequence[Placement], fitting: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the messages of the pods that do not fit in each of some placements."""
        lacking = [fits < len(self._group.pods) for fits in fitting]
        if not any(lacking):
            return [()] * len(placements)
        rows = np.unique(np.concatenate([one.rows for one, lacks in zip(placements, lacking, strict=True) if lacks]))
        numbers: IntArray = np.zeros(self._evaluation.cluster.nodes.size, np.int64)
        rejections = [Rejection(())]
        for rejection, positions in self._filled(rows).kinds():
            numbers[rows[positions]] = len(rejections)
            rejections.append(rejection)
        found: list[tuple[str, ...]] = []
        for placement, lacks in zip(placements, lacking, strict=True):
            if not lacks:
                found.append(())
                continue
            counted = Counter[str]()
            for rejection, number in zip(rejections, np.bincount(numbers[placement.rows]).tolist(), strict=False):
                counted.update({reason: number for reason in rejection.reasons if number})
            found.append((no_nodes_message(len(placement.rows), counted),))
        return found

    def evaluation_of_pod(self, within: IntArray | None, *, fits: bool) -> Evaluation:
        """Return the evaluation of a pod that fits, or of one that finds all nodes full."""
        evaluation = self._evaluation
        if fits and within is None:
            return evaluation
        result = evaluation.for_pod(evaluation.pod, within)
        result.states, result.skipped = evaluation.states, evaluation.skipped
        if fits:
            result.filter()
        else:
            rows = np.arange(evaluation.cluster.nodes.size) if within is None else within
            result.verdicts = self._filled(rows)
            result.verdicts.rows = rows[result.verdicts.rows]
        return result

    def _searched(self, placement: Placement | None, within: IntArray | None, *, fits: bool = True) -> SearchedNodes:
        verdicts = self._evaluation.verdicts
        assert verdicts is not None
        rows = verdicts.rows if within is None else within
        feasible = int(np.count_nonzero(self._copies[rows])) if fits else 0
        count = self._evaluation.cluster.nodes.count
        return SearchedNodes(
            self._revision,
            node_count=count,
            order=rows,
            evaluated=len(rows),
            feasible=feasible,
            group=self._group,
            placement=placement,
            is_counted=True,
        )

    def _filled(self, rows: IntArray) -> Verdicts:
        """Return the verdicts on rows after as many of the pods as fit were added."""
        evaluation = self._evaluation
        full = what_if(evaluation.cluster.nodes, rows)
        full.add_copies(evaluation.pod, self._copies[rows])
        return run_filters(evaluation.profile, evaluation.states, evaluation.skipped, evaluation.pod, full, None)


def count(profile: Profile, cluster: Cluster, nominator: Nominator, group: TriedGroup) -> GroupCounts | None:
    """Count how many pods of a group fit on each node; None if it takes a trial to find out."""
    pods = group.pods
    if len(pods) < _MIN_PODS or nominator.nodes or not cluster.nodes.count or not _are_equal(pods):
        return None
    evaluation = Evaluation(profile, cluster, nominator, pods[0])
    try:
        copies = _copies(evaluation)
    except (PluginError, ValueError):
        # A trial reports the failure.
        return None
    return None if copies is None else GroupCounts(group, evaluation, copies, cluster.revision)


def _are_equal(pods: Sequence[PodInfo]) -> bool:
    first = pods[0].pod
    return all(
        pod.pod.spec == first.spec and pod.labels == first.metadata.labels and not pod.pod.status.nominatedNodeName
        for pod in pods
    )


def _copies(evaluation: Evaluation) -> IntArray | None:
    """Return by row how many of the pods fit; None if the plugins cannot count them."""
    profile, table, pod = evaluation.profile, evaluation.cluster.nodes, evaluation.pod
    if not evaluation.pre_filter() or evaluation.narrowed_to is not None:
        return None
    if any(hook.name not in evaluation.skipped for hook in profile.reserve):
        return None
    filters = [hook for hook in profile.filter if hook.name not in evaluation.skipped]
    reading = [hook for hook in filters if profile.pods_read[hook.name] is not PodsRead.NOTHING]
    if any(hook.copies is None for hook in reading) or evaluation.has_adapting_states:
        return None
    everywhere = slice(0, table.size)
    verdicts = evaluation.verdicts = run_filters(profile, evaluation.states, evaluation.skipped, pod, table, None)
    if verdicts.failed is not None:
        return None
    copies: IntArray = np.zeros(table.size, np.int64)
    copies[verdicts.feasible()] = _UNLIMITED
    for hook in reading:
        assert hook.copies is not None
        found = profile.caller.call(hook.copies, evaluation.states.get(hook.name), pod, table, everywhere)
        np.minimum(copies, found, out=copies)
    return copies
