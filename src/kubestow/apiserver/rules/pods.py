"""Rules for pods: defaults, allowed updates, and conditions of their status."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import forbidden, invalid
from kubestow.apiserver.rules.names import INVALID
from kubestow.apiserver.rules.podspec import default_pod_spec, quality_of_service
from kubestow.apiserver.rules.podvalidation import check_pod_spec

_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)

_CLAIMS = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


def default(pod: dict[str, Any]) -> None:
    """Set the defaults of the spec."""
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _merge_label_keys(pod: dict[str, Any]) -> None:
    """Turn the label keys of affinity and spread terms into expressions on this pod's label values."""
    labels = pod["metadata"].get("labels") or {}
    terms: list[dict[str, Any]] = list(pod["spec"].get("topologySpreadConstraints", ()))
    affinity = pod["spec"].get("affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind, {})
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        terms += [one.get("podAffinityTerm", {}) for one in preferred]
    for term in terms:
        if "labelSelector" not in term:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(field, ()):
                if key in labels:
                    condition = {"key": key, "operator": operator, "values": [labels[key]]}
                    term["labelSelector"].setdefault("matchExpressions", []).append(condition)


def keep_claims(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Keep what the status says about claims if a client that does not know these fields leaves them out."""
    status = old.get("status", {})
    for name in _CLAIMS:
        if name in status:
            new.setdefault("status", {}).setdefault(name, status[name])


def prepare_create(pod: dict[str, Any]) -> None:
    """Merge label keys into selectors, and set the status of a pending pod. There are no requests for evictions."""
    pod["spec"].pop("evictionResponders", None)
    if "affinity" in pod["spec"] or "topologySpreadConstraints" in pod["spec"]:
        _merge_label_keys(pod)
    pod["status"] = {"phase": "Pending", "qosClass": quality_of_service(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]


def validate(pod: dict[str, Any]) -> Iterator[Cause]:
    """Check a pod."""
    yield from check_pod_spec(pod["spec"], "spec")
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(pod["spec"].get(kind, ())):
            image = container.get("image", "")
            if image.strip() != image:
                yield invalid(f"spec.{kind}[{index}].image", image, "must not have leading or trailing whitespace")
    if pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def validate_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check an update: only images, deadlines, additional tolerations and removed gates are allowed."""
    new_spec, old_spec = new["spec"], old["spec"]
    if new_spec == old_spec:
        return
    gates = {gate["name"] for gate in old_spec.get("schedulingGates", ())}
    for index, gate in enumerate(new_spec.get("schedulingGates", ())):
        if gate["name"] not in gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", why)
    kept = _without_seconds(new_spec)
    if any(toleration not in kept for toleration in _without_seconds(old_spec)):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    for kind in ("containers", "initContainers"):
        if len(new_spec.get(kind, ())) != len(old_spec.get(kind, ())):
            yield forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return
    fixed, was = _immutable_part(new_spec, bool(gates)), _immutable_part(old_spec, bool(gates))
    if fixed != was:
        changed = sorted(key for key in {*fixed, *was} if fixed.get(key) != was.get(key))
        yield forbidden("spec", f"{_MUTABLE}\nchanged: {', '.join(changed)}")


def _without_seconds(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tolerations without their durations."""
    return [{k: v for k, v in one.items() if k != "tolerationSeconds"} for one in spec.get("tolerations", ())]


def _immutable_part(spec: dict[str, Any], gated: bool) -> dict[str, Any]:
    """Return the part of a spec that no update may change; a gated pod can still change node selector and affinity."""
    left_out = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if gated:
        left_out |= {"nodeSelector", "affinity"}
    fixed = {key: value for key, value in spec.items() if key not in left_out}
    for kind in ("containers", "initContainers"):
        if kind in fixed:
            fixed[kind] = [{k: v for k, v in one.items() if k != "image"} for one in fixed[kind]]
    return fixed


def validate_resize(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that a resize changes only resources of containers, and keeps the QoS class."""
    if _without_resources(new["spec"]) != _without_resources(old["spec"]):
        yield forbidden("spec", "only resources of containers may be changed by a resize")
    if quality_of_service(new["spec"]) != quality_of_service(old["spec"]):
        yield "metadata", INVALID, "Invalid value: Pod QOS Class may not change as a result of resizing"


def _without_resources(spec: dict[str, Any]) -> dict[str, Any]:
    stripped = {key: value for key, value in spec.items() if key != "resources"}
    for kind in ("containers", "initContainers"):
        if kind in stripped:
            stripped[kind] = [{k: v for k, v in one.items() if k != "resources"} for one in stripped[kind]]
    return stripped


def set_condition(pod: dict[str, Any], type_: str, status: str, now: str, **more: str) -> None:
    """Set a condition in a pod's status; the transition time changes only with the status.

    Unknown fields are left out rather than null, which makes decoding to structs faster.
    """
    conditions: list[dict[str, Any]] = pod.setdefault("status", {}).setdefault("conditions", [])
    entry: dict[str, Any] = {"type": type_, "status": status, "lastTransitionTime": now}
    generation = pod["metadata"].get("generation")
    if generation:
        entry["observedGeneration"] = generation
    put_condition(conditions, {**entry, **more})


def put_condition(conditions: list[dict[str, Any]], new: dict[str, Any]) -> None:
    """Put a condition into a list; its transition time changes only with its status."""
    for index, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            if old.get("status") == new["status"]:
                new["lastTransitionTime"] = old.get("lastTransitionTime", new["lastTransitionTime"])
            conditions[index] = new
            return
    conditions.append(new)
