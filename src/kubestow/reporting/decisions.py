"""What was decided lately: a bounded record, the newest decisions kept, the oldest forgotten."""

from collections import deque
from collections.abc import Iterator

from msgspec import Struct

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"


class DecisionRecord(Struct, frozen=True, gc=False):
    """One attempt to schedule a pod, and what came of it."""

    time: float
    """When it was decided, in seconds since the epoch."""
    pod: str
    """namespace/name"""
    uid: str
    outcome: str
    """`scheduled`, `unschedulable` or `error`, as in the metrics."""
    node: str = ""
    """Where the pod goes; for a pod that was not scheduled, the node it is nominated for."""
    message: str = ""
    evaluated: int = 0
    """How many nodes were looked at."""
    feasible: int = 0
    """How many of them would do."""
    seconds: float = 0.0
    """How long deciding took."""


class Decisions:
    """The last decisions."""

    def __init__(self, capacity: int = 1000) -> None:
        if capacity < 1:
            raise ValueError(f"a record of decisions needs room for at least one, not {capacity}")
        self._records: deque[DecisionRecord] = deque(maxlen=capacity)
        self.record = self._records.append
        """Takes a DecisionRecord. The ring's own append, since it is called for every pod."""

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[DecisionRecord]:
        """Newest first."""
        return reversed(self._records)

    def of_pod(self, pod: str) -> list[DecisionRecord]:
        """All about one pod, given by namespace/name or uid, newest first."""
        return [record for record in self if pod in (record.pod, record.uid)]
