"""Builders for nodes, pods, pod groups and custom objects. Omitted fields have the defaults of an API server.

Pod fields without an argument go into `spec`, written as in a manifest.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec import to_builtins

from kubestow.api.codec import convert
from kubestow.api.custom_kinds import resource_of
from kubestow.api.meta import RawQuantity
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import CompositePodGroup, PodGroup
from kubestow.api.topology import HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL

T = TypeVar("T")

DEFAULT_SCHEDULER = "default-scheduler"


def make_node(
    name: str,
    *,
    cpu: RawQuantity = "4",
    memory: RawQuantity = "32Gi",
    pods: RawQuantity = 110,
    resources: Mapping[str, RawQuantity] | None = None,
    zone: str | None = None,
    region: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    images: Mapping[str, int] | None = None,
    unschedulable: bool = False,
) -> Node:
    """Return a node. `taints` are written `key=value:Effect` or `key:Effect`; `images` has sizes in bytes by name."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    places = {HOSTNAME_LABEL: name, ZONE_LABEL: zone, REGION_LABEL: region}
    manifest = {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {key: value for key, value in places.items() if value} | dict(labels or {}),
        },
        "spec": {"unschedulable": unschedulable, "taints": [_taint(text) for text in taints]},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
        },
    }
    return convert(Node, manifest)


def make_pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: RawQuantity | None = None,
    memory: RawQuantity | None = None,
    resources: Mapping[str, RawQuantity] | None = None,
    priority: int | None = None,
    labels: Mapping[str, str] | None = None,
    node: str = "",
    node_selector: Mapping[str, str] | None = None,
    tolerations: Iterable[str] = (),
    host_ports: Iterable[int] = (),
    claims: Iterable[str] = (),
    gates: Iterable[str] = (),
    grace_seconds: int | None = None,
    group: str | None = None,
    scheduler: str = DEFAULT_SCHEDULER,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Pod:
    """Return a pod with one container, bound to `node` if given, and a member of the pod group `group` if given.

    Tolerations are written like the taints they tolerate: `key=value:Effect`, `key:Effect`, or `key` for any effect.
    """
    requests = {"cpu": cpu, "memory": memory, **(resources or {})}
    requests = {resource: amount for resource, amount in requests.items() if amount is not None}
    container = {
        "name": "main",
        "image": "app",
        "resources": {"requests": requests},
        "ports": [{"containerPort": port, "hostPort": port} for port in host_ports],
    }
    full_spec: dict[str, Any] = {
        "containers": [container],
        "nodeName": node,
        "schedulerName": scheduler,
        "nodeSelector": dict(node_selector or {}),
        "tolerations": [_toleration(text) for text in tolerations],
        "schedulingGates": [{"name": gate} for gate in gates],
        "volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims],
    }
    optional = {"priority": priority, "terminationGracePeriodSeconds": grace_seconds}
    full_spec |= {field: value for field, value in optional.items() if value is not None}
    if group is not None:
        full_spec["schedulingGroup"] = {"podGroupName": group}
    full_spec |= spec or {}
    manifest = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{namespace}-{name}",
            "labels": dict(labels or {}),
        },
        "spec": full_spec,
        "status": {"phase": "Pending", **(status or {})},
    }
    return convert(Pod, manifest)


def make_pod_group(
    name: str,
    min_count: int | None = None,
    *,
    namespace: str = "default",
    topology_key: str = "",
    priority: int | None = None,
    disruption_mode: str | None = None,
    parent: str | None = None,
) -> PodGroup:
    """Return a pod group: a gang with `min_count`, otherwise one whose pods are scheduled individually.

    `disruption_mode` is "single" or "all"; `parent` is the name of a composite pod group.
    """
    spec: dict[str, Any] = {
        "schedulingPolicy": {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    }
    if topology_key:
        spec["schedulingConstraints"] = {"topology": [{"key": topology_key}]}
    if disruption_mode is not None:
        spec["disruptionMode"] = {disruption_mode: {}}
    if priority is not None:
        spec["priority"] = priority
    if parent is not None:
        spec["parentCompositePodGroupName"] = parent
    metadata = {"name": name, "namespace": namespace, "uid": f"group-{namespace}-{name}"}
    return convert(PodGroup, {"metadata": metadata, "spec": spec})


def make_composite_pod_group(name: str, min_group_count: int | None = None, **options: Any) -> CompositePodGroup:
    """Return a composite pod group: a gang with `min_group_count`, otherwise one of which any group is scheduled.

    `options` are those of `make_pod_group`.
    """
    group = to_builtins(make_pod_group(name, **options))
    group["metadata"]["uid"] = f"composite-{group['metadata']['uid']}"
    group["spec"]["schedulingPolicy"] = (
        {"basic": {}} if min_group_count is None else {"gang": {"minGroupCount": min_group_count}}
    )
    return convert(CompositePodGroup, group)


def make_object(kind: type[T], name: str, *, namespace: str | None = None, **fields: Any) -> T:
    """Return an object of a declared kind; fields are written as in a manifest.

    Without `namespace`, an object of a namespaced kind is in the namespace `default`.
    """
    declared = resource_of(kind)
    if namespace is None:
        namespace = "default" if declared is None or declared.is_namespaced else ""
    metadata = {"name": name, "namespace": namespace, "uid": f"{kind.__name__}-{namespace}-{name}"}
    return convert(kind, {**fields, "metadata": {**metadata, **fields.get("metadata", {})}})


def _taint(text: str) -> dict[str, str]:
    what, colon, effect = text.rpartition(":")
    if not colon or not what:
        raise ValueError(f"taint {text!r}: write it as key=value:Effect or key:Effect")
    key, _, value = what.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _toleration(text: str) -> dict[str, str]:
    what, _, effect = text.partition(":")
    key, equals, value = what.partition("=")
    return {"key": key, "operator": "Equal" if equals else "Exists", "value": value, "effect": effect}
