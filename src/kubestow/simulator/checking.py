"""What must hold at every moment of a simulation, whatever happens in it.

No node is given more than it has (unless it was when it came), a pod is in one place of the scheduler at most, keeps
its node once it has one, and the scheduler's picture is the control plane's as soon as it has heard of everything.
"""

import numpy as np

from kubestow.api.pod import Pod
from kubestow.scheduler.assembly import Core
from kubestow.simulator.in_memory.change_feed import ChangeFeed
from kubestow.simulator.plane import Plane


class InvariantError(AssertionError):
    """Something is so that must never be; the message says what, and when."""


class Invariants:
    """Looks at a scheduler and its control plane."""

    def __init__(self, core: Core, plane: Plane, feed: ChangeFeed) -> None:
        self._core = core
        self._plane = plane
        self._feed = feed
        self._overfull: set[str] = set()
        """Nodes that hold too much through no fault of the scheduler's."""
        self._node_of: dict[str, str] = {}
        plane.listeners.append(self._changed)
        for which, obj in plane.current.items():
            self._changed(which, None, obj, "")

    def _changed(self, which: tuple[type, str], old: object, new: object, _phase: str) -> None:
        if which[0] is not Pod:
            return
        if isinstance(new, Pod):
            uid, node = new.metadata.uid, new.spec.nodeName
            before = self._node_of.get(uid, "")
            if before and node != before:
                self._fail(f"pod {which[1]} was on {before} and is now on {node or 'no node'}")
            if node and not before and not self._core.cluster.is_assumed(uid):
                # Somebody else put it there, and need not have asked whether there is room.
                self._overfull.add(node)
            if node:
                self._node_of[uid] = node
        elif isinstance(old, Pod):
            self._node_of.pop(old.metadata.uid, None)

    def check(self) -> None:
        """Raises InvariantError if something is not as it must be."""
        nodes = self._core.cluster.nodes
        size = nodes.size
        over = (nodes.requested[:, :size] > nodes.allocatable[:, :size]).any(axis=0)
        over |= nodes.pod_count[:size] > nodes.allowed_pods[:size]
        for row in np.flatnonzero(over & nodes.live[:size]):
            if nodes.names[row] not in self._overfull:
                self._fail(f"node {nodes.names[row]} holds more than it has")
        queued = [pod.metadata.uid for pods in self._core.queue.snapshot().values() for pod in pods]
        binding = self._core.scheduler.binder.pods()
        twice = {uid for uid in queued if uid in binding} | ({*queued} if len(set(queued)) < len(queued) else set())
        if twice:
            self._fail(f"pods are in two places of the scheduler: {', '.join(sorted(twice))}")
        if not self._feed.is_busy:
            self._compare()

    def _compare(self) -> None:
        for (kind, key), pod in self._plane.current.items():
            if kind is Pod and pod.spec.nodeName:
                seen = self._core.cluster.node_name_of(pod.metadata.uid)
                if seen != pod.spec.nodeName:
                    self._fail(f"pod {key} is on {pod.spec.nodeName}, and the scheduler takes it to be on {seen}")

    def _fail(self, what: str) -> None:
        raise InvariantError(f"{self._plane.store.now()}: {what}")
