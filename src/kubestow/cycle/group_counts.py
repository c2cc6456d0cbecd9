"""How many pods of a group would find a node, told from the room there is, without trying them one by one.

Equal pods fill each node to the same point in whatever order they come, if only the room on the node itself decides: so
many fit, the others do not, and what the filters say of the full nodes is why. This holds where every filter either
looks at no pods at all or can say how many copies of a pod a node takes, and nobody has a say once a node is chosen but
the plugin that holds gangs back.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cluster.whatif import what_if
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.group_outcome import UNSCHEDULABLE_GROUP, Trial
from kubestow.cycle.outcome import Failed, Outcome, Placed, Searched, none_available
from kubestow.cycle.post_filter import run_post_filter
from kubestow.extenders.extender import Asking, carry_on
from kubestow.framework.filtering import run_filters
from kubestow.framework.handle import Nominator
from kubestow.framework.placements import Placement, TriedGroup
from kubestow.framework.plugin import PodsRead
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Rejection, Wait
from kubestow.framework.verdicts import Verdicts

_GANG = "GangScheduling"
_FEW = 4
"""So few pods are tried as quickly as they are counted."""
_MOST = 1 << 31
"""More pods than any group has."""


class GroupCounts:
    """What is plain from counts about a group of equal pods."""

    def __init__(
        self, group: TriedGroup, evaluation: Evaluation, copies: IntArray, scheduled: int, revision: int
    ) -> None:
        self._group = group
        self._evaluation = evaluation
        self._copies = copies
        """By row, how many of the pods it takes."""
        self._scheduled = scheduled
        self._revision = revision

    def fitting(self, rows: IntArray | None) -> int:
        """How many pods of the group would find a node on some rows, or anywhere."""
        copies = self._copies if rows is None else self._copies[rows]
        return min(int(copies.sum()), len(self._group.pods))

    def is_enough(self, fitting: int) -> bool:
        """Whether the group will do with so many of its pods placed."""
        least = 0 if self._group.group is None else self._group.group.min_count
        return fitting > 0 and self._scheduled + fitting >= least

    def refused(self, placement: Placement | None, within: IntArray | None) -> Trial | None:
        """Return the outcome of a trial that ends with too few pods placed; None if only a trial can tell.

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
        """What keeps pods from a node in each of some placements, once those that fit there have one."""
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
            for rejection, many in zip(rejections, np.bincount(numbers[placement.rows]).tolist(), strict=False):
                counted.update({reason: many for reason in rejection.reasons if many})
            found.append((none_available(len(placement.rows), counted),))
        return found

    def judged(self, within: IntArray | None, *, fits: bool) -> Evaluation:
        """Return the evaluation of a pod that finds a node, or of one that finds every node full."""
        evaluation = self._evaluation
        if fits and within is None:
            return evaluation
        judged = evaluation.of(evaluation.pod, within)
        judged.states, judged.skipped = evaluation.states, evaluation.skipped
        if fits:
            judged.filter()
        else:
            rows = np.arange(evaluation.cluster.nodes.size) if within is None else within
            judged.verdicts = self._filled(rows)
            judged.verdicts.rows = rows[judged.verdicts.rows]
        return judged

    def _searched(self, placement: Placement | None, within: IntArray | None, *, fits: bool = True) -> Searched:
        verdicts = self._evaluation.verdicts
        assert verdicts is not None
        rows = verdicts.rows if within is None else within
        feasible = int(np.count_nonzero(self._copies[rows])) if fits else 0
        count = self._evaluation.cluster.nodes.count
        return Searched(
            self._revision,
            node_count=count,
            order=rows,
            evaluated=len(rows),
            feasible=feasible,
            group=self._group,
            placement=placement,
            is_counted=True,
        )

    def _waiting(self, searched: Searched) -> Placed | None:
        """Return the outcome of a pod that has found a node and must wait for others."""
        profile, pod = self._evaluation.profile, self._evaluation.pod
        for hook in profile.permit:
            answer = profile.caller.call(hook, None, pod, "")
            if isinstance(answer, Wait):
                return Placed(pod, "", {}, searched, {hook.name: answer.seconds}, answer.reason)
        return None

    def _failed(self, within: IntArray | None, searched: Searched) -> Failed | None:
        """Return the outcome of a pod that finds every node full; None if it might preempt others."""
        full = self.judged(within, fits=False)
        result = carry_on(run_post_filter(full.profile, full, None))
        if isinstance(result, Asking) or result.nominated_node or result.code is Code.SUCCESS:
            return None
        plugins = frozenset(full.rejecting_plugins)
        return Failed(Code.UNSCHEDULABLE, full.message(result.message), plugins, searched=searched)

    def _filled(self, rows: IntArray) -> Verdicts:
        """Return what the filters say of rows that have taken all the pods they can."""
        evaluation = self._evaluation
        full = what_if(evaluation.cluster.nodes, rows)
        full.add_copies(evaluation.pod, self._copies[rows])
        return run_filters(evaluation.profile, evaluation.states, evaluation.skipped, evaluation.pod, full, None)


def count(profile: Profile, cluster: Cluster, nominator: Nominator, group: TriedGroup) -> GroupCounts | None:
    """Count how many pods of a group the nodes take; None if that cannot be known without trying."""
    pods = group.pods
    if len(pods) < _FEW or nominator.nodes or not cluster.nodes.count or not _are_equal(pods):
        return None
    if any(hook.name != _GANG for hook in profile.permit) or not all(hook.is_trusted for hook in profile.post_filter):
        return None
    evaluation = Evaluation(profile, cluster, nominator, pods[0])
    try:
        copies = _copies(evaluation)
    except (PluginError, ValueError):
        # A trial will tell.
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
    """By row, how many of the pods it takes; None if that cannot be told."""
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
    copies[verdicts.feasible()] = _MOST
    for hook in reading:
        assert hook.copies is not None
        found = profile.caller.call(hook.copies, evaluation.states.get(hook.name), pod, table, everywhere)
        np.minimum(copies, found, out=copies)
    return copies
