"""One decision, as it is kept: numbers, names and references to arrays, some of which other records have, too."""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.nominations import NominatedThen
from kubestow.cycle.journal import Layers
from kubestow.cycle.trace import Searched, Trace, counts, traced
from kubestow.decisions.refusals import Refusals
from kubestow.decisions.schema import SCHEDULED
from kubestow.framework.results import PostFilterResult, Rejection

WAITING = "waiting"
BINDING = "binding"
BOUND = "bound"
FAILED = "failed"

NOBODY: frozenset[str] = frozenset()

STEP_WIDTH = 5
RECORD_BYTES = 660
"""A record, with its places in tables, and the pod's names."""
SEARCHED_BYTES = 160
"""The steps of the binding; the rows are those of other records, too."""
HISTORY_BYTES = 300
FINDINGS_BYTES = 200
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


class Findings(Struct, gc=False):
    """What a cycle has found out. Pods that are placed alike, one after the other, have the same."""

    profile: str
    priority: int
    own_bytes: int
    """What it takes by itself."""
    outcome: str = SCHEDULED
    message: str = ""
    plugins: frozenset[str] = NOBODY
    """Who rejected the pod."""
    nominated_node: str = ""
    node_count: int = 0
    names: Names | None = None
    """None: what is about nodes had to go."""
    skipped: Collection[str] = ()
    layers: Layers | None = None
    trace: Trace | None = None
    """None where layers say everything."""
    evaluated: int = 0
    feasible: int = 0
    waits: Mapping[str, float] | None = None
    """The plugins whose permission was missing, and for how many seconds at most they let it wait."""
    details: Details = NO_DETAILS
    refusals: Refusals | None = None
    post_filter: PostFilterResult | None = None
    holders: int = 0
    """How many records have it."""

    def bare(self, evaluated: int, feasible: int) -> "Findings":
        """The same of a record with these counts, without all that is about nodes."""
        return Findings(
            self.profile,
            self.priority,
            FINDINGS_BYTES,
            self.outcome,
            self.message,
            self.plugins,
            self.nominated_node,
            self.node_count,
            skipped=self.skipped,
            evaluated=evaluated,
            feasible=feasible,
            waits=self.waits,
        )


class BindingFailure(NamedTuple):
    """How the binding of a pod that had found a node came to nothing."""

    outcome: str
    message: str
    plugins: frozenset[str]


class Record(Struct, gc=False):
    """One cycle of one pod, and what became of it. It is made for every pod, in the order of its fields."""

    found: Findings
    id: int
    time: float
    seconds: float
    namespace: str
    name: str
    uid: str
    attempts: int
    queued_since: float
    initial_attempt: float | None
    history: "array[float] | None"
    """The pod's moves in the queue; shared by all records of the pod, as far as it was then: `moves` of them."""
    node: str
    """The chosen one."""
    searched: IntArray | Searched | None = None
    """The rows; if it is nothing but rows, all of them passed, and the layers say everything. None: the findings do."""
    change: int = 0
    """How many changes there were in the topmost of the layers."""
    moves: int = 1
    steps: tuple[Any, ...] = ()
    """Of the binding, each in `STEP_WIDTH` places, as the binder tells them."""
    failure: BindingFailure | None = None

    @property
    def binding(self) -> str:
        """What becomes of it, which goes on when the record is made; empty: no node was found."""
        if not self.node:
            return ""
        if self.failure is not None:
            return FAILED
        if self.is_bound:
            return BOUND
        return WAITING if self.found.waits and not self.steps else BINDING

    @property
    def is_bound(self) -> bool:
        return self.failure is None and bool(self.steps and self.steps[-1])

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will become of it."""
        return self.binding not in (WAITING, BINDING)

    @property
    def pod(self) -> str:
        """namespace/name"""
        return f"{self.namespace}/{self.name}"

    @property
    def profile(self) -> str:
        return self.found.profile

    @property
    def outcome(self) -> str:
        return (self.failure or self.found).outcome

    @property
    def message(self) -> str:
        return (self.failure or self.found).message

    @property
    def plugins(self) -> frozenset[str]:
        """Who rejected the pod."""
        return (self.failure or self.found).plugins

    @property
    def nominated_node(self) -> str:
        return self.found.nominated_node

    @property
    def waits(self) -> Mapping[str, float]:
        """The plugins whose permission was missing, and for how many seconds at most they let it wait."""
        return self.found.waits or {}

    @property
    def evaluated(self) -> int:
        """How many nodes were looked at."""
        return self.found.evaluated if self.searched is None else counts(self.searched)[0]

    @property
    def feasible(self) -> int:
        return self.found.feasible if self.searched is None else counts(self.searched)[1]

    @property
    def trace(self) -> Trace | None:
        searched = self.searched
        return self.found.trace if searched is None else traced(searched, self.found.layers, self.change)

    @property
    def own_bytes(self) -> int:
        """What it takes by itself."""
        history = 0 if self.history is None else HISTORY_BYTES
        scores = self.searched.nbytes if isinstance(self.searched, Searched) else 0
        return RECORD_BYTES + history + scores + (0 if self.searched is None else SEARCHED_BYTES)


def hold(found: Findings, count: int) -> int:
    """So many new records have these findings; returns the bytes of what no other has."""
    size = 0
    if not found.holders:
        size += found.own_bytes
        for part in _shared(found):
            size += 0 if part.holders else part.size
            part.holders += 1
        for growing in _growing(found):
            growing.holders += 1
    found.holders += count
    for growing in _growing(found):
        counted, growing.counted = growing.counted, growing.bytes
        size += growing.counted - counted
    return size


def let_go(found: Findings) -> int:
    """A record has them no longer; returns the bytes of what no other has."""
    found.holders -= 1
    if found.holders:
        return 0
    size = found.own_bytes
    for part in _shared(found):
        part.holders -= 1
        size += 0 if part.holders else part.size
    for growing in _growing(found):
        growing.holders -= 1
        if not growing.holders:
            size += growing.counted
            growing.counted = 0
    return size


def _shared(found: Findings) -> Iterator[Shared]:
    if found.names is not None:
        yield found.names
    if found.refusals is not None:
        yield found.refusals


def _growing(found: Findings) -> Iterator[Growing]:
    if found.layers is not None:
        for chapter, _, _ in found.layers.below:
            yield chapter
        yield found.layers.chapter
    if found.details.nominated is not None:
        yield found.details.nominated.log
