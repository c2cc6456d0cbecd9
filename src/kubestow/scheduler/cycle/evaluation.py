"""Evaluates all nodes for one pod: PreFilter, Filter with nominated pods, PreScore, Score, NormalizeScore.

Plugins filter and score all rows of the table at once. Messages are derived only when they are requested.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from kubestow.api.lazy import lazy
from kubestow.api.requests import resize_is_deferred
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, are_all_set, is_any_set
from kubestow.scheduler.cluster.nominated import CompetingNominations
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.cycle.outcome import no_nodes_message
from kubestow.scheduler.framework.caller import check_range
from kubestow.scheduler.framework.filtering import refuse, run_filters
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.plugin import Change, PodsRead
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import (
    SKIP,
    Code,
    FilterError,
    Narrowed,
    PluginError,
    Rejection,
    Skip,
    unresolvable,
)
from kubestow.scheduler.framework.verdicts import Verdicts

_NOT_CALLED = object()
FEW_ROWS = 4
"""Maximum number of rows that are filtered one by one, without array operations."""


class PluginScore(msgspec.Struct, frozen=True):
    """The scores that one plugin gave to the feasible rows."""

    plugin: str
    weight: int
    raw: IntArray
    normalized: IntArray

    @property
    def weighted(self) -> IntArray:
        return self.normalized * self.weight


class Evaluation:
    """The evaluation of all nodes for one pod, in three steps: `pre_filter`, `filter`, `score`."""

    rejected: Rejection | None = None
    """The rejection by a PreFilter plugin, if one rejected the pod as a whole."""
    narrowed_to: frozenset[str] | None = None
    """The only nodes that PreFilter allows; None: all."""
    verdicts: Verdicts | None = None
    signature: Hashable | None = None
    """Equal for pods that share all results about rows; None for a pod that shares none."""
    is_cached = False

    def __init__(
        self, profile: Profile, cluster: Cluster, nominator: Nominator, pod: PodInfo, within: IntArray | None = None
    ) -> None:
        """`within` are the rows to evaluate, in ascending order; None: all."""
        self.profile = profile
        self.within = within
        self.cluster = cluster
        self.pod = pod
        self.nominator = nominator
        self.states: dict[str, Any] = {}
        """The state that each plugin's PreFilter returned."""
        self.skipped: set[str] = set()
        """The plugins whose PreFilter returned Skip."""
        self.narrowed_by: list[str] = []
        self.scores: list[PluginScore] = []
        self._answers: dict[str, Any] = {}

    def for_pod(self, pod: PodInfo, within: IntArray | None = None) -> "Evaluation":
        """Return a new evaluation, of another pod or on other rows."""
        return Evaluation(self.profile, self.cluster, self.nominator, pod, within)

    def ignoring(self, plugin: str) -> "Evaluation":
        """Return this evaluation, PreFilter and Filter, as if a plugin had returned Skip in PreFilter."""
        other = self.for_pod(self.pod, self.within)
        other._answers = {**self._answers, plugin: SKIP}  # noqa: SLF001 its own class
        if other._pre_filter() is Code.SUCCESS:  # noqa: SLF001
            other.filter()
        return other

    # PreFilter

    def pre_filter_answer(self, hook: Hook, rows: int = 1) -> Any:
        """Return the answer of a plugin's PreFilter, which is called once; with 0 `rows` the call is not counted."""
        name = hook.name
        answer = self._answers.get(name, _NOT_CALLED)
        if answer is _NOT_CALLED:
            try:
                answer = self._answers[name] = self.profile.caller.call(hook, self.pod, rows=rows)
            except PluginError as error:
                self._answers[name] = error
                raise
        elif isinstance(answer, PluginError):
            raise answer
        return answer

    def pre_filter(self) -> bool:
        """Run PreFilter; return False if a plugin rejected the pod as a whole."""
        caller, start, status = self.profile.caller, self.profile.caller.started(), Code.ERROR
        try:
            status = self._pre_filter()
        finally:
            caller.record_point("PreFilter", status, start)
        return self.rejected is None

    def _pre_filter(self) -> Code:
        self.states, self.skipped = {}, set()
        if self.pod.pod.spec.nodeName and resize_is_deferred(self.pod.pod):
            self.skipped.update(hook.name for hook in self.profile.filter if hook.skips_resizes)
        for hook in self.profile.pre_filter:
            result = SKIP if hook.name in self.skipped else self.pre_filter_answer(hook)
            if result is SKIP:
                self.skipped.add(hook.name)
                continue
            if isinstance(result, Rejection):
                self.rejected = result._replace(plugin=hook.name)
                return result.code
            if isinstance(result, Narrowed):
                self._narrow(hook.name, result.nodes)
                result = result.state
                if self.rejected is not None:
                    return self.rejected.code
            self.states[hook.name] = result
        return Code.SUCCESS

    def _narrow(self, plugin: str, nodes: frozenset[str]) -> None:
        self.narrowed_by.append(plugin)
        self.narrowed_to = nodes if self.narrowed_to is None else self.narrowed_to & nodes
        if not self.narrowed_to:
            names = sorted(self.narrowed_by)
            listed = f"(s) [{' '.join(names)}] simultaneously" if len(names) > 1 else f" {names[0]}"
            self.rejected = unresolvable(f"node(s) didn't satisfy plugin{listed}")

    # Filter

    def filter(self) -> IntArray:
        """Filter the rows that PreFilter left, set `verdicts`, and return the feasible rows."""
        self.verdicts = self.verdicts_on(self.narrowed_rows())
        return self.verdicts.feasible()

    def explain(self) -> None:
        """Set `verdicts`, after a search has found no feasible row."""
        self.filter()

    def explain_extended(self, rows: IntArray, failed: Mapping[int, Rejection]) -> None:
        """Set `verdicts` for the filtered `rows`, after the extenders rejected all that passed; `failed` is by row."""
        self.verdicts = verdicts = self.verdicts_on(np.union1d(rows, np.array([*failed], np.int64)))
        by_rejection: dict[Rejection, list[int]] = {}
        for row, rejection in failed.items():
            by_rejection.setdefault(rejection, []).append(row)
        for rejection, refused in by_rejection.items():
            verdicts.override(np.searchsorted(verdicts.rows, refused), rejection)

    def narrowed_rows(self) -> IntArray | None:
        """Return the rows that PreFilter left; None: all."""
        if self.narrowed_to is None:
            return self.within
        nodes = self.cluster.nodes
        found = (nodes.row_of.get(name) for name in self.narrowed_to)
        rows = np.array(sorted(row for row in found if row is not None and nodes.live[row]), np.int64)
        return rows if self.within is None else np.intersect1d(rows, self.within)

    def verdicts_on(self, rows: IntArray | None) -> Verdicts:
        """Filter rows (None: all live ones), without and with the pods that are nominated there."""
        verdicts = run_filters(self.profile, self.states, self.skipped, self.pod, self.cluster.nodes, rows)
        if self.nominated is not None:
            self._filter_with_nominated(verdicts, np.arange(len(verdicts.rows)), self.skipped)
        return verdicts

    def update_verdicts(self, verdicts: Verdicts, rows: IntArray, passed: Collection[str]) -> None:
        """Update verdicts on rows that have changed; the filters named in `passed` are known to pass all of them."""
        skipped = self.skipped.union(passed)
        positions = verdicts.positions_of(rows)
        filters = [hook for hook in self.profile.filter if hook.name not in skipped]
        if len(rows) <= FEW_ROWS and all(hook.row for hook in filters) and not self.has_adapting_states:
            for position, row in zip(positions.tolist(), rows.tolist(), strict=True):
                verdicts.revise(position, self._row_rejection(filters, row))
            return
        verdicts.forget(positions)
        self._filter_with_nominated(verdicts, positions, skipped)
        # A rejection with the nominated pods takes precedence over one without them.
        positions = positions[verdicts.passing[positions]]
        if len(positions):
            nodes = self.cluster.nodes
            newer = run_filters(self.profile, self.states, skipped, self.pod, nodes, verdicts.rows[positions])
            for rejection, refused in newer.kinds():
                verdicts.override(positions[refused], rejection)

    def _row_rejection(self, filters: Sequence[Hook], row: int) -> Rejection | None:
        """Return why one row is rejected, with the pods that are nominated there or without them; None if it passes."""
        nodes = self.cluster.nodes
        views: list[tuple[NodeView, int]] = [(nodes, row)]
        if self.nominated is not None and self.nominated.pods(row):
            views.insert(0, (what_if(nodes, [row], self.nominated), 0))
        for view, number in views:
            for hook in filters:
                assert hook.row is not None
                state = self.states.get(hook.name)
                rejection: Rejection | None = self.profile.caller.call_row(hook.row, state, view, number)
                if rejection is not None:
                    return rejection._replace(plugin=hook.name)
        return None

    def _filter_with_nominated(self, verdicts: Verdicts, positions: IntArray, skipped: Collection[str]) -> None:
        """Override the verdicts on rows that are rejected with the pods that are nominated there."""
        if self.nominated is None:
            return
        positions = positions[self.nominated.are_on(verdicts.rows[positions])]
        if not len(positions):
            return
        together = what_if(self.cluster.nodes, verdicts.rows[positions], self.nominated)
        verdicts_together = run_filters(self.profile, self.states, skipped, self.pod, together, None)
        if self.has_adapting_states:
            # Adapting filters have different states for each row; rejections by earlier filters are not affected.
            is_final = verdicts_together.refused_before(self.profile.adapting.keys() & self.states.keys())
            for position in positions[~is_final].tolist():
                self._filter_adapted(verdicts, position, skipped)
        else:
            is_final = np.ones(len(positions), np.bool_)
        for rejection, refused in verdicts_together.kinds():
            verdicts.override(positions[refused[is_final[refused]]], rejection)

    def _filter_adapted(self, verdicts: Verdicts, position: int, skipped: Collection[str]) -> None:
        """Override the verdict on one row if it is rejected with the pods that are nominated there."""
        states, view = self._what_if_with_nominated(int(verdicts.rows[position]))
        for rejection, _ in run_filters(self.profile, states, skipped, self.pod, view, None).kinds():
            verdicts.override(position, rejection)

    def _what_if_with_nominated(self, row: int) -> tuple[dict[str, Any], NodeView]:
        """Return the states after adding the pods nominated to a row, and a what-if of the row with them."""
        pods = () if self.nominated is None else self.nominated.pods(row)
        states = self.states_after([Change(pod, row, added=True) for pod in pods])
        return states, what_if(self.cluster.nodes, [row], self.nominated)

    def passing(self, rows: IntArray) -> BoolArray:
        """Return which of the rows are feasible."""
        verdicts = run_filters(self.profile, self.states, self.skipped, self.pod, self.cluster.nodes, rows)
        if verdicts.failed is not None:
            raise FilterError(verdicts.failed.plugin, verdicts.failed.message)
        self.refuse_for_nominated(verdicts.passing, rows)
        return verdicts.passing

    def passes(self, row: int) -> bool:
        """Return whether one row is feasible; faster than `passing` if no other row is needed."""
        return are_all_set(self.passing(np.array([row])))

    @lazy
    def nominated(self) -> CompetingNominations | None:
        """The nominated pods whose requests this pod must leave free."""
        return (
            self.nominator.nominated_rows(self.cluster.nodes).competing_with(self.pod) if self.nominator.nodes else None
        )

    @property
    def nominated_row(self) -> int | None:
        """The row that the pod itself is nominated to."""
        if not self.nominator.nodes:
            return None
        return self.nominator.nominated_rows(self.cluster.nodes).row_of(self.pod.uid)

    def refuse_for_nominated(self, passing: BoolArray, rows: IntArray) -> None:
        """Clear in `passing` the rows that are not feasible with the nominated pods of at least this priority.

        A node must be feasible both without these pods and with them.
        """
        if self.nominated is None or not is_any_set(passing):
            return
        positions = (passing & self.nominated.are_on(rows)).nonzero()[0]
        if not len(positions):
            return
        adapting = self.profile.adapting if self.has_adapting_states else ()
        together = what_if(self.cluster.nodes, rows[positions], self.nominated)
        passing[positions] = self.still_passing(self.states, together, without=adapting)
        if adapting:
            for position in positions[passing[positions]].tolist():
                passing[position] = self.still_passing(*self._what_if_with_nominated(int(rows[position])))[0]

    def states_after(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Return the states of all plugins after some changes."""
        states = dict(self.states)
        for name, hook in self.profile.adapting.items():
            if name in states:
                assert hook.with_changes is not None
                states[name] = self.profile.caller.call(hook.with_changes, states[name], self.pod, changes)
        return states

    @lazy
    def has_adapting_states(self) -> bool:
        """Whether a change of pods on one node may change the verdict on another."""
        return not self.profile.adapting.keys().isdisjoint(self.states)

    @lazy
    def counted_rows(self) -> BoolArray:
        """By row, whether it may have pods that a filter's state counts."""
        counted: BoolArray = np.zeros(self.cluster.nodes.size, np.bool_)
        for name in self.profile.adapting.keys() & self.states.keys():
            hook = self.profile.adapting[name].counted_rows
            if hook is None:
                return np.ones(self.cluster.nodes.size, np.bool_)
            counted |= self.profile.caller.call(hook, self.states[name], self.pod)
        return counted

    @lazy
    def reads_pods(self) -> PodsRead:
        """The maximum of what the filters read of the pods on a node."""
        reads = (reads for name, reads in self.profile.pods_read.items() if name not in self.skipped)
        return max(reads, default=PodsRead.NOTHING)

    @lazy
    def _filters_if_only_pods_changed(self) -> list[Hook]:
        blind = {name for name, reads in self.profile.pods_read.items() if reads is PodsRead.NOTHING}
        skipped = self.skipped | (blind - self.profile.adapting.keys())
        return [hook for hook in self.profile.filter if hook.name not in skipped]

    def refuses(self, states: dict[str, Any], view: NodeView) -> Verdicts:
        """Filter all rows of a what-if."""
        return run_filters(self.profile, states, self.skipped, self.pod, view, None)

    def still_passing(self, states: dict[str, Any], view: NodeView, without: Collection[str] = ()) -> BoolArray:
        """Return which rows of a what-if pass the filters; all of them passed with other pods on them.

        The filters named in `without` are not called.
        """
        passing: BoolArray = ~np.zeros(view.size, np.bool_)
        for hook in self._filters_if_only_pods_changed:
            if hook.name in without:
                continue
            refuse(passing, self.profile.caller, hook, states.get(hook.name), self.pod, view, slice(0, view.size))
        return passing

    # Score

    def score(self, rows: IntArray) -> IntArray:
        """Score feasible rows; return their weighted totals."""
        run_point = self.profile.caller.run_point
        states = run_point("PreScore", self._pre_score, rows)
        return run_point("Score", self._score, rows, states)

    def _pre_score(self, rows: IntArray) -> dict[str, Any]:
        call, pod, view = self.profile.caller.call, self.pod, self.cluster.nodes
        return {hook.name: call(hook, pod, view, rows) for hook in self.profile.pre_score}

    def _score(self, rows: IntArray, states: dict[str, Any]) -> IntArray:
        totals: IntArray = np.zeros(len(rows), np.int64)
        for hook, weight in zip(self.profile.score, self.profile.weights, strict=True):
            state = (self.states if hook.scores_by_filter_state else states).get(hook.name)
            if not isinstance(state, Skip):
                raw, normalized = self.score_with(hook, state, rows)
                self.scores.append(PluginScore(hook.name, weight, raw, normalized))
                totals += normalized if weight == 1 else normalized * weight
        return totals

    def score_with(self, hook: Hook, state: Any, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the scores that one plugin gives feasible rows: raw and normalized."""
        view = self.cluster.nodes
        # Indexing by row numbers copies columns, so if most rows are feasible it is faster to score all rows.
        everywhere = 2 * len(rows) > view.size and not hook.costly_rows
        scored: Rows = slice(0, view.size) if everywhere else rows
        raw = self.profile.caller.call(hook, state, self.pod, view, scored, rows=len(rows))
        if everywhere and not (len(rows) == view.size and self.verdicts is not None and rows is self.verdicts.rows):
            raw = raw[rows]
        if hook.normalize is None:
            check_range(hook, raw, view, rows)
            return raw, raw
        return raw, self.profile.caller.call(hook.normalize, state, self.pod, view, rows, raw)

    # Messages

    @property
    def rejecting_plugins(self) -> set[str]:
        """The plugins that rejected the pod or a node; the queue retries the pod at their events."""
        names = set(self.narrowed_by)
        if self.rejected is not None and self.rejected.plugin:
            names.add(self.rejected.plugin)
        if self.verdicts is not None:
            names |= self.verdicts.summary().refusing_plugins
        return names

    def message(self, post_filter: str = "") -> str:
        """Return the message that no node is feasible, with the number of nodes for each reason."""
        count = self.cluster.nodes.count if self.within is None else len(self.within)
        if self.rejected is not None:
            message = f"0/{count} nodes are available: {self.rejected.message}."
        else:
            reasons = Counter[str]() if self.verdicts is None else self.verdicts.summary().reasons
            left_out = 0 if self.verdicts is None else count - len(self.verdicts.rows)
            if left_out and self.narrowed_to is not None:
                reasons = reasons + Counter({self.left_out_reason: left_out})
            message = no_nodes_message(count, reasons)
        return f"{message} {post_filter}" if post_filter else message

    @property
    def left_out_reason(self) -> str:
        """The reason given for nodes that PreFilter excluded."""
        return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.narrowed_by))}]"
