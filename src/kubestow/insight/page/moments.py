"""A moment: the changes since the previous moment, except those in the history of the cluster."""

from msgspec import Struct

IN_FLIGHT = "inFlight"
WAITING = "waiting"


class WaitingPod(Struct, frozen=True, array_like=True, gc=False):
    """A pod in the queue or in flight; docs/reference/web-api.md describes each field."""

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
    owner: str = ""


class Figures(Struct, frozen=True, omit_defaults=True):
    """Counts and times of the seconds before the moment, and totals at the moment."""

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


class Moment(Struct, frozen=True, omit_defaults=True, tag="moment"):
    """The changes since the previous moment."""

    number: int
    time: float
    figures: Figures
    revision: int = 0
    """The revision of the cluster's history; 0 in a file."""
    layout: int = 0
    """Increased if nodes or resources are added or removed, or if data of a node that the page shows changes."""
    row_changes: int = 0
    """The number of changes of rows of the node table; 0 in a file."""
    waiting: list[WaitingPod] = []
    """The new and changed rows of the queue."""
    left: list[str] = []
    """UIDs of the pods that have left the queue."""
    decision: int = 0
    """The ID of the last decision."""

    @property
    def size(self) -> int:
        """Estimated size in bytes."""
        return 1_500 + 400 * len(self.waiting) + 100 * len(self.left)
