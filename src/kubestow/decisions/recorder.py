"""Makes a record of every decision, and hands it to those that are kept.

A record costs little because it keeps what the cycle has found out anyway, in arrays that equal pods share. Those of
pods that were placed like others before them are kept dozens at a time, or all there are when somebody wants to read.
The placed pod carries its record, which takes down what becomes of the binding, so nothing has to be looked up for it.
"""

from array import array
from collections.abc import Callable, Iterator

from kubestow.binding.binder import Attempt
from kubestow.cluster.arrays import IntArray
from kubestow.cluster.events import UNSCHEDULED_POD_ADD
from kubestow.cluster.nodes import NodeTable
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.journal import Chapter, Layer
from kubestow.cycle.outcome import Failed, Outcome, Placed
from kubestow.cycle.trace import Scored, Trace
from kubestow.decisions.groups import GroupRecords
from kubestow.decisions.keeping import HISTORY_BYTES, RECORD_BYTES, Kept
from kubestow.decisions.record import (
    BINDING,
    BOUND,
    FAILED,
    NO_DETAILS,
    WAITING,
    Details,
    Names,
    Record,
)
from kubestow.decisions.refusals import RefusalsKnown
from kubestow.decisions.schema import ERROR, SCHEDULED, UNSCHEDULABLE
from kubestow.framework.placements import TriedGroup
from kubestow.framework.results import PluginError, PostFilterResult
from kubestow.framework.verdicts import Told, Verdicts
from kubestow.model.clock import Clock
from kubestow.queue.queued_pod import QueuedPod

DEFAULT_BYTES = 128 * 1024 * 1024
_TRACE_BYTES = 600
_ALIKE_BYTES = RECORD_BYTES + _TRACE_BYTES
_DETAILS_BYTES = 400
_POD_BYTES = 3_000
_MOST_MOVES = 8
_FIRST_MOVE = 0
FIRST_EVENT = UNSCHEDULED_POD_ADD.label
_MOST_WORDS = 1_024
_GROUPS_SHARE = 8
"""Decisions about groups may take up to one part in so many of the room."""
_KEPT_AT_ONCE = 64

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
        self._alike: list[Record] = []
        """Of pods that were placed one after the other, with the same names and chapters; not kept yet."""
        self._chapter: Chapter | None = None
        self._lowest: Layer | None = None
        """What tells whether the next is like them."""
        self._count = 0
        """How many records there were."""
        self._names = Names(())
        self._layout = -1
        self._group = NO_DETAILS
        """Of the last pod that was placed with its group."""
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
        """What is to be added to the stopwatch to have the time."""
        return self._now() - self.stopwatch()

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

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float, trace: Trace | None) -> None:
        record: Record | None = None
        if isinstance(outcome, Placed):
            trace = outcome.trace
            if trace is not None and trace.layers and outcome.feasible == outcome.evaluated:
                evaluation: Evaluation = trace.evaluation
                if not (trace.scores or evaluation.scores or trace.left is not None) and evaluation.nominated is None:
                    # Nothing but what pods like it share.
                    record = self._alike_record(attempt, outcome, seconds, trace, evaluation)
        if record is None:
            record = self._record(attempt, outcome, seconds)
            if trace is not None:
                self._note_trace(record, trace)
            self._keep([record])
        if self.listeners:
            self.kept()
            for listener in self.listeners:
                listener(record)

    def group_decided(
        self, tried: TriedGroup, profile: str, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        self.groups.decided(tried, profile, outcome, scheduled, seconds)

    def step(self, placed: Placed, step: str, plugin: str, start: float) -> None:
        record: Record = placed.record
        record.steps += (step, plugin, start, self.stopwatch())
        if record.binding == WAITING:
            record.binding = BINDING

    def ended(self, placed: Placed, failed: Failed | None) -> None:
        record: Record = placed.record
        if failed is None:
            record.binding = BOUND
        else:
            record.binding, record.message = FAILED, failed.message
            record.outcome = UNSCHEDULABLE if failed.is_rejection else ERROR
            record.plugins = self._shared_set(failed.plugins | failed.pending_plugins)
        for listener in self.listeners:
            listener(record)

    # What is kept of it

    def _follow(self, table: NodeTable) -> None:
        """Nodes have come or gone since the last decision."""
        if self._alike:
            self._keep_alike()
        self._layout, self._names = table.layout, Names(tuple(table.names))

    def _alike_record(
        self, attempt: Attempt, placed: Placed, seconds: float, trace: Trace, evaluation: Evaluation
    ) -> Record:
        table, layers = evaluation.cluster.nodes, trace.layers
        if table.layout != self._layout:
            self._follow(table)
        chapter = layers[-1][0]
        if chapter is not self._chapter or layers[0] is not self._lowest:
            if self._alike:
                self._keep_alike()
            self._chapter, self._lowest = chapter, layers[0]
        trace.evaluation = None
        self._count += 1
        queued, info = attempt.queued, placed.pod
        history, evaluated = queued.history, placed.evaluated
        # Everything at once: setting a field later takes longer than giving it here.
        placed.record = record = Record(
            self._count,
            self._now(),
            seconds,
            info.namespace,
            info.pod.metadata.name,
            info.uid,
            attempt.profile.name,
            info.priority,
            queued.attempts,
            queued.timestamp,
            queued.initial_attempt_timestamp,
            history,
            1 if history is None else _moves(history),
            SCHEDULED,
            _ALIKE_BYTES if history is None else _ALIKE_BYTES + HISTORY_BYTES,
            placed.node,
            evaluated,
            evaluated,
            WAITING if placed.waits else BINDING,
            placed.waits or None,
            table.count,
            self._names,
            evaluation.skipped,
            trace,
            self._of_group(trace) if trace.group else NO_DETAILS,
        )
        self._alike.append(record)
        if len(self._alike) >= _KEPT_AT_ONCE:
            self._keep_alike()
        return record

    def _keep_alike(self) -> None:
        records, self._alike = self._alike, []
        self._keep(records)

    def _keep(self, records: list[Record]) -> None:
        self._kept.add(records, self._room - self.groups.bytes - self.journal_bytes())

    def _of_group(self, trace: Trace) -> Details:
        """The pods of a group have the same."""
        placement = _placement(trace)
        if self._group.group != trace.group or self._group.placement != placement:
            self._group = Details()
            self._group.group, self._group.placement = trace.group, placement
        return self._group

    def _record(self, attempt: Attempt, outcome: Outcome, seconds: float) -> Record:
        if self._alike:
            self._keep_alike()
        self._count += 1
        queued = attempt.queued
        meta, history = queued.pod.metadata, queued.history
        record = Record(
            self._count,
            self._now(),
            seconds,
            meta.namespace,
            meta.name,
            meta.uid,
            attempt.profile.name,
            queued.info.priority,
            queued.attempts,
            queued.timestamp,
            queued.initial_attempt_timestamp,
            history,
            1 if history is None else _moves(history),
            SCHEDULED,
            RECORD_BYTES if history is None else RECORD_BYTES + HISTORY_BYTES,
        )
        if isinstance(outcome, Placed):
            record.node, record.evaluated, record.feasible = outcome.node, outcome.evaluated, outcome.feasible
            record.binding, record.waits = WAITING if outcome.waits else BINDING, outcome.waits or None
            outcome.record = record
        else:
            self._note_failure(record, outcome)
        return record

    def _note_failure(self, record: Record, failed: Failed) -> None:
        record.outcome = UNSCHEDULABLE if failed.is_rejection else ERROR
        record.message = self._shared_words(failed.message)
        record.plugins = self._shared_set(failed.plugins | failed.pending_plugins)
        record.nominated_node = failed.nominated_node or ""

    def _note_trace(self, record: Record, trace: Trace) -> None:
        evaluation: Evaluation = trace.evaluation
        table = evaluation.cluster.nodes
        if table.layout != self._layout:
            self._follow(table)
        record.names, record.node_count = self._names, table.count
        # Pods that share have the same set already.
        record.skipped = evaluation.skipped if trace.layers else self._shared_set(frozenset(evaluation.skipped))
        if evaluation.rejected is not None or evaluation.narrowed_by:
            self._note_details(record, evaluation)
        if trace.post_filter is not None:
            self._note_post_filter(record, trace.post_filter)
        if evaluation.nominated is not None and trace.order is not None:
            self._own_details(record).nominated = evaluation.nominated.then(trace.order[: trace.searched])
        rows = trace.rows
        has_passed = rows is not None and len(rows) > 0
        verdicts = trace.refused or (None if has_passed else evaluation.verdicts)
        if verdicts is not None:
            self._note_refusals(record, evaluation, verdicts)
        if trace.group:
            self._note_group(record, trace)
        if rows is not None and has_passed:
            if not record.binding:
                # It had found a node, and was refused there.
                record.evaluated, record.feasible = trace.searched, len(rows if trace.left is None else trace.left)
            record.own_bytes += _TRACE_BYTES
            if evaluation.scores or trace.scores or len(rows) < trace.searched or trace.left is not None:
                self._note_rows(record, evaluation, trace, rows)
        elif trace.calls:
            trace.order = None
            record.own_bytes += _TRACE_BYTES
        else:
            return
        trace.evaluation = trace.refused = trace.post_filter = None
        record.trace = trace

    def _note_group(self, record: Record, trace: Trace) -> None:
        details = self._own_details(record)
        details.group, details.placement = trace.group, _placement(trace)
        if trace.rows is not None and not record.binding:
            # It had found a node, and had to give it back.
            record.evaluated, record.feasible = trace.searched, len(trace.rows)

    def _note_refusals(self, record: Record, evaluation: Evaluation, verdicts: Verdicts | Told) -> None:
        try:
            record.refusals = self._refusals.of(verdicts)
        except PluginError as error:
            evaluation.profile.caller.failed(error)
            return
        if not record.binding:
            record.evaluated = len(record.refusals)

    def _note_rows(self, record: Record, evaluation: Evaluation, trace: Trace, rows: IntArray) -> None:
        for of in evaluation.scores:
            weighted = of.normalized if of.weight == 1 else of.weighted
            trace.scores += (Scored(of.plugin, of.weight, of.raw.copy(), weighted.copy()),)
        for scored in trace.scores:
            record.own_bytes += sum(part.nbytes for part in scored[2:] if part is not None)
        if trace.left is not None:
            record.own_bytes += 2 * trace.left.nbytes
        if len(rows) < trace.searched:
            record.own_bytes += rows.nbytes

    def _note_details(self, record: Record, evaluation: Evaluation) -> None:
        details = self._own_details(record)
        details.rejected = evaluation.rejected
        details.narrowed_to, details.narrowed_by = evaluation.narrowed_to, tuple(evaluation.narrowed_by)
        record.own_bytes += 100 * len(details.narrowed_to or ())

    def _own_details(self, record: Record) -> Details:
        if record.details is NO_DETAILS:
            record.details = Details()
            record.own_bytes += _DETAILS_BYTES
        return record.details

    def _note_post_filter(self, record: Record, result: PostFilterResult) -> None:
        if result.victims or result.weighed is not None:
            record.own_bytes += _DETAILS_BYTES + _POD_BYTES * (len(result.victims) + len(result.to_unnominate))
            record.own_bytes += sum(part.nbytes for part in result.weighed or ())
        else:
            # Most often nothing helps, for many pods in the same words.
            if len(self._results) > _MOST_WORDS:
                self._results.clear()
            result = self._results.setdefault(result, result)
        record.post_filter = result

    def _shared_words(self, words: str) -> str:
        if len(self._words) > _MOST_WORDS:
            self._words.clear()
        return self._words.setdefault(words, words)

    def _shared_set(self, names: frozenset[str]) -> frozenset[str]:
        return self._sets.setdefault(names, names)


def _moves(history: "array[float]") -> int:
    """How many there were: the first number is how many are forgotten."""
    return int(history[0]) + len(history) // 2


def _placement(trace: Trace) -> tuple[str, int] | None:
    placement = trace.placement
    return None if placement is None or not placement.name else (placement.name, len(placement.rows))
