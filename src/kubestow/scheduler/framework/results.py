"""What plugins answer."""

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import Any, NamedTuple, Self

import msgspec

from kubestow.scheduler.cluster.arrays import FloatArray, IntArray
from kubestow.scheduler.cluster.pods import PodInfo

MAX_SCORE = 100
"""Scores are from 0 to this, after normalising."""


class Code(IntEnum):
    """How a plugin, or a cycle, ended."""

    label: str
    """The name that metrics and messages use."""

    def __new__(cls, value: int, label: str) -> Self:
        code = int.__new__(cls, value)
        code._value_ = value
        code.label = label
        return code

    SUCCESS = 0, "Success"
    ERROR = 1, "Error"
    UNSCHEDULABLE = 2, "Unschedulable"
    """Not now; preempting pods may help."""
    UNRESOLVABLE = 3, "UnschedulableAndUnresolvable"
    """Not now, and preempting pods would not help."""
    WAIT = 4, "Wait"
    SKIP = 5, "Skip"
    PENDING = 6, "Pending"
    """Not now; the plugin waits for something outside and will say when."""


class Rejection(NamedTuple):
    """A plugin refuses a pod, or a node for it, and says why."""

    reasons: tuple[str, ...]
    code: Code = Code.UNSCHEDULABLE
    plugin: str = ""
    """Filled in by the caller."""
    others: tuple[str, ...] = ()
    """Where all filters are asked: the plugins that refused the node, too."""
    awaits: str = ""
    """From PreEnqueue: only events about the pod of this uid, or the group of this key, can change it. Empty: any.

    The uid of the pod itself stands for what is under way for it, such as the eviction of its victims.
    """

    @property
    def plugins(self) -> tuple[str, ...]:
        return (self.plugin, *self.others)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)


def unschedulable(*reasons: str) -> Rejection:
    """Refused, but preempting pods may help."""
    return Rejection(reasons)


def unresolvable(*reasons: str) -> Rejection:
    """Refused, and preempting pods would not help."""
    return Rejection(reasons, Code.UNRESOLVABLE)


class _Skip(Enum):
    SKIP = "skip"


SKIP = _Skip.SKIP
"""From PreFilter: nothing to filter for this pod; from PreScore: nothing to score; from Bind: not mine."""
Skip = _Skip


class Narrowed(msgspec.Struct, frozen=True):
    """From PreFilter: only these nodes can do; `state` is handed to the filter."""

    nodes: frozenset[str]
    state: Any = None


class Rejections(NamedTuple):
    """What a filter says of some rows: 0 where the node will do, else a number that `words` explains.

    Numbers need only mean something to the plugin; rows refused for the same reasons should share one, so that a
    message about thousands of nodes costs a handful of words.
    """

    kinds: IntArray
    words: Callable[[int], Rejection]
    failed: Rejection | None = None
    """Set if a row could not be judged: a cycle that has looked at it comes to nothing but that."""


class Reasons:
    """Numbers for distinct rejections, from 1 on; `words` is that of Rejections."""

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
    """From Permit: hold the pod until it is allowed or rejected, at most this long."""

    seconds: float
    reason: str = ""


class Weighed(NamedTuple):
    """The nodes that were weighed against each other, by row, where pods are to make room."""

    rows: IntArray
    cost: FloatArray
    """By column and node; the lowest wins, what comes first counting first: how many disruption budgets are broken; of
    the victims, the highest priority, the sum of priorities (each counted from the lowest there can be), the number,
    and when the most important was started, where the latest wins."""


class PostFilterResult(NamedTuple):
    """From PostFilter: what was found to make room, or why nothing helps.

    On success the pod is nominated to a node, from which the victims are evicted; pods of lower priority that were
    nominated there lose their nomination.
    """

    code: Code
    message: str = ""
    nominated_node: str | None = None
    """None leaves an earlier nomination as it is; an empty name clears it."""
    victims: tuple[PodInfo, ...] = ()
    to_unnominate: tuple[PodInfo, ...] = ()
    plugin: str = ""
    """Whose result it is; filled in by the framework."""
    weighed: Weighed | None = None
    """What the plugin chose among, for those who explain it."""


class Victims(msgspec.Struct, frozen=True):
    """The pods that would have to leave a node, most important first."""

    pods: tuple[PodInfo, ...]
    budgets_broken: int


class Candidates(msgspec.Struct, frozen=True):
    """From PostFilter, where extenders are to be asked before the plugin decides: by node, who would have to go."""

    victims: Mapping[str, Victims]
    choose: Callable[[Mapping[str, Victims]], PostFilterResult]
    """Decides among what the extenders left."""


def told(error: BaseException) -> str:
    """What an exception says; with its type if that says little: a KeyError is but the key."""
    return repr(error) if isinstance(error, KeyError | SystemExit) else str(error) or repr(error)


class PluginError(Exception):
    """A plugin failed; says which, and where."""

    def __init__(self, plugin: str, point: str, cause: BaseException | str) -> None:
        # kube-scheduler's words, which leave out a word for this one.
        what = point if point == "PreBindPreFlight" else f"{point} plugin"
        super().__init__(f'running {what} "{plugin}": {cause}')
        self.plugin = plugin
        self.point = point


class FilterError(PluginError):
    """A filter failed, in the words of kube-scheduler."""

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(plugin, "Filter", reason)
        self.args = (reason,)
