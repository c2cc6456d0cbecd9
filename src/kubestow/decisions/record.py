"""One decision, as it is kept: numbers, names and references to arrays, some of which other records have, too."""

from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol

from msgspec import Struct

from kubestow.cluster.nominations import NominatedThen
from kubestow.cycle.trace import Trace
from kubestow.decisions.refusals import Refusals
from kubestow.framework.results import PostFilterResult, Rejection

WAITING = "waiting"
BINDING = "binding"
BOUND = "bound"
FAILED = "failed"

_NAME_BYTES = 24


class Names:
    """The names of all rows, for as long as no node comes or goes."""

    __slots__ = ("holders", "of_row")

    def __init__(self, of_row: Sequence[str]) -> None:
        self.of_row = of_row
        self.holders = 0

    @property
    def size(self) -> int:
        """In bytes, with the order in which rows are searched, which lasts about as long."""
        return _NAME_BYTES * len(self.of_row)


StepTaken = tuple[str, str, float, float]
"""A step of a binding: step, plugin, and from when to when on the stopwatch."""


class Shared(Protocol):
    """What several records may have; it counts once."""

    holders: int

    @property
    def size(self) -> int: ...


class Growing(Protocol):
    """The same of what may still grow."""

    counted: int
    holders: int

    @property
    def bytes(self) -> int: ...


class Details:
    """What few records have; what is not there is as it is here."""

    rejected: Rejection | None = None
    narrowed_to: frozenset[str] | None = None
    narrowed_by: Sequence[str] = ()
    nominated: NominatedThen | None = None
    group: str = ""
    """The pod group that the pod was tried with."""
    placement: tuple[str, int] | None = None
    """Where the group was tried, and how many nodes that is; None: everywhere."""


NO_DETAILS = Details()


class Binding(Struct, gc=False):
    """What becomes of a pod that was placed; it goes on when the record is made."""

    state: str
    steps: tuple[StepTaken, ...] = ()


class Record(Struct, gc=False):
    """One cycle of one pod, and what became of it. It is made for every pod, in the order of its fields."""

    id: int
    time: float
    seconds: float
    namespace: str
    name: str
    uid: str
    profile: str
    priority: int
    attempts: int
    queued_since: float
    initial_attempt: float | None
    history: "array[float] | None"
    """The pod's moves in the queue; shared by all records of the pod, as far as it was then: `moves` of them."""
    moves: int
    outcome: str
    own_bytes: int
    """What it takes by itself."""
    node: str = ""
    """The chosen one."""
    evaluated: int = 0
    feasible: int = 0
    binding: Binding | None = None
    waits: Sequence[str] = ()
    """The plugins whose permission was missing."""
    node_count: int = 0
    names: Names | None = None
    """None: what is about nodes had to go."""
    skipped: Collection[str] = ()
    trace: Trace | None = None
    details: Details = NO_DETAILS
    message: str = ""
    plugins: frozenset[str] = frozenset()
    """Who rejected the pod."""
    nominated_node: str = ""
    refusals: Refusals | None = None
    post_filter: PostFilterResult | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will become of it."""
        return self.binding is None or self.binding.state not in (WAITING, BINDING)

    @property
    def pod(self) -> str:
        """namespace/name"""
        return f"{self.namespace}/{self.name}"


def bytes_of(records: Sequence[Record]) -> int:
    """How many bytes new records take, beyond what others share with them; from now on they hold it, too."""
    size = sum([record.own_bytes for record in records])
    shared: list[Shared | None] = [record.names for record in records]
    shared += [record.refusals for record in records]
    for part, count in Counter(shared).items():
        if part is not None:
            size += 0 if part.holders else part.size
            part.holders += count
    for chapter, count in Counter(_chapters(records)).items():
        chapter.holders += count
        size += chapter.bytes - chapter.counted
        chapter.counted = chapter.bytes
    return size


def let_go(record: Record) -> int:
    """Take from a record all that is about nodes; returns the bytes of what no other holds."""
    size = 0
    shared: tuple[Shared | None, ...] = (record.names, record.refusals)
    for part in shared:
        if part is not None:
            part.holders -= 1
            size += 0 if part.holders else part.size
    for chapter in _chapters((record,)):
        chapter.holders -= 1
        if not chapter.holders:
            size += chapter.counted
            chapter.counted = 0
    record.names = record.refusals = record.trace = None
    return size


def _chapters(records: Sequence[Record]) -> list[Growing]:
    chapters: list[Growing] = [
        layer[0] for record in records if record.trace is not None for layer in record.trace.layers
    ]
    chapters += [record.details.nominated.log for record in records if record.details.nominated is not None]
    return chapters
