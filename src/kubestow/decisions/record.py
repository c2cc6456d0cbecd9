"""One decision, as it is kept: numbers, names and references to arrays, some of which other records have, too."""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

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
    binding: str = ""
    """What becomes of it, which goes on when the record is made; empty: no node was found."""
    waits: Mapping[str, float] | None = None
    """The plugins whose permission was missing, and for how many seconds at most they let it wait."""
    node_count: int = 0
    names: Names | None = None
    """None: what is about nodes had to go."""
    skipped: Collection[str] = ()
    trace: Trace | None = None
    details: Details = NO_DETAILS
    steps: tuple[Any, ...] = ()
    """Of the binding, one after the other: step, plugin, and from when to when on the stopwatch."""
    message: str = ""
    plugins: frozenset[str] = frozenset()
    """Who rejected the pod."""
    nominated_node: str = ""
    refusals: Refusals | None = None
    post_filter: PostFilterResult | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will become of it."""
        return self.binding not in (WAITING, BINDING)

    @property
    def pod(self) -> str:
        """namespace/name"""
        return f"{self.namespace}/{self.name}"


def hold(record: Record, count: int = 1) -> int:
    """So many new records hold what this one shares; returns the bytes of what no other holds."""
    size = 0
    for part in _shared(record):
        size += 0 if part.holders else part.size
        part.holders += count
    for growing in _growing(record):
        growing.holders += count
        size += growing.bytes - growing.counted
        growing.counted = growing.bytes
    return size


def let_go(record: Record) -> int:
    """Take from a record all that is about nodes; returns the bytes of what no other holds."""
    size = 0
    for part in _shared(record):
        part.holders -= 1
        size += 0 if part.holders else part.size
    for growing in _growing(record):
        growing.holders -= 1
        if not growing.holders:
            size += growing.counted
            growing.counted = 0
    record.names = record.refusals = record.trace = None
    return size


def _shared(record: Record) -> Iterator[Shared]:
    if record.names is not None:
        yield record.names
    if record.refusals is not None:
        yield record.refusals


def _growing(record: Record) -> Iterator[Growing]:
    if record.trace is not None:
        for layer in record.trace.layers:
            yield layer[0]
    if record.details.nominated is not None:
        yield record.details.nominated.log
