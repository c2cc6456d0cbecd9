"""Which records are kept: a ring of so many bytes, and of every pod that waits the last one.

What records share counts once. The oldest go first. The last record of a pod that still waits is put aside instead;
when those alone are too many, the oldest of them lose what is about nodes, and then go as well.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from kubestow.decisions.record import Record, hold, let_go


class Kept:
    """All records that there are."""

    is_pending: Callable[[str], bool] = staticmethod(lambda _uid: False)
    """Whether a pod, by uid, still waits."""

    def __init__(self) -> None:
        self.bytes = 0
        """What all records take, about."""
        self._ring: deque[Record] = deque()
        self._kept: dict[str, Record] = {}
        """The last records of pods that wait, older than those in the ring; by uid."""
        self._bare: dict[str, Record] = {}
        """Those that have lost what is about nodes, older still."""
        self._last: dict[str, Record] = {}
        """Of every pod, by uid, but for the newest in the ring."""
        self._listed = 0
        """How many of the ring are in that table: few ask for the last of a pod, and not for each of them."""

    def __len__(self) -> int:
        return len(self._ring) + len(self._kept) + len(self._bare)

    def __iter__(self) -> Iterator[Record]:
        """Newest first."""
        yield from reversed(self._ring)
        yield from reversed(self._kept.values())
        yield from reversed(self._bare.values())

    def last(self, uid: str) -> Record | None:
        """The newest about a pod."""
        missing = len(self._ring) - self._listed
        if missing:
            newest = list(islice(reversed(self._ring), missing))
            self._last.update((record.uid, record) for record in reversed(newest))
            self._listed = len(self._ring)
        return self._last.get(uid)

    def add(self, records: Sequence[Record], own_bytes: int, limit: int) -> None:
        """New ones with the same findings, of which each is the last of its pod now.

        `own_bytes` is what they take by themselves. The oldest go where all take more than `limit`.
        """
        if self._kept or self._bare:
            for record in records:
                before = self._kept.pop(record.uid, None) or self._bare.pop(record.uid, None)
                if before is not None:
                    self._release(before)
        self._ring.extend(records)
        self.bytes += own_bytes + hold(records[-1].found, len(records))
        if self.bytes > limit:
            self._make_room(limit)

    def _release(self, record: Record) -> None:
        self.bytes -= let_go(record.found) + record.own_bytes
        if self._last and self._last.get(record.uid) is record:
            del self._last[record.uid]

    def _make_room(self, limit: int) -> None:
        ring, kept = self._ring, self._kept
        while self.bytes > limit and ring:
            record = ring[0]
            # Most are bound: nobody need be asked whether they wait.
            is_wanted = not record.is_bound and self.is_pending(record.uid) and self.last(record.uid) is record
            ring.popleft()
            if self._listed:
                self._listed -= 1
            if is_wanted:
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
        self.bytes -= let_go(record.found) + record.own_bytes
        record.found, record.searched = record.found.bare(record.evaluated, record.feasible), None
        self.bytes += hold(record.found, 1) + record.own_bytes
