"""The kubectl commands for a change: patches of the pod's owner, labels, taints, manifests.

A line that starts with # describes a part for which there is no command, such as a larger node. Pods are patched by way
of their owner. What is immutable is deleted and created again: `kubectl get`, `patch --local`, `replace --force`.
Patches are strategic merge patches: only what differs, with the merge keys of the API.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.api.claims import BIND_COMPLETED
from kubestow.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import CompositePodGroup, PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.insight.explain.changes import Change
from kubestow.insight.explain.obstacles import STATE_TAINTS
from kubestow.insight.explain.owners import Owner
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.listers import key_of

Tree = Mapping[str, Any]
_MERGE_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "volumes", "schedulingGates", "resourceClaims"), "name"),
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
}
_OF_ADMISSION = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CORDONED = "node.kubernetes.io/unschedulable"
_ROLLING = ("Deployment", "DaemonSet")
"""Owners that replace their pods after a change of the template."""
_TEMPLATES = (*_ROLLING, "StatefulSet", "ReplicaSet", "ReplicationController")
_LABELS_OF_JOB = (
    *("controller-uid", "job-name"),
    *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"),
)
_MOST_DELETED = 10


def commands_for(world: World, pod: Pod, change: Change) -> tuple[str, ...]:
    """Return the commands for a change that was found for a pod."""
    commands = [] if change.pod is None else list(_of_pod(world, pod, change.pod))
    for node in change.nodes:
        commands += _of_node(world.cluster.node(node.metadata.name), node)
    commands += _deleted([other.key for other in change.removed])
    for obj in change.objects:
        commands += _of_object(world, obj)
    return tuple(dict.fromkeys(commands))


# Patches


def patch_between(old: Tree, new: Tree) -> dict[str, Any]:
    """Return the strategic merge patch that turns one tree into another."""
    patch: dict[str, Any] = {}
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            patch[key] = patch_between(before, after)
        elif key in _MERGE_KEYS and isinstance(before, list):
            patch[key] = _items_between(before, after or [], _MERGE_KEYS[key])
        else:
            patch[key] = after
    return patch


def _items_between(old: Sequence[Tree], new: Sequence[Tree], merge_key: str) -> list[Any]:
    before, after = ({item.get(merge_key): item for item in items} for items in (old, new))
    if len(before) < len(old) or len(after) < len(new):
        # Several items have the same merge key, so none of them can be patched.
        return [{"$patch": "replace"}, *new]
    changed = [
        {merge_key: key, **patch_between(before.get(key, {}), item)}
        for key, item in after.items()
        if item != before.get(key)
    ]
    return changed + [{"$patch": "delete", merge_key: key} for key in before if key not in after]


def _tree(obj: Any) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return tree


def _patched(kind: str, name: str, namespace: str, patch: Tree, *options: str) -> str:
    command = ["kubectl", "patch", kind, name, *_in(namespace), *options, "-p", json.dumps(patch)]
    return shlex.join(command)


def _created_again(kind: str, name: str, namespace: str, patch: Tree) -> str:
    """Return a command that deletes an object and creates it again with a patch."""
    read = shlex.join(["kubectl", "get", kind, name, *_in(namespace), "-o", "json"])
    patched = shlex.join(["kubectl", "patch", "--local", "-f", "-", "-o", "json", "-p", json.dumps(patch)])
    return f"{read} | {patched} | kubectl replace --force -f -"


def _created(manifest: Tree) -> str:
    return f"kubectl create -f - <<'EOF'\n{json.dumps(manifest)}\nEOF"


def _in(namespace: str) -> tuple[str, ...]:
    return ("-n", namespace) if namespace else ()


def _deleted(keys: Sequence[str]) -> Iterator[str]:
    for key in keys[:_MOST_DELETED]:
        namespace, _, name = key.partition("/")
        yield shlex.join(["kubectl", "delete", "pod", name, "-n", namespace])
    if len(keys) > _MOST_DELETED:
        yield f"# and {len(keys) - _MOST_DELETED} more pods"


# Pods


def _of_pod(world: World, old: Pod, new: Pod) -> Iterator[str]:
    patch = patch_between(_tree(old.spec), _tree(new.spec))
    if not patch:
        return
    namespace, name, owner = old.metadata.namespace, old.metadata.name, Owner.of(old, world.cluster.listers)
    if set(patch) == {"schedulingGates"}:
        yield _patched("pod", name, namespace, {"spec": patch})
        return
    if "tolerations" in patch:
        patch["tolerations"] = [one for one in patch["tolerations"] or () if one.get("key") not in _OF_ADMISSION]
    kind, template = owner.kind.lower(), {"spec": {"template": {"spec": patch}}}
    if owner.kind in _TEMPLATES:
        yield _patched(kind, owner.name, namespace, template)
        if owner.kind not in _ROLLING:
            yield from _deleted([old.key])
    elif owner.kind == "Job":
        template["spec"]["template"]["metadata"] = {"labels": dict.fromkeys(_LABELS_OF_JOB)}
        yield _created_again(kind, owner.name, namespace, {"spec": {"selector": None, **template["spec"]}})
    elif owner.kind in ("Pod", "PodGroup"):
        yield _created_again("pod", name, namespace, {"spec": patch})
    else:
        yield f"# patch the pod template of {owner.text}: {json.dumps(patch)}"


# Nodes


def _of_node(old: Node | None, new: Node) -> Iterator[str]:
    name = new.metadata.name
    if old is None:
        types = new.metadata.labels.get("node.kubernetes.io/instance-type")
        amounts = ", ".join(f"{amount} {resource}" for resource, amount in new.status.allocatable.items())
        yield f"# add a node{f' of type {types}' if types else ''} with {amounts}"
        return
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield shlex.join(["kubectl", "uncordon", name])
    # The taint of a cordoned node is removed with the cordon.
    kept = (*new.spec.taints, *(one for one in old.spec.taints if one.key == _CORDONED))
    removed = [one for one in old.spec.taints if one not in kept]
    gone = [
        f"{one.key}{f'={one.value}' if one.value else ''}:{one.effect}-"
        for one in removed
        if not one.key.startswith(STATE_TAINTS)
    ]
    states = dict.fromkeys(one.key for one in removed if one.key.startswith(STATE_TAINTS))
    if states:
        yield f"# node {name}: repair what {', '.join(states)} is about"
    if gone:
        yield shlex.join(["kubectl", "taint", "node", name, *gone])
    before, after = old.metadata.labels, new.metadata.labels
    labels = [f"{key}={value}" for key, value in after.items() if before.get(key) != value]
    labels += [f"{key}-" for key in before if key not in after]
    if labels:
        yield shlex.join(["kubectl", "label", "node", name, "--overwrite", *labels])
    had, has = old.status.allocatable, new.status.allocatable
    for resource, amount in has.items():
        if had.get(resource) == amount:
            continue
        if "/" in resource:
            both = {"capacity": {resource: amount}, "allocatable": {resource: amount}}
            yield _patched("node", name, "", {"status": both}, "--subresource", "status")
        else:
            yield f"# node {name}: {resource} {had.get(resource, 0)} -> {amount}"
    if old.status.declaredFeatures != new.status.declaredFeatures:
        yield f"# node {name}: update the kubelet"


# Other objects


def _of_object(world: World, new: Any) -> Iterator[str]:
    old = world.cluster.listers.store_of(type(new)).get(key_of(new))
    name, namespace = new.metadata.name, new.metadata.namespace
    if isinstance(new, PersistentVolumeClaim):
        yield from _of_claim(old, new)
    elif isinstance(new, PersistentVolume):
        if old is not None:
            places = (json.dumps(_tree(one.spec.nodeAffinity)) for one in (old, new))
            yield f"# volume {name}: copy its data; node affinity {' -> '.join(places)}"
        elif new.spec.csi is None:
            # Others are provisioned.
            yield _created(_volume_manifest(new))
    elif isinstance(new, DeviceClass):
        yield _patched("deviceclass", name, "", patch_between(_tree(old), _tree(new)), "--type", "merge")
    elif isinstance(new, StorageClass):
        yield _created_again("storageclass", name, "", patch_between(_tree(old), _tree(new)))
    elif isinstance(new, ResourceClaim):
        yield from _of_resource_claim(old, new)
    elif isinstance(new, PodGroup) and old is None:
        head = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
        policy: Tree = {"schedulingPolicy": {"basic": {}}}
        yield _created({**head, "metadata": {"name": name, "namespace": namespace}, "spec": policy})
    elif isinstance(new, DeviceTaintRule):
        yield shlex.join(["kubectl", "delete", "devicetaintrule", name])
    elif isinstance(new, PodGroup | CompositePodGroup):
        yield _patched(
            type(new).__name__.lower(), name, namespace, patch_between(_tree(old), _tree(new)), "--type", "merge"
        )
    else:
        yield f"# {type(new).__name__} {name}: install or configure the driver"


def _of_claim(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> Iterator[str]:
    annotations = {key: value for key, value in new.metadata.annotations.items() if key != BIND_COMPLETED}
    metadata = replace(new.metadata, annotations=annotations, uid="", resourceVersion="", creationTimestamp=None)
    wanted = {"metadata": _tree(metadata), "spec": _tree(replace(new.spec, volumeName=""))}
    if old is None:
        head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        if not new.metadata.ownerReferences:
            yield _created({**head, **wanted})
        return
    before = replace(old.metadata, uid="", resourceVersion="", creationTimestamp=None)
    patch = patch_between({"metadata": _tree(before), "spec": _tree(old.spec)}, wanted)
    if patch or old.status.phase == "Lost":
        yield _created_again("pvc", new.metadata.name, new.metadata.namespace, {**patch, "status": None})


def _volume_manifest(volume: PersistentVolume) -> dict[str, Any]:
    spec = _tree(volume.spec)
    spec["hostPath"] = {"path": f"/mnt/{volume.metadata.name}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume.metadata.name},
        "spec": spec,
    }


def _of_resource_claim(old: ResourceClaim | None, new: ResourceClaim) -> Iterator[str]:
    name, namespace = new.metadata.name, new.metadata.namespace
    if old is None:
        head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        if not new.metadata.ownerReferences:
            yield _created({**head, "metadata": {"name": name, "namespace": namespace}, "spec": _tree(new.spec)})
        return
    patch = patch_between(_tree(old.spec), _tree(new.spec))
    if patch:
        yield _created_again("resourceclaim", name, namespace, {"spec": patch, "status": None})
    elif old.status.reservedFor:
        yield from _deleted([f"{namespace}/{one.name}" for one in old.status.reservedFor])
    else:
        yield shlex.join(["kubectl", "delete", "resourceclaim", name, "-n", namespace])
