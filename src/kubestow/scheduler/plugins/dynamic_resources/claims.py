"""The resource claims in a pod's spec: those it names, and those created from its templates.

With the feature gate DRAWorkloadResourceClaims, a claim that the pod's group lists as well is created and reserved for
the group: `with_groups`.
"""

from kubestow.api.devices import ResourceClaim, ResourceClaimConsumer
from kubestow.api.meta import OwnerReference, controller_of
from kubestow.api.pod import Pod, PodResourceClaim
from kubestow.api.pod_groups import PodGroup, group_name
from kubestow.scheduler.cluster.listers import Store

_API_GROUP, _PLURAL = "scheduling.k8s.io", "podgroups"


class UnusableClaimError(Exception):
    """A claim of a pod cannot be used now; the message is the reason."""


def claims_of(pod: Pod, claims: Store[ResourceClaim], *, with_groups: bool = False) -> list[ResourceClaim]:
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
            group = group_name(pod) if with_groups else ""
            if owner is None or (owner.uid != pod.metadata.uid and not _is_group(owner, group)):
                who = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
                raise UnusableClaimError(f"ResourceClaim {key} was not created for Pod {pod.key} ({who})")
        found.append(claim)
    return found


def _is_group(owner: OwnerReference, group: str) -> bool:
    of_api_group = owner.apiVersion.startswith(f"{_API_GROUP}/")
    return bool(group) and owner.name == group and owner.kind == "PodGroup" and of_api_group


def names(pod: Pod, claim: ResourceClaim, entries: tuple[PodResourceClaim, ...] | None = None) -> bool:
    """Return whether a pod's spec, or only some of its `entries`, refers to a claim, compared by name."""
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    made = {status.name: status.resourceClaimName for status in pod.status.resourceClaimStatuses}
    return any(
        (wanted.resourceClaimName or made.get(wanted.name)) == claim.metadata.name
        for wanted in pod.spec.resourceClaims
        if entries is None or wanted in entries
    )


def consumer_of(claim: ResourceClaim, pod: Pod, group: PodGroup | None) -> ResourceClaimConsumer:
    """Return what a claim is to be reserved for: the pod, or the group if that lists the claim in the same way."""
    if group is not None and names(pod, claim, group.spec.resourceClaims):
        return ResourceClaimConsumer(_API_GROUP, _PLURAL, group.metadata.name, group.metadata.uid)
    return ResourceClaimConsumer(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


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


def is_reserved_for(claim: ResourceClaim, pod: Pod, *, with_groups: bool = False) -> bool:
    """Return whether a claim is reserved for a pod, or for its group."""
    consumers = claim.status.reservedFor
    if not consumers:
        return False
    group = (_API_GROUP, _PLURAL, group_name(pod)) if with_groups and group_name(pod) else None
    return any(one.uid == pod.metadata.uid or (one.apiGroup, one.resource, one.name) == group for one in consumers)
