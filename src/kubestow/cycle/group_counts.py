"""How many pods of a group would find a node, told from the room there is, without trying them one by one.

Equal pods fill each node to the same point in whatever order they come, if only the room on the node itself decides: so
many fit, the others do not, and what the filters say of the full nodes is why. This holds where every filter either
looks at no pods at all or can say how many copies of a pod a node takes, and nobody has a say once a node is chosen but
the plugin that holds gangs back.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cluster.whatif import what_if
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.group_outcome import UNSCHEDULABLE_GROUP, Trial
from kubestow.cycle.outcome import Failed, Outcome, Placed, none_available
from kubestow.cycle.post_filter import run_post_filter
from kubestow.cycle.trace import Alike, Trace
from kubestow.extenders.extender import Asking, carry_on
from kubestow.framework.filtering import run_filters
from kubestow.framework.handle import Nominator
from kubestow.framework.placements import Placement, TriedGroup
from kubestow.framework.plugin import PodsRead
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Rejection, Wait
from kubestow.framework.verdicts import Told, Verdicts

_GANG = "GangScheduling"
_FEW = 4
"""So few pods are tried as quickly as they are counted."""
_MOST = 1 << 31
"""More pods than any group has."""


class GroupCounts:
    """What is plain from counts about a group of equal pods."""

    def __init__(
        self, group: TriedGroup, evaluation: Evaluation, copies: IntArray, scheduled: int, *, traces: bool
    ) -> None:
        self._group = group
        self._evaluation = evaluation
        self._copies = copies
        """By row, how many of the pods it takes."""
        self._scheduled = scheduled
        self._traces = traces

    def fitting(self, rows: IntArray | None) -> int:
        """How many pods of the group would find a node on some rows, or anywhere."""
        copies = self._copies if rows is None else self._copies[rows]
        return min(int(copies.sum()), len(self._group.pods))

    def is_enough(self, fitting: int) -> bool:
        """Whether the group will do with so many of its pods placed."""
        least = 0 if self._group.group is None else self._group.group.min_count
        return fitting > 0 and self._scheduled + fitting >= least

    def refused(self, within: IntArray | None, placement: Placement | None) -> Trial | None:
        """What a trial would come to that ends with too few pods placed; None if only a trial can tell."""
        fitting = self.fitting(within)
        outcomes: list[Outcome | None] = []
        traces: list[Trace | Alike | None] = []
        try:
            if fitting:
                outcomes += [self._waiting()] * fitting
                traces += self._traced(fitting, self._evaluation, within, placement)
            if fitting < len(self._group.pods):
                failed, full = self._failed(within)
                outcomes += [failed] * (len(self._group.pods) - fitting)
                traces += self._traced(len(self._group.pods) - fitting, full, within, placement)
        except PluginError:
            return None
        told = [outcome for outcome in outcomes if outcome is not None]
        if len(told) < len(outcomes):
            return None
        name = "" if placement is None else placement.name
        return Trial(Code.UNSCHEDULABLE, UNSCHEDULABLE_GROUP, told, name, traces=traces)

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

    def _waiting(self) -> Placed | None:
        """A pod that has found a node and must wait for others."""
        profile, pod = self._evaluation.profile, self._evaluation.pod
        for hook in profile.permit:
            answer = profile.caller.call(hook, None, pod, "")
            if isinstance(answer, Wait):
                return Placed(pod, "", {}, 0, 0, {hook.name: answer.seconds}, answer.reason)
        return None

    def _failed(self, within: IntArray | None) -> tuple[Failed | None, Evaluation]:
        """A pod that finds every node full, and how it was judged."""
        evaluation, table = self._evaluation, self._evaluation.cluster.nodes
        profile, pod = evaluation.profile, evaluation.pod
        tried = evaluation.of(pod, within)
        tried.states, tried.skipped = evaluation.states, evaluation.skipped
        # Where all rows are looked at, they are numbered as in the table.
        tried.verdicts = self._filled(np.arange(table.size) if within is None else within)
        result = carry_on(run_post_filter(profile, tried, None))
        if isinstance(result, Asking) or result.nominated_node or result.code is Code.SUCCESS:
            return None, tried
        message, plugins = tried.message(result.message), frozenset(tried.rejecting_plugins)
        return Failed(Code.UNSCHEDULABLE, message, plugins), tried

    def _filled(self, rows: IntArray) -> Verdicts:
        """What the filters say of rows that have taken all the pods they can."""
        evaluation = self._evaluation
        full = what_if(evaluation.cluster.nodes, rows)
        full.add_copies(evaluation.pod, self._copies[rows])
        return run_filters(evaluation.profile, evaluation.states, evaluation.skipped, evaluation.pod, full, None)

    def _traced(
        self, count: int, judged: Evaluation, within: IntArray | None, placement: Placement | None
    ) -> list[Trace | None]:
        """What so many cycles would have left that judged nodes like this."""
        if not self._traces or judged.verdicts is None:
            return [None] * count
        verdicts = judged.verdicts
        if judged is self._evaluation:
            rows = verdicts.rows if within is None else within
            passed = rows[self._copies[rows] > 0]
            told = verdicts.told()
            trace = Trace(judged, rows, len(rows), passed, refused=told if within is None else told.among(rows))
        else:
            rows = verdicts.rows if within is None else within[verdicts.rows]
            trace = Trace(judged, refused=Told(rows, verdicts.kinds()))
        trace.group, trace.placement = self._group.key, placement
        return [replace(trace) for _ in range(count)]


def count(
    profile: Profile, cluster: Cluster, nominator: Nominator, group: TriedGroup, *, traces: bool
) -> GroupCounts | None:
    """Count how many pods of a group the nodes take; None if that cannot be told without trying."""
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
    return None if copies is None else GroupCounts(group, evaluation, copies, scheduled, traces=traces)


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
