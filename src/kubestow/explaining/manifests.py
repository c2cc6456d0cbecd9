"""Pods and claims that do not exist yet, as they would be once created: with the API server's defaults."""

from typing import Any

import msgspec

from kubestow import objects
from kubestow.apiserver.rules import devices
from kubestow.apiserver.rules import pods as rules
from kubestow.cluster.pods import PodInfo
from kubestow.explaining.world import ExplainError, World
from kubestow.model.codec import without_nulls
from kubestow.model.pod import Pod
from kubestow.model.timestamps import format_time
from kubestow.model.workloads import PriorityClass
from kubestow.objects import Manifest, ObjectsError

_POD = ("v1", "Pod")
_CLAIM = ("resource.k8s.io/v1", "ResourceClaim")


def pods_in(manifests: list[Manifest], world: World, namespace: str) -> list[Pod]:
    """The pods to be explained; what comes with them, claims for example, is added to the world. Raises ExplainError.

    `namespace` is for pods that do not name one.
    """
    pods = [manifest for manifest in manifests if (manifest.api_version, manifest.kind) == _POD]
    if not pods:
        raise ExplainError(f"{manifests[0]}: is not a pod; only pods can be explained")
    try:
        beside = objects.decode(_beside(one) for one in manifests if (one.api_version, one.kind) != _POD).objects
    except ObjectsError as error:
        raise ExplainError(str(error)) from None
    for obj in beside:
        world.add(obj)
    return [_pod(manifest, world, namespace) for manifest in pods]


def _beside(manifest: Manifest) -> Manifest:
    if (manifest.api_version, manifest.kind) != _CLAIM:
        return manifest
    objects.decode([manifest])
    tree = without_nulls(msgspec.json.decode(manifest.data))
    devices.default_claim(tree)
    return manifest._replace(data=msgspec.json.encode(tree))


def _pod(manifest: Manifest, world: World, namespace: str) -> Pod:
    try:
        # As it is first: what does not fit a pod must not meet rules that take it for one.
        objects.decode([manifest])
        tree = without_nulls(msgspec.json.decode(manifest.data))
        metadata = tree["metadata"]
        metadata["namespace"] = metadata.get("namespace") or namespace
        metadata["name"] = metadata.get("name") or metadata["generateName"] + "xxxxx"
        is_new = not metadata.get("uid")
        if is_new:
            _create(tree, world)
        (pod,) = objects.decode([manifest._replace(data=msgspec.json.encode(tree))]).objects
        if is_new:
            # An API server would not have it.
            PodInfo(pod).prepare()
    except ObjectsError as error:
        raise ExplainError(str(error)) from None
    except ValueError as error:
        raise ExplainError(f"{manifest}: {error}") from None
    assert isinstance(pod, Pod)
    return pod


def _create(tree: dict[str, Any], world: World) -> None:
    tree["metadata"].setdefault("creationTimestamp", format_time(world.now))
    rules.default(tree)
    rules.prepare_create(tree)
    spec = tree["spec"]
    chosen = _priority_class(spec.get("priorityClassName"), world)
    if chosen is not None:
        spec["priority"] = chosen.value
        if chosen.preemptionPolicy:
            spec["preemptionPolicy"] = chosen.preemptionPolicy


def _priority_class(name: str | None, world: World) -> PriorityClass | None:
    if name:
        return world.priority_classes.get(name)
    defaults = [one for one in world.priority_classes.values() if one.globalDefault]
    return min(defaults, key=lambda one: one.value, default=None)
