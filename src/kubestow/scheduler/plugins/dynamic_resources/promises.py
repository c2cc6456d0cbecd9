"""Devices that were promised to claims, and the pods that count on it: pods of one group may share such a claim.

All pods of a group have a node before the first of them is bound, so a claim that several of them name has no devices
yet when the second is tried. It goes by what the first was promised; whoever is bound first writes it.
"""

from kubestow.api.devices import AllocationResult
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.scheduler.cluster.devices.state import Devices


class Promises:
    """What claims, by uid, were promised."""

    def __init__(self, devices: Devices, *, with_groups: bool) -> None:
        """`with_groups`: whether pods belong to groups at all."""
        self._devices = devices
        self._with_groups = with_groups
        self._holders: dict[str, set[str]] = {}
        """The pods of a group that count on a promise, by uid."""
        self._groups: dict[str, str] = {}

    def shared_with(self, pod: Pod, uid: str) -> AllocationResult | None:
        """What a claim was promised for another pod of the same group."""
        group = self._groups.get(uid)
        return self._devices.pending(uid) if group is not None and group == group_key(pod) else None

    def make(self, pod: Pod, uid: str, allocation: AllocationResult) -> None:
        """Keep devices for a claim."""
        self._devices.promise(uid, allocation)
        group = group_key(pod) if self._with_groups else ""
        if group:
            self._groups[uid], self._holders[uid] = group, {pod.metadata.uid}

    def join(self, pod: Pod, uid: str) -> AllocationResult | None:
        """Count on a promise, too; None if it is gone."""
        allocation = self.shared_with(pod, uid)
        if allocation is not None:
            self._holders[uid].add(pod.metadata.uid)
        return allocation

    def settle(self, pod: Pod, uid: str) -> None:
        """A pod has got what was promised, or will not; once no other pod counts on it, it is a promise no more."""
        holders = self._holders.get(uid)
        if holders is not None:
            holders.discard(pod.metadata.uid)
            if holders:
                return
            del self._holders[uid], self._groups[uid]
        self._devices.settle(uid)
