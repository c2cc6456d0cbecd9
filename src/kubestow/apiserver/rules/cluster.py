"""Rules for nodes, namespaces, events, leases, runtime classes and API services."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_amount, check_required, forbidden, invalid
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.device_fields import check_size
from kubestow.apiserver.rules.lists import check_unique, each
from kubestow.apiserver.rules.names import check_name, dns_label, qualified_name
from kubestow.config.features import Features

_MAX_OWNERS = 20


def default_node(obj: dict[str, Any]) -> None:
    """Set an empty spec, and the allocatable resources to the capacity."""
    obj.setdefault("spec", {})
    if "capacity" in obj.get("status", {}):
        obj["status"].setdefault("allocatable", dict(obj["status"]["capacity"]))


def drop_preemption_policy(new: dict[str, Any], old: dict[str, Any] | None, features: Features) -> None:
    """Drop the policy on preemption for resized pods if it is disabled, unless the old node has it."""
    is_kept = old is not None and "podPreemptionPolicy" in old.get("spec", {})
    if not is_kept and not features.in_place_pod_vertical_scaling_scheduler_preemption:
        new["spec"].pop("podPreemptionPolicy", None)


def validate_node(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that taints are unique by key and effect, and amounts are valid."""
    seen: set[tuple[str, str]] = set()
    for path, taint in each(obj.get("spec", {}).get("taints", ()), "spec.taints"):
        yield from check_name(f"{path}.key", taint.get("key", ""), qualified_name)
        yield from check_required(taint, path, "effect")
        pair = (taint.get("key", ""), taint.get("effect", ""))
        if pair in seen:
            yield path, "FieldValueDuplicate", "Duplicate value: taints must be unique by key and effect pair"
        seen.add(pair)
    owners = obj.get("spec", {}).get("podPreemptionPolicy", {}).get("disableResizePreemption", ())
    path = "spec.podPreemptionPolicy.disableResizePreemption"
    yield from check_size(owners, _MAX_OWNERS, path)
    yield from check_unique(owners, path)
    for index, owner in enumerate(owners):
        yield from check_name(f"{path}[{index}]", owner, qualified_name)
    yield from validate_node_status(obj, obj)


def validate_node_status(obj: dict[str, Any], _old: dict[str, Any]) -> Iterator[Cause]:
    """Check that amounts are not negative, and those of pods and extended resources are integers."""
    for field in ("capacity", "allocatable"):
        for name, amount in obj.get("status", {}).get(field, {}).items():
            is_extended = "/" in name and "kubernetes.io/" not in name
            yield from check_amount(f"status.{field}.{name}", amount, whole=is_extended or name == "pods")


def default_namespace(obj: dict[str, Any]) -> None:
    """Set the label with the name of the namespace."""
    metadata = obj["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]


def prepare_namespace(obj: dict[str, Any]) -> None:
    """Set the phase Active, and the finalizer that empties the namespace before its removal."""
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def default_event(obj: dict[str, Any]) -> None:
    """Set the empty fields that Go writes and clients read."""
    set_missing(obj, {"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None})
    set_missing(obj, {"eventTime": None, "reportingComponent": "", "reportingInstance": ""})


def validate_event(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that an event is in the namespace of its object; cluster-scoped objects have events in any namespace."""
    about = obj.get("involvedObject", {}).get("namespace", "")
    if about and about != obj["metadata"].get("namespace", ""):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")


def validate_lease(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that the duration is positive."""
    seconds = obj.get("spec", {}).get("leaseDurationSeconds", 1)
    if seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")


def validate_runtime_class(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the name of the handler."""
    yield from check_name("handler", obj.get("handler", ""), dns_label)


def validate_api_service(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that the name is made of version and group, and that no other server is named."""
    spec, name = obj.get("spec", {}), obj["metadata"].get("name", "")
    yield from check_required(spec, "spec", "version")
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted:
        yield invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')
    if spec.get("service") is not None:
        yield forbidden("spec.service", "this server does not proxy requests to other servers")
