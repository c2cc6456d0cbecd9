"""Allocations that are reserved but not yet written, and the pods that use them: pods of one group may share a claim.

All pods of a group get a node before the first of them is bound, so a claim that several of them name has no allocation
yet when the second pod is tried. The second pod uses the pending allocation of the first; the pod that is bound first
writes it.
"""

from kubestow.api.devices import AllocationResult
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.scheduler.cluster.devices.state import Devices


class PendingAllocations:
    """The pending allocations, by UID of the claim."""

    def __init__(self, devices: Devices, *, with_groups: bool) -> None:
        """`with_groups`: whether pods can belong to groups."""
        self._devices = devices
        self._with_groups = with_groups
        self._holders: dict[str, set[str]] = {}
        """The UIDs of the pods of a group that use an allocation, by UID of the claim."""
        self._groups: dict[str, str] = {}

    def shared_with(self, pod: Pod, uid: str) -> AllocationResult | None:
        """Return a claim's pending allocation if a pod of the same group made it."""
        group = self._groups.get(uid)
        return self._devices.pending(uid) if group is not None and group == group_key(pod) else None

    def add(self, pod: Pod, uid: str, allocation: AllocationResult) -> None:
        self._devices.add_pending(uid, allocation)
        group = group_key(pod) if self._with_groups else ""
        if group:
            self._groups[uid], self._holders[uid] = group, {pod.metadata.uid}

    def join(self, pod: Pod, uid: str) -> AllocationResult | None:
        """Add a pod to the users of a pending allocation and return it; None if it no longer exists."""
        allocation = self.shared_with(pod, uid)
        if allocation is not None:
            self._holders[uid].add(pod.metadata.uid)
        return allocation

    def remove(self, pod: Pod, uid: str) -> None:
        """Remove a pod from the users of an allocation; the allocation is removed with its last user."""
        holders = self._holders.get(uid)
        if holders is not None:
            holders.discard(pod.metadata.uid)
            if holders:
                return
            del self._holders[uid], self._groups[uid]
        self._devices.remove_pending(uid)
