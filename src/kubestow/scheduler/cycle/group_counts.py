"""Computes how many pods of a group fit on the nodes, without a cycle for each pod.

If only the free capacity of a node decides, each node takes the same number of equal pods in any order. The other pods
do not fit, and the verdicts of the filters on the full nodes are the reason. This requires that every filter either
reads no pods or can return how many copies of a pod a node takes, and that no plugin other than GangScheduling acts
after a node is chosen.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.group_outcome import UNSCHEDULABLE_GROUP, Trial
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed, SearchedNodes, no_nodes_message
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.extenders.extender import PausedConversation, run_until_calls
from kubestow.scheduler.framework.filtering import run_filters
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.placements import Placement, TriedGroup
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection, Wait
from kubestow.scheduler.framework.verdicts import Verdicts

_GANG = "GangScheduling"
_MIN_PODS = 4
"""Minimum number of pods for which counting is faster than trying them."""
_UNLIMITED = 1 << 31
"""A number of copies larger than any group."""


class GroupCounts:
    """How many pods of a group of equal pods fit on the nodes."""

    def __init__(
        self, group: TriedGroup, evaluation: Evaluation, copies: IntArray, scheduled: int, revision: int
    ) -> None:
        self._group = group
        self._evaluation = evaluation
        self._copies = copies
        """By row, how many of the pods fit."""
        self._scheduled = scheduled
        self._revision = revision

    def fitting(self, rows: IntArray | None) -> int:
        """Return how many pods of the group fit on some rows; None: on all."""
        copies = self._copies if rows is None else self._copies[rows]
        return min(int(copies.sum()), len(self._group.pods))

    def is_enough(self, fitting: int) -> bool:
        """Return whether the group is schedulable with this number of placed pods."""
        least = 0 if self._group.group is None else self._group.group.min_count
        return fitting > 0 and self._scheduled + fitting >= least

    def refused(self, placement: Placement | None, within: IntArray | None) -> Trial | None:
        """Return the result of a trial that places too few pods; None if it takes a trial to find out.

        `within` are the rows of the placement, None for all.
        """
        fitting = self.fitting(within)
        lacking = len(self._group.pods) - fitting
        try:
            waiting = self._waiting(self._searched(placement, within)) if fitting else None
            failed = self._failed(within, self._searched(placement, within, fits=False)) if lacking else None
        except PluginError:
            return None
        if (fitting and waiting is None) or (lacking and failed is None):
            return None
        outcomes: list[Outcome] = []
        if waiting is not None:
            outcomes += [waiting] * fitting
        if failed is not None:
            outcomes += [failed] * lacking
        return Trial(Code.UNSCHEDULABLE, UNSCHEDULABLE_GROUP, outcomes, "" if placement is None else placement.name)

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

    def _waiting(self, searched: SearchedNodes) -> Placed | None:
        """Return the outcome of a pod that fits and waits for the others; None if it need not wait."""
        profile, pod = self._evaluation.profile, self._evaluation.pod
        for hook in profile.permit:
            answer = profile.caller.call(hook, None, pod, "")
            if isinstance(answer, Wait):
                return Placed(pod, "", {}, searched, {hook.name: answer.seconds}, answer.reason)
        return None

    def _failed(self, within: IntArray | None, searched: SearchedNodes) -> Failed | None:
        """Return the outcome of a pod that finds all nodes full; None if it might preempt other pods."""
        full = self.evaluation_of_pod(within, fits=False)
        result = run_until_calls(run_post_filter(full.profile, full, None))
        if isinstance(result, PausedConversation) or result.nominated_node or result.code is Code.SUCCESS:
            return None
        plugins = frozenset(full.rejecting_plugins)
        return Failed(Code.UNSCHEDULABLE, full.message(result.message), plugins, searched=searched)

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
    if any(hook.name != _GANG for hook in profile.permit) or not all(hook.is_trusted for hook in profile.post_filter):
        return None
    evaluation = Evaluation(profile, cluster, nominator, pods[0])
    try:
        copies = _copies(evaluation)
    except (PluginError, ValueError):
        # A trial reports the failure.
        return None
    scheduled = 0 if cluster.groups is None else len(cluster.groups.members(group.key).scheduled)
    return None if copies is None else GroupCounts(group, evaluation, copies, scheduled, cluster.revision)


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
