"""Keeps the decisions about pod groups: the newest ones, and the last one of every group that does not fit.

They are few compared to decisions about pods, so they are kept in the form of the JSON schema. The reasons why pods
failed in each placement are derived on demand, like the details about nodes.
"""

from collections import deque
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from kubestow.api.timestamps import format_micro_time
from kubestow.config.configuration import Extender
from kubestow.insight.decisions.group_results import group_decision
from kubestow.insight.decisions.record import Answers
from kubestow.insight.decisions.schema import SCHEDULED, GroupDecision
from kubestow.scheduler.cluster.history import excess_bytes
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.profile import Profile

_OWN_BYTES = 1_000
_POD_BYTES = 2_500
"""Approximate size of a pod as it was scheduled."""
_NAMED_BYTES = 200
_PLACEMENT_BYTES = 300


class GroupRecord(msgspec.Struct, frozen=True, eq=False):
    """One cycle of one group."""

    id: int
    time: float
    revision: int
    """The revision of the cluster at the start of the cycle."""
    extenders: tuple[Extender, ...]
    """The extenders of the configuration at that time."""
    tried: TriedGroup
    tree: TriedGroup
    """What the cycle was about: the root of the group's tree, or the group itself."""
    by: Profile
    answers: Answers | None
    """None for an old record, whose details are dropped."""
    decision: GroupDecision

    @property
    def nbytes(self) -> int:
        decision = self.decision
        reasons = sum(len(reason) for one in decision.placements for reason in one.reasons)
        names = len(decision.members) + len(decision.chosen) + len(decision.nominated) + len(decision.victims)
        pods = sum(_POD_BYTES + excess_bytes(pod.pod) for pod in self.tried.pods)
        answers = 0 if self.answers is None else self.answers.nbytes
        placements = _PLACEMENT_BYTES * len(decision.placements) + reasons
        return _OWN_BYTES + pods + _NAMED_BYTES * names + placements + answers


GroupListener = Callable[[GroupRecord], None]


class GroupRecords:
    """The decisions about groups, limited to `limit` bytes."""

    def __init__(self, now: Callable[[], float], limit: int) -> None:
        self._now = now
        self._limit = limit
        self.bytes = 0
        self._ring: deque[GroupRecord] = deque()
        self._waiting: dict[str, GroupRecord] = {}
        """The last records of groups that do not fit, older than those in the ring, by key."""
        self._last: dict[str, GroupRecord] = {}
        self._count = 0
        self.listeners: list[GroupListener] = []
        """Called for every new record."""

    def __iter__(self) -> Iterator[GroupRecord]:
        """Iterate over the records, newest first."""
        yield from reversed(self._ring)
        yield from reversed(self._waiting.values())

    def add(
        self,
        tried: TriedGroup,
        tree: TriedGroup,
        profile: Profile,
        outcome: GroupOutcome,
        seconds: float,
        answers: Answers,
    ) -> None:
        """Record the outcome for a group of a cycle that was about it or its `tree`."""
        self._count += 1
        now = self._now()
        decision = replace(
            group_decision(tried, outcome),
            id=self._count,
            time=format_micro_time(now),
            seconds=round(seconds, 6),
            profile=profile.name,
        )
        record = GroupRecord(
            self._count, now, outcome.revision, outcome.extenders, tried, tree, profile, answers, decision
        )
        before = self._waiting.pop(tried.key, None)
        if before is not None:
            self.bytes -= before.nbytes
        self._ring.append(record)
        self._last[tried.key] = record
        self.bytes += record.nbytes
        while self.bytes > self._limit and self._ring:
            self._drop(self._ring.popleft())
        while self.bytes > self._limit and self._waiting:
            self.bytes -= self._waiting.pop(next(iter(self._waiting))).nbytes
        for listener in self.listeners:
            listener(record)

    def _drop(self, record: GroupRecord) -> None:
        key = record.decision.podGroup
        if self._last.get(key) is record:
            del self._last[key]
            if record.decision.outcome != SCHEDULED:
                self._waiting[key] = kept = replace(record, answers=None)
                self.bytes += kept.nbytes
        self.bytes -= record.nbytes
