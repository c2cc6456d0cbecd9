"""Causes in the devices that the pod claims: claims, device classes, and the claims that hold devices."""

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from kubestow.api.devices import DeviceRequest, ResourceClaim
from kubestow.api.meta import ObjectMeta, OwnerReference, controller_of
from kubestow.api.pod import PodResourceClaim, PodResourceClaimStatus
from kubestow.insight.explain.causes.cause import (
    NEAR,
    Cause,
    Scene,
    counted,
    did_you_mean,
    existing,
    listed,
    names_in,
    nearest,
)
from kubestow.insight.explain.changes import CLUSTER, Change
from kubestow.insight.explain.obstacles import pod_change
from kubestow.scheduler.cluster.listers import key_of

_PLUGIN = "DynamicResources"


def device_causes(scene: Scene) -> Iterator[Cause]:
    """Yield what the resource claims of the pod lack."""
    listers, pod = scene.listers, scene.pod
    if _PLUGIN not in scene.rejecting or listers.resource_claims.unreadable or listers.device_classes.unreadable:
        return
    made = {one.name: one.resourceClaimName for one in pod.status.resourceClaimStatuses}
    for wanted in pod.spec.resourceClaims:
        name = wanted.resourceClaimName or made.get(wanted.name)
        claim = listers.resource_claims.get(f"{pod.metadata.namespace}/{name}") if name else None
        if not name and wanted.name not in made:
            yield from _not_created(scene, wanted)
        elif name and claim is None:
            yield from _missing(scene, wanted, name)
        elif claim is not None and claim.metadata.deletionTimestamp is not None:
            text = f'resourceclaim "{name}" is being deleted: create it again'
            metadata = replace(claim.metadata, deletionTimestamp=None)
            again = _claim_made(
                replace(claim, metadata=metadata, status=type(claim.status)()), "deleted and created again"
            )
            yield Cause(_PLUGIN, text, (), (again,))
        elif claim is not None and not wanted.resourceClaimName and not _is_of(scene, claim):
            yield Cause(_PLUGIN, f'resourceclaim "{name}" was not created for this pod: delete it')
        elif claim is not None:
            yield from _of_claim(scene, claim)


def _is_of(scene: Scene, claim: ResourceClaim) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == scene.pod.metadata.uid


def _not_created(scene: Scene, wanted: PodResourceClaim) -> Iterator[Cause]:
    namespace, templates = scene.pod.metadata.namespace, scene.world.claim_templates
    name = wanted.resourceClaimTemplateName or ""
    text = f"no resourceclaim has been created yet for claim {wanted.name} of the pod"
    template = templates.get(f"{namespace}/{name}")
    known = [one.metadata.name for one in templates.values() if one.metadata.namespace == namespace]
    similar = nearest(name, known) if template is None else ()
    changes = []
    for one in (name,) if template is not None else similar:
        spec = templates[f"{namespace}/{one}"].spec.spec
        pod = scene.pod
        owner = OwnerReference("v1", "Pod", pod.metadata.name, pod.metadata.uid, True)
        claim = ResourceClaim(
            ObjectMeta(f"{pod.metadata.name}-{wanted.name}", namespace, ownerReferences=(owner,)), spec
        )
        status = (*pod.status.resourceClaimStatuses, PodResourceClaimStatus(wanted.name, claim.metadata.name))
        named = replace(wanted, resourceClaimTemplateName=one)
        claims = tuple(named if its is wanted else its for its in pod.spec.resourceClaims)
        changed = pod_change(pod, f"claim {wanted.name}: template {name} changed to {one}", NEAR, resourceClaims=claims)
        assert changed.pod is not None
        new = replace(changed.pod, status=replace(pod.status, resourceClaimStatuses=status))
        if one == name:
            changed = Change(CLUSTER, f"claim {wanted.name} created from its template", NEAR)
        changes.append(changed._replace(pod=new, objects=(claim,)))
    if known and template is None:
        text += f": there is no resourceclaimtemplate {name} in namespace {namespace}{existing(known)}"
    elif name:
        text += f": it comes from resourceclaimtemplate {name}"
    yield Cause(_PLUGIN, text + did_you_mean(similar), similar, tuple(changes))


def _missing(scene: Scene, wanted: PodResourceClaim, name: str) -> Iterator[Cause]:
    namespace = scene.pod.metadata.namespace
    known = names_in(scene.listers.resource_claims, namespace)
    similar, changes = nearest(name, known), []
    for one in similar:
        named = replace(wanted, resourceClaimName=one)
        claims = tuple(named if its is wanted else its for its in scene.pod.spec.resourceClaims)
        text = f"claim {wanted.name}: resourceclaim {name} changed to {one}"
        changes.append(pod_change(scene.pod, text, NEAR, resourceClaims=claims))
    text = f'resourceclaim "{name}" not found in namespace {namespace}: create it{existing(known)}'
    yield Cause(_PLUGIN, text + did_you_mean(similar), similar, tuple(changes))


def _claim_made(claim: ResourceClaim, how: str) -> Change:
    return Change(CLUSTER, f"resource claim {key_of(claim)} {how}", 0.3, objects=(claim,))


def _of_claim(scene: Scene, claim: ResourceClaim) -> Iterator[Cause]:
    if claim.status.allocation is not None:
        found = claim.status.allocation.devices.results
        devices = listed([f"{one.pool}/{one.device}" for one in found])
        users = (
            f", used by {listed([one.name for one in claim.status.reservedFor])}" if claim.status.reservedFor else ""
        )
        yield Cause(_PLUGIN, f'resourceclaim "{claim.metadata.name}" has {devices}{users}: other nodes cannot use it')
        return
    classes = [one.metadata.name for one in scene.listers.device_classes]
    wanted = _classes(claim)
    lacking = [name for name in wanted if name not in classes]
    for name in lacking:
        similar = nearest(name, classes)
        changes = []
        for one in similar or classes[:3]:
            how = f"created again with device class {one} instead of {name}"
            changes.append(_claim_made(_with_class(claim, name, one), how)._replace(size=NEAR if similar else 0.3))
        text = f'device class "{name}" of resourceclaim "{claim.metadata.name}" does not exist{existing(classes)}'
        yield Cause(_PLUGIN, text + did_you_mean(similar), similar, tuple(changes))
    if not lacking:
        yield from _no_devices(scene, claim, wanted)


def _classes(claim: ResourceClaim) -> Counter[str]:
    """Return the device classes that a claim requests, with the number of devices; 0 for all devices."""
    found: Counter[str] = Counter()
    for request in claim.spec.devices.requests:
        for one in (request.exactly,) if request.exactly is not None else request.firstAvailable:
            found[one.deviceClassName] = max(found[one.deviceClassName], one.count)
    return found


def _with_class(claim: ResourceClaim, name: str, other: str) -> ResourceClaim:
    def renamed(request: DeviceRequest) -> DeviceRequest:
        exactly = request.exactly
        if exactly is not None and exactly.deviceClassName == name:
            exactly = replace(exactly, deviceClassName=other)
        options = tuple(
            replace(one, deviceClassName=other) if one.deviceClassName == name else one
            for one in request.firstAvailable
        )
        return replace(request, exactly=exactly, firstAvailable=options)

    devices = claim.spec.devices
    requests = tuple(map(renamed, devices.requests))
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))


def _no_devices(scene: Scene, claim: ResourceClaim, wanted: Counter[str]) -> Iterator[Cause]:
    slices = list(scene.listers.resource_slices)
    total = sum(len(one.spec.devices) for one in slices)
    holders: Counter[str] = Counter()
    for other in scene.listers.resource_claims:
        if other.status.allocation is not None:
            holders[key_of(other)] += len(other.status.allocation.devices.results)
    wants = ", ".join(f"{count or 'all'} of {name}" for name, count in wanted.items())
    pools = len({(one.spec.driver, one.spec.pool.name) for one in slices})
    there = f"{counted(total, 'device')} in {counted(pools, 'pool')}"
    text = f'resourceclaim "{claim.metadata.name}" wants {wants}: there are {there}'
    if holders:
        text += f", {holders.total()} of them taken by {listed([f'{key} ({n})' for key, n in holders.most_common()])}"
    yield Cause(_PLUGIN, text)
