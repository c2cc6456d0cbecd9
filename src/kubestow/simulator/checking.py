"""Invariants that hold at every moment of a simulation.

Nodes are not overcommitted (unless they were when they were added), a pod is in at most one place of the scheduler and
keeps its node, and the scheduler's cluster state equals the control plane's once all changes are delivered.
"""

import numpy as np

from kubestow.api.pod import Pod
from kubestow.scheduler.assembly import Core
from kubestow.simulator.in_memory.change_feed import ChangeFeed
from kubestow.simulator.plane import Plane


class InvariantError(AssertionError):
    """An invariant is violated; the message contains the time and the violation."""


class Invariants:
    """Checks a scheduler and its control plane."""

    def __init__(self, core: Core, plane: Plane, feed: ChangeFeed) -> None:
        self._core = core
        self._plane = plane
        self._feed = feed
        self._overcommitted: set[str] = set()
        """Nodes that were overcommitted by a client other than the scheduler."""
        self._node_of: dict[str, str] = {}
        plane.listeners.append(self._changed)
        for object_id, obj in plane.current.items():
            self._changed(object_id, None, obj, "")

    def _changed(self, object_id: tuple[type, str], old: object, new: object, _phase: str) -> None:
        if object_id[0] is not Pod:
            return
        if isinstance(new, Pod):
            uid, node = new.metadata.uid, new.spec.nodeName
            previous = self._node_of.get(uid, "")
            if previous and node != previous:
                self._fail(f"pod {object_id[1]} was on {previous} and is now on {node or 'no node'}")
            if node and not previous and not self._core.cluster.is_assumed(uid):
                # Bound by another client, which may ignore the node's capacity.
                self._overcommitted.add(node)
            if node:
                self._node_of[uid] = node
        elif isinstance(old, Pod):
            self._node_of.pop(old.metadata.uid, None)

    def check(self) -> None:
        """Raise InvariantError if an invariant is violated."""
        nodes = self._core.cluster.nodes
        size = nodes.size
        over = (nodes.requested[:, :size] > nodes.allocatable[:, :size]).any(axis=0)
        over |= nodes.pod_count[:size] > nodes.allowed_pods[:size]
        for row in np.flatnonzero(over & nodes.live[:size]):
            if nodes.names[row] not in self._overcommitted:
                self._fail(f"node {nodes.names[row]} is overcommitted")
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
