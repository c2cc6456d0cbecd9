"""Keeps the decisions about pod groups: a ring of so many bytes, and of every group that waits the last one.

There are few of them beside those about pods, so they are kept as they are told.
"""

from collections import deque
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.decisions.group_telling import tell_group
from kubestow.decisions.schema import GroupDecision
from kubestow.framework.placements import TriedGroup
from kubestow.model.timestamps import format_micro_time

_OWN_BYTES = 1_000
_POD_BYTES = 200
_PLACEMENT_BYTES = 300


class GroupRecord(msgspec.Struct, frozen=True):
    """One cycle of one group."""

    id: int
    time: float
    size: int
    """In bytes, about."""
    decision: GroupDecision


GroupListener = Callable[[GroupRecord], None]


class GroupRecords:
    """What was decided about groups."""

    def __init__(self, now: Callable[[], float], limit: int, is_pending: Callable[[str], bool]) -> None:
        """`is_pending` says whether pods of a group, by namespace/name, wait."""
        self._now = now
        self._is_pending = is_pending
        self._limit = limit
        self.bytes = 0
        self._ring: deque[GroupRecord] = deque()
        self._kept: dict[str, GroupRecord] = {}
        """The last records of groups that wait, older than those in the ring; by key."""
        self._last: dict[str, GroupRecord] = {}
        self._count = 0
        self.listeners: list[GroupListener] = []
        """Are told of every record."""

    def __iter__(self) -> Iterator[GroupRecord]:
        """Newest first."""
        yield from reversed(self._ring)
        yield from reversed(self._kept.values())

    def decided(self, tried: TriedGroup, profile: str, outcome: GroupOutcome, scheduled: int, seconds: float) -> None:
        """The cycle of a group is over; `scheduled` of its pods had a node before."""
        self._count += 1
        now = self._now()
        decision = replace(
            tell_group(tried, outcome, scheduled),
            id=self._count,
            time=format_micro_time(now),
            seconds=round(seconds, 6),
            profile=profile,
        )
        record = GroupRecord(self._count, now, _size(decision), decision)
        before = self._kept.pop(tried.key, None)
        if before is not None:
            self.bytes -= before.size
        self._ring.append(record)
        self._last[tried.key] = record
        self.bytes += record.size
        while self.bytes > self._limit and self._ring:
            self._drop(self._ring.popleft())
        while self.bytes > self._limit and self._kept:
            self.bytes -= self._kept.pop(next(iter(self._kept))).size
        for listener in self.listeners:
            listener(record)

    def _drop(self, record: GroupRecord) -> None:
        key = record.decision.podGroup
        if self._last.get(key) is record:
            del self._last[key]
            if self._is_pending(key):
                self._kept[key] = record
                return
        self.bytes -= record.size


def _size(decision: GroupDecision) -> int:
    words = sum(len(reason) for one in decision.placements for reason in one.reasons)
    pods = len(decision.members) + len(decision.chosen) + len(decision.nominated) + len(decision.victims)
    return _OWN_BYTES + _POD_BYTES * pods + _PLACEMENT_BYTES * len(decision.placements) + words
