"""The results that plugins return."""

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import Any, NamedTuple, Self

import msgspec

from kubestow.scheduler.cluster.arrays import FloatArray, IntArray
from kubestow.scheduler.cluster.pods import PodInfo

MAX_SCORE = 100
"""The maximum score of a node after normalization."""


class Code(IntEnum):
    """The status of a plugin call or of a cycle."""

    label: str
    """The name in metrics and messages."""

    def __new__(cls, value: int, label: str) -> Self:
        code = int.__new__(cls, value)
        code._value_ = value
        code.label = label
        return code

    SUCCESS = 0, "Success"
    ERROR = 1, "Error"
    UNSCHEDULABLE = 2, "Unschedulable"
    """Not schedulable now; preempting pods may help."""
    UNRESOLVABLE = 3, "UnschedulableAndUnresolvable"
    """Not schedulable now, and preempting pods would not help."""
    WAIT = 4, "Wait"
    SKIP = 5, "Skip"
    PENDING = 6, "Pending"
    """Not schedulable now; the plugin waits for something outside and will retry the pod itself."""


class Rejection(NamedTuple):
    """The rejection of a pod, or of a node for a pod, with the reasons."""

    reasons: tuple[str, ...]
    code: Code = Code.UNSCHEDULABLE
    plugin: str = ""
    """Set by the caller."""
    others: tuple[str, ...] = ()
    """If all filters are always called: the other plugins that rejected the node."""
    awaits: str = ""
    """From PreEnqueue: only events about the pod with this UID, or the group with this key, can change it. Empty: any.

    The UID of the pod itself stands for operations that are in progress for it, such as the eviction of its victims.
    """

    @property
    def plugins(self) -> tuple[str, ...]:
        return (self.plugin, *self.others)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


def unschedulable(*reasons: str) -> Rejection:
    """Return a rejection that preempting pods may resolve."""
    return Rejection(reasons)


def unresolvable(*reasons: str) -> Rejection:
    """Return a rejection that preempting pods cannot resolve."""
    return Rejection(reasons, Code.UNRESOLVABLE)


class _Skip(Enum):
    SKIP = "skip"


SKIP = _Skip.SKIP
"""From PreFilter: nothing to filter for this pod; from PreScore: nothing to score; from Bind: left to other plugins."""
Skip = _Skip


class Narrowed(msgspec.Struct, frozen=True):
    """From PreFilter: only these nodes can be feasible; `state` is passed to the filter."""

    nodes: frozenset[str]
    state: Any = None


class Rejections(NamedTuple):
    """The result of a filter for some rows: 0 where the node is feasible, else a number that `words` explains.

    Numbers have a meaning only for the plugin; rows rejected for the same reasons should share one, so that a message
    about thousands of nodes needs only a few rejections.
    """

    kinds: IntArray
    words: Callable[[int], Rejection]
    failed: Rejection | None = None
    """Set if a row could not be evaluated: a cycle that has evaluated this row fails with it."""


class Reasons:
    """Numbers for distinct rejections, starting with 1; its `words` is that of Rejections."""

    def __init__(self) -> None:
        self._rejections: list[Rejection] = []
        self._number_of: dict[Rejection, int] = {}

    def number(self, rejection: Rejection) -> int:
        found = self._number_of.get(rejection)
        if found is None:
            self._rejections.append(rejection)
            found = self._number_of[rejection] = len(self._rejections)
        return found

    def words(self, kind: int) -> Rejection:
        return self._rejections[kind - 1]


class Wait(msgspec.Struct, frozen=True):
    """From Permit: hold the pod until it is allowed or rejected, up to this time."""

    seconds: float
    reason: str = ""


class WeighedCandidates(NamedTuple):
    """The candidate nodes of a preemption, by row, with their costs."""

    rows: IntArray
    cost: FloatArray
    """By criterion and node; the lowest wins, criteria in this order: number of violated disruption budgets; of the
    victims, the highest priority, the sum of priorities (each counted from the lowest possible one), the number, and
    the start time of the most important one, where the latest wins."""


class PostFilterResult(NamedTuple):
    """From PostFilter: how a pod can become schedulable, or why it cannot.

    On success the pod is nominated to a node, from which the victims are evicted; pods of lower priority that were
    nominated there lose their nomination.
    """

    code: Code
    message: str = ""
    nominated_node: str | None = None
    """None keeps an earlier nomination; an empty name clears it."""
    victims: tuple[PodInfo, ...] = ()
    to_unnominate: tuple[PodInfo, ...] = ()
    plugin: str = ""
    """The plugin that returned the result; set by the framework."""
    weighed: WeighedCandidates | None = None
    """The candidates of the plugin, for explanations."""


class Victims(msgspec.Struct, frozen=True):
    """The pods to evict from a node, most important first."""

    pods: tuple[PodInfo, ...]
    budgets_broken: int


class Candidates(msgspec.Struct, frozen=True):
    """From PostFilter, if extenders must be called before the plugin decides: the victims by node."""

    victims: Mapping[str, Victims]
    choose: Callable[[Mapping[str, Victims]], PostFilterResult]
    """Decides among the candidates that the extenders left."""


def error_text(error: BaseException) -> str:
    """Return the message of an exception; with its type if the message is not enough, as that of a KeyError."""
    return repr(error) if isinstance(error, KeyError | SystemExit) else str(error) or repr(error)


def with_place(message: str, at: str) -> str:
    """Return a message with the file and line that it is about, if that is known."""
    return f"{message} ({at})" if at else message


class PluginError(Exception):
    """A plugin failed; the message names the plugin and the extension point."""

    def __init__(self, plugin: str, point: str, cause: BaseException | str, at: str = "") -> None:
        """`at` is the file and line of the plugin at which it failed."""
        # kube-scheduler's message, which omits a word for this point.
        what = point if point == "PreBindPreFlight" else f"{point} plugin"
        super().__init__(f'running {what} "{plugin}": {cause}')
        self.plugin = plugin
        self.point = point
        self.at = at

    @property
    def located(self) -> str:
        """The message with file and line. That of conditions has none, as in kube-scheduler."""
        return with_place(str(self), self.at)


class FilterError(PluginError):
    """A filter failed; the message is that of kube-scheduler."""

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(plugin, "Filter", reason)
        self.args = (reason,)
