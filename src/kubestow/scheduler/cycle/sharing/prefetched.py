"""Computes results for the next pods of the queue together with those for a pod with a new signature.

Results of pods of many sizes cannot be cached. But each pod starts its search where the previous one stopped, so their
rows do not overlap, and filtering several pods, each on its own rows, takes as many array operations as filtering one.
Only the plugins that read sums of requests are called in advance; the results of the others are cached anyway.

Prefetching is speculative. Rows that have changed until the cycle of a pod are computed again in the cycle; if its
search visits other rows, the prefetched results are not used; if a plugin fails in advance, it is called again in the
cycle. So prefetching never changes an outcome.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, are_all_set, row_count
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.order import Search
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.sharing.plugin_groups import PluginGroup
from kubestow.scheduler.cycle.sharing.prepared import PreparedPlugins, Scoring, prepare
from kubestow.scheduler.cycle.sharing.results import RowResults
from kubestow.scheduler.framework.caller import Caller
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.plugin import RowsOfPods
from kubestow.scheduler.framework.results import PluginError

Upcoming = Callable[[int], Sequence[PodInfo]]
"""Returns at most the given number of next pods."""

_BATCH_LIMIT = 16
_CHANGES_LIMIT = 256
"""Maximum number of changes since a batch; after more of them it is faster to compute the rows of a pod again."""


class _Batch:
    """Results by row, each for the pod whose search is expected to start there."""

    def __init__(self, table: NodeTable, group: PluginGroup, data_version: int) -> None:
        self.made_by = group, data_version
        self.seen = table.changes.last
        self.layout = table.layout
        self.pod_of: IntArray = np.full(table.size, -1)
        """By row, the number of the pod in the batch; -1: none."""
        self.passing: BoolArray = np.zeros(table.size, np.bool_)
        self.scores: IntArray = np.empty(table.size, np.int64)

    def compute(self, evaluation: Evaluation, plugins: PreparedPlugins, rows: Rows) -> None:
        passing: BoolArray = np.ones(row_count(rows), np.bool_)
        plugins.refuse(evaluation, passing, rows)
        self.passing[rows] = passing
        self.scores[rows] = plugins.score(evaluation, rows, passing)


class PrefetchedResults:
    """The prefetched results for a pod, on the rows where its search is expected to start."""

    def __init__(self, pod: PodInfo, plugins: PreparedPlugins, number: int, batch: _Batch) -> None:
        self.pod = pod
        self.plugins = plugins
        self._number = number
        self._batch = batch
        self._below: RowResults
        self._covered: IntArray | None = None
        """The rows of the last request, if all of them were prefetched."""

    def is_valid_for(self, evaluation: Evaluation, group: PluginGroup) -> bool:
        batch, table = self._batch, evaluation.cluster.nodes
        is_recent = table.changes.last - batch.seen <= _CHANGES_LIMIT and table.layout == batch.layout
        is_same = batch.made_by[0] is group and batch.made_by[1] == evaluation.profile.data_version
        return is_recent and is_same and self.pod is evaluation.pod

    def on(self, below: RowResults) -> "PrefetchedResults":
        """Combine with other results; return self."""
        self._below = below
        return self

    def catch_up(self, evaluation: Evaluation) -> None:
        self._below.catch_up(evaluation)
        pod_of, number = self._batch.pod_of.item, self._number
        own = [row for row in evaluation.cluster.nodes.changes.since(self._batch.seen) if pod_of(row) == number]
        if own:
            self._batch.compute(evaluation, self.plugins, np.array(own))

    def _covers(self, rows: IntArray) -> bool:
        if rows is not self._covered:
            self._covered = rows if are_all_set(self._batch.pod_of[rows] == self._number) else None
        return self._covered is not None

    def passing(self, evaluation: Evaluation, rows: IntArray) -> BoolArray:
        passing = self._below.passing(evaluation, rows)
        if self._covers(rows):
            passing &= self._batch.passing[rows]
        else:
            self.plugins.refuse(evaluation, passing, rows)
        return passing

    def totals(self, evaluation: Evaluation, rows: IntArray) -> IntArray:
        totals = self._below.totals(evaluation, rows)
        if self._covers(rows):
            totals += self._batch.scores[rows]
        else:
            totals += self.plugins.score(evaluation, rows)
        return totals


class Prefetcher:
    """Prefetches results if one pod after the other has a new signature."""

    def __init__(self, upcoming: Upcoming) -> None:
        self.upcoming = upcoming
        self._prefetched: dict[str, PrefetchedResults] = {}
        self._last_was_new = False

    def reset(self) -> None:
        """Do not prefetch for the next pod; called for a pod with a cached signature, which others probably share."""
        self._last_was_new = False

    def take(self, evaluation: Evaluation, group: PluginGroup) -> PrefetchedResults | None:
        """Return the prefetched results for the pod of an evaluation; None if there are no valid ones."""
        found = self._prefetched.pop(evaluation.pod.uid, None)
        if found is None or not found.is_valid_for(evaluation, group):
            return None
        for hook in group.pre_filter + group.pre_score:
            # Calls in advance are counted now.
            hook.evaluations += 1
        return found

    def prefetch(
        self, evaluation: Evaluation, group: PluginGroup, plugins: PreparedPlugins, search: Search
    ) -> PrefetchedResults | None:
        """Compute results for a pod and the next ones by the plugins of a group; None if that is not worthwhile."""
        last_was_new, self._last_was_new = self._last_was_new, True
        limit = min(len(search.order) // search.enough, _BATCH_LIMIT)
        if not last_was_new or limit < 2 or plugins.normalizing:
            return None
        pods = [(evaluation.pod, plugins), *_compatible(evaluation, group, plugins, self.upcoming(limit - 1))]
        try:
            batch = _compute_batch(evaluation, group, pods, search) if len(pods) > 1 else None
        except PluginError:
            return None
        if batch is None:
            return None
        first, *others = (PrefetchedResults(pod, own, number, batch) for number, (pod, own) in enumerate(pods))
        self._prefetched = {prefetched.pod.uid: prefetched for prefetched in others}
        return first


def _compatible(
    evaluation: Evaluation, group: PluginGroup, plugins: PreparedPlugins, upcoming: Sequence[PodInfo]
) -> Iterator[tuple[PodInfo, PreparedPlugins]]:
    """Yield the next pods, up to the first that cannot be computed together with the pod of `plugins`."""
    profile = evaluation.profile
    for pod in upcoming:
        if pod.pod.spec.schedulerName != profile.name:
            return
        try:
            if None in profile.caller.sign(profile.sum_signing, pod):
                return
            own = prepare(evaluation.for_pod(pod), group, counted=False)
        except PluginError:
            return
        if own is None or own.filters != plugins.filters or len(own.scores) != len(plugins.scores):
            return
        yield pod, own


def _compute_batch(
    evaluation: Evaluation, group: PluginGroup, pods: Sequence[tuple[PodInfo, PreparedPlugins]], search: Search
) -> _Batch | None:
    """Filter and score for several pods, each on the rows where its search starts; None if a plugin cannot do that."""
    table = evaluation.cluster.nodes
    batch, own = _Batch(table, group, evaluation.profile.data_version), search.order[: search.enough * len(pods)]
    batch.pod_of[own] = np.repeat(np.arange(len(pods)), search.enough)
    # Indexing by row numbers copies columns, so if there are many it is faster to compute all rows.
    rows: Rows = slice(0, table.size) if 2 * len(own) > table.size else own
    joined = _joined(evaluation.profile.caller, [plugins for _, plugins in pods], RowsOfPods(batch.pod_of[rows]))
    if joined is None:
        return None
    batch.compute(evaluation, joined, rows)
    return batch


def _joined(caller: Caller, plugins: Sequence[PreparedPlugins], rows: RowsOfPods) -> PreparedPlugins | None:
    """Return plugins with the states of several pods joined; None if a plugin cannot join its states."""
    first = plugins[0]
    joined = PreparedPlugins({}, set(), first.filters, [], [])
    for hook in first.filters:
        state = _join(caller, hook, [own.states.get(hook.name) for own in plugins], rows)
        if state is None:
            return None
        joined.states[hook.name] = state
    for scorings in zip(*(own.scores for own in plugins), strict=True):
        hook, weight, _ = scorings[0]
        state = _join(caller, hook, [scoring.state for scoring in scorings], rows)
        if state is None or any(scoring.hook is not hook for scoring in scorings):
            return None
        joined.scores.append(Scoring(hook, weight, state))
    return joined


def _join(caller: Caller, hook: Hook, states: Sequence[Any], rows: RowsOfPods) -> Any:
    return None if hook.join is None or None in states else caller.call(hook.join, states, rows, rows=0)
