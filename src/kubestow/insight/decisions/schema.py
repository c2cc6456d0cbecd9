"""A decision as JSON: what docs/reference/decisions.md describes, field by field.

What is empty is left out, so that a reader takes a missing field for its default. Times are RFC 3339 in UTC.
"""

from msgspec import UNSET, Struct, UnsetType

from kubestow.scheduler.framework.results import Rejection

VERSION = 1
"""Grows when a field goes or means something else; a new field leaves it as it is."""

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"


class Rejected(Struct, frozen=True, omit_defaults=True):
    """Who refused a node, or the pod as a whole, and why."""

    plugin: str
    code: str
    reasons: tuple[str, ...]
    others: tuple[str, ...] = ()
    """The plugins that refused it, too, where all filters are asked."""

    @classmethod
    def of(cls, rejection: Rejection) -> "Rejected":
        return cls(rejection.plugin, rejection.code.label, rejection.reasons, rejection.others)


class NodeResult(Struct, frozen=True, omit_defaults=True):
    """What is known of a node that was evaluated: `rejected`, or `total` and `plugins`, or that it passed unscored."""

    rejected: Rejected | None = None
    total: int | None = None
    plugins: dict[str, int] | None = None
    """Each plugin's score, normalised and weighted; plugins that skipped scoring are absent."""
    raw: dict[str, int] = {}
    normalized: dict[str, int] = {}
    extenders: int = 0
    """What extenders added to the total."""
    unscored: bool = False
    """It passed, and nobody needed its score."""


class PreFilter(Struct, frozen=True, omit_defaults=True):
    """What PreFilter said before any node was looked at."""

    rejected: Rejected | None = None
    narrowedTo: tuple[str, ...] | None = None
    """The only nodes that were left."""
    narrowedBy: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Plugins that had nothing to filter."""


class Nominated(Struct, frozen=True):
    """A pod nominated to a node, for which room had to be left there."""

    pod: str
    node: str
    priority: int


class ExtenderCall(Struct, frozen=True, omit_defaults=True):
    """One extender that was asked."""

    url: str
    verb: str
    sent: int
    """How many nodes it was asked about."""
    kept: int
    """How many it left, or scored."""
    error: str = ""


class Victim(Struct, frozen=True):
    """A pod that must leave."""

    pod: str
    priority: int


class Candidate(Struct, frozen=True, omit_defaults=True):
    """A node where evicting pods would help; a lower value of the first field that differs wins."""

    node: str
    pdbViolations: int
    highestPriority: int
    prioritySum: int
    """Of the victims, each counted from the lowest priority there can be."""
    victims: int
    started: str = ""
    """When the most important victim was started; here the latest wins."""


class Preemption(Struct, frozen=True, omit_defaults=True):
    """What PostFilter came to."""

    plugin: str = ""
    message: str = ""
    nominated: str = ""
    """Where room is made."""
    victims: tuple[Victim, ...] = ()
    pdbViolations: int = 0
    why: str = ""
    """The field of candidates that decided; `only` if there was one, `first` if all were equal."""
    candidates: tuple[Candidate, ...] = ()
    unnominated: tuple[str, ...] = ()
    """Pods of lower priority that lose their nomination to the node."""


class Choice(Struct, frozen=True, omit_defaults=True):
    """How one was chosen of the nodes that would do."""

    reason: str
    """`only`, `first`, `nominated`, `score`, or `random` among several of the highest score."""
    best: tuple[str, ...] = ()
    """The nodes of the highest score."""


class Move(Struct, frozen=True, omit_defaults=True):
    """The pod came to a queue."""

    time: str
    queue: str
    """`active`, `backoff`, `unschedulable` or `gated`."""
    event: str
    plugin: str = ""
    """Whose hint said that the event may help, or who holds the pod back."""


class Queue(Struct, frozen=True, omit_defaults=True):
    """The pod in the queue, up to this attempt."""

    attempts: int = 0
    firstAttempt: str = ""
    waited: float = 0.0
    """Seconds since it came to the queue, or back to it after the attempt before."""
    history: tuple[Move, ...] = ()
    """The last moves, oldest first."""
    forgotten: int = 0
    """How many moves before these are no longer known."""


class Step(Struct, frozen=True, omit_defaults=True):
    """One step of binding."""

    step: str
    """`WaitOnPermit`, `PreBind`, `Bind`, `PostBind`, `Extender`."""
    time: str
    plugin: str = ""
    seconds: float | None = None
    """How long it took; not there while it lasts."""
    error: str = ""


class Binding(Struct, frozen=True, omit_defaults=True):
    """What became of the pod once it had a node."""

    state: str
    """`waiting` (for permission), `binding`, `bound` or `failed`."""
    steps: tuple[Step, ...] = ()
    waitsFor: tuple[str, ...] = ()
    """The plugins whose permission is missing."""
    error: str = ""
    permits: dict[str, float] = {}
    """The plugins that had it wait, with the seconds after which they refuse."""


class Placement(Struct, frozen=True):
    """Nodes among which all pods of a group were to be placed."""

    name: str
    """The value of the group's topology key."""
    nodes: int
    """How many there are."""


class Decision(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One scheduling cycle of one pod."""

    version: int
    pod: str
    """namespace/name"""
    outcome: str
    """`scheduled`, `unschedulable` or `error`."""
    chosen: str | None
    message: str
    """Why no node was found, or could be taken; empty for a pod that has one."""
    nodes: dict[str, NodeResult] | UnsetType = UNSET
    """The nodes that were evaluated. Others were not, see `preFilter`, `placement` and `feasible` for why."""
    id: int = 0
    """Grows from decision to decision of one scheduler; not there in a dry run."""
    uid: str = ""
    profile: str = ""
    time: str = ""
    seconds: float = 0.0
    """How long deciding took."""
    priority: int = 0
    owner: str = ""
    """Kind and name of the controller that made the pod, in decisions of simulations."""
    podGroup: str = ""
    """The pod group that the pod was tried with."""
    placement: Placement | None = None
    """The only nodes among which the group was tried, when this pod was."""
    rejectedBy: tuple[str, ...] = ()
    """The plugins that kept the pod from some node, or from any."""
    nominatedNode: str = ""
    """Where the pod is to go once there is room."""
    nodeCount: int = 0
    evaluated: int = 0
    feasible: int = 0
    nodesDropped: str = ""
    """Why `nodes` is not there, though nodes were evaluated."""
    nodesCut: int = 0
    """How many nodes that were evaluated `nodes` leaves out, the best being kept."""
    weights: dict[str, int] = {}
    preFilter: PreFilter = PreFilter()
    nominated: tuple[Nominated, ...] = ()
    extenders: tuple[ExtenderCall, ...] = ()
    preemption: Preemption | None = None
    choice: Choice | None = None
    queue: Queue = Queue()
    binding: Binding | None = None

    @property
    def by_node(self) -> dict[str, NodeResult]:
        """`nodes`; empty where they are left out."""
        return self.nodes if isinstance(self.nodes, dict) else {}


class PlacementResult(Struct, frozen=True, omit_defaults=True):
    """Nodes among which a pod group was tried."""

    name: str
    """The value of the group's topology key; empty for all nodes."""
    nodes: int
    placed: int
    """How many pods found a node there."""
    reasons: tuple[str, ...] = ()
    """What kept the others from one."""


class GroupDecision(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One attempt to schedule a pod group."""

    version: int
    podGroup: str
    """namespace/name"""
    outcome: str
    """`scheduled`, `unschedulable` or `error`."""
    chosen: dict[str, str]
    """By pod, its node; empty if the group will not do."""
    message: str
    """Why it will not, as in the group's condition; empty if it will."""
    id: int = 0
    """Grows from decision to decision of one scheduler; not there in a dry run."""
    uid: str = ""
    profile: str = ""
    time: str = ""
    seconds: float = 0.0
    """How long deciding took."""
    placement: str = ""
    """The name of the chosen one."""
    placements: tuple[PlacementResult, ...] = ()
    members: tuple[str, ...] = ()
    """The pods that were tried, in this order."""
    rejectedBy: tuple[str, ...] = ()
    """The plugins that kept pods of the group from some node."""
    minCount: int = 0
    """How many pods must have a node at once; 0 for a group that is no gang."""
    pods: int = 0
    """How many wait for a node."""
    scheduled: int = 0
    """How many have one already."""
    missing: int = 0
    """How many more would have to find a node, in the best of the placements."""
    victims: tuple[Victim, ...] = ()
    """Pods that must leave for the group as a whole."""
    nominated: dict[str, str] = {}
    """By pod, the node it is to have once they have left."""


class DecisionList(Struct, frozen=True):
    """Several of them, newest first."""

    version: int
    items: list[Decision]


class GroupDecisionList(Struct, frozen=True):
    """The same about pod groups."""

    version: int
    items: list[GroupDecision]
