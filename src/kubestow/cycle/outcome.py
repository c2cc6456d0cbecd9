"""What a scheduling cycle comes to."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kubestow.cluster.pods import PodInfo
from kubestow.cycle.trace import Alike, Trace
from kubestow.framework.results import Code

NO_NODES = "no nodes available to schedule pods"


def none_available(count: int, reasons: Mapping[str, int]) -> str:
    """That none of so many nodes will do, and for how many of them each reason was given."""
    counted = ", ".join(sorted([f"{many} {reason}" for reason, many in reasons.items()]))
    return f"0/{count} nodes are available: {counted}." if counted else f"0/{count} nodes are available:"


class Placed(msgspec.Struct):
    """A node was found; the pod is assumed there, and what it needs is reserved. It may still have to wait."""

    pod: PodInfo
    node: str
    states: dict[str, Any]
    """What each plugin's PreFilter computed; handed on to PreBind and PostBind, or to Unreserve."""
    evaluated: int
    """How many nodes had to be looked at until enough were found."""
    feasible: int
    waits: dict[str, float] = msgspec.field(default_factory=dict)
    """Plugins whose permission is still missing, and how many seconds each may take."""
    waits_for: str = ""
    """In the words of the last of them."""
    trace: Trace | Alike | None = None
    """What the cycle left for those who explain it."""
    record: Any = None
    """Of whoever follows the binding."""


class Failed(msgspec.Struct, frozen=True):
    """No node was found, or the one found could not be taken."""

    code: Code
    message: str
    plugins: frozenset[str] = frozenset()
    """Who rejected the pod. Nobody: an error, or a cluster without nodes."""
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = ""
    """Where the pod is nominated later; empty: nowhere (any more); None: as before."""
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict from the nominated node."""
    to_unnominate: tuple[PodInfo, ...] = ()
    preempting_plugin: str = ""
    """Who chose the victims."""
    failing_plugin: str = ""
    """Who raised, or answered what makes no sense: an error that is a plugin's own."""

    @property
    def is_rejection(self) -> bool:
        """The pod was refused by plugins, as opposed to something having gone wrong."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


Outcome = Placed | Failed
