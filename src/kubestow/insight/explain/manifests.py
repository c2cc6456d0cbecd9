"""Reads manifests of pods and claims that do not exist yet, and applies the API server's defaults to them."""

from collections.abc import Container, Iterator
from itertools import count
from typing import Any

import msgspec

from kubestow.api import files as objects
from kubestow.api.claim_templates import with_claims
from kubestow.api.codec import without_nulls
from kubestow.api.files import Manifest, ObjectsError
from kubestow.api.kinds import KINDS
from kubestow.api.pod import Pod
from kubestow.api.timestamps import format_time
from kubestow.api.workloads import PriorityClass
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules import claim_defaults
from kubestow.apiserver.rules import pods as rules
from kubestow.apiserver.rules.names import (
    MAX_PREFIX_LENGTH,
    REQUIRED,
    check_metadata,
    check_name,
    dns_label,
    dns_subdomain,
)
from kubestow.apiserver.schema.reader import struct_of
from kubestow.apiserver.schema.types import Report
from kubestow.insight.explain.world import ExplainError, World
from kubestow.scheduler.cluster.pods import PodInfo

_POD = ("v1", "Pod")
_DEFAULTS = {
    ("resource.k8s.io/v1", "ResourceClaim"): claim_defaults.default_claim,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): claim_defaults.default_template,
}


def read_pods(manifests: list[Manifest], world: World, namespace: str) -> list[Pod]:
    """Return the pods to explain, and add the other objects, such as claims, to the world. Raises ExplainError.

    `namespace` is the default namespace of pods.
    """
    pods = [manifest for manifest in manifests if (manifest.api_version, manifest.kind) == _POD]
    if not pods:
        raise ExplainError(f"{manifests[0]}: is not a pod; only pods can be explained")
    try:
        others = [_with_defaults(one) for one in manifests if (one.api_version, one.kind) != _POD]
        for obj in objects.decode(others, world.declared_kinds).objects:
            world.add(obj)
        found: dict[str, Pod] = {}
        for manifest in pods:
            pod = _pod(manifest, world, namespace, found)
            if pod.key in found:
                raise ExplainError(f"{manifest}: an earlier pod has the same name")
            found[pod.key] = with_claims(pod, world.claim_templates, world.add)
    except ObjectsError as error:
        raise ExplainError(str(error)) from None
    return list(found.values())


def _with_defaults(manifest: Manifest) -> Manifest:
    """Apply the API server's defaults to an object that is not a pod."""
    if (manifest.api_version, manifest.kind) not in KINDS:
        return manifest
    objects.decode([manifest])
    tree = _tree(manifest)
    default = _DEFAULTS.get((manifest.api_version, manifest.kind))
    if default is not None:
        default(tree)
    return manifest._replace(data=msgspec.json.encode(tree))


def _tree(manifest: Manifest) -> dict[str, Any]:
    """Return the object. Raises ObjectsError for invalid fields, unless an API server has accepted the object."""
    tree: dict[str, Any] = without_nulls(msgspec.json.decode(manifest.data))
    schema = struct_of(manifest.api_version, manifest.kind)
    if schema is not None and not tree["metadata"].get("uid"):
        report = Report()
        schema.check(tree, "", report)
        wrong = [f"{manifest}: unknown field {path}" for path in report.unknown]
        # The model lacks fields that the validation rules use.
        wrong += [f"{manifest}: {path}: {what}" for path, what in report.wrong]
        if wrong:
            raise ObjectsError(wrong)
    return tree


def _pod(manifest: Manifest, world: World, namespace: str, others: Container[str]) -> Pod:
    try:
        # Decode first: the rules must not get an object that is not a pod.
        objects.decode([manifest])
        tree = _tree(manifest)
        metadata = tree["metadata"]
        metadata["namespace"] = metadata.get("namespace") or namespace
        metadata["name"] = metadata.get("name") or _generated(metadata, others)
        is_new = not metadata.get("uid")
        if is_new:
            _create(tree, world)
        (pod,) = objects.decode([manifest._replace(data=msgspec.json.encode(tree))]).objects
        if is_new:
            # Raises ValueError for a pod that an API server would reject.
            PodInfo(pod).prepare()
            # Missing fields, such as an image, do not affect scheduling.
            causes = (cause for cause in (*_wrong_metadata(metadata), *rules.validate(tree)) if cause[1] != REQUIRED)
            if wrong := [f"{manifest}: {field}: {why}" for field, _, why in causes]:
                raise ObjectsError(wrong)
    except ObjectsError:
        raise
    except ValueError as error:
        raise ExplainError(f"{manifest}: {error}") from None
    assert isinstance(pod, Pod)
    return pod


def _wrong_metadata(metadata: dict[str, Any]) -> Iterator[Cause]:
    yield from check_name("metadata.name", metadata["name"], dns_subdomain)
    # A namespace with such a name cannot exist.
    yield from check_name("metadata.namespace", metadata["namespace"], dns_label)
    yield from check_metadata(metadata)


def _generated(metadata: dict[str, Any], others: Container[str]) -> str:
    """Return a generated name as an API server makes it, which no other pod has."""
    prefix = metadata["generateName"][:MAX_PREFIX_LENGTH]
    names = (f"{prefix}{number or '':x>5}" for number in count())
    return next(name for name in names if f"{metadata['namespace']}/{name}" not in others)


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
