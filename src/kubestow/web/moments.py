"""What has changed from one moment to the next, and the state that these changes add up to.

A moment is the one form for everything: a scheduler that is watched makes them, the page is sent them, a simulation
writes them to a file, and whoever wants to know how things were then applies them one after the other.
"""

import numpy as np
from msgspec import Struct

from kubestow.cluster.arrays import IntArray

IN_FLIGHT = "inFlight"
WAITING = "waiting"


class Taint(Struct, frozen=True, omit_defaults=True):
    """A taint of a node."""

    key: str
    value: str
    effect: str


class Layout(Struct, frozen=True):
    """The nodes, as they are by themselves; a position in one column is the same node in all of them."""

    number: int
    names: tuple[str, ...]
    allowed_pods: list[int]
    allocatable: dict[str, list[int]]
    unschedulable: list[bool]
    taints: list[tuple[Taint, ...]]
    labels: list[dict[str, str]]


class Usage(Struct, frozen=True):
    """What is requested of some nodes."""

    at: list[int]
    """Their positions."""
    pods: list[int]
    requested: dict[str, list[int]]


class PlacedPod(Struct, frozen=True, array_like=True, gc=False):
    """A pod on a node, assumed or bound."""

    uid: str
    pod: str
    node: str
    priority: int
    requests: dict[str, int]
    group: str = ""


class WaitingPod(Struct, frozen=True, array_like=True, gc=False):
    """A pod in the queue, or on its way to a node; docs/reference/web-api.md has a word on each field."""

    uid: str
    pod: str
    state: str
    priority: int
    created: float
    since: float
    attempts: int
    retry: float | None
    plugins: tuple[str, ...]
    reason: str
    event: str = ""
    hint: str = ""
    node: str = ""
    group: str = ""


class Figures(Struct, frozen=True, omit_defaults=True):
    """What happened in the seconds before the moment, and how things stand."""

    seconds: float
    bound: int = 0
    attempts: int = 0
    preemptions: int = 0
    victims: int = 0
    nodes: int = 0
    pods: int = 0
    pending: dict[str, int] = {}
    cycle: dict[str, float | None] = {}
    wait: dict[str, float | None] = {}
    plugins: dict[str, float] = {}
    requested: dict[str, float] = {}


class Moment(Struct, frozen=True, omit_defaults=True):
    """What has changed since the moment before."""

    number: int
    time: float
    figures: Figures
    layout: Layout | None = None
    """If nodes came, went, or changed themselves."""
    usage: Usage | None = None
    placed: list[PlacedPod] = []
    gone: list[tuple[str, str]] = []
    """Node and uid of pods that are no longer there."""
    waiting: list[WaitingPod] = []
    """New ones, and those that are not as they were."""
    left: list[str] = []
    """The uids of those that wait no longer."""
    decision: int = 0
    """The last one."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        nodes = 0 if self.layout is None else len(self.layout.names)
        used = 0 if self.usage is None else len(self.usage.at) * (2 + len(self.usage.requested))
        rows = 400 * len(self.waiting) + 300 * len(self.placed) + 100 * (len(self.gone) + len(self.left))
        return 1_500 + 300 * nodes + 32 * used + rows


NO_LAYOUT = Layout(0, (), [], {}, [], [], [])


class State:
    """Everything at one moment."""

    def __init__(self) -> None:
        self.moment = 0
        self.time = 0.0
        self.layout = NO_LAYOUT
        self.pods: IntArray = np.zeros(0, np.int64)
        self.requested: dict[str, IntArray] = {}
        self.placed: dict[str, dict[str, PlacedPod]] = {}
        """By node and uid."""
        self.waiting: dict[str, WaitingPod] = {}
        self.figures = Figures(0.0)
        self.decision = 0

    def copy(self) -> "State":
        """Another one, that may go its own way."""
        other = State()
        other.__dict__.update(self.__dict__)
        other.pods, other.waiting = self.pods.copy(), dict(self.waiting)
        other.requested = {name: column.copy() for name, column in self.requested.items()}
        other.placed = {node: dict(pods) for node, pods in self.placed.items()}
        return other

    def apply(self, moment: Moment) -> None:
        """Go on to the next moment."""
        self.moment, self.time = moment.number, moment.time
        self.figures, self.decision = moment.figures, moment.decision
        if moment.layout is not None:
            self.layout, nodes = moment.layout, len(moment.layout.names)
            self.pods = np.zeros(nodes, np.int64)
            self.requested = {name: np.zeros(nodes, np.int64) for name in moment.layout.allocatable}
        if moment.usage is not None:
            at = moment.usage.at
            self.pods[at] = moment.usage.pods
            for name, amounts in moment.usage.requested.items():
                self.requested[name][at] = amounts
        for node, uid in moment.gone:
            pods = self.placed.get(node, {})
            pods.pop(uid, None)
            if not pods:
                self.placed.pop(node, None)
        for placed in moment.placed:
            self.placed.setdefault(placed.node, {})[placed.uid] = placed
        for uid in moment.left:
            self.waiting.pop(uid, None)
        for waiting in moment.waiting:
            self.waiting[waiting.uid] = waiting
