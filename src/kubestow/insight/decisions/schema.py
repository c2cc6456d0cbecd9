"""The JSON schema of decisions, which docs/reference/decisions.md describes field by field.

Empty fields are omitted: a missing field has its default value. Times are RFC 3339 in UTC.
"""

from msgspec import UNSET, Struct, UnsetType

from kubestow.scheduler.framework.results import Rejection

VERSION = 1
"""Increased if a field is removed or changes its meaning, not if a field is added."""

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"


class Rejected(Struct, frozen=True, omit_defaults=True):
    """The rejection of a node, or of the pod as a whole: the plugin and its reasons."""

    plugin: str
    code: str
    reasons: tuple[str, ...]
    others: tuple[str, ...] = ()
    """The other plugins that rejected it, if all filters run."""

    @classmethod
    def of(cls, rejection: Rejection) -> "Rejected":
        return cls(rejection.plugin, rejection.code.label, rejection.reasons, rejection.others)


class NodeResult(Struct, frozen=True, omit_defaults=True):
    """The result of a node that was evaluated: `rejected`, or `total` and `plugins`, or `unscored`."""

    rejected: Rejected | None = None
    total: int | None = None
    plugins: dict[str, int] | None = None
    """Each plugin's score, normalised and weighted; plugins that skipped scoring are absent."""
    raw: dict[str, int] = {}
    normalized: dict[str, int] = {}
    extenders: int = 0
    """The score that extenders added to the total."""
    unscored: bool = False
    """Whether the node is feasible and no score was needed."""


class PreFilter(Struct, frozen=True, omit_defaults=True):
    """The result of PreFilter, which runs before any node is evaluated."""

    rejected: Rejected | None = None
    narrowedTo: tuple[str, ...] | None = None
    """The only nodes to which PreFilter limited the search."""
    narrowedBy: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Plugins that returned Skip, so that their Filter did not run."""


class Nominated(Struct, frozen=True):
    """A pod nominated to a node, whose requests were reserved there."""

    pod: str
    node: str
    priority: int


class ExtenderCall(Struct, frozen=True, omit_defaults=True):
    """One call to an extender."""

    url: str
    verb: str
    sent: int
    """Number of nodes in the request."""
    kept: int
    """Number of nodes that it kept, or scored."""
    error: str = ""


class Victim(Struct, frozen=True):
    """A pod to evict."""

    pod: str
    priority: int


class Candidate(Struct, frozen=True, omit_defaults=True):
    """A node where preemption would help; a lower value of the first field that differs wins."""

    node: str
    pdbViolations: int
    highestPriority: int
    prioritySum: int
    """Sum over the victims; each priority is counted from the lowest possible priority."""
    victims: int
    started: str = ""
    """Start time of the victim with the highest priority; the latest wins."""


class Preemption(Struct, frozen=True, omit_defaults=True):
    """The result of PostFilter."""

    plugin: str = ""
    message: str = ""
    nominated: str = ""
    """The node whose victims are evicted."""
    victims: tuple[Victim, ...] = ()
    pdbViolations: int = 0
    why: str = ""
    """The field of the candidates that decided; `only` if there was one candidate, `first` if all were equal."""
    candidates: tuple[Candidate, ...] = ()
    unnominated: tuple[str, ...] = ()
    """Pods of lower priority that lose their nomination to the node."""


class Choice(Struct, frozen=True, omit_defaults=True):
    """How the node was chosen among the feasible nodes."""

    reason: str
    """`only`, `first`, `nominated`, `score`, or `random` among several of the highest score."""
    best: tuple[str, ...] = ()
    """The nodes with the highest score."""


class Move(Struct, frozen=True, omit_defaults=True):
    """A move of the pod to a queue."""

    time: str
    queue: str
    """`active`, `backoff`, `unschedulable` or `gated`."""
    event: str
    plugin: str = ""
    """The plugin whose queueing hint moved the pod, or that gates it."""


class Queue(Struct, frozen=True, omit_defaults=True):
    """The history of the pod in the queue, up to this attempt."""

    attempts: int = 0
    firstAttempt: str = ""
    waited: float = 0.0
    """Seconds since the pod was added to the queue, or returned to it after the previous attempt."""
    history: tuple[Move, ...] = ()
    """The last moves, oldest first."""
    forgotten: int = 0
    """Number of earlier moves that are not kept."""


class Step(Struct, frozen=True, omit_defaults=True):
    """One step of binding."""

    step: str
    """`WaitOnPermit`, `PreBind`, `Bind`, `PostBind`, `Extender`."""
    time: str
    plugin: str = ""
    seconds: float | None = None
    """Duration; missing until the step ends."""
    error: str = ""


class Binding(Struct, frozen=True, omit_defaults=True):
    """The binding of the pod to the chosen node."""

    state: str
    """`waiting` (for permission), `binding`, `bound` or `failed`."""
    steps: tuple[Step, ...] = ()
    waitsFor: tuple[str, ...] = ()
    """The plugins whose permission is missing."""
    error: str = ""
    permits: dict[str, float] = {}
    """The plugins that made the pod wait, with their timeouts in seconds."""


class Placement(Struct, frozen=True):
    """The set of nodes among which all pods of a group were to be placed."""

    name: str
    """The value of the group's topology key."""
    nodes: int
    """Number of nodes."""


class Decision(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One scheduling cycle of one pod."""

    version: int
    pod: str
    """namespace/name"""
    outcome: str
    """`scheduled`, `unschedulable` or `error`."""
    chosen: str | None
    message: str
    """Why no node was found or reserved; empty for a pod that has a node."""
    nodes: dict[str, NodeResult] | UnsetType = UNSET
    """The nodes that were evaluated. See `preFilter`, `placement` and `feasible` for why others were not."""
    id: int = 0
    """Increases with every decision of one scheduler; missing in a dry run."""
    uid: str = ""
    profile: str = ""
    time: str = ""
    seconds: float = 0.0
    """Duration of the scheduling cycle."""
    priority: int = 0
    owner: str = ""
    """Kind and name of the controller that made the pod, in decisions of simulations."""
    podGroup: str = ""
    """The pod group with which the pod was scheduled."""
    placement: Placement | None = None
    """The nodes to which the group was limited in this attempt."""
    rejectedBy: tuple[str, ...] = ()
    """The plugins that rejected the pod on some node, or as a whole."""
    nominatedNode: str = ""
    """The node on which the pod is to be scheduled once its victims have left."""
    nodeCount: int = 0
    evaluated: int = 0
    feasible: int = 0
    nodesDropped: str = ""
    """Why `nodes` is missing although nodes were evaluated."""
    nodesCut: int = 0
    """Number of evaluated nodes that `nodes` omits; the best are kept."""
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
        """`nodes`; empty if they are omitted."""
        return self.nodes if isinstance(self.nodes, dict) else {}


class PlacementResult(Struct, frozen=True, omit_defaults=True):
    """The result of one placement of a pod group."""

    name: str
    """The value of the group's topology key; empty for all nodes."""
    nodes: int
    placed: int
    """Number of pods that found a node there."""
    reasons: tuple[str, ...] = ()
    """Why the other pods found none."""


class GroupDecision(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One attempt to schedule a pod group."""

    version: int
    podGroup: str
    """namespace/name"""
    outcome: str
    """`scheduled`, `unschedulable` or `error`."""
    chosen: dict[str, str]
    """The node of each pod; empty if the group was not scheduled."""
    message: str
    """Why the group was not scheduled, as in its condition; empty if it was."""
    id: int = 0
    """Increases with every decision of one scheduler; missing in a dry run."""
    uid: str = ""
    profile: str = ""
    time: str = ""
    seconds: float = 0.0
    """Duration of the scheduling cycle."""
    placement: str = ""
    """The name of the chosen placement."""
    placements: tuple[PlacementResult, ...] = ()
    members: tuple[str, ...] = ()
    """The pods of the attempt, in scheduling order."""
    rejectedBy: tuple[str, ...] = ()
    """The plugins that rejected pods of the group on some node."""
    minCount: int = 0
    """Number of pods that must be scheduled together; 0 for a group that is not a gang."""
    pods: int = 0
    """Number of pods that wait for a node."""
    scheduled: int = 0
    """Number of pods that had a node before."""
    missing: int = 0
    """Number of pods for which a node is missing in the best placement."""
    victims: tuple[Victim, ...] = ()
    """Pods to evict for the group as a whole."""
    nominated: dict[str, str] = {}
    """The node of each pod once the victims have left."""


class DecisionList(Struct, frozen=True):
    """A list of decisions, newest first."""

    version: int
    items: list[Decision]


class GroupDecisionList(Struct, frozen=True):
    """A list of decisions about pod groups, newest first."""

    version: int
    items: list[GroupDecision]
