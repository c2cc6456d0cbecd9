"""Causes in the volumes of the pod: claims, their storage classes and volumes, drivers, and other users of a disk.

A change that replaces or creates a claim is tried as it would end: if the storage class waits for the first consumer,
the claim stays unbound; otherwise it is bound to a new volume that every node of the class can use.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubestow.api.claims import (
    BIND_COMPLETED,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_name_of,
    is_bound_to,
    is_fully_bound,
    named_claims,
    ownership_problem,
    volume_class,
)
from kubestow.api.labels import compile_selector
from kubestow.api.meta import ObjectMeta, ObjectReference, OwnerReference
from kubestow.api.natural_order import natural
from kubestow.api.pod import Volume
from kubestow.api.quantity import format_nano, nano
from kubestow.api.storage import (
    ClaimResources,
    ClaimSpec,
    CSINode,
    CSINodeDriver,
    CSIVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeSpec,
    VolumeStatus,
)
from kubestow.insight.explain.causes.cause import NEAR, Cause, Scene, counted, existing, listed, names_in
from kubestow.insight.explain.causes.neighbours import pods_removed
from kubestow.insight.explain.changes import CLUSTER, NODE, Change
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.insight.explain.obstacles import pod_change
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.plugins.node_volume_limits.attachables import Attachable, attachables_of, attached_to, limits_of
from kubestow.scheduler.plugins.volume_binding.affinity import is_usable_at
from kubestow.scheduler.plugins.volume_binding.provisioning import volume_limit

_BINDING = "VolumeBinding"
_LIMITS = "NodeVolumeLimits"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_STORAGE = "storage"
_NEW_SIZE = "1Gi"
_RECREATED = 0.3
_MOST_CLASSES = 3
_FEW = 4
_FILESYSTEM = "Filesystem"


def claim_causes(scene: Scene) -> Iterator[Cause]:
    """Yield what the volumes of the pod lack."""
    listers = scene.listers
    if listers.claims.unreadable or listers.storage_classes.unreadable or listers.volumes.unreadable:
        return
    for volume in scene.pod.spec.volumes:
        name = claim_name_of(scene.pod, volume)
        if name:
            yield from _of_claim(scene, volume, name)
        elif name is not None:
            known = names_in(listers.claims, scene.pod.metadata.namespace)
            changes = tuple(_renamed(scene, volume, "", one) for one in known[:_MOST_CLASSES])
            yield Cause(_BINDING, f"volume {volume.name} names no claim{existing(known)}", (), changes)
    if _LIMITS in scene.rejecting:
        yield from _limits(scene)
    if "VolumeRestrictions" in scene.rejecting:
        yield from _restrictions(scene)


def _of_claim(scene: Scene, volume: Volume, name: str) -> Iterator[Cause]:
    namespace = scene.pod.metadata.namespace
    claim = scene.listers.claims.get(f"{namespace}/{name}")
    what = f'persistentvolumeclaim "{name}"'
    if claim is None:
        yield from _missing(scene, volume, name)
    elif claim.status.phase == "Lost":
        text = f'{what} is bound to persistentvolume "{claim.spec.volumeName}", which does not exist any more'
        yield Cause(_BINDING, text, (), tuple(_recreated(scene, claim)))
    elif claim.metadata.deletionTimestamp is not None:
        yield Cause(_BINDING, f"{what} is being deleted: create it again", (), tuple(_recreated(scene, claim)))
    elif volume.persistentVolumeClaim is None and ownership_problem(scene.pod, claim):
        text = f"{what} exists, but was not created for this pod: delete it"
        yield Cause(_BINDING, text, (), tuple(_recreated(scene, _owned(scene, claim))))
    elif is_fully_bound(claim):
        yield from _bound(scene, claim)
    else:
        yield from _unbound(scene, claim)


def _owned(scene: Scene, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    owner = OwnerReference("v1", "Pod", scene.pod.metadata.name, scene.pod.metadata.uid, True)
    return replace(claim, metadata=replace(claim.metadata, ownerReferences=(owner,)))


# Claims that do not exist


def _missing(scene: Scene, volume: Volume, name: str) -> Iterator[Cause]:
    namespace = scene.pod.metadata.namespace
    if volume.ephemeral is not None:
        template = volume.ephemeral.volumeClaimTemplate
        text = f'persistentvolumeclaim "{name}" of the ephemeral volume {volume.name} is not created yet'
        claim = PersistentVolumeClaim(ObjectMeta(name, namespace), ClaimSpec() if template is None else template.spec)
        yield Cause(_BINDING, f"{text}; a controller creates it", (), tuple(_created(scene, _owned(scene, claim))))
        yield from _unbound(scene, _owned(scene, claim))
        return
    similar = nearest(name, names_in(scene.listers.claims, namespace))
    text = f'persistentvolumeclaim "{name}" not found in namespace {namespace}: create it'
    elsewhere = sorted(
        one.metadata.namespace
        for one in scene.listers.claims
        if one.metadata.name == name and one.metadata.namespace != namespace
    )
    if elsewhere and not similar:
        text += f"; namespace {listed(elsewhere)} has one, which pods of other namespaces cannot use"
    changes = [_renamed(scene, volume, name, near) for near in similar]
    spec = ClaimSpec(accessModes=("ReadWriteOnce",), resources=ClaimResources({_STORAGE: _NEW_SIZE}))
    changes += _created(scene, PersistentVolumeClaim(ObjectMeta(name, namespace), spec))
    yield Cause(_BINDING, text + did_you_mean(similar), similar, tuple(changes))


def _renamed(scene: Scene, volume: Volume, name: str, near: str) -> Change:
    def renamed(one: Volume) -> Volume:
        source = one.persistentVolumeClaim
        return (
            one
            if one.name != volume.name or source is None
            else replace(one, persistentVolumeClaim=replace(source, claimName=near))
        )

    volumes = tuple(map(renamed, scene.pod.spec.volumes))
    how = f"{name} changed" if name else "set"
    return pod_change(scene.pod, f"volume {volume.name}: claim {how} to {near}", NEAR, volumes=volumes)


def _created(scene: Scene, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """Create a claim: of its class, or of each class that has a provisioner."""
    names = [claim_class(claim)] if claim.spec.storageClassName is not None else [None, *_provisioning(scene)]
    for name in dict.fromkeys(names):
        yield _with_class(scene, claim, name, f"claim {key_of(claim)} created", 0.1)
    for change in _volume_made(claim):
        yield change._replace(text=f"claim {key_of(claim)} and a volume for it created: {_needs(claim)}")


def _with_class(scene: Scene, claim: PersistentVolumeClaim, name: str | None, text: str, size: float) -> Change:
    """Return the change to a new claim of a class, None for the default one, in its final state."""
    found = _default(scene) if name is None else scene.listers.storage_classes.get(name)
    of = "" if name is None else f" with storageclass {name}"
    spec = replace(claim.spec, storageClassName=name if found is None else found.metadata.name, volumeName="")
    metadata = replace(
        claim.metadata,
        deletionTimestamp=None,
        annotations={
            key: value for key, value in claim.metadata.annotations.items() if key not in _BINDING_ANNOTATIONS
        },
    )
    new = PersistentVolumeClaim(metadata, spec, VolumeStatus("Pending"))
    objects = _settled(new, found)
    return Change(CLUSTER, text + of, size, objects=objects)


_BINDING_ANNOTATIONS = (BIND_COMPLETED, SELECTED_NODE, "volume.beta.kubernetes.io/storage-class")


def _settled(
    claim: PersistentVolumeClaim, of: StorageClass | None
) -> tuple[PersistentVolumeClaim | PersistentVolume, ...]:
    """Return a new claim as the controllers leave it: with a provisioned volume if its class binds at once."""
    if of is None or of.provisioner in ("", NO_PROVISIONER) or of.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER:
        return (claim,)
    volume = _volume_for(claim, of.provisioner)
    return _bound_to(claim, volume), volume


def _bound_to(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    metadata = replace(claim.metadata, annotations=annotations)
    spec = replace(claim.spec, volumeName=volume.metadata.name)
    return PersistentVolumeClaim(metadata, spec, VolumeStatus("Bound"))


def _volume_for(claim: PersistentVolumeClaim, driver: str) -> PersistentVolume:
    name = f"pv-{claim.metadata.namespace}-{claim.metadata.name}"
    spec = VolumeSpec(
        capacity=dict(claim.spec.resources.requests),
        accessModes=claim.spec.accessModes,
        claimRef=ObjectReference(namespace=claim.metadata.namespace, name=claim.metadata.name),
        storageClassName=claim_class(claim),
        volumeMode=claim.spec.volumeMode,
        csi=CSIVolume(driver, name),
    )
    return PersistentVolume(ObjectMeta(name), spec, VolumeStatus("Available"))


def _default(scene: Scene) -> StorageClass | None:
    classes = scene.listers.storage_classes
    return next((one for one in classes if one.metadata.annotations.get(_DEFAULT_CLASS) == "true"), None)


def _provisioning(scene: Scene) -> list[str]:
    """Return the classes that provision volumes: first those that wait for the first consumer."""
    classes = [one for one in scene.listers.storage_classes if one.provisioner not in ("", NO_PROVISIONER)]
    ranked = sorted(classes, key=lambda one: (one.volumeBindingMode != WAIT_FOR_FIRST_CONSUMER, one.metadata.name))
    return [one.metadata.name for one in ranked][:_MOST_CLASSES]


def _recreated(scene: Scene, claim: PersistentVolumeClaim) -> Iterator[Change]:
    """Delete a claim and create it again: of its class, or of another."""
    name = claim_class(claim)
    text = f"claim {key_of(claim)} deleted and created again"
    for one in dict.fromkeys([name or None, *_provisioning(scene)]):
        yield _with_class(scene, claim, one, text, _RECREATED)
    for change in _volume_made(replace(claim, spec=replace(claim.spec, volumeName=""))):
        yield change._replace(text=f"{text}, and a volume for it: {_needs(claim)}")


# Claims without a volume


def _unbound(scene: Scene, claim: PersistentVolumeClaim) -> Iterator[Cause]:
    classes, name = scene.listers.storage_classes, claim_class(claim)
    what = f'persistentvolumeclaim "{claim.metadata.name}"'
    found = classes.get(name) if name else None
    known = [one.metadata.name for one in classes]
    if not name:
        default = _default(scene)
        hint = "" if default is None else f"; the default one is {default.metadata.name}"
        text = f"{what} has no volume and names no storageclass{existing(known)}{hint}"
        yield Cause(_BINDING, text, (), (*_volume_made(claim), *_reclassed(scene, claim, known)))
    elif found is None:
        similar = nearest(name, known)
        text = f'{what} has no volume, and its storageclass "{name}" does not exist{existing(known)}'
        changes = (*_reclassed(scene, claim, similar or known, NEAR if similar else 0.2), *_volume_made(claim))
        yield Cause(_BINDING, text + did_you_mean(similar), similar, changes)
    elif found.volumeBindingMode is None:
        changes = (*_reclassed(scene, claim, _provisioning(scene)), *_volume_made(claim))
        yield Cause(_BINDING, f'{what}: storageclass "{name}" has no volumeBindingMode', (), changes)
    elif found.volumeBindingMode != WAIT_FOR_FIRST_CONSUMER or claim.spec.volumeName:
        yield _not_bound_yet(scene, claim, found, what)
    elif {_BINDING, _LIMITS} & scene.rejecting:
        yield from _waiting(scene, claim, found, what)


def _reclassed(
    scene: Scene, claim: PersistentVolumeClaim, names: Sequence[str], size: float = _RECREATED
) -> Iterator[Change]:
    """Create a claim again with another class."""
    for name in names[:_MOST_CLASSES]:
        if name != claim_class(claim):
            yield _with_class(scene, claim, name, f"claim {key_of(claim)} created again", size)


def _volume_made(claim: PersistentVolumeClaim) -> Iterator[Change]:
    """Create a volume for a claim by hand."""
    if not claim.metadata.deletionTimestamp and _STORAGE in claim.spec.resources.requests:
        volume = _volume_for(claim, "")
        volume = replace(volume, spec=replace(volume.spec, csi=None))
        text = f"a volume created for claim {key_of(claim)}: {_needs(claim)}"
        yield Change(CLUSTER, text, 0.4, objects=(_bound_to(claim, volume), volume))


def _needs(claim: PersistentVolumeClaim) -> str:
    name = claim_class(claim)
    parts = [str(claim.spec.resources.requests.get(_STORAGE, "")), *claim.spec.accessModes]
    return ", ".join(filter(None, [*parts, f"storageclass {name}" if name else ""]))


def _not_bound_yet(scene: Scene, claim: PersistentVolumeClaim, found: StorageClass, what: str) -> Cause:
    name = found.metadata.name
    if claim.spec.volumeName:
        volume = scene.listers.volumes.get(claim.spec.volumeName)
        exists = "to which it is not bound yet" if volume is not None else "which does not exist"
        text = f'{what} names persistentvolume "{claim.spec.volumeName}", {exists}'
    elif found.provisioner in ("", NO_PROVISIONER):
        text = f'{what} waits for a volume: storageclass "{name}" provisions none, and {_volumes(scene, claim)}'
    else:
        text = f'{what} has no volume yet: storageclass "{name}" binds at once, but {found.provisioner} made none'
    delayed = [
        one.metadata.name
        for one in scene.listers.storage_classes
        if one.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER and one.provisioner not in ("", NO_PROVISIONER)
    ]
    return Cause(_BINDING, text, (), (*_volume_made(claim), *_reclassed(scene, claim, delayed)))


def _waiting(scene: Scene, claim: PersistentVolumeClaim, found: StorageClass, what: str) -> Iterator[Cause]:
    """Yield why no node has or gets a volume for a claim that waits for its first consumer."""
    name, node = found.metadata.name, claim.metadata.annotations.get(SELECTED_NODE)
    wants = f"{what} ({_needs(claim)})"
    others = tuple(_reclassed(scene, claim, [one for one in _provisioning(scene) if one != name]))
    if node:
        there = "" if node in scene.table.row_of else ", which does not exist any more"
        again = _with_class(scene, claim, name, f"claim {key_of(claim)} deleted and created again", _RECREATED)
        text = f"{what} is being provisioned for node {node}{there}, so only this node can be used"
        yield Cause(_BINDING, text, (), (again,))
        return
    if found.provisioner in ("", NO_PROVISIONER):
        text = f'{wants}: storageclass "{name}" provisions no volumes, and {_volumes(scene, claim)}'
        smaller = _smaller(claim, [nano(one.spec.capacity.get(_STORAGE, 0)) for one in _free(scene, name)])
        yield Cause(_BINDING, text, (), (*smaller, *_volume_made(claim), *others))
        return
    allowed = [one for term in found.allowedTopologies for one in term.matchLabelExpressions]
    if allowed:
        places = [f"{one.key}={','.join(one.values)}" for one in allowed]
        inside = [
            node.metadata.name
            for node in scene.nodes()
            if all(node.metadata.labels.get(one.key) in one.values for one in allowed)
        ]
        end = f"{counted(len(inside), 'node')} there" + (f": {scene.reasons_on(inside)}" if inside else "")
        similar = [near for one in allowed for value in one.values for near in nearest(value, scene.values(one.key))]
        question = did_you_mean(similar) if not inside else ""
        text = f'{wants}: storageclass "{name}" provisions only in {listed(places)}; {end}'
        yield Cause(
            _BINDING, text + question, tuple(similar) if not inside else (), (*_elsewhere(scene, found), *others)
        )
    driver = scene.listers.csi_drivers.get(found.provisioner)
    if driver is not None and driver.spec.storageCapacity:
        pools = [(limit, one) for one in scene.listers.csi_capacities.group(name) if (limit := volume_limit(one))]
        pools.sort(key=lambda one: -one[0])
        has = [f"{format_nano(limit * 10**9, binary=True)}{_place(one.nodeTopology)}" for limit, one in pools]
        most = f"it has {listed(has, 3)}" if has else "it reports no capacity"
        text = f'{wants} does not fit the capacity of {found.provisioner}, storageclass "{name}": {most}'
        smaller = _smaller(claim, [limit * 10**9 for limit, _ in pools])
        yield Cause(_BINDING, text, (), (*smaller, *others, *(() if pools else _volume_made(claim))))


def _elsewhere(scene: Scene, found: StorageClass) -> Iterator[Change]:
    """Let a class provision where nodes are, by the label that it names."""
    term = found.allowedTopologies[0]
    for index, one in enumerate(term.matchLabelExpressions):
        known = scene.values(one.key)
        near = [value for wanted in one.values for value in nearest(wanted, known)]
        for value in (near or list(known))[:_MOST_CLASSES]:
            wider = replace(one, values=tuple(dict.fromkeys((*one.values, value))))
            expressions = (*term.matchLabelExpressions[:index], wider, *term.matchLabelExpressions[index + 1 :])
            allowed = (replace(term, matchLabelExpressions=expressions), *found.allowedTopologies[1:])
            text = f"storageclass {found.metadata.name} created again, with {one.key}={value} allowed as well"
            yield Change(CLUSTER, text, 0.3, objects=(replace(found, allowedTopologies=allowed),))


def _place(selector: object) -> str:
    found = getattr(selector, "matchLabels", None)
    return f" in {','.join(found.values())}" if found else ""


def _smaller(claim: PersistentVolumeClaim, sizes: Sequence[int]) -> Iterator[Change]:
    """Request less storage: the largest size that there is."""
    wanted = nano(claim.spec.resources.requests.get(_STORAGE, 0))
    for size in sorted({one for one in sizes if 0 < one < wanted}, reverse=True)[:1]:
        amount = format_nano(size, binary=True)
        text = f"claim {key_of(claim)} created again with {amount} instead of {claim.spec.resources.requests[_STORAGE]}"
        resources = ClaimResources({**claim.spec.resources.requests, _STORAGE: amount})
        yield Change(CLUSTER, text, 0.25, objects=(replace(claim, spec=replace(claim.spec, resources=resources)),))


def _free(scene: Scene, name: str) -> list[PersistentVolume]:
    return [one for one in scene.listers.volumes if volume_class(one) == name and one.spec.claimRef is None]


def _volumes(scene: Scene, claim: PersistentVolumeClaim) -> str:
    """Return why the volumes of a claim's class do not suit it."""
    volumes = [one for one in scene.listers.volumes if volume_class(one) == claim_class(claim)]
    if not volumes:
        return "there is no volume of this class"
    selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
    wanted = nano(claim.spec.resources.requests.get(_STORAGE, 0))
    why: dict[str, list[str]] = {}
    for one in sorted(volumes, key=lambda one: natural(one.metadata.name)):
        size = one.spec.capacity.get(_STORAGE, 0)
        users = one.spec.claimRef
        if users is not None and not is_bound_to(one, claim):
            reason = f"taken by {users.namespace}/{users.name}"
        elif nano(size) < wanted:
            reason = f"too small ({size})"
        elif not set(claim.spec.accessModes) <= set(one.spec.accessModes):
            reason = f"with other access modes ({', '.join(one.spec.accessModes)})"
        elif (one.spec.volumeMode or _FILESYSTEM) != (claim.spec.volumeMode or _FILESYSTEM):
            reason = f"of volumeMode {one.spec.volumeMode or _FILESYSTEM}"
        elif selector is not None and not selector.matches(one.metadata.labels):
            reason = "not selected"
        elif one.status.phase != "Available":
            reason = one.status.phase.lower() or "not available"
        else:
            nodes = _nodes_of(scene, one)
            where = f"{counted(len(nodes), 'node')}: {listed(nodes, 3)}" if nodes else f"no node{_wanted(one)}"
            end = f" ({scene.reasons_on(nodes)})" if nodes else ""
            reason = f"usable on {where}{end}"
        why.setdefault(reason, []).append(one.metadata.name)
    parts = [f"{listed(names, 2)} {'is' if len(names) == 1 else 'are'} {reason}" for reason, names in why.items()]
    more = [f"and {len(parts) - _FEW} more"] if len(parts) > _FEW else []
    return "; ".join(parts[:_FEW] + more)


def _nodes_of(scene: Scene, volume: PersistentVolume) -> list[str]:
    """Return the nodes that can use a volume."""
    return [
        node.metadata.name
        for node in scene.nodes()
        if is_usable_at(volume, node.metadata.labels, scene.listers.csi_nodes.get(node.metadata.name))
    ]


def _wanted(volume: PersistentVolume) -> str:
    affinity = volume.spec.nodeAffinity
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.nodeSelectorTerms
    places = [f"{one.key}={','.join(one.values)}" for term in terms for one in term.matchExpressions]
    return f" with {' or '.join(places)}" if places else ""


# Claims with a volume


def _bound(scene: Scene, claim: PersistentVolumeClaim) -> Iterator[Cause]:
    volume = scene.listers.volumes.get(claim.spec.volumeName)
    what = f'persistentvolumeclaim "{claim.metadata.name}"'
    if volume is None:
        text = f'{what} is bound to persistentvolume "{claim.spec.volumeName}", which does not exist'
        yield Cause(_BINDING, text, (), tuple(_recreated(scene, claim)))
        return
    if not {_BINDING, "VolumeZone"} & scene.rejecting:
        return
    nodes = _nodes_of(scene, volume)
    zones = {
        key: value.split("__") for key, value in volume.metadata.labels.items() if key.endswith(("/zone", "/region"))
    }
    nodes = [
        name
        for name in nodes
        if all(
            (node := scene.cluster.node(name)) is not None and node.metadata.labels.get(key) in values
            for key, values in zones.items()
        )
    ]
    place = _wanted(volume) or "".join(f" with {key}={','.join(values)}" for key, values in zones.items())
    text = (
        f'persistentvolume "{volume.metadata.name}" of claim "{claim.metadata.name}" can only be used by nodes{place}'
    )
    if nodes:
        end = f"{counted(len(nodes), 'node')} there ({listed(nodes, 3)}): {scene.reasons_on(nodes)}"
    else:
        end = "there is none"
    yield Cause(_BINDING if _BINDING in scene.rejecting else "VolumeZone", f"{text}; {end}")


# Drivers and limits


def _limits(scene: Scene) -> Iterator[Cause]:
    wanted = set(attachables_of(scene.pod, scene.listers, with_csi_node=True, lenient=True))
    for driver, volumes in sorted(Counter(driver for driver, _ in wanted).items()):
        having = {
            one.metadata.name for one in scene.listers.csi_nodes if any(its.name == driver for its in one.spec.drivers)
        }
        lacking = [node.metadata.name for node in scene.nodes() if node.metadata.name not in having]
        declared = scene.listers.csi_drivers.get(driver)
        if lacking and declared is not None and declared.spec.preventPodSchedulingIfMissing:
            on = f"; it is on {listed(sorted(having, key=natural))}" if having else "; it is on no node"
            there = scene.reasons_on(having) if having else ""
            text = f"CSI driver {driver} is not installed on {counted(len(lacking), 'node')}: {listed(lacking)}{on}"
            changes = tuple(_installed(scene, driver, name) for name in lacking[:_FEW])
            yield Cause(_LIMITS, f"{text}: {there}" if there else text, (), changes)
        full = []
        for name in sorted(having, key=natural):
            node, limit = scene.listers.csi_nodes.get(name), 0
            limit = limits_of(node).get(driver, -1)
            attached = _attached(scene, name, driver)
            if limit >= 0 and len(attached) + volumes > limit:
                full.append((name, len(attached), limit, node))
        if full:
            each = [f"{name} has {count} of {limit}" for name, count, limit, _ in full]
            changes = tuple(
                _more(node, driver, count + volumes) for _, count, _, node in full[:_FEW] if node is not None
            )
            yield Cause(_LIMITS, f"the volume limit of CSI driver {driver} is reached: {listed(each)}", (), changes)


def _attached(scene: Scene, name: str, driver: str) -> set[Attachable]:
    row = scene.table.row_of.get(name)
    pods = () if row is None else scene.table.pods[row].values()
    found = {one for pod in pods for one in attachables_of(pod.pod, scene.listers, with_csi_node=True, lenient=True)}
    return {one for one in found.union(attached_to(name, scene.listers)) if one[0] == driver}


def _installed(scene: Scene, driver: str, node: str) -> Change:
    known = scene.listers.csi_nodes.get(node) or CSINode(ObjectMeta(node))
    drivers = (*known.spec.drivers, CSINodeDriver(driver))
    changed = replace(known, spec=replace(known.spec, drivers=drivers))
    return Change(NODE, f"CSI driver {driver} installed on node {node}", 0.35, objects=(changed,))


def _more(node: CSINode, driver: str, limit: int) -> Change:
    drivers = tuple(
        replace(one, allocatable=replace(one.allocatable, count=limit))
        if one.name == driver and one.allocatable
        else one
        for one in node.spec.drivers
    )
    text = f"volume limit of CSI driver {driver} on node {node.metadata.name} raised to {limit}"
    return Change(NODE, text, 0.45, objects=(replace(node, spec=replace(node.spec, drivers=drivers)),))


# Other users


def _restrictions(scene: Scene) -> Iterator[Cause]:
    namespace = scene.pod.metadata.namespace
    for name in named_claims(scene.pod):
        claim = scene.listers.claims.get(f"{namespace}/{name}")
        users = [scene.cluster.pod(uid) for uid in sorted(scene.cluster.claim_users.get(f"{namespace}/{name}", ()))]
        holders = [f"{user.key} on {scene.cluster.node_name_of(user.uid)}" for user in users if user is not None]
        if claim is not None and "ReadWriteOncePod" in claim.spec.accessModes and holders:
            text = f'persistentvolumeclaim "{name}" is ReadWriteOncePod and in use by {listed(holders)}'
            yield Cause("VolumeRestrictions", text)
    inline = [volume for volume in scene.pod.spec.volumes if claim_name_of(scene.pod, volume) is None]
    for volume in inline:
        source = volume.gcePersistentDisk or volume.awsElasticBlockStore or volume.rbd or volume.iscsi
        if source is None:
            continue
        field = next(
            field for field in ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi") if getattr(volume, field)
        )
        holders_by_node: dict[str, list[PodInfo]] = {}
        for row, pod in scene.cluster.placed_pods():
            same = [one for one in pod.pod.spec.volumes if (its := getattr(one, field)) and _disk(its) == _disk(source)]
            if same:
                holders_by_node.setdefault(scene.table.names[row], []).append(pod)
        if holders_by_node:
            each = [f"{name} by {listed([pod.key for pod in pods], 2)}" for name, pods in holders_by_node.items()]
            changes = tuple(pods_removed(pods) for pods in list(holders_by_node.values())[:_FEW])
            text = f"volume {volume.name}: disk {_disk(source)} is in use on {listed(each)}"
            yield Cause("VolumeRestrictions", text, (), changes)


def _disk(source: object) -> str:
    for field in ("pdName", "volumeID", "image", "iqn"):
        if value := getattr(source, field, ""):
            return str(value)
    return ""
