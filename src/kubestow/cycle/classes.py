"""Pods that are the same to the scheduler share its work.

Plugins say with `sign` what, of a pod, their answers on a row depend on. Pods with the same signature are a class. A
class remembers, for every row, whether those plugins let the row pass and what they scored it, and at which version of
the table; for the next pod of the class only rows that changed since are judged again. Plugins that do not sign are
asked about all rows every time, so the outcome is always that of a full evaluation.

Only the way of a pod that fits is shortened. Where no node will do, or anything is out of the ordinary (a PreFilter
that refuses or narrows), a full evaluation finds the words.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from kubestow.cluster.arrays import BoolArray, IntArray, Rows, grown, row_count, row_numbers
from kubestow.cluster.nodes import NodeTable
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import Evaluation, check_form, check_range
from kubestow.framework.caller import Bound, Caller
from kubestow.framework.filtering import ask_filter
from kubestow.framework.plugin import PodsRead, pods_read_by
from kubestow.framework.profile import Profile
from kubestow.framework.results import MAX_SCORE, Code, Narrowed, PluginError, Rejection, Skip

_MOST_ROWS = 2_000_000
"""How many rows all classes together may remember, at some 40 bytes each."""
_MOST_SEEN_ONCE = 4_096
_FEW_ROWS = 4
"""Up to so many changed rows are judged one by one, in plain numbers where a plugin can."""


class _Scored:
    """A plugin that scores, with the want of its PreScore; `raw` is kept if it normalizes."""

    __slots__ = ("bound", "raw", "want", "weight")

    def __init__(self, bound: Bound, weight: int, want: Any) -> None:
        self.bound = bound
        self.weight = weight
        self.want = want
        self.raw: IntArray = np.zeros(0, np.int64)

    def judge(self, caller: Caller, pod: PodInfo, table: NodeTable, rows: Rows) -> IntArray:
        count = row_count(rows)
        scores: IntArray = caller.call(self.bound, self.want, pod, table, rows, rows=count)
        check_form(self.bound, scores, count)
        return scores


class PodClass:
    """What is remembered for pods of one signature.

    Plugins that do not read the pods on a node are asked again about a row only when the node itself has changed;
    the others whenever anything has.
    """

    def __init__(self, profile: Profile, signing: frozenset[str]) -> None:
        self.is_usable = True
        """False: a PreFilter refused or narrowed; such pods are evaluated in full."""
        self.wants: dict[str, Any] = {}
        self.skipped: set[str] = set()
        self.passing: BoolArray = np.zeros(0, np.bool_)
        self._profile = profile
        self._caller = profile.caller
        self._signing = signing
        self._seen = -1
        self._passing_steadily: BoolArray = np.zeros(0, np.bool_)
        self._sum: IntArray = np.zeros(0, np.int64)
        """The weighted scores of plugins that do not normalize."""
        self._steady_sum: IntArray = np.zeros(0, np.int64)
        """Those of them that do not depend on pods."""
        self._filters: list[Bound] = []
        self._moving_filters: list[Bound] = []
        self._scores: list[_Scored] = []
        self._moving_scores: list[_Scored] = []
        self._normalizing: list[_Scored] = []
        self._normalized: IntArray | None = None
        """The normalized scores of all rows that pass, until one of them may have changed."""

    def prepare(self, pod: PodInfo, table: NodeTable) -> None:
        """Run what comes before rows: PreFilter and PreScore of the plugins that signed."""
        call = self._profile.caller.call
        for bound in self._profile.pre_filter:
            if bound.name not in self._signing:
                continue
            answer = call(bound, pod)
            if isinstance(answer, Rejection | Narrowed):
                self.is_usable = False
                return
            if isinstance(answer, Skip):
                self.skipped.add(bound.name)
            else:
                self.wants[bound.name] = answer
        for bound in self._profile.filter:
            if bound.name in self._signing and bound.name not in self.skipped:
                is_moving = pods_read_by(bound.plugin) is not PodsRead.NOTHING
                (self._moving_filters if is_moving else self._filters).append(bound)
        self._prepare_scores(pod, table)

    def _prepare_scores(self, pod: PodInfo, table: NodeTable) -> None:
        nobody: IntArray = np.zeros(0, np.int64)
        wants = {
            bound.name: self._profile.caller.call(bound, pod, table, nobody)
            for bound in self._profile.pre_score
            if bound.name in self._signing
        }
        for bound, weight in zip(self._profile.score, self._profile.weights, strict=True):
            want = wants.get(bound.name)
            if bound.name not in self._signing or isinstance(want, Skip):
                continue
            scored = _Scored(bound, weight, want)
            if hasattr(bound.plugin, "normalize"):
                self._normalizing.append(scored)
            elif pods_read_by(bound.plugin) is PodsRead.NOTHING:
                self._scores.append(scored)
            else:
                self._moving_scores.append(scored)

    # Rows

    def catch_up(self, pod: PodInfo, table: NodeTable) -> None:
        """Judge again the rows that changed since the last time."""
        if self._seen == table.last_version:
            return
        if self._seen < 0 or len(self.passing) < table.size:
            self._make_room(table.capacity)
            self._judge(pod, table, slice(0, table.size))
        else:
            changed = np.flatnonzero(table.version[: table.size] > self._seen)
            if len(changed) > _FEW_ROWS or self._caller.timing:
                self._judge(pod, table, changed)
            else:
                for row in changed.tolist():
                    self._judge_row(pod, table, row)
        self._seen = table.last_version

    def _make_room(self, capacity: int) -> None:
        self.passing = grown(self.passing, capacity)
        self._passing_steadily = grown(self._passing_steadily, capacity)
        self._sum = grown(self._sum, capacity)
        self._steady_sum = grown(self._steady_sum, capacity)
        for scored in self._normalizing:
            scored.raw = grown(scored.raw, capacity)

    def _judge(self, pod: PodInfo, table: NodeTable, rows: Rows) -> None:
        steadily = table.live[rows].copy()
        for bound in self._filters:
            self._filter(bound, pod, table, rows, steadily)
        passing = steadily.copy()
        for bound in self._moving_filters:
            self._filter(bound, pod, table, rows, passing)
        self._passing_steadily[rows] = steadily
        self.passing[rows] = passing
        total: IntArray = np.zeros(len(passing), np.int64)
        for scored in self._scores:
            total += self._weighted(scored, pod, table, rows, passing)
        self._steady_sum[rows] = total
        for scored in self._moving_scores:
            total += self._weighted(scored, pod, table, rows, passing)
        self._sum[rows] = total
        for scored in self._normalizing:
            scored.raw[rows] = scored.judge(self._caller, pod, table, rows)
        self._normalized = None

    def _filter(self, bound: Bound, pod: PodInfo, table: NodeTable, rows: Rows, passing: BoolArray) -> None:
        """Take from `passing` what a filter refuses."""
        want = self.wants.get(bound.name)
        answer = ask_filter(self._caller, bound, want, pod, table, rows, len(passing))
        if answer is not None:
            passing &= answer.kinds == 0

    def _weighted(self, scored: _Scored, pod: PodInfo, table: NodeTable, rows: Rows, passing: BoolArray) -> IntArray:
        scores = scored.judge(self._caller, pod, table, rows)
        check_range(scored.bound, np.where(passing, scores, 0), table, row_numbers(rows))
        return scores * scored.weight

    def _judge_row(self, pod: PodInfo, table: NodeTable, row: int) -> None:
        """The same for one row of which most likely only the pods have changed."""
        if table.node_version[row] > self._seen or any(
            pods_read_by(scored.bound.plugin) is not PodsRead.NOTHING for scored in self._normalizing
        ):
            self._judge(pod, table, np.array([row]))
            return
        passes = bool(self._passing_steadily[row]) and all(
            self._passes(bound, pod, table, row) for bound in self._moving_filters
        )
        if passes != self.passing[row]:
            self.passing[row] = passes
            self._normalized = None
        if passes:
            total = int(self._steady_sum[row])
            for scored in self._moving_scores:
                total += scored.weight * self._score(scored, pod, table, row)
            self._sum[row] = total

    def _score(self, scored: _Scored, pod: PodInfo, table: NodeTable, row: int) -> int:
        bound = scored.bound
        row_score = getattr(bound.plugin, "row_score", None)
        if row_score is not None:
            bound.evaluations += 1
            try:
                found = row_score(scored.want, table, row)
            except Exception as error:
                raise PluginError(bound.name, bound.point, error) from error
            if found is not None:
                if not 0 <= found <= MAX_SCORE:
                    check_range(bound, np.array([found]), table, np.array([row]))
                return int(found)
        only = np.array([row])
        scores = scored.judge(self._caller, pod, table, only)
        check_range(bound, scores, table, only)
        return int(scores[0])

    def _passes(self, bound: Bound, pod: PodInfo, table: NodeTable, row: int) -> bool:
        want = self.wants.get(bound.name)
        row_passes = getattr(bound.plugin, "row_passes", None)
        if row_passes is not None:
            bound.evaluations += 1
            try:
                return bool(row_passes(want, table, row))
            except Exception as error:
                raise PluginError(bound.name, bound.point, error) from error
        answer = ask_filter(self._caller, bound, want, pod, table, np.array([row]), 1)
        return answer is None or not answer.kinds[0]

    def totals(self, pod: PodInfo, table: NodeTable, rows: IntArray, *, all_passing: bool) -> IntArray:
        """The scores of rows that pass; `all_passing`: these are all of them."""
        totals: IntArray = self._sum[: table.size].copy() if len(rows) == table.size else self._sum[rows]
        if not self._normalizing:
            return totals
        if not all_passing:
            totals += self._normalize(pod, table, rows)
        else:
            if self._normalized is None:
                self._normalized = self._normalize(pod, table, rows)
            totals += self._normalized
        return totals

    def _normalize(self, pod: PodInfo, table: NodeTable, rows: IntArray) -> IntArray:
        total: IntArray = np.zeros(len(rows), np.int64)
        for scored in self._normalizing:
            scores = self._caller.call_aside(
                scored.bound.plugin, "normalize", scored.want, pod, table, rows, scored.raw[rows]
            )
            check_form(scored.bound, scores, len(rows))
            check_range(scored.bound, scores, table, rows)
            total += scored.weight * scores
        return total


class PodClasses:
    """All classes in use; the least recently used is dropped when there are too many."""

    def __init__(self) -> None:
        self._classes: dict[Hashable, PodClass] = {}
        self._seen_once: dict[Hashable, None] = {}

    def evaluate(self, evaluation: Evaluation) -> "ClassEvaluation | None":
        """Judge all nodes for a pod; None if only a full evaluation can tell what becomes of it."""
        profile, table = evaluation.profile, evaluation.cluster.nodes
        caller, start = profile.caller, profile.caller.started()
        signing, key = _sign(profile, evaluation.pod)
        found = self._classes.pop(key, None)
        if found is None:
            if not self._is_second(key):
                return None
            while self._classes and (len(self._classes) + 1) * table.capacity > _MOST_ROWS:
                del self._classes[next(iter(self._classes))]
            found = PodClass(profile, signing)
            found.prepare(evaluation.pod, table)
        self._classes[key] = found
        if not found.is_usable:
            return None
        judged = ClassEvaluation(evaluation, found, signing)
        if not judged.pre_filter():
            return None
        prepared = caller.started()
        found.catch_up(evaluation.pod, table)
        if not judged.filter():
            return None
        # Told only now: otherwise the full evaluation tells.
        caller.finished("PreFilter", Code.SUCCESS, start, prepared)
        caller.finished("Filter", Code.SUCCESS, prepared)
        return judged

    def _is_second(self, key: Hashable) -> bool:
        """Whether a signature was seen before: a pod that is like no other is not worth remembering."""
        if key in self._seen_once:
            del self._seen_once[key]
            return True
        if len(self._seen_once) >= _MOST_SEEN_ONCE:
            del self._seen_once[next(iter(self._seen_once))]
        self._seen_once[key] = None
        return False


class ClassEvaluation:
    """The judgement of all nodes for one pod: what its class remembers, and what the other plugins say now."""

    def __init__(self, evaluation: Evaluation, pod_class: PodClass, signing: frozenset[str]) -> None:
        self._evaluation = evaluation
        self._class = pod_class
        self._signing = signing
        self._rows: IntArray = np.zeros(0, np.int64)
        self._refused_more = False
        """Some plugin refused rows that pass for the class."""

    @property
    def rows(self) -> IntArray:
        """The rows that pass: at least one."""
        return self._rows

    def pre_filter(self) -> bool:
        """PreFilter of the plugins that did not sign; False if one of them refuses or narrows."""
        evaluation = self._evaluation
        evaluation.wants.update(self._class.wants)
        evaluation.skipped |= self._class.skipped
        for bound in evaluation.profile.pre_filter:
            if bound.name in self._signing:
                continue
            answer = evaluation.profile.caller.call(bound, evaluation.pod)
            if isinstance(answer, Skip):
                evaluation.skipped.add(bound.name)
            elif isinstance(answer, Rejection | Narrowed):
                return False
            else:
                evaluation.wants[bound.name] = answer
        return True

    def filter(self) -> bool:
        """The filters that did not sign; False if no row passes."""
        evaluation, table = self._evaluation, self._evaluation.cluster.nodes
        passing = self._class.passing[: table.size]
        everywhere = slice(0, table.size)
        for bound in evaluation.profile.filter:
            if bound.name in self._signing or bound.name in evaluation.skipped:
                continue
            rows: Rows = np.flatnonzero(passing) if bound.costly_rows else everywhere
            want, counted = evaluation.wants.get(bound.name), row_count(rows) if bound.costly_rows else table.count
            answer = ask_filter(evaluation.profile.caller, bound, want, evaluation.pod, table, rows, counted)
            if answer is not None:
                passing = passing.copy()
                passing[rows] &= answer.kinds == 0
                self._refused_more = True
        for refused, _ in evaluation.refused_for_nominated(passing):
            passing = passing.copy()
            passing[refused] = False
            self._refused_more = True
        self._rows = np.flatnonzero(passing)
        return len(self._rows) > 0

    def score(self, rows: IntArray) -> IntArray:
        """The totals of some of the rows that pass."""
        evaluation = self._evaluation
        profile, pod, table = evaluation.profile, evaluation.pod, evaluation.cluster.nodes
        caller, start = profile.caller, profile.caller.started()
        wants = {
            bound.name: caller.call(bound, pod, table, rows)
            for bound in profile.pre_score
            if bound.name not in self._signing
        }
        caller.finished("PreScore", Code.SUCCESS, start)
        start = caller.started()
        is_complete = rows is self._rows and not self._refused_more
        totals = self._class.totals(pod, table, rows, all_passing=is_complete)
        for bound, weight in zip(profile.score, profile.weights, strict=True):
            want = wants.get(bound.name)
            if bound.name in self._signing or isinstance(want, Skip):
                continue
            totals += weight * evaluation.score_with(bound, want, rows)[1]
        caller.finished("Score", Code.SUCCESS, start)
        return totals


def _sign(profile: Profile, pod: PodInfo) -> tuple[frozenset[str], Hashable]:
    """The plugins whose answers depend on the pod and the row alone, and the pod's signature among them."""
    parts: list[Hashable] = [profile.name]
    signing = []
    name = ""
    try:
        for name, plugin in profile.signing:
            part = plugin.sign(pod)
            parts.append(part)
            if part is not None:
                signing.append(name)
    except Exception as error:
        raise PluginError(name, "sign", error) from error
    return frozenset(signing), tuple(parts)
