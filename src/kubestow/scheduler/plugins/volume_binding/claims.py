"""The claims of a pod, grouped by state: bound, delayed until a node is selected, or unbound immediate."""

from collections.abc import Iterable

import msgspec

from kubestow.api.claims import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_name_of,
    is_fully_bound,
    not_found,
    ownership_problem,
)
from kubestow.api.pod import Pod
from kubestow.api.quantity import nano, value
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.scheduler.cluster.listers import Listers, key_of
from kubestow.scheduler.plugins.volume_binding.candidates import ClassVolumes

STORAGE = "storage"


class UnusableClaimError(Exception):
    """A claim rules out every node; the message is the reason."""


class DelayedClaim(msgspec.Struct, frozen=True):
    """A claim without a volume, whose class waits for the first consumer."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    volumes: ClassVolumes
    """The volumes of its class that the pod's claims can be bound to."""

    @property
    def selected_node(self) -> str | None:
        """The node for which a volume is being provisioned."""
        return self.claim.metadata.annotations.get(SELECTED_NODE)

    @property
    def size(self) -> int | None:
        """The requested number of bytes."""
        amount = self.claim.spec.resources.requests.get(STORAGE)
        return None if amount is None else value(amount)


class PodClaims(msgspec.Struct):
    """All claims of a pod.

    `unbound_immediate` claims should be bound already. If there is one, `delayed` is empty.
    """

    bound: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    delayed: list[DelayedClaim] = msgspec.field(default_factory=list)
    unbound_immediate: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)

    @property
    def in_provisioning(self) -> list[DelayedClaim]:
        return [delayed for delayed in self.delayed if delayed.selected_node is not None]

    @property
    def to_match(self) -> list[DelayedClaim]:
        """The delayed claims to match with a free volume, smallest first."""
        open_claims = [delayed for delayed in self.delayed if delayed.selected_node is None]
        return sorted(open_claims, key=lambda delayed: requested(delayed.claim))


def requested(claim: PersistentVolumeClaim) -> int:
    """Return the requested storage of a claim in nano-units, for exact comparison."""
    return nano(claim.spec.resources.requests.get(STORAGE, 0))


def capacity(volume: PersistentVolume) -> int:
    """Return the capacity of a volume in nano-units, for exact comparison."""
    return nano(volume.spec.capacity.get(STORAGE, 0))


def check_claims(pod: Pod, listers: Listers) -> bool:
    """Return whether the pod has claims. Raises UnusableClaimError if one rules out every node."""
    has_claims = False
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        if name is None:
            continue
        has_claims = True
        claim = listers.claims.received(f"{pod.metadata.namespace}/{name}")
        if claim is None:
            if volume.persistentVolumeClaim is None:
                waiting = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
                raise UnusableClaimError(waiting)
            raise UnusableClaimError(not_found(name))
        if claim.status.phase == "Lost":
            gone = f'bound to non-existent persistentvolume "{claim.spec.volumeName}"'
            raise UnusableClaimError(f'persistentvolumeclaim "{name}" {gone}')
        if claim.metadata.deletionTimestamp is not None:
            raise UnusableClaimError(f'persistentvolumeclaim "{name}" is being deleted')
        if volume.persistentVolumeClaim is None and (problem := ownership_problem(pod, claim)):
            raise UnusableClaimError(problem)
    return has_claims


def sort_claims(pod: Pod, listers: Listers) -> PodClaims:
    """Return the claims, including assumed changes, of a pod that has passed `check_claims`."""
    found = PodClaims()
    delayed: list[tuple[PersistentVolumeClaim, StorageClass]] = []
    for claim in _claims_of(pod, listers):
        if is_fully_bound(claim):
            found.bound.append(claim)
            continue
        storage_class = _delaying_class(claim, listers)
        if storage_class is None or claim.spec.volumeName:
            found.unbound_immediate.append(claim)
        else:
            delayed.append((claim, storage_class))
    if not found.unbound_immediate:
        found.delayed = _with_volumes(delayed, listers)
    return found


def _with_volumes(delayed: list[tuple[PersistentVolumeClaim, StorageClass]], listers: Listers) -> list[DelayedClaim]:
    candidates: dict[str, dict[str, PersistentVolume]] = {}
    for claim, storage_class in delayed:
        name = storage_class.metadata.name
        of_class = candidates.setdefault(name, {})
        of_class.update((volume.metadata.name, volume) for volume in listers.volumes.candidates(name, key_of(claim)))
    volumes = {name: ClassVolumes(sorted(found.values(), key=capacity)) for name, found in candidates.items()}
    return [DelayedClaim(claim, of_class, volumes[of_class.metadata.name]) for claim, of_class in delayed]


def _claims_of(pod: Pod, listers: Listers) -> Iterable[PersistentVolumeClaim]:
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        claim = listers.claims.get(f"{pod.metadata.namespace}/{name}") if name is not None else None
        if claim is not None:
            yield claim


def _delaying_class(claim: PersistentVolumeClaim, listers: Listers) -> StorageClass | None:
    """Return the claim's class if it waits for the first consumer; otherwise None."""
    name = claim_class(claim)
    found = listers.storage_classes.get(name) if name else None
    if found is None:
        return None
    if found.volumeBindingMode is None:
        raise ValueError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return found if found.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER else None
