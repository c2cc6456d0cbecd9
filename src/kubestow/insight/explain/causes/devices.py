"""Causes in the devices that the pod claims: claims, device classes, and the claims that hold devices."""

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from kubestow.api.devices import DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec
from kubestow.api.meta import ObjectMeta, OwnerReference, controller_of
from kubestow.api.node import NodeSelectorRequirement
from kubestow.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from kubestow.insight.explain.causes.cause import NEAR, Cause, Scene, counted, existing, listed, names_in
from kubestow.insight.explain.causes.looser_claims import alone, looser_claims
from kubestow.insight.explain.changes import CLUSTER, Change, feasible_nodes
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.insight.explain.obstacles import format_condition, meeting, pod_change
from kubestow.scheduler.cluster.listers import key_of

_PLUGIN = "DynamicResources"
_MOST_NAMES = 3


def device_causes(scene: Scene) -> Iterator[Cause]:
    """Yield what the resource claims of the pod lack."""
    listers, pod = scene.listers, scene.pod
    if _PLUGIN not in scene.rejecting or listers.resource_claims.unreadable or listers.device_classes.unreadable:
        return
    for left in listers.resource_claims.group(pod.metadata.uid):
        if left.status.allocation is not None:
            freed = replace(left, metadata=replace(left.metadata, ownerReferences=()), status=type(left.status)())
            text = f'resourceclaim "{left.metadata.name}" is left from an earlier attempt: delete it'
            yield Cause(_PLUGIN, text, (), (_claim_made(freed, "deleted")._replace(size=0.1),))
    made = {one.name: one.resourceClaimName for one in pod.status.resourceClaimStatuses}
    for wanted in pod.spec.resourceClaims:
        name = wanted.resourceClaimName or made.get(wanted.name)
        claim = listers.resource_claims.get(f"{pod.metadata.namespace}/{name}") if name else None
        if not name and not wanted.resourceClaimTemplateName:
            yield _unnamed(scene, wanted)
        elif not name and wanted.name not in made:
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
            metadata = replace(claim.metadata, ownerReferences=(_owner(pod),))
            how = "deleted, so that it is created for the pod"
            again = _claim_made(replace(claim, metadata=metadata, status=type(claim.status)()), how)
            yield Cause(_PLUGIN, f'resourceclaim "{name}" was not created for this pod: delete it', (), (again,))
        elif claim is not None:
            yield from _of_claim(scene, claim, wanted)


def _is_of(scene: Scene, claim: ResourceClaim) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == scene.pod.metadata.uid


def _owner(pod: Pod) -> OwnerReference:
    return OwnerReference("v1", "Pod", pod.metadata.name, pod.metadata.uid, True)


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
        meta = ObjectMeta(f"{pod.metadata.name}-{wanted.name}", namespace, ownerReferences=(_owner(pod),))
        claim = ResourceClaim(meta, spec)
        status = (*pod.status.resourceClaimStatuses, PodResourceClaimStatus(wanted.name, claim.metadata.name))
        named = replace(wanted, resourceClaimTemplateName=one)
        claims = tuple(named if its is wanted else its for its in pod.spec.resourceClaims)
        changed = pod_change(pod, f"claim {wanted.name}: template {name} changed to {one}", NEAR, resourceClaims=claims)
        assert changed.pod is not None
        new = replace(changed.pod, status=replace(pod.status, resourceClaimStatuses=status))
        if one == name:
            changed = Change(CLUSTER, f"claim {wanted.name} created from its template", NEAR)
        changes.append(changed._replace(pod=new, objects=(claim,)))
    if name and template is None and not scene.world.has_unread_templates:
        end = existing(known) if known else ": create it"
        text += f": there is no resourceclaimtemplate {name} in namespace {namespace}{end}"
    elif name:
        text += f": it comes from resourceclaimtemplate {name}"
    yield Cause(_PLUGIN, text + did_you_mean(similar), similar, tuple(changes))


def _unnamed(scene: Scene, wanted: PodResourceClaim) -> Cause:
    known = names_in(scene.listers.resource_claims, scene.pod.metadata.namespace)
    text = f"claim {wanted.name} of the pod names neither a resourceclaim nor a template{existing(known)}"
    return Cause(_PLUGIN, text, (), tuple(_named(scene, wanted, "set", one) for one in known[:_MOST_NAMES]))


def _named(scene: Scene, wanted: PodResourceClaim, how: str, name: str) -> Change:
    named = replace(wanted, resourceClaimName=name)
    claims = tuple(named if its is wanted else its for its in scene.pod.spec.resourceClaims)
    return pod_change(scene.pod, f"claim {wanted.name}: resourceclaim {how} to {name}", NEAR, resourceClaims=claims)


def _missing(scene: Scene, wanted: PodResourceClaim, name: str) -> Iterator[Cause]:
    namespace = scene.pod.metadata.namespace
    known = names_in(scene.listers.resource_claims, namespace)
    similar = nearest(name, known)
    changes = [_named(scene, wanted, f"{name} changed", one) for one in similar]
    for one in list(scene.listers.device_classes)[:_MOST_NAMES]:
        exactly = ExactDeviceRequest(one.metadata.name, allocationMode="ExactCount", count=1)
        spec = ResourceClaimSpec(DeviceClaim((DeviceRequest("device", exactly),)))
        made = ResourceClaim(ObjectMeta(name, namespace, uid=f"uid-{name}"), spec)
        how = f"created, for a device of class {one.metadata.name}"
        changes.append(_claim_made(made, how)._replace(size=0.2))
    text = f'resourceclaim "{name}" not found in namespace {namespace}: create it{existing(known)}'
    yield Cause(_PLUGIN, text + did_you_mean(similar), similar, tuple(changes))


def _claim_made(claim: ResourceClaim, how: str) -> Change:
    return Change(CLUSTER, f"resource claim {key_of(claim)} {how}", 0.3, objects=(claim,))


def _of_claim(scene: Scene, claim: ResourceClaim, wanted: PodResourceClaim) -> Iterator[Cause]:
    if claim.status.allocation is not None:
        found = claim.status.allocation.devices.results
        devices = listed([f"{one.pool}/{one.device}" for one in found])
        users = (
            f", used by {listed([one.name for one in claim.status.reservedFor])}" if claim.status.reservedFor else ""
        )
        yield Cause(_PLUGIN, f'resourceclaim "{claim.metadata.name}" has {devices}{users}: other nodes cannot use it')
        return
    classes = [one.metadata.name for one in scene.listers.device_classes]
    lacking = [name for name in _classes(claim) if name not in classes]
    for name in lacking:
        similar = nearest(name, classes)
        changes = []
        for one in similar or classes[:3]:
            how = f"created again with device class {one} instead of {name}"
            changes.append(_claim_made(_with_class(claim, name, one), how)._replace(size=NEAR if similar else 0.3))
        text = f'device class "{name}" of resourceclaim "{claim.metadata.name}" does not exist{existing(classes)}'
        yield Cause(_PLUGIN, text + did_you_mean(similar), similar, tuple(changes))
    if not lacking:
        yield _no_devices(scene, claim, alone(scene.pod, wanted))


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


def _no_devices(scene: Scene, claim: ResourceClaim, pod: Pod) -> Cause:
    """Return why a claim has no devices; `pod` has nothing but the claim."""
    wants = ", ".join(f"{count or 'all'} of {name}" for name, count in _classes(claim).items()) or "no device class"
    text = f'resourceclaim "{claim.metadata.name}" wants {wants}: {devices_there(scene)}'
    nodes = feasible_nodes(scene.world, pod)
    if nodes and len(scene.pod.spec.resourceClaims) > 1:
        # The claims of the pod may compete for devices.
        pod = alone(scene.pod, *scene.pod.spec.resourceClaims)
        nodes = feasible_nodes(scene.world, pod)
    if nodes:
        where, reason = f"{counted(len(nodes), 'node')} could give it devices", scene.reasons_on(nodes)
        return Cause(_PLUGIN, f"{text}; {where} ({listed(nodes, 3)}){f': {reason}' if reason else ''}")
    looser = looser_claims(scene, claim, pod)
    why = dict.fromkeys([*(one.why for one in looser[:1]), *_incomplete(scene)])
    changes = [one.change for one in looser]
    conditions = _out_of_reach(scene)
    if conditions:
        why |= {f"no node can access them: they are for nodes {listed([*map(format_condition, conditions)], 3)}": None}
        changes += [its for one in conditions for node in scene.nodes()[:_MOST_NAMES] for its in meeting(one)(node)]
    elif not why and len(pod.spec.resourceClaims) > 1:
        why = {"the claims of the pod want more than a node has free": None}
    return Cause(_PLUGIN, "; ".join([text, *why]), (), tuple(changes))


def _out_of_reach(scene: Scene) -> list[NodeSelectorRequirement]:
    """Return the conditions on nodes of the slices if no node meets those of any."""
    devices = scene.cluster.devices
    if any(devices.pools_of(row) for row in scene.rows.tolist()):
        return []
    selectors = [one.spec.nodeSelector for one in scene.listers.resource_slices if one.spec.nodeSelector is not None]
    found = [one for selector in selectors for term in selector.nodeSelectorTerms for one in term.matchExpressions]
    return list(dict.fromkeys(found))


def devices_there(scene: Scene) -> str:
    """Return the number of devices, and the claims that hold some."""
    slices = list(scene.listers.resource_slices)
    total = sum(len(one.spec.devices) for one in slices)
    holders: Counter[str] = Counter()
    for other in scene.listers.resource_claims:
        if other.status.allocation is not None:
            holders[key_of(other)] += len(other.status.allocation.devices.results)
    pools = len({(one.spec.driver, one.spec.pool.name) for one in slices})
    text = f"there {'is' if total == 1 else 'are'} {counted(total, 'device')} in {counted(pools, 'pool')}"
    if holders:
        text += f", {holders.total()} taken by {listed([f'{key} ({n})' for key, n in holders.most_common()])}"
    return text


def _incomplete(scene: Scene) -> Iterator[str]:
    """Yield the pools whose slices are not all published, or name a device twice."""
    pools: Counter[tuple[str, str, int, int]] = Counter()
    for one in scene.listers.resource_slices:
        pool = one.spec.pool
        pools[one.spec.driver, pool.name, pool.generation, pool.resourceSliceCount] += 1
        twice = [name for name, count in Counter(its.name for its in one.spec.devices).items() if count > 1]
        if twice:
            yield f"pool {one.spec.driver}/{pool.name} names device {twice[0]} twice"
    for (driver, name, _, wanted), count in pools.items():
        if count < wanted:
            yield f"pool {driver}/{name} is incomplete: {count} of {wanted} slices are published"
