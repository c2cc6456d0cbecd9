"""One decision, as it is kept: numbers, names and references to arrays, some of which other records have, too."""

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
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


class Binding(Struct, gc=False):
    """What becomes of a pod that was placed; it goes on when the record is made."""

    state: str
    steps: tuple[Any, ...] = ()
    """Of one step after the other: step, plugin, and from when to when on the stopwatch."""


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
    waits: Mapping[str, float] | None = None
    """The plugins whose permission was missing, and for how many seconds at most they let it wait."""
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
    size: int = sum(map(_OWN_BYTES, records))
    for part, count in Counter(_shared(records)).items():
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
    for part in _shared((record,)):
        part.holders -= 1
        size += 0 if part.holders else part.size
    for chapter in _chapters((record,)):
        chapter.holders -= 1
        if not chapter.holders:
            size += chapter.counted
            chapter.counted = 0
    record.names = record.refusals = record.trace = None
    return size


# Every record comes by here, dozens at a time, so the loops are not Python's.
_OWN_BYTES, _NAMES, _REFUSALS = attrgetter("own_bytes"), attrgetter("names"), attrgetter("refusals")
_TRACE, _LAYERS, _CHAPTER = attrgetter("trace"), attrgetter("layers"), itemgetter(0)
_NOMINATED, _LOG = attrgetter("details.nominated"), attrgetter("log")


def _shared(records: Sequence[Record]) -> Iterator[Shared]:
    return filter(None, chain(map(_NAMES, records), map(_REFUSALS, records)))


def _chapters(records: Sequence[Record]) -> Iterator[Growing]:
    layers = chain.from_iterable(map(_LAYERS, filter(None, map(_TRACE, records))))
    return chain(map(_CHAPTER, layers), map(_LOG, filter(None, map(_NOMINATED, records))))
