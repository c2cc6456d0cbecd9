"""What a scheduling cycle comes to."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.config.configuration import Extender
from kubestow.framework.placements import Placement, TriedGroup
from kubestow.framework.results import Code, PluginError, Rejection

NO_NODES = "no nodes available to schedule pods"


def none_available(count: int, reasons: Mapping[str, int]) -> str:
    """Return the message that none of `count` nodes is feasible, with the number of nodes for each reason."""
    counted = ", ".join(sorted([f"{many} {reason}" for reason, many in reasons.items()]))
    return f"0/{count} nodes are available: {counted}." if counted else f"0/{count} nodes are available:"


class Searched(msgspec.Struct, eq=False, gc=False):
    """Which nodes a cycle looked at, and in which state of the cluster. The cycle fills it in."""

    revision: int
    """Of the cluster, when the cycle started."""
    extenders: tuple[Extender, ...] = ()
    """Those of the configuration that was in use."""
    node_count: int = 0
    """How many nodes there were."""
    start: int | None = None
    """Where the search started in the order of all nodes; None if it was not among all nodes, or there was none."""
    order: IntArray | None = None
    """The rows in the order of a search that was not among all nodes."""
    evaluated: int = 0
    """How many of them were looked at until enough feasible ones were found."""
    feasible: int = 0
    is_nominated: bool = False
    """Whether the nominated node was taken without a look at others."""
    group: TriedGroup | None = None
    """The pod group that the pod was tried with."""
    placement: Placement | None = None
    """The nodes among which the group was tried; None for all."""
    is_counted: bool = False
    """Whether the group's outcome was counted from the room on the nodes, without trying each pod."""

    @property
    def is_done(self) -> bool:
        """Return True if it came to a search."""
        return self.start is not None or self.order is not None

    @property
    def candidates(self) -> int:
        """Return the number of nodes that the search was among."""
        return self.node_count if self.order is None else len(self.order)

    def took_nominated(self, row: int) -> None:
        """Only the nominated node was looked at, and it is feasible."""
        self.order, self.evaluated, self.feasible, self.is_nominated = np.array([row]), 1, 1, True


class Placed(msgspec.Struct):
    """A node was found: the pod is assumed there, and Reserve has run. It may still have to wait for Permit."""

    pod: PodInfo
    node: str
    states: dict[str, Any]
    """What each plugin's PreFilter computed; handed on to PreBind and PostBind, or to Unreserve."""
    searched: Searched
    waits: dict[str, float] = msgspec.field(default_factory=dict)
    """Plugins whose permission is still missing, and how many seconds each may take."""
    waits_for: str = ""
    """The reason given by the last of them."""

    @property
    def evaluated(self) -> int:
        return self.searched.evaluated

    @property
    def feasible(self) -> int:
        return self.searched.feasible


class Failed(msgspec.Struct, frozen=True):
    """No node was found, or the one found could not be taken."""

    code: Code
    message: str
    plugins: frozenset[str] = frozenset()
    """The plugins that rejected the pod; empty for an error, or a cluster without nodes."""
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = ""
    """Where the pod is nominated from now on; empty: nowhere; None: as before."""
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict from the nominated node."""
    to_unnominate: tuple[PodInfo, ...] = ()
    preempting_plugin: str = ""
    """The plugin that chose the victims."""
    failing_plugin: str = ""
    """The plugin that raised, or gave an invalid answer."""
    searched: Searched | None = None
    """None for a pod that was not tried."""
    is_conflict: bool = False
    """Whether the API server refused to bind the pod because it has another version of it (409)."""

    @property
    def is_rejection(self) -> bool:
        """Whether plugins rejected the pod, as opposed to an error."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


Outcome = Placed | Failed


def refusal(refused: Rejection | PluginError, searched: Searched) -> Failed:
    """Return the outcome for a pod whose chosen node could not be taken."""
    if isinstance(refused, PluginError):
        return Failed(Code.ERROR, str(refused), failing_plugin=refused.plugin, searched=searched)
    if refused.code is Code.ERROR:
        return Failed(refused.code, refused.message, searched=searched)
    counted = ", ".join(sorted(f"1 {reason}" for reason in refused.reasons))
    message = f"0/1 nodes are available: {counted}." if counted else "0/1 nodes are available:"
    if refused.code is Code.PENDING:
        return Failed(refused.code, message, pending_plugins=frozenset((refused.plugin,)), searched=searched)
    return Failed(refused.code, message, frozenset((refused.plugin,)), searched=searched)
