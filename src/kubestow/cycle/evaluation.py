"""Every node judged for one pod: PreFilter, Filter with nominated pods, PreScore, Score, NormalizeScore.

All rows of the table are judged at once. Words, tables and totals by plugin are derived only when asked for.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, are_all_set, is_any_set
from kubestow.cluster.nominated import NominatedBeside
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cluster.view import NodeView
from kubestow.cluster.whatif import what_if
from kubestow.cycle.outcome import none_available
from kubestow.framework.caller import in_range
from kubestow.framework.filtering import refuse, run_filters
from kubestow.framework.handle import Nominator
from kubestow.framework.hook import Hook
from kubestow.framework.plugin import Change, PodsRead
from kubestow.framework.profile import Profile
from kubestow.framework.results import SKIP, Code, FilterError, Narrowed, PluginError, Rejection, Skip, unresolvable
from kubestow.framework.verdicts import Verdicts
from kubestow.model.lazily import lazy

_UNKNOWN = object()
FEW_ROWS = 4
"""So many are judged one by one."""


class PluginScore(msgspec.Struct, frozen=True):
    """What one plugin said of the rows that passed."""

    plugin: str
    weight: int
    raw: IntArray
    normalized: IntArray

    @property
    def weighted(self) -> IntArray:
        return self.normalized * self.weight


class Evaluation:
    """The judgement of all nodes for one pod, made step by step: `pre_filter`, `filter`, `score`."""

    rejected: Rejection | None = None
    """The refusal of PreFilter, if it refused the pod as a whole."""
    narrowed_to: frozenset[str] | None = None
    verdicts: Verdicts | None = None
    signature: Hashable | None = None
    """Equal for pods that share all results about rows; None for a pod that shares none."""
    remembers = False

    def __init__(
        self, profile: Profile, cluster: Cluster, nominator: Nominator, pod: PodInfo, within: IntArray | None = None
    ) -> None:
        """`within` are the rows to consider, in ascending order; None: all there are."""
        self.profile = profile
        self.within = within
        self.cluster = cluster
        self.pod = pod
        self.nominator = nominator
        self.states: dict[str, Any] = {}
        """What each plugin's PreFilter computed."""
        self.skipped: set[str] = set()
        """Plugins whose PreFilter found nothing to filter."""
        self.narrowed_by: list[str] = []
        self.scores: list[PluginScore] = []
        self._answers: dict[str, Any] = {}

    def of(self, pod: PodInfo, within: IntArray | None = None) -> "Evaluation":
        """An evaluation of another pod, or on other rows."""
        return Evaluation(self.profile, self.cluster, self.nominator, pod, within)

    # PreFilter

    def pre_filter_answer(self, hook: Hook, rows: int = 1) -> Any:
        """What PreFilter of a plugin says of the pod: asked once, whoever wants to know; not counted for 0 rows."""
        name = hook.name
        answer = self._answers.get(name, _UNKNOWN)
        if answer is _UNKNOWN:
            try:
                answer = self._answers[name] = self.profile.caller.call(hook, self.pod, rows=rows)
            except PluginError as error:
                self._answers[name] = error
                raise
        elif isinstance(answer, PluginError):
            raise answer
        return answer

    def pre_filter(self) -> bool:
        """Run PreFilter; False if a plugin refused the pod as a whole."""
        caller, start, status = self.profile.caller, self.profile.caller.started(), Code.ERROR
        try:
            status = self._pre_filter()
        finally:
            caller.finished("PreFilter", status, start)
        return self.rejected is None

    def _pre_filter(self) -> Code:
        self.states, self.skipped = {}, set()
        for hook in self.profile.pre_filter:
            result = self.pre_filter_answer(hook)
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
        """Judge all rows that PreFilter left; returns those that passed. `verdicts` has what was said of the others."""
        self.verdicts = self.judge(self.narrowed_rows())
        return self.verdicts.feasible()

    def explain(self) -> None:
        """After a search for rows that pass has found none: finds out why."""
        self.filter()

    def explain_extended(self, rows: IntArray, failed: Mapping[int, Rejection]) -> None:
        """After extenders have left none of the rows that passed: why, of rows that were looked at, none will do."""
        self.verdicts = verdicts = self.judge(np.union1d(rows, np.array([*failed], np.int64)))
        alike: dict[Rejection, list[int]] = {}
        for row, rejection in failed.items():
            alike.setdefault(rejection, []).append(row)
        for rejection, refused in alike.items():
            verdicts.override(np.searchsorted(verdicts.rows, refused), rejection)

    def narrowed_rows(self) -> IntArray | None:
        """The rows to consider that PreFilter left; None: all."""
        if self.narrowed_to is None:
            return self.within
        nodes = self.cluster.nodes
        found = (nodes.row_of.get(name) for name in self.narrowed_to)
        rows = np.array(sorted(row for row in found if row is not None and nodes.live[row]), np.int64)
        return rows if self.within is None else np.intersect1d(rows, self.within)

    def judge(self, rows: IntArray | None) -> Verdicts:
        """What the filters say of rows (None: all live ones), also with the pods that are nominated there."""
        verdicts = run_filters(self.profile, self.states, self.skipped, self.pod, self.cluster.nodes, rows)
        if self.nominated is not None:
            self._judge_with_nominated(verdicts, np.arange(len(verdicts.rows)), self.skipped)
        return verdicts

    def judge_again(self, verdicts: Verdicts, rows: IntArray, passed: Collection[str]) -> None:
        """Bring verdicts up to date on rows that have changed; some filters are known to let all of these pass."""
        skipped = self.skipped.union(passed)
        positions = verdicts.positions_of(rows)
        filters = [hook for hook in self.profile.filter if hook.name not in skipped]
        if len(rows) <= FEW_ROWS and all(hook.row for hook in filters) and not self.has_adapting_states:
            for position, row in zip(positions.tolist(), rows.tolist(), strict=True):
                verdicts.revise(position, self._row_rejection(filters, row))
            return
        verdicts.forget(positions)
        self._judge_with_nominated(verdicts, positions, skipped)
        # A refusal with the nominated pods is the one that counts.
        positions = positions[verdicts.passing[positions]]
        if len(positions):
            nodes = self.cluster.nodes
            newer = run_filters(self.profile, self.states, skipped, self.pod, nodes, verdicts.rows[positions])
            for rejection, refused in newer.kinds():
                verdicts.override(positions[refused], rejection)

    def _row_rejection(self, filters: Sequence[Hook], row: int) -> Rejection | None:
        """Why one row is refused, with the pods that are nominated there or without them."""
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

    def _judge_with_nominated(self, verdicts: Verdicts, positions: IntArray, skipped: Collection[str]) -> None:
        """Override verdicts where a row is refused with the pods that are nominated there."""
        if self.nominated is None:
            return
        positions = positions[self.nominated.are_on(verdicts.rows[positions])]
        if not len(positions):
            return
        together = what_if(self.cluster.nodes, verdicts.rows[positions], self.nominated)
        said = run_filters(self.profile, self.states, skipped, self.pod, together, None)
        if self.has_adapting_states:
            # A filter that adapts may say something else of each row; unless one before it has refused the row.
            is_final = said.refused_before(self.profile.adapting.keys() & self.states.keys())
            for position in positions[~is_final].tolist():
                self._judge_adapted(verdicts, position, skipped)
        else:
            is_final = np.ones(len(positions), np.bool_)
        for rejection, refused in said.kinds():
            verdicts.override(positions[refused[is_final[refused]]], rejection)

    def _judge_adapted(self, verdicts: Verdicts, position: int, skipped: Collection[str]) -> None:
        """Judge one row with the pods that are nominated there."""
        states, view = self._one_with_nominated(int(verdicts.rows[position]))
        for rejection, _ in run_filters(self.profile, states, skipped, self.pod, view, None).kinds():
            verdicts.override(position, rejection)

    def _one_with_nominated(self, row: int) -> tuple[dict[str, Any], NodeView]:
        """A what-if of one row with the nominated pods there, and the states that follow from them."""
        pods = () if self.nominated is None else self.nominated.pods(row)
        states = self.states_after([Change(pod, row, added=True) for pod in pods])
        return states, what_if(self.cluster.nodes, [row], self.nominated)

    def passing(self, rows: IntArray) -> BoolArray:
        """Which rows pass."""
        verdicts = run_filters(self.profile, self.states, self.skipped, self.pod, self.cluster.nodes, rows)
        if verdicts.failed is not None:
            raise FilterError(verdicts.failed.plugin, verdicts.failed.message)
        self.refuse_for_nominated(verdicts.passing, rows)
        return verdicts.passing

    def passes(self, row: int) -> bool:
        """Whether one row passes."""
        return are_all_set(self.passing(np.array([row])))

    @lazy
    def nominated(self) -> NominatedBeside | None:
        """The pods nominated to nodes that this one must leave room for."""
        return self.nominator.nominated_rows(self.cluster.nodes).beside(self.pod) if self.nominator.nodes else None

    @property
    def nominated_row(self) -> int | None:
        """The row that the pod itself is nominated to."""
        if not self.nominator.nodes:
            return None
        return self.nominator.nominated_rows(self.cluster.nodes).row_of(self.pod.uid)

    def refuse_for_nominated(self, passing: BoolArray, rows: IntArray) -> None:
        """Take from the rows that pass those that will not do with the pods of at least this priority nominated there.

        A node must do both with such pods and without them.
        """
        if self.nominated is None or not is_any_set(passing):
            return
        positions = (passing & self.nominated.are_on(rows)).nonzero()[0]
        if not len(positions):
            return
        adapting = self.profile.adapting if self.has_adapting_states else ()
        together = what_if(self.cluster.nodes, rows[positions], self.nominated)
        passing[positions] = self.still_passing(self.states, together, but=adapting)
        if adapting:
            for position in positions[passing[positions]].tolist():
                passing[position] = self.still_passing(*self._one_with_nominated(int(rows[position])))[0]

    def states_after(self, changes: Sequence[Change]) -> dict[str, Any]:
        """The states of all plugins as they would be after some changes."""
        states = dict(self.states)
        for name, hook in self.profile.adapting.items():
            if name in states:
                assert hook.with_changes is not None
                states[name] = self.profile.caller.call(hook.with_changes, states[name], self.pod, changes)
        return states

    @lazy
    def has_adapting_states(self) -> bool:
        """Whether a change of pods on one node may change what a filter says of another."""
        return not self.profile.adapting.keys().isdisjoint(self.states)

    @lazy
    def counted_rows(self) -> BoolArray:
        """By row, whether there may be pods that a filter's state counts."""
        counted: BoolArray = np.zeros(self.cluster.nodes.size, np.bool_)
        for name in self.profile.adapting.keys() & self.states.keys():
            ask = self.profile.adapting[name].counted_rows
            if ask is None:
                return np.ones(self.cluster.nodes.size, np.bool_)
            counted |= self.profile.caller.call(ask, self.states[name], self.pod)
        return counted

    @lazy
    def reads_pods(self) -> PodsRead:
        """The most that any of the filters reads of the pods on a node."""
        reads = (reads for name, reads in self.profile.pods_read.items() if name not in self.skipped)
        return max(reads, default=PodsRead.NOTHING)

    @lazy
    def _filters_if_only_pods_changed(self) -> list[Hook]:
        blind = {name for name, reads in self.profile.pods_read.items() if reads is PodsRead.NOTHING}
        skipped = self.skipped | (blind - self.profile.adapting.keys())
        return [hook for hook in self.profile.filter if hook.name not in skipped]

    def refuses(self, states: dict[str, Any], view: NodeView) -> Verdicts:
        """What the filters would say of all rows of a what-if."""
        return run_filters(self.profile, states, self.skipped, self.pod, view, None)

    def still_passing(self, states: dict[str, Any], view: NodeView, but: Collection[str] = ()) -> BoolArray:
        """Which rows of a what-if still pass, that passed all filters before with other pods on them.

        Some filters may be left out.
        """
        passing: BoolArray = ~np.zeros(view.size, np.bool_)
        for hook in self._filters_if_only_pods_changed:
            if hook.name in but:
                continue
            refuse(passing, self.profile.caller, hook, states.get(hook.name), self.pod, view, slice(0, view.size))
        return passing

    # Score

    def score(self, rows: IntArray) -> IntArray:
        """Score rows that passed; returns their totals."""
        caller, start, status = self.profile.caller, self.profile.caller.started(), Code.ERROR
        try:
            states = self._pre_score(rows)
            status = Code.SUCCESS
        finally:
            caller.finished("PreScore", status, start)
        start, status = caller.started(), Code.ERROR
        try:
            totals = self._score(rows, states)
            status = Code.SUCCESS
        finally:
            caller.finished("Score", status, start)
        return totals

    def _pre_score(self, rows: IntArray) -> dict[str, Any]:
        call, pod, view = self.profile.caller.call, self.pod, self.cluster.nodes
        return {hook.name: call(hook, pod, view, rows) for hook in self.profile.pre_score}

    def _score(self, rows: IntArray, states: dict[str, Any]) -> IntArray:
        totals: IntArray = np.zeros(len(rows), np.int64)
        for hook, weight in zip(self.profile.score, self.profile.weights, strict=True):
            state = states.get(hook.name)
            if not isinstance(state, Skip):
                raw, normalized = self.score_with(hook, state, rows)
                self.scores.append(PluginScore(hook.name, weight, raw, normalized))
                totals += normalized if weight == 1 else normalized * weight
        return totals

    def score_with(self, hook: Hook, state: Any, rows: IntArray) -> tuple[IntArray, IntArray]:
        """What one plugin says of rows that passed: raw, and normalized."""
        view = self.cluster.nodes
        # Rows by number are copies: when most rows passed it costs less to score them all.
        everywhere = 2 * len(rows) > view.size and not hook.costly_rows
        scored: Rows = slice(0, view.size) if everywhere else rows
        raw = self.profile.caller.call(hook, state, self.pod, view, scored, rows=len(rows))
        if everywhere and not (len(rows) == view.size and self.verdicts is not None and rows is self.verdicts.rows):
            raw = raw[rows]
        if hook.normalize is None:
            in_range(hook, raw, view, rows)
            return raw, raw
        return raw, self.profile.caller.call(hook.normalize, state, self.pod, view, rows, raw)

    # Words

    @property
    def rejecting_plugins(self) -> set[str]:
        """The plugins that kept the pod from some node, for the queue to know when to retry."""
        names = set(self.narrowed_by)
        if self.rejected is not None and self.rejected.plugin:
            names.add(self.rejected.plugin)
        if self.verdicts is not None:
            names |= self.verdicts.told().refusing_plugins
        return names

    def message(self, post_filter: str = "") -> str:
        """Why no node will do, in one sentence."""
        count = self.cluster.nodes.count if self.within is None else len(self.within)
        if self.rejected is not None:
            words = f"0/{count} nodes are available: {self.rejected.message}."
        else:
            reasons = Counter[str]() if self.verdicts is None else self.verdicts.told().reasons
            left_out = 0 if self.verdicts is None else count - len(self.verdicts.rows)
            if left_out and self.narrowed_to is not None:
                reasons = reasons + Counter({self.left_out_reason: left_out})
            words = none_available(count, reasons)
        return f"{words} {post_filter}" if post_filter else words

    @property
    def left_out_reason(self) -> str:
        """Why a node that PreFilter did not even let in will not do."""
        return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.narrowed_by))}]"
