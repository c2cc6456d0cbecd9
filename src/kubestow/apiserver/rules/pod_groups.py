"""Rules for pod groups, and for workloads, which hold templates of pod groups. Both specs are immutable."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import invalid, required
from kubestow.apiserver.rules.device_fields import check_size, check_text
from kubestow.apiserver.rules.names import (
    DUPLICATE,
    INVALID,
    NOT_SUPPORTED,
    check_name,
    dns_label,
    dns_subdomain,
    path_segment,
    qualified_name,
)

_MAX_TEMPLATES, _MAX_CLAIMS = 8, 4
_HIGHEST_PRIORITY = 1_000_000_000
_IMMUTABLE = "Invalid value: field is immutable"
_MODES = ("Pod", "PodGroup")
_KEPT_OF_GROUP = (
    "podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode",
    "priorityClassName", "priority",
)  # fmt: skip
_KEPT_OF_WORKLOAD = ("controllerRef", "podGroupTemplates")


def validate_group(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the template reference and the scheduling fields of a group."""
    spec = obj["spec"]
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        yield from _check_union(reference, ("workload",), "spec.podGroupTemplateRef")
        path, workload = "spec.podGroupTemplateRef.workload", reference.get("workload", {})
        if workload:
            yield from check_text(workload.get("workloadName"), f"{path}.workloadName", dns_subdomain)
            yield from check_text(workload.get("podGroupTemplateName"), f"{path}.podGroupTemplateName", dns_label)
    yield from _check_common_fields(spec, "spec")


def validate_group_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the spec is unchanged."""
    return _check_unchanged(new, old, _KEPT_OF_GROUP)


def validate_group_status(new: dict[str, Any], _old: dict[str, Any]) -> Iterator[Cause]:
    """Check the required fields of conditions, and that the spec has the claims in the status."""
    claims = {claim.get("name") for claim in new["spec"].get("resourceClaims", ())}
    for index, condition in enumerate(new.get("status", {}).get("conditions", ())):
        for name in ("type", "status", "reason", "lastTransitionTime"):
            if not condition.get(name):
                yield required(f"status.conditions[{index}].{name}")
    for index, claim in enumerate(new.get("status", {}).get("resourceClaimStatuses", ())):
        if claim.get("name") not in claims:
            path, why = f"status.resourceClaimStatuses[{index}].name", "must match the name of an entry in"
            yield path, INVALID, f'Invalid value: "{claim.get("name", "")}": {why} `spec.resourceClaims`'


def validate_workload(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the controller reference, and that templates have unique names."""
    spec = obj["spec"]
    controller = spec.get("controllerRef")
    if controller is not None:
        if controller.get("apiGroup"):
            yield from check_name("spec.controllerRef.apiGroup", controller["apiGroup"], dns_subdomain)
        for name in ("kind", "name"):
            yield from check_text(controller.get(name), f"spec.controllerRef.{name}", path_segment)
    templates, path = spec.get("podGroupTemplates") or (), "spec.podGroupTemplates"
    if not templates:
        yield required(path)
    yield from check_size(templates, _MAX_TEMPLATES, path)
    yield from _check_unique(templates, path)
    for index, template in enumerate(templates):
        yield from check_text(template.get("name"), f"{path}[{index}].name", dns_label)
        yield from _check_common_fields(template, f"{path}[{index}]")


def validate_workload_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the spec is unchanged."""
    return _check_unchanged(new, old, _KEPT_OF_WORKLOAD)


def _check_common_fields(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the fields that groups and their templates share."""
    policy = spec.get("schedulingPolicy") or {}
    yield from _check_union(policy, ("basic", "gang"), f"{path}.schedulingPolicy")
    if policy.get("gang") is not None:
        count = policy["gang"].get("minCount")
        if not count:
            yield required(f"{path}.schedulingPolicy.gang.minCount")
        elif count < 1:
            yield invalid(f"{path}.schedulingPolicy.gang.minCount", count, "must be greater than or equal to 1")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
    yield from check_size(topology, 1, f"{path}.schedulingConstraints.topology")
    for index, constraint in enumerate(topology):
        where = f"{path}.schedulingConstraints.topology[{index}].key"
        yield from check_text(constraint.get("key"), where, qualified_name)
    yield from _check_claims(spec.get("resourceClaims") or (), f"{path}.resourceClaims")
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in _MODES:
        listed = ", ".join(f'"{one}"' for one in _MODES)
        yield f"{path}.disruptionMode", NOT_SUPPORTED, f'Unsupported value: "{mode}": supported values: {listed}'
    if spec.get("priorityClassName"):
        yield from check_name(f"{path}.priorityClassName", spec["priorityClassName"], dns_subdomain)
    priority = spec.get("priority") or 0
    if priority > _HIGHEST_PRIORITY:
        yield invalid(f"{path}.priority", priority, f"must be less than or equal to {_HIGHEST_PRIORITY}")


def _check_claims(claims: Sequence[dict[str, Any]], path: str) -> Iterator[Cause]:
    yield from check_size(claims, _MAX_CLAIMS, path)
    yield from _check_unique(claims, path)
    for index, claim in enumerate(claims):
        yield from check_text(claim.get("name"), f"{path}[{index}].name", dns_label)
        names = ("resourceClaimName", "resourceClaimTemplateName")
        yield from _check_union(claim, names, f"{path}[{index}]")
        for name in names:
            if claim.get(name):
                yield from check_name(f"{path}[{index}].{name}", claim[name], dns_subdomain)


def _check_unchanged(new: dict[str, Any], old: dict[str, Any], kept: Sequence[str]) -> Iterator[Cause]:
    for name in kept:
        if new["spec"].get(name) != old["spec"].get(name):
            yield f"spec.{name}", INVALID, _IMMUTABLE


def _check_union(members: dict[str, Any], names: Sequence[str], path: str) -> Iterator[Cause]:
    given = [name for name in names if members.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in names)
    if not given:
        yield path, INVALID, f'Invalid value: "": must specify one of: {listed}'
    elif len(given) > 1:
        fields = ", ".join(f"`{name}`" for name in given)
        yield path, INVALID, f'Invalid value: "{{{fields}}}": must specify exactly one of: {listed}'


def _check_unique(items: Sequence[dict[str, Any]], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        if name in seen:
            yield f"{path}[{index}]", DUPLICATE, f'Duplicate value: {{"name":"{name}"}}'
        seen.add(name)
