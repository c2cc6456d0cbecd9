"""The observer of a scheduler that records every decision in little memory.

A record has no details about nodes. These are derived on demand from the history of the cluster (see `archive`), which
shares one limit in bytes with the records: the oldest records are dropped together with the changes before them. The
last record of a pod that waits is kept longer, without details.
"""

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from kubestow.clock import Clock
from kubestow.insight.decisions.extender_answers import AnswerTape
from kubestow.insight.decisions.groups import GroupRecords
from kubestow.insight.decisions.plugin_answers import RecordingGuard
from kubestow.insight.decisions.record import RECORD_BYTES, Answers, Record
from kubestow.rng import Rng
from kubestow.scheduler.binding.binder import Attempt, Step
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.events import UNSCHEDULED_POD_ADD
from kubestow.scheduler.cluster.history import CHANGE_BYTES, History, excess_bytes
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.cycle.outcome import Outcome, Placed
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.observer import Observer
from kubestow.scheduler.queue.queued_pod import QueuedPod

DEFAULT_BYTES = 128 * 1024 * 1024
FIRST_EVENT = UNSCHEDULED_POD_ADD.label
_FIRST_MOVE = 0
_MOVES_LIMIT = 8
"""Maximum number of moves that are kept for one pod."""
_PODS_WITH_MOVES = 50_000
_MOVES_BYTES = 300
_MOVES_SHARE = 8
"""Moves of pods may take 1/_MOVES_SHARE of the limit."""
_WAITING_SHARE = 2
"""The last records of waiting pods may take 1/_WAITING_SHARE of the limit. Some of these pods no longer exist."""
_CHECK_EVERY = 256
"""Maximum number of decisions of the usual size between two checks of the total size."""
_CHANGES_CHECK = 4_096
"""Maximum number of cluster changes between two checks; changes may occur without decisions."""
_CHECKED_SHARE = 16
"""Additions between two checks take at most about 1/_CHECKED_SHARE of the limit."""
_DROPPED_SHARE = 16
"""1/_DROPPED_SHARE of the records and changes are dropped at a time."""
_GROUPS_SHARE = 8
"""Decisions about groups may take 1/_GROUPS_SHARE of the limit."""
_CLOCK_SET = 0.001
"""A drift of clock and stopwatch by more seconds than this means that the clock was set."""

_NO_PERMITS: Mapping[str, float] = {}

Listener = Callable[[Record], None]


class DrawTape:
    """Draws random numbers for plugins and records them until they are taken."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self.recorded: list[int] = []

    def randrange(self, stop: int, /) -> int:
        drawn = self._rng.randrange(stop)
        self.recorded.append(drawn)
        return drawn

    def take(self) -> tuple[int, ...]:
        """Return the numbers since the previous call."""
        draws, self.recorded = self.recorded, []
        return tuple(draws)


class Recorder(Observer):
    """An observer that records every decision."""

    def __init__(
        self,
        *,
        clock: Clock,
        stopwatch: Callable[[], float],
        rng: Rng,
        limit: int = DEFAULT_BYTES,
    ) -> None:
        """`rng` provides the random numbers of plugins, which draw through `self.rng`; `limit` is in bytes."""
        self.history = History(self._trim, max(1, min(_CHANGES_CHECK, limit // (_CHECKED_SHARE * CHANGE_BYTES))))
        self.limit = limit
        self._most_moves = max(1, min(_PODS_WITH_MOVES, limit // (_MOVES_SHARE * _MOVES_BYTES)))
        self._most_waiting = limit // (_WAITING_SHARE * RECORD_BYTES)
        self._check_after = min(_CHECK_EVERY * RECORD_BYTES, limit // _CHECKED_SHARE)
        self._unchecked = 0
        """The bytes of the records since the last check of the total size."""
        self.extenders = AnswerTape()
        self.plugins = RecordingGuard()
        self.rng = DrawTape(rng)
        self.groups = GroupRecords(clock.now, limit // _GROUPS_SHARE)
        self.listeners: list[Listener] = []
        """Called for every new record, and again when it is settled."""
        self.move_names = [("active", FIRST_EVENT, "")]
        """The meaning of the numbers in histories of moves: queue, event, plugin."""
        self._now = clock.now
        self._stopwatch = stopwatch
        self._offset = 0.0
        self._count = 0
        self._ring: deque[Record] = deque()
        self._extra_bytes = 0
        """The size of the records in the ring in addition to RECORD_BYTES each."""
        self._waiting: dict[str, Record] = {}
        """The last records of unschedulable pods, older than those in the ring, by UID."""
        self._last: dict[str, Record] = {}
        """The newest record of each pod, by UID, without the newest records in the ring; see `last`."""
        self._listed = 0
        """Number of records of the ring that `_last` takes into account."""
        self._binding: dict[str, Record] = {}
        """The records of pods that are being bound, by UID."""
        self._order: IntArray | None = None
        """The searched rows whose bytes were counted last."""
        self._answers_of_group: tuple[Sequence[TriedGroup], Answers] | None = None
        """The answers during the cycle of the last group, which its pods share."""
        self._uncounted = 0
        """The bytes of these answers, until they are counted with the record of a pod."""
        self._moves: dict[str, array[float]] = {}
        self._move_numbers = {self.move_names[_FIRST_MOVE]: _FIRST_MOVE}

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records, newest first."""
        yield from reversed(self._ring)
        yield from reversed(self._waiting.values())

    def __len__(self) -> int:
        return len(self._ring) + len(self._waiting)

    def last(self, uid: str) -> Record | None:
        """Return the newest record of a pod."""
        missing = len(self._ring) - self._listed
        if missing:
            newest = list(islice(reversed(self._ring), missing))
            self._last.update((record.uid, record) for record in reversed(newest))
            self._listed = len(self._ring)
        return self._last.get(uid)

    def moves_of(self, uid: str) -> "array[float] | None":
        """Return the moves of a pod between queues, in the format of `on_pod_moved`."""
        return self._moves.get(uid)

    def clock_offset(self) -> float:
        """Return the difference between clock and stopwatch; constant until the clock is set."""
        offset = self._now() - self._stopwatch()
        if abs(offset - self._offset) > _CLOCK_SET:
            self._offset = offset
        return self._offset

    # Observer

    def on_pod_moved(self, queued: QueuedPod, queue: str, event: str, plugin: str) -> None:
        """Record a move. The array has the number of moves that were dropped, then pairs of time and move number."""
        if queued.gate is not None and queue == "unschedulable":
            queue, plugin = "gated", queued.gate.plugin
        name = (queue, event, plugin)
        number = self._move_numbers.get(name)
        if number is None:
            number = self._move_numbers[name] = len(self.move_names)
            self.move_names.append(name)
        moves = self._moves.get(queued.uid)
        if moves is None:
            if len(self._moves) >= self._most_moves:
                del self._moves[next(iter(self._moves))]
            first = queued.initial_attempt_timestamp
            moves = self._moves[queued.uid] = array("d", (0,) if first is None else (0, first, _FIRST_MOVE))
        moves.append(self._now())
        moves.append(number)
        if len(moves) > 2 * _MOVES_LIMIT + 1:
            moves[0] += 1
            del moves[1:3]

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        queued = attempt.queued
        self._count += 1
        node, failed, permits = "", None, _NO_PERMITS
        if isinstance(outcome, Placed):
            node, permits = outcome.node, outcome.waits
        else:
            failed = outcome
        record = Record(
            self._count,
            attempt.info,
            attempt.profile,
            queued.attempts,
            queued.timestamp,
            queued.initial_attempt_timestamp,
            self._now(),
            seconds,
            outcome.searched,
            node,
            failed,
            permits,
        )
        if queued.uid in self._moves:
            record.history = moves = self._moves[queued.uid]
            record.moves = int(moves[0]) + len(moves) // 2
        record.own_bytes = excess_bytes(attempt.info.pod)
        searched = outcome.searched
        if self.extenders.recorded or self.rng.recorded or self.plugins.has_answers(queued.uid):
            record.answers = self._take_answers(queued.uid)
            record.own_bytes += record.answers.nbytes
        elif self._answers_of_group is not None and searched is not None:
            groups, answers = self._answers_of_group
            if any(searched.group is group for group in groups):
                # Count the shared answers once.
                record.answers, record.own_bytes = answers, record.own_bytes + self._uncounted
                self._uncounted = 0
        if searched is not None and searched.order is not None and searched.order is not self._order:
            # Pods of a group share the order.
            self._order = searched.order
            record.own_bytes += searched.order.nbytes
        self._extra_bytes += record.own_bytes
        self._ring.append(record)
        if node:
            self._binding[queued.uid] = record
        if self._waiting:
            self._waiting.pop(queued.uid, None)
        self._unchecked += RECORD_BYTES + record.own_bytes
        if self._unchecked >= self._check_after:
            self._unchecked = 0
            self._trim()
        for listener in self.listeners:
            listener(record)

    def _take_answers(self, uid: str | None = None) -> Answers:
        """Return the answers for a pod; None: for the pods of a group."""
        plugins, size = self.plugins.take(uid)
        return Answers(self.extenders.take(), plugins, self.rng.take(), size)

    def on_group_decision(self, tried: TriedGroup, profile: Profile, outcome: GroupOutcome, seconds: float) -> None:
        answers = self._take_answers()
        self._answers_of_group, self._uncounted = (tried.leaves, answers), answers.nbytes
        for leaf, of_leaf in zip(tried.leaves, outcome.leaves or (outcome,), strict=True):
            if leaf.pods:
                self.groups.add(leaf, tried, profile, of_leaf, seconds, answers)

    def on_binding_step(self, placed: Placed, step: Step) -> None:
        uid = placed.pod.uid
        record = self._binding[uid]
        was_settled = bool(self.listeners) and record.is_settled
        if step.failed is None:
            record.steps += (step,)
        else:
            record.binding_failed = step.failed
        if step.is_bound:
            self._moves.pop(uid, None)
        if step.failed is not None or (step.is_bound and (step.name == "PostBind" or not record.by.post_bind)):
            del self._binding[uid]
        if self.listeners and record.is_settled and not was_settled:
            for listener in self.listeners:
                listener(record)

    # Size

    @property
    def bytes(self) -> int:
        """Approximate number of bytes of all records and the history of the cluster."""
        records = RECORD_BYTES * len(self) + self._extra_bytes + _MOVES_BYTES * len(self._moves)
        return self.history.bytes + records + self.groups.bytes

    def _trim(self) -> None:
        self.history.settle()
        while self.bytes > self.limit and (self._ring or self.history.revision > self.history.first):
            self._drop_oldest()
            while len(self._waiting) > self._most_waiting:
                self._drop_waiting()
        while self.bytes > self.limit and self._waiting:
            self._drop_waiting()

    def _drop_waiting(self) -> None:
        """Drop the oldest of the records that are kept longer because their pods wait."""
        uid = next(iter(self._waiting))
        record = self._waiting.pop(uid)
        if self._last.get(uid) is record:
            del self._last[uid]

    def _drop_oldest(self) -> None:
        """Drop the oldest records, and the changes that only these need."""
        first, changes = self.history.first, self.history.revision - self.history.first
        until = first + -(-changes // _DROPPED_SHARE)
        count = -(-len(self._ring) // _DROPPED_SHARE)
        while self._ring and (count > 0 or self._revision_of(self._ring[0]) < until):
            self._drop(self._ring[0])
            count -= 1
        if self._ring:
            until = max(until, self._revision_of(self._ring[0]))
        self.history.drop_before(until)

    def _revision_of(self, record: Record) -> int:
        return self.history.revision if record.searched is None else record.searched.revision

    def _drop(self, record: Record) -> None:
        is_kept = record.failed is not None and self.last(record.uid) is record
        self._ring.popleft()
        self._extra_bytes -= record.own_bytes
        if self._listed:
            self._listed -= 1
            if not is_kept and self._last.get(record.uid) is record:
                del self._last[record.uid]
        if is_kept:
            record.answers = None
            self._waiting[record.uid] = record
