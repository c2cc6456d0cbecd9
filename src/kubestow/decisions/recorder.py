"""Makes a record of every decision, and hands it to those that are kept.

A record costs little because it keeps what the cycle has found out anyway, and pods that were placed alike, one after
the other, have the same findings. Their records are kept dozens at a time, or all there are when somebody wants to
read. The placed pod carries its record, which takes down what becomes of the binding, so nothing has to be looked up.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kubestow.binding.binder import Attempt, Step
from kubestow.cluster.arrays import IntArray
from kubestow.cluster.events import UNSCHEDULED_POD_ADD
from kubestow.cluster.nodes import NodeTable
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.journal import Layers
from kubestow.cycle.outcome import Failed, Outcome, Placed
from kubestow.cycle.trace import Alike, Searched, Trace, counts
from kubestow.decisions.groups import GroupRecords
from kubestow.decisions.keeping import Kept
from kubestow.decisions.record import (
    FINDINGS_BYTES,
    HISTORY_BYTES,
    NO_DETAILS,
    RECORD_BYTES,
    SEARCHED_BYTES,
    STEP_WIDTH,
    BindingFailure,
    Details,
    Findings,
    Names,
    Record,
)
from kubestow.decisions.refusals import RefusalsKnown
from kubestow.decisions.schema import ERROR, UNSCHEDULABLE
from kubestow.framework.placements import Placement, TriedGroup
from kubestow.framework.results import PluginError, PostFilterResult
from kubestow.framework.verdicts import Told, Verdicts
from kubestow.model.clock import Clock
from kubestow.queue.queued_pod import QueuedPod
from kubestow.scheduler import PlacedAlike

DEFAULT_BYTES = 128 * 1024 * 1024
_TRACE_BYTES = 600
_DETAILS_BYTES = 400
_POD_BYTES = 3_000
_MOST_MOVES = 8
_FIRST_MOVE = 0
FIRST_EVENT = UNSCHEDULED_POD_ADD.label
_MOST_WORDS = 1_024
_GROUPS_SHARE = 8
"""Decisions about groups may take up to one part in so many of the room."""
_KEPT_AT_ONCE = 64
_CLOCK_SET = 0.001
"""By how many seconds clock and stopwatch differ from before only if somebody has set the clock."""

Listener = Callable[[Record], None]


class Recorder:
    """An observer that keeps what it is told."""

    is_group_pending: Callable[[str], bool] = staticmethod(lambda _key: False)
    stopwatch: Callable[[], float] = staticmethod(lambda: 0.0)
    journal_bytes: Callable[[], int] = staticmethod(lambda: 0)

    def __init__(self, clock: Clock, limit: int = DEFAULT_BYTES) -> None:
        self._now = clock.now
        self._room = limit
        self._kept = Kept()
        self._found = Findings("", 0, 0)
        """Of the last pod that was placed like others."""
        self._alike: list[Record] = []
        """Records with these findings that are not kept yet."""
        self._histories = 0
        """How many of them have a history."""
        self._count = 0
        """How many records there were."""
        self._offset = 0.0
        self._names = Names(())
        self._layout = -1
        self._refusals = RefusalsKnown()
        self._words: dict[str, str] = {}
        self._results: dict[PostFilterResult, PostFilterResult] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self.move_names = [("active", FIRST_EVENT, "")]
        """What the numbers in histories mean: queue, event, plugin."""
        self._move_numbers = {self.move_names[_FIRST_MOVE]: _FIRST_MOVE}
        self.groups = GroupRecords(clock.now, limit // _GROUPS_SHARE, lambda key: self.is_group_pending(key))
        self.listeners: list[Listener] = []
        """Are told of every record that is new, or has changed since."""

    @property
    def is_pending(self) -> Callable[[str], bool]:
        return self._kept.is_pending

    @is_pending.setter
    def is_pending(self, told: Callable[[str], bool]) -> None:
        self._kept.is_pending = told

    def kept(self) -> Kept:
        """All records."""
        if self._alike:
            self._keep_alike()
        return self._kept

    def __iter__(self) -> Iterator[Record]:
        """Newest first."""
        return iter(self.kept())

    def last(self, uid: str) -> Record | None:
        """The newest about a pod."""
        return self.kept().last(uid)

    def clock_offset(self) -> float:
        """What is to be added to the stopwatch to have the time: the same as long as nobody sets the clock."""
        offset = self._now() - self.stopwatch()
        if abs(offset - self._offset) > _CLOCK_SET:
            self._offset = offset
        return self._offset

    # What it is told

    def moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        history = queued.history
        if queued.gate is not None and queue == "unschedulable":
            queue, plugin = "gated", queued.gate.plugin
        key = (queue, event, plugin)
        number = self._move_numbers.get(key)
        if number is None:
            number = self._move_numbers[key] = len(self.move_names)
            self.move_names.append(key)
        if history is None:
            first = queued.initial_attempt_timestamp
            history = queued.history = array("d", (0,) if first is None else (0, first, _FIRST_MOVE))
        history.append(self._now())
        history.append(number)
        if len(history) > 2 * _MOST_MOVES + 1:
            # The first number is how many moves are forgotten.
            history[0] += 1
            del history[1:3]

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float, trace: Trace | Alike | None) -> None:
        if isinstance(outcome, Placed):
            trace = outcome.trace
            if isinstance(trace, Alike) and not outcome.waits:
                self.placed_alike([(attempt.queued, outcome, seconds)])
                return
        self._tell(self._own_record(attempt, outcome, seconds, trace))

    def placed_alike(self, turn: Sequence[PlacedAlike]) -> None:
        # All in one loop, and every field given where the record is made: pods come by here by the thousand.
        found, alike, now = self._found, self._alike, self._now()
        for number, (queued, placed, seconds) in enumerate(turn, self._count + 1):
            traced: Any = placed.trace
            if traced.layers is not found.layers:
                found = self._findings_alike(queued, traced.layers)
                alike = self._alike
            info, history = placed.pod, queued.history
            placed.record = record = Record(
                found,
                number,
                now,
                seconds,
                info.namespace,
                info.pod.metadata.name,
                info.uid,
                queued.attempts,
                queued.timestamp,
                queued.initial_attempt_timestamp,
                history,
                placed.node,
                traced.searched,
                traced.change,
            )
            if history is not None:
                record.moves = _moves(history)
                self._histories += 1
            alike.append(record)
        self._count += len(turn)
        if len(alike) >= _KEPT_AT_ONCE:
            self._keep_alike()
        if self.listeners:
            for _, placed, _ in turn:
                self._tell(placed.record)

    def group_decided(
        self, tried: TriedGroup, profile: str, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        self.groups.decided(tried, profile, outcome, scheduled, seconds)

    def step(self, placed: Placed, step: Step) -> None:
        placed.record.steps += step
        if self.listeners and step[-1] and sum(placed.record.steps[STEP_WIDTH - 1 :: STEP_WIDTH]) == 1:
            # It was not bound before.
            self._tell(placed.record)

    def binding_failed(self, placed: Placed, failed: Failed) -> None:
        record: Record = placed.record
        plugins = self._shared_set(failed.plugins | failed.pending_plugins)
        record.failure = BindingFailure(_outcome(failed), failed.message, plugins)
        self._tell(record)

    def _tell(self, record: Record) -> None:
        for listener in self.listeners:
            listener(record)

    # Pods that were placed alike

    def _findings_alike(self, queued: QueuedPod, layers: Layers) -> Findings:
        """Those of pods with these layers, from now on."""
        if layers.nodes.layout != self._layout:
            self._follow(layers.nodes)
        if self._alike:
            self._keep_alike()
        self._found = found = Findings(
            queued.profile,
            queued.info.priority,
            FINDINGS_BYTES,
            node_count=layers.nodes.count,
            names=self._names,
            skipped=layers.skipped,
            layers=layers,
        )
        if layers.group:
            _note_group(found, layers.group, layers.placement)
        return found

    def _follow(self, table: NodeTable) -> None:
        """Nodes have come or gone since the last decision."""
        if self._alike:
            self._keep_alike()
        self._layout, self._names = table.layout, Names(tuple(table.names))
        self._found = Findings("", 0, 0)

    def _keep_alike(self) -> None:
        records, self._alike = self._alike, []
        own_bytes = (RECORD_BYTES + SEARCHED_BYTES) * len(records) + HISTORY_BYTES * self._histories
        layers = records[-1].found.layers
        if layers is not None and layers.has_more:
            own_bytes += sum([one.searched.nbytes for one in records if isinstance(one.searched, Searched)])
        self._histories = 0
        self._keep(records, own_bytes)

    def _keep(self, records: list[Record], own_bytes: int) -> None:
        self._kept.add(records, own_bytes, self._room - self.groups.bytes - self.journal_bytes())

    # All others

    def _own_record(self, attempt: Attempt, outcome: Outcome, seconds: float, trace: Trace | Alike | None) -> Record:
        if self._alike:
            self._keep_alike()
        self._count += 1
        queued = attempt.queued
        meta, history = queued.pod.metadata, queued.history
        found = Findings(attempt.profile.name, queued.info.priority, FINDINGS_BYTES)
        record = Record(
            found,
            self._count,
            self._now(),
            seconds,
            meta.namespace,
            meta.name,
            meta.uid,
            queued.attempts,
            queued.timestamp,
            queued.initial_attempt_timestamp,
            history,
            "",
        )
        if history is not None:
            record.moves = _moves(history)
        if isinstance(outcome, Placed):
            outcome.record, record.node = record, outcome.node
            found.evaluated, found.feasible = outcome.evaluated, outcome.feasible
            found.waits = outcome.waits or None
        else:
            found.outcome, found.message = _outcome(outcome), self._shared_words(outcome.message)
            found.plugins = self._shared_set(outcome.plugins | outcome.pending_plugins)
            found.nominated_node = outcome.nominated_node or ""
        if isinstance(trace, Alike):
            self._note_alike(found, trace, is_placed=isinstance(outcome, Placed))
        elif trace is not None:
            self._note_trace(found, trace, is_placed=isinstance(outcome, Placed))
        self._keep([record], record.own_bytes)
        return record

    def _note_nodes(self, found: Findings, table: NodeTable) -> None:
        if table.layout != self._layout:
            self._follow(table)
        found.names, found.node_count = self._names, table.count

    def _note_alike(self, found: Findings, alike: Alike, *, is_placed: bool) -> None:
        self._note_nodes(found, alike.layers.nodes)
        trace = found.trace = alike.traced()
        found.layers, found.skipped = alike.layers, alike.layers.skipped
        if trace.group:
            _note_group(found, trace.group, trace.placement)
        if not is_placed:
            # It had found a node, and had to give it back.
            found.evaluated, found.feasible = counts(alike.searched)
        found.own_bytes += _TRACE_BYTES + (alike.searched.nbytes if isinstance(alike.searched, Searched) else 0)

    def _note_trace(self, found: Findings, trace: Trace, *, is_placed: bool) -> None:
        evaluation: Evaluation = trace.evaluation
        self._note_nodes(found, evaluation.cluster.nodes)
        # Pods that share have the same set already.
        has_layers = trace.layers is not None
        found.skipped = evaluation.skipped if has_layers else self._shared_set(frozenset(evaluation.skipped))
        if evaluation.rejected is not None or evaluation.narrowed_by:
            self._note_details(found, evaluation)
        if trace.post_filter is not None:
            self._note_post_filter(found, trace.post_filter)
        if evaluation.nominated is not None and trace.order is not None:
            _own_details(found).nominated = evaluation.nominated.then(trace.order[: trace.searched])
        rows = trace.rows
        has_passed = rows is not None and len(rows) > 0
        verdicts = trace.refused or (None if has_passed else evaluation.verdicts)
        if verdicts is not None:
            self._note_refusals(found, evaluation, verdicts, is_placed=is_placed)
        if trace.group:
            _note_group(found, trace.group, trace.placement)
            if rows is not None and not is_placed:
                # It had found a node, and had to give it back.
                found.evaluated, found.feasible = trace.searched, len(rows)
        if rows is not None and has_passed:
            if not is_placed:
                # It had found a node, and was refused there.
                found.evaluated, found.feasible = trace.searched, len(rows if trace.left is None else trace.left)
            found.own_bytes += _TRACE_BYTES
            if evaluation.scores or trace.scores or len(rows) < trace.searched or trace.left is not None:
                _note_rows(found, evaluation, trace, rows)
        elif trace.calls:
            trace.order = None
            found.own_bytes += _TRACE_BYTES
        else:
            return
        trace.evaluation = trace.refused = trace.post_filter = None
        found.trace, found.layers = trace, trace.layers

    def _note_refusals(
        self, found: Findings, evaluation: Evaluation, verdicts: Verdicts | Told, *, is_placed: bool
    ) -> None:
        try:
            found.refusals = self._refusals.of(verdicts)
        except PluginError as error:
            evaluation.profile.caller.failed(error)
            return
        if not is_placed:
            found.evaluated = len(found.refusals)

    def _note_details(self, found: Findings, evaluation: Evaluation) -> None:
        details = _own_details(found)
        details.rejected = evaluation.rejected
        details.narrowed_to, details.narrowed_by = evaluation.narrowed_to, tuple(evaluation.narrowed_by)
        found.own_bytes += 100 * len(details.narrowed_to or ())

    def _note_post_filter(self, found: Findings, result: PostFilterResult) -> None:
        if result.victims or result.weighed is not None:
            found.own_bytes += _DETAILS_BYTES + _POD_BYTES * (len(result.victims) + len(result.to_unnominate))
            found.own_bytes += sum(part.nbytes for part in result.weighed or ())
        else:
            # Most often nothing helps, for many pods in the same words.
            if len(self._results) > _MOST_WORDS:
                self._results.clear()
            result = self._results.setdefault(result, result)
        found.post_filter = result

    def _shared_words(self, words: str) -> str:
        if len(self._words) > _MOST_WORDS:
            self._words.clear()
        return self._words.setdefault(words, words)

    def _shared_set(self, names: frozenset[str]) -> frozenset[str]:
        return self._sets.setdefault(names, names)


def _own_details(found: Findings) -> Details:
    if found.details is NO_DETAILS:
        found.details = Details()
        found.own_bytes += _DETAILS_BYTES
    return found.details


def _note_rows(found: Findings, evaluation: Evaluation, trace: Trace, rows: IntArray) -> None:
    trace.scores = evaluation.told_for_keeps()
    for scored in trace.scores:
        for part in (scored.raw, scored.weighted):
            found.own_bytes += 0 if part is None else part.nbytes
    if trace.left is not None:
        found.own_bytes += 2 * trace.left.nbytes
    if len(rows) < trace.searched:
        found.own_bytes += rows.nbytes


def _outcome(failed: Failed) -> str:
    return UNSCHEDULABLE if failed.is_rejection else ERROR


def _moves(history: "array[float]") -> int:
    """How many there were: the first number is how many are forgotten."""
    return int(history[0]) + len(history) // 2


def _note_group(found: Findings, group: str, placement: Placement | None) -> None:
    details = _own_details(found)
    details.group = group
    if placement is None:
        return
    rows = placement.rows
    # They may be part of an array that lives as long as they do.
    found.own_bytes += rows.nbytes if rows.base is None else rows.base.nbytes
    if placement.name:
        details.placement = (placement.name, len(rows))
