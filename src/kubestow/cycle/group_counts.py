"""How many pods of a group would find a node, told from the room there is, without trying them one by one.

Equal pods fill each node to the same point in whatever order they come, if only the room on the node itself decides: so
many fit, the others do not, and what the filters say of the full nodes is why. This holds where every filter either
looks at no pods at all or can say how many copies of a pod a node takes, and nobody has a say once a node is chosen but
the plugin that holds gangs back.
"""

from collections.abc import Sequence

import numpy as np

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cluster.whatif import what_if
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.group_outcome import UNSCHEDULABLE_GROUP, Trial
from kubestow.cycle.outcome import Failed, Outcome, Placed
from kubestow.cycle.post_filter import run_post_filter
from kubestow.extenders.extender import Asking, begin
from kubestow.framework.filtering import run_filters
from kubestow.framework.handle import Nominator
from kubestow.framework.placements import TriedGroup
from kubestow.framework.plugin import PodsRead
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Wait

_GANG = "GangScheduling"
_FEW = 4
"""So few pods are tried as quickly as they are counted."""
_MOST = 1 << 31
"""More pods than any group has."""


class GroupCounts:
    """What is plain from counts about a group of equal pods."""

    def __init__(self, group: TriedGroup, evaluation: Evaluation, copies: IntArray, scheduled: int) -> None:
        self._group = group
        self._evaluation = evaluation
        self._copies = copies
        """By row, how many of the pods it takes."""
        self._scheduled = scheduled

    def fitting(self, rows: IntArray | None) -> int:
        """How many pods of the group would find a node on some rows, or anywhere."""
        copies = self._copies if rows is None else self._copies[rows]
        return min(int(copies.sum()), len(self._group.pods))

    def is_enough(self, fitting: int) -> bool:
        """Whether the group will do with so many of its pods placed."""
        least = 0 if self._group.group is None else self._group.group.min_count
        return fitting > 0 and self._scheduled + fitting >= least

    def refused(self, within: IntArray | None) -> Trial | None:
        """What a trial would come to that ends with too few pods placed; None if only a trial can tell."""
        fitting = self.fitting(within)
        outcomes: list[Outcome | None] = []
        try:
            if fitting:
                outcomes += [self._waiting()] * fitting
            if fitting < len(self._group.pods):
                outcomes += [self._failed(within)] * (len(self._group.pods) - fitting)
        except PluginError:
            return None
        told = [outcome for outcome in outcomes if outcome is not None]
        return Trial(Code.UNSCHEDULABLE, UNSCHEDULABLE_GROUP, told) if len(told) == len(outcomes) else None

    def _waiting(self) -> Placed | None:
        """A pod that has found a node and must wait for others."""
        profile, pod = self._evaluation.profile, self._evaluation.pod
        for hook in profile.permit:
            answer = profile.caller.call(hook, None, pod, "")
            if isinstance(answer, Wait):
                return Placed(pod, "", {}, 0, 0, {hook.name: answer.seconds}, answer.reason)
        return None

    def _failed(self, within: IntArray | None) -> Failed | None:
        """A pod that finds every node full."""
        evaluation, table = self._evaluation, self._evaluation.cluster.nodes
        profile, pod = evaluation.profile, evaluation.pod
        # Where all rows are looked at, they are numbered as in the table.
        rows = np.arange(table.size) if within is None else within
        full = what_if(table, rows)
        full.add_copies(pod, self._copies[rows])
        tried = evaluation.of(pod, within)
        tried.states, tried.skipped = evaluation.states, evaluation.skipped
        tried.verdicts = run_filters(profile, tried.states, tried.skipped, pod, full, None)
        result = begin(run_post_filter(profile, tried, None))
        if isinstance(result, Asking) or result.nominated_node or result.code is Code.SUCCESS:
            return None
        return Failed(Code.UNSCHEDULABLE, tried.message(result.message), frozenset(tried.rejecting_plugins))


def count(profile: Profile, cluster: Cluster, nominator: Nominator, group: TriedGroup) -> GroupCounts | None:
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
    return None if copies is None else GroupCounts(group, evaluation, copies, scheduled)


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
    verdicts = run_filters(profile, evaluation.states, evaluation.skipped, pod, table, None)
    if verdicts.failed is not None:
        return None
    copies: IntArray = np.zeros(table.size, np.int64)
    copies[verdicts.feasible()] = _MOST
    for hook in reading:
        assert hook.copies is not None
        found = profile.caller.call(hook.copies, evaluation.states.get(hook.name), pod, table, everywhere)
        np.minimum(copies, found, out=copies)
    return copies
