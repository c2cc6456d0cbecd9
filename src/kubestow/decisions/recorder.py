"""Keeps a record of every decision: a ring of so many bytes, and of every pod that waits the last one.

A record costs little because it keeps what the cycle has found out anyway, in arrays that equal pods share; what is
shared counts once. The oldest go first. The last record of a pod that still waits is put aside instead; when those
alone are too many, the oldest of them lose what is about nodes, and then go as well.
"""

from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator
from itertools import islice

from kubestow.binding.binder import Attempt
from kubestow.cluster.arrays import IntArray
from kubestow.cluster.events import UNSCHEDULED_POD_ADD
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.outcome import Failed, Outcome, Placed
from kubestow.cycle.trace import Scored, Trace
from kubestow.decisions.groups import GroupRecords
from kubestow.decisions.record import (
    BINDING,
    BOUND,
    FAILED,
    NO_DETAILS,
    WAITING,
    Details,
    Names,
    Record,
    bytes_of,
    let_go,
)
from kubestow.decisions.refusals import RefusalsKnown
from kubestow.decisions.schema import ERROR, SCHEDULED, UNSCHEDULABLE
from kubestow.framework.placements import TriedGroup
from kubestow.framework.results import PluginError, PostFilterResult
from kubestow.framework.verdicts import Told, Verdicts
from kubestow.model.clock import Clock
from kubestow.queue.queued_pod import QueuedPod

DEFAULT_BYTES = 128 * 1024 * 1024
_RECORD_BYTES = 640
"""A record, with its places in the tables here, and the pod's names."""
_HISTORY_BYTES = 300
_TRACE_BYTES = 600
_DETAILS_BYTES = 400
_POD_BYTES = 3_000
_NOTHING_SKIPPED: Collection[str] = ()
_NO_TRACE: Trace | None = None
_NO_NAMES: Names | None = None
_MOST_MOVES = 8
_FIRST_MOVE = 0
FIRST_EVENT = UNSCHEDULED_POD_ADD.label
_MOST_WORDS = 1_024
_GROUPS_SHARE = 8
"""Decisions about groups may take up to one part in so many of the room."""
_COUNTED_AT_ONCE = 16
"""So many records at a time are counted, which takes fewer calls."""

Listener = Callable[[Record], None]


class Recorder:
    """An observer that keeps what it is told."""

    is_pending: Callable[[str], bool] = staticmethod(lambda _uid: False)
    is_group_pending: Callable[[str], bool] = staticmethod(lambda _key: False)
    stopwatch: Callable[[], float] = staticmethod(lambda: 0.0)
    journal_bytes: Callable[[], int] = staticmethod(lambda: 0)

    def __init__(self, clock: Clock, limit: int = DEFAULT_BYTES) -> None:
        self._now = clock.now
        self._room = self._limit = limit
        self.bytes = 0
        """What all records take, about."""
        self._ring: deque[Record] = deque()
        self._kept: dict[str, Record] = {}
        """The last records of pods that wait, older than those in the ring; by uid."""
        self._bare: dict[str, Record] = {}
        """Those that have lost what is about nodes, older still."""
        self._last: dict[str, Record] = {}
        """Of every pod, by uid."""
        self._count = self._counted = 0
        """How many records there were, and of how many the bytes are counted."""
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

    def __len__(self) -> int:
        return len(self._ring) + len(self._kept) + len(self._bare)

    def __iter__(self) -> Iterator[Record]:
        """Newest first."""
        yield from reversed(self._ring)
        yield from reversed(self._kept.values())
        yield from reversed(self._bare.values())

    def last(self, uid: str) -> Record | None:
        """The newest about a pod."""
        return self._last.get(uid)

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
        queued = attempt.queued
        meta, history = queued.pod.metadata, queued.history
        uid = meta.uid
        self._count = number = self._count + 1
        size, moves = _RECORD_BYTES, 1
        if history is not None:
            size, moves = _RECORD_BYTES + _HISTORY_BYTES, int(history[0]) + len(history) // 2
        if isinstance(outcome, Placed):
            priority, node, evaluated, feasible = (
                outcome.pod.priority,
                outcome.node,
                outcome.evaluated,
                outcome.feasible,
            )
            state = WAITING if outcome.waits else BINDING
        else:
            priority, node, evaluated, feasible, state = queued.info.priority, "", 0, 0, ""
        kept, is_plain = _NO_TRACE, False
        if trace is None:
            names, node_count, skipped = _NO_NAMES, 0, _NOTHING_SKIPPED
        else:
            evaluation: Evaluation = trace.evaluation
            table, rows = evaluation.cluster.nodes, trace.rows
            if table.layout != self._layout:
                self._layout, self._names = table.layout, Names(tuple(table.names))
            names, node_count, skipped = self._names, table.count, evaluation.skipped
            is_plain = (
                rows is not None
                and 0 < len(rows) == trace.searched
                and trace.layers != ()
                and not (trace.scores or evaluation.scores or trace.group or trace.left is not None)
                and evaluation.nominated is None
            )
            if is_plain:
                # Nothing but what pods like it share.
                size += _TRACE_BYTES
                kept, trace.evaluation = trace, None
        # Everything at once: setting a field later takes as long as ten here.
        record = Record(
            number,
            self._now(),
            seconds,
            meta.namespace,
            meta.name,
            uid,
            attempt.profile.name,
            priority,
            queued.attempts,
            queued.timestamp,
            queued.initial_attempt_timestamp,
            history,
            moves,
            SCHEDULED,
            size,
            node,
            evaluated,
            feasible,
            state,
            node_count,
            names,
            skipped,
            kept,
        )
        if not isinstance(outcome, Placed):
            self._note_failure(record, outcome)
        elif outcome.waits:
            record.waits = tuple(outcome.waits)
        if trace is not None and not is_plain:
            self._note_trace(record, trace)
        if self._kept or self._bare:
            before = self._kept.pop(uid, None) or self._bare.pop(uid, None)
            if before is not None:
                self._release(before)
        self._last[uid] = record
        self._ring.append(record)
        if not number % _COUNTED_AT_ONCE:
            self.count_bytes()
        for listener in self.listeners:
            listener(record)

    def group_decided(
        self, tried: TriedGroup, profile: str, outcome: GroupOutcome, scheduled: int, seconds: float
    ) -> None:
        self.groups.decided(tried, profile, outcome, scheduled, seconds)
        self._limit = self._room - self.groups.bytes

    def step(self, uid: str, step: str, plugin: str, start: float) -> None:
        record = self._last.get(uid)
        if record is not None:
            taken = (step, plugin, start, self.stopwatch())
            record.steps = (*record.steps, taken) if record.steps else (taken,)
            if record.state == WAITING:
                record.state = BINDING

    def ended(self, uid: str, failed: Failed | None) -> None:
        record = self._last.get(uid)
        if record is None:
            return
        if failed is None:
            record.state = BOUND
        else:
            record.state, record.message = FAILED, failed.message
            record.outcome = UNSCHEDULABLE if failed.is_rejection else ERROR
            record.plugins = self._shared_set(failed.plugins | failed.pending_plugins)
        for listener in self.listeners:
            listener(record)

    # What is kept of it

    def _note_failure(self, record: Record, failed: Failed) -> None:
        record.outcome = UNSCHEDULABLE if failed.is_rejection else ERROR
        record.message = self._shared_words(failed.message)
        record.plugins = self._shared_set(failed.plugins | failed.pending_plugins)
        record.nominated_node = failed.nominated_node or ""

    def _note_trace(self, record: Record, trace: Trace) -> None:
        evaluation: Evaluation = trace.evaluation
        if not trace.layers:
            # Pods that share have the same set already.
            record.skipped = self._shared_set(frozenset(evaluation.skipped))
        if evaluation.rejected is not None or evaluation.narrowed_by:
            self._note_details(record, evaluation)
        if trace.post_filter is not None:
            self._note_post_filter(record, trace.post_filter)
        if evaluation.nominated is not None:
            self._note_nominated(record, evaluation, trace)
        rows = trace.rows
        has_passed = rows is not None and len(rows) > 0
        verdicts = trace.refused or (None if has_passed else evaluation.verdicts)
        if verdicts is not None:
            self._note_refusals(record, evaluation, verdicts)
        if trace.group:
            self._note_group(record, trace)
        if rows is not None and has_passed:
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
        details.group = trace.group
        if trace.placement is not None and trace.placement.name:
            details.placement = (trace.placement.name, len(trace.placement.rows))
        if trace.rows is not None and not record.state:
            # It had found a node, and had to give it back.
            record.evaluated, record.feasible = trace.searched, len(trace.rows)

    def _note_refusals(self, record: Record, evaluation: Evaluation, verdicts: Verdicts | Told) -> None:
        try:
            record.refusals = self._refusals.of(verdicts)
        except PluginError as error:
            evaluation.profile.caller.failed(error)
            return
        if not record.state:
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

    def _note_nominated(self, record: Record, evaluation: Evaluation, trace: Trace) -> None:
        nominated, table = evaluation.nominated, evaluation.cluster.nodes
        if nominated is None or trace.order is None:
            return
        rows = trace.order[: trace.searched]
        rows = rows[nominated.are_on(rows)]
        pods = [(table.names[row], pod) for row in rows.tolist() for pod in nominated.pods(row)]
        if pods:
            self._own_details(record).nominated = pods
            record.own_bytes += _POD_BYTES * len(pods)

    def _shared_words(self, words: str) -> str:
        if len(self._words) > _MOST_WORDS:
            self._words.clear()
        return self._words.setdefault(words, words)

    def _shared_set(self, names: frozenset[str]) -> frozenset[str]:
        return self._sets.setdefault(names, names)

    # How much is kept

    def count_bytes(self) -> None:
        """Count the records that came since this was done last."""
        new = list(islice(reversed(self._ring), self._count - self._counted))
        self._counted = self._count
        self.bytes += bytes_of(new)
        limit = self._limit - self.journal_bytes()
        if self.bytes > limit:
            self._make_room(limit)

    def _release(self, record: Record) -> None:
        self.bytes -= let_go(record)
        self.bytes -= record.own_bytes
        if self._last.get(record.uid) is record:
            del self._last[record.uid]

    def _make_room(self, limit: int) -> None:
        ring, kept = self._ring, self._kept
        while self.bytes > limit and ring:
            record = ring.popleft()
            if self._last.get(record.uid) is record and self.is_pending(record.uid):
                kept[record.uid] = record
            else:
                self._release(record)
        while self.bytes > limit and kept:
            uid = next(iter(kept))
            record = kept.pop(uid)
            if self.is_pending(uid):
                self._strip(record)
                self._bare[uid] = record
            else:
                self._release(record)
        while self.bytes > limit and self._bare:
            self._release(self._bare.pop(next(iter(self._bare))))

    def _strip(self, record: Record) -> None:
        self.bytes -= let_go(record)
        size = _RECORD_BYTES if record.history is None else _RECORD_BYTES + _HISTORY_BYTES
        self.bytes -= record.own_bytes - size
        record.own_bytes = size
        record.details, record.post_filter = NO_DETAILS, None
