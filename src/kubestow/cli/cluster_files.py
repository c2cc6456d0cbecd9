"""Reads a cluster from files instead of an API server: manifests, or the initial state of a scenario."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kubestow.api.codec import convert
from kubestow.api.custom_kinds import kinds_by_name
from kubestow.api.devices import ResourceClaimTemplate
from kubestow.api.files import Manifest, ObjectsError, decode, read
from kubestow.api.pod import Pod
from kubestow.api.workloads import PriorityClass
from kubestow.apiserver.rules import claim_defaults, cluster, pods
from kubestow.config import Features

_OURS = "kubestow.dev/"
_DEFAULTS = {
    ("v1", "Pod"): pods.default,
    ("v1", "Node"): cluster.default_node,
    ("resource.k8s.io/v1", "ResourceClaim"): claim_defaults.default_claim,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): claim_defaults.default_template,
}
_MAKERS = {
    *(("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet")),
    *(("batch/v1", "Job"), ("v1", "ReplicationController")),
}
"""The kinds that controllers create pods from."""


class _Metadata(msgspec.Struct):
    uid: str | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata


class _MakerMetadata(_Metadata):
    namespace: str | None = None
    labels: dict[str, str] | None = None


class _Template(msgspec.Struct):
    metadata: _MakerMetadata = msgspec.field(default_factory=_MakerMetadata)


class _MakerSpec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)
    replicas: int | None = None
    parallelism: int | None = None
    suspend: bool | None = None


class _Maker(msgspec.Struct):
    kind: str
    metadata: _MakerMetadata
    spec: _MakerSpec


def cluster_in(
    files: tuple[str, ...], warn: Callable[[str], None] | None = None, declared: Iterable[type] = ()
) -> list[Any]:
    """Return the objects without duplicates, with defaults for those without a UID. Raises ObjectsError.

    `declared` are the kinds that plugins watch.
    `warn` is called for workloads without a UID whose pods are missing.
    """
    manifests = read(files, unnamed=_OURS)
    if any(one.api_version.startswith(_OURS) for one in manifests):
        objects, makers = _beginning(files, declared)
    else:
        # `kubectl get pods,all` lists pods twice.
        found = decode(map(_defaulted, manifests), declared).objects
        objects = list({(type(one), one.metadata.uid): one for one in found}.values())
        makers = (msgspec.json.decode(one.data) for one in manifests if (one.api_version, one.kind) in _MAKERS)
    if warn is not None:
        for kind, count in sorted(_without_pods(makers, objects).items()):
            problem = f"{count} of kind {kind} use no resources, because their pods are missing: add the pods"
            warn(f"{', '.join(files)}: {problem}")
    return objects


def _without_pods(makers: Iterable[Any], objects: list[Any]) -> Counter[str]:
    """Return the number of workloads without pods by kind. Those with a UID come with the pods of their cluster."""
    found = Counter[str]()
    metas = [obj.metadata for obj in objects if isinstance(obj, Pod)]
    there = {(meta.namespace, frozenset(meta.labels.items())) for meta in metas}
    for tree in makers:
        try:
            maker = msgspec.convert(tree, _Maker)
        except msgspec.ValidationError:
            # Invalid, and not used by schedulers.
            continue
        spec, namespace = maker.spec, maker.metadata.namespace or "default"
        labels = (spec.template.metadata.labels or {}).items()
        if maker.metadata.uid or 0 in (spec.replicas, spec.parallelism) or spec.suspend:
            continue
        if not any(labels and place == namespace and labels <= own for place, own in there):
            found[maker.kind] += 1
    return found


def _beginning(files: tuple[str, ...], declared: Iterable[type]) -> tuple[list[Any], Iterable[Any]]:
    """Return the initial objects of a scenario, and its workloads."""
    # Imported only now: a slow import that other inputs do not need.
    from kubestow.simulator.scenario.building import build
    from kubestow.simulator.scenario.reading import read as read_scenario

    if "-" in files:
        raise ObjectsError(["standard input: a Scenario cannot be read from standard input here: name its file"])
    known = Features.parse("GenericWorkload=true")
    scenario = read_scenario(files, kinds_by_name(declared))
    makers = [one for one in scenario.objects if (one.get("apiVersion"), one.get("kind")) in _MAKERS]
    with build(scenario, controllers="none", kubelets=False, features=known, kinds=tuple(declared)) as simulation:
        others = [
            convert(kind, one)
            for kind in (PriorityClass, ResourceClaimTemplate)
            for one in simulation.objects(kind.__name__)
        ]
        return [*simulation.plane.current.values(), *others], makers


def _defaulted(manifest: Manifest) -> Manifest:
    default = _DEFAULTS.get((manifest.api_version, manifest.kind))
    if default is None:
        return manifest
    try:
        if msgspec.json.decode(manifest.data, type=_Head).metadata.uid:
            return manifest
        tree = msgspec.json.decode(manifest.data)
        default(tree)
    except (AttributeError, KeyError, TypeError, ValueError):
        # Invalid, which decoding reports.
        return manifest
    return manifest._replace(data=msgspec.json.encode(tree))
