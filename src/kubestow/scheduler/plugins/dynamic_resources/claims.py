"""The resource claims in a pod's spec: those it names, and those created from its templates."""

from kubestow.api.devices import ResourceClaim
from kubestow.api.meta import controller_of
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.scheduler.cluster.listers import Store


class UnusableClaimError(Exception):
    """A claim of a pod cannot be used now; the message is the reason."""


def claims_of(pod: Pod, claims: Store[ResourceClaim]) -> list[ResourceClaim]:
    """Return the claims in a pod's spec, in that order. Raises UnusableClaimError."""
    found = []
    for wanted in pod.spec.resourceClaims:
        name, is_own = _name_of(pod, wanted)
        if name is None:
            # The controller determined that no claim is needed.
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = claims.get(key)
        if claim is None:
            raise UnusableClaimError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletionTimestamp is not None:
            raise UnusableClaimError(f'resourceclaim "{name}" is being deleted')
        if is_own:
            owner = controller_of(claim.metadata)
            if owner is None or owner.uid != pod.metadata.uid:
                problem = f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
                raise UnusableClaimError(problem)
        found.append(claim)
    return found


def names(pod: Pod, claim: ResourceClaim) -> bool:
    """Return whether a pod's spec refers to a claim, compared by name."""
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    made = {status.name: status.resourceClaimName for status in pod.status.resourceClaimStatuses}
    return any(
        (wanted.resourceClaimName or made.get(wanted.name)) == claim.metadata.name for wanted in pod.spec.resourceClaims
    )


def _name_of(pod: Pod, wanted: PodResourceClaim) -> tuple[str | None, bool]:
    """Return the name of a claim (None: none is needed), and whether it was created for the pod."""
    if wanted.resourceClaimName is not None:
        return wanted.resourceClaimName, False
    if wanted.resourceClaimTemplateName is None:
        where = f'pod "{pod.key}", spec.resourceClaim "{wanted.name}"'
        raise UnusableClaimError(f"{where}: none of the supported fields are set")
    for status in pod.status.resourceClaimStatuses:
        if status.name == wanted.name:
            return status.resourceClaimName, True
    raise UnusableClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    consumers = claim.status.reservedFor
    return bool(consumers) and any(consumer.uid == pod.metadata.uid for consumer in consumers)
