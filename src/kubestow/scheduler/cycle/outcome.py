"""The outcome of a scheduling cycle."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kubestow.config.configuration import Extender
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.placements import Placement, TriedGroup
from kubestow.scheduler.framework.results import Code, PluginError, Rejection, with_place

NO_NODES = "no nodes available to schedule pods"


def no_nodes_message(count: int, reasons: Mapping[str, int]) -> str:
    """Return the message that none of `count` nodes is feasible, with the number of nodes for each reason."""
    listed = ", ".join(sorted([f"{number} {reason}" for reason, number in reasons.items()]))
    return f"0/{count} nodes are available: {listed}." if listed else f"0/{count} nodes are available:"


class SearchedNodes(msgspec.Struct, eq=False, gc=False):
    """The nodes that a cycle evaluated, and the state of the cluster. The cycle fills it in."""

    revision: int
    """The revision of the cluster when the cycle started."""
    extenders: tuple[Extender, ...] = ()
    """The extenders that were configured then."""
    node_count: int = 0
    """Number of nodes in the cluster."""
    start: int | None = None
    """Position in the order of all nodes where the search started; None if the search was not over all nodes."""
    order: IntArray | None = None
    """The rows in the order of a search that was not over all nodes."""
    evaluated: int = 0
    """Number of rows that were filtered until enough feasible ones were found."""
    feasible: int = 0
    is_nominated: bool = False
    """Whether the nominated node was chosen, without evaluating others."""
    group: TriedGroup | None = None
    """The pod group that the pod was scheduled with."""
    placement: Placement | None = None
    """The placement in which the group was tried; None for all nodes."""
    is_counted: bool = False
    """Whether the outcome was derived from the number of pods that fit on the nodes, without a cycle for the pod."""

    @property
    def is_done(self) -> bool:
        """Whether the cycle searched for nodes."""
        return self.start is not None or self.order is not None

    @property
    def candidates(self) -> int:
        """The number of nodes that the search was over."""
        return self.node_count if self.order is None else len(self.order)

    def set_nominated(self, row: int) -> None:
        """Record that the nominated node was chosen, without evaluating others."""
        self.order, self.evaluated, self.feasible, self.is_nominated = np.array([row]), 1, 1, True


class Placed(msgspec.Struct):
    """A node was found: the pod is assumed there, and Reserve has run. It may still have to wait for permission."""

    pod: PodInfo
    node: str
    states: dict[str, Any]
    """The states that PreFilter returned, by plugin; for PreBind, PostBind and Unreserve."""
    searched: SearchedNodes
    waits: dict[str, float] = msgspec.field(default_factory=dict)
    """The plugins whose permission is missing, with the timeout of each in seconds."""
    wait_reason: str = ""
    """The reason given by the last of these plugins."""


class Failed(msgspec.Struct, frozen=True):
    """No node was found, or the pod could not be placed on the chosen one."""

    code: Code
    message: str
    plugins: frozenset[str] = frozenset()
    """The plugins that rejected the pod; empty for an error, or a cluster without nodes."""
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = ""
    """The node to nominate the pod to; empty: none; None: keep the nomination."""
    victims: tuple[PodInfo, ...] = ()
    """Pods to evict from the nominated node."""
    to_unnominate: tuple[PodInfo, ...] = ()
    """Pods whose nomination to that node must be removed."""
    preempting_plugin: str = ""
    """The plugin that chose the victims."""
    failing_plugin: str = ""
    """The plugin that raised an exception or returned an invalid answer."""
    at: str = ""
    """The file and line at which it failed."""
    searched: SearchedNodes | None = None
    """None for a pod that had no cycle."""
    states: Mapping[str, Any] = {}
    """Of a pod that was tried with its group: the states that PreFilter returned, by plugin."""
    is_conflict: bool = False
    """Whether the API server rejected the binding because of a conflict (409)."""

    @property
    def located_message(self) -> str:
        """The message with the file and line at which a plugin failed."""
        return with_place(self.message, self.at)

    @property
    def is_rejection(self) -> bool:
        """Whether plugins rejected the pod, as opposed to an error."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


Outcome = Placed | Failed


def failed_by(error: PluginError, searched: SearchedNodes | None) -> Failed:
    """Return the outcome for a pod for which a plugin failed."""
    return Failed(Code.ERROR, str(error), failing_plugin=error.plugin, at=error.at, searched=searched)


def refusal(refused: Rejection | PluginError, searched: SearchedNodes) -> Failed:
    """Return the outcome for a pod that Reserve or Permit rejected on the chosen node."""
    if isinstance(refused, PluginError):
        return failed_by(refused, searched)
    if refused.code is Code.ERROR:
        return Failed(refused.code, refused.message, searched=searched)
    listed = ", ".join(sorted(f"1 {reason}" for reason in refused.reasons))
    message = f"0/1 nodes are available: {listed}." if listed else "0/1 nodes are available:"
    if refused.code is Code.PENDING:
        return Failed(refused.code, message, pending_plugins=frozenset((refused.plugin,)), searched=searched)
    return Failed(refused.code, message, frozenset((refused.plugin,)), searched=searched)
