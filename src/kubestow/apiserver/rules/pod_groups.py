"""Pod groups, and the workloads that have templates of them. What they ask for never changes."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import invalid, required
from kubestow.apiserver.rules.device_fields import wrong_size, wrong_text
from kubestow.apiserver.rules.names import (
    DUPLICATE,
    INVALID,
    NOT_SUPPORTED,
    dns_label,
    dns_subdomain,
    path_segment,
    qualified_name,
    wrong_name,
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
    """One policy, at most one topology, and a template by its names."""
    spec = obj["spec"]
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        yield from _wrong_union(reference, ("workload",), "spec.podGroupTemplateRef")
        path, workload = "spec.podGroupTemplateRef.workload", reference.get("workload", {})
        if workload:
            yield from wrong_text(workload.get("workloadName"), f"{path}.workloadName", dns_subdomain)
            yield from wrong_text(workload.get("podGroupTemplateName"), f"{path}.podGroupTemplateName", dns_label)
    yield from _wrong_wishes(spec, "spec")


def keep_group(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """What a group asks for stays."""
    return _changed(new, old, _KEPT_OF_GROUP)


def validate_group_status(new: dict[str, Any], _old: dict[str, Any]) -> Iterator[Cause]:
    """Conditions have a type, a status, a reason and a time; claims are those that the group has."""
    claims = {claim.get("name") for claim in new["spec"].get("resourceClaims", ())}
    for index, condition in enumerate(new.get("status", {}).get("conditions", ())):
        for name in ("type", "status", "reason", "lastTransitionTime"):
            if not condition.get(name):
                yield required(f"status.conditions[{index}].{name}")
    for index, claim in enumerate(new.get("status", {}).get("resourceClaimStatuses", ())):
        if claim.get("name") not in claims:
            path, words = f"status.resourceClaimStatuses[{index}].name", "must match the name of an entry in"
            yield path, INVALID, f'Invalid value: "{claim.get("name", "")}": {words} `spec.resourceClaims`'


def validate_workload(obj: dict[str, Any]) -> Iterator[Cause]:
    """Templates with names of their own; a controller by its names."""
    spec = obj["spec"]
    controller = spec.get("controllerRef")
    if controller is not None:
        if controller.get("apiGroup"):
            yield from wrong_name("spec.controllerRef.apiGroup", controller["apiGroup"], dns_subdomain)
        for name in ("kind", "name"):
            yield from wrong_text(controller.get(name), f"spec.controllerRef.{name}", path_segment)
    templates, path = spec.get("podGroupTemplates") or (), "spec.podGroupTemplates"
    if not templates:
        yield required(path)
    yield from wrong_size(templates, _MAX_TEMPLATES, path)
    yield from _repeated(templates, path)
    for index, template in enumerate(templates):
        yield from wrong_text(template.get("name"), f"{path}[{index}].name", dns_label)
        yield from _wrong_wishes(template, f"{path}[{index}]")


def keep_workload(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """What a workload consists of stays."""
    return _changed(new, old, _KEPT_OF_WORKLOAD)


def _wrong_wishes(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with what groups and their templates have in common."""
    policy = spec.get("schedulingPolicy") or {}
    yield from _wrong_union(policy, ("basic", "gang"), f"{path}.schedulingPolicy")
    if policy.get("gang") is not None:
        count = policy["gang"].get("minCount")
        if not count:
            yield required(f"{path}.schedulingPolicy.gang.minCount")
        elif count < 1:
            yield invalid(f"{path}.schedulingPolicy.gang.minCount", count, "must be greater than or equal to 1")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
    yield from wrong_size(topology, 1, f"{path}.schedulingConstraints.topology")
    for index, constraint in enumerate(topology):
        where = f"{path}.schedulingConstraints.topology[{index}].key"
        yield from wrong_text(constraint.get("key"), where, qualified_name)
    yield from _wrong_claims(spec.get("resourceClaims") or (), f"{path}.resourceClaims")
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in _MODES:
        listed = ", ".join(f'"{one}"' for one in _MODES)
        yield f"{path}.disruptionMode", NOT_SUPPORTED, f'Unsupported value: "{mode}": supported values: {listed}'
    if spec.get("priorityClassName"):
        yield from wrong_name(f"{path}.priorityClassName", spec["priorityClassName"], dns_subdomain)
    priority = spec.get("priority") or 0
    if priority > _HIGHEST_PRIORITY:
        yield invalid(f"{path}.priority", priority, f"must be less than or equal to {_HIGHEST_PRIORITY}")


def _wrong_claims(claims: Sequence[dict[str, Any]], path: str) -> Iterator[Cause]:
    yield from wrong_size(claims, _MAX_CLAIMS, path)
    yield from _repeated(claims, path)
    for index, claim in enumerate(claims):
        yield from wrong_text(claim.get("name"), f"{path}[{index}].name", dns_label)
        names = ("resourceClaimName", "resourceClaimTemplateName")
        yield from _wrong_union(claim, names, f"{path}[{index}]")
        for name in names:
            if claim.get(name):
                yield from wrong_name(f"{path}[{index}].{name}", claim[name], dns_subdomain)


def _changed(new: dict[str, Any], old: dict[str, Any], kept: Sequence[str]) -> Iterator[Cause]:
    for name in kept:
        if new["spec"].get(name) != old["spec"].get(name):
            yield f"spec.{name}", INVALID, _IMMUTABLE


def _wrong_union(members: dict[str, Any], names: Sequence[str], path: str) -> Iterator[Cause]:
    given = [name for name in names if members.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in names)
    if not given:
        yield path, INVALID, f'Invalid value: "": must specify one of: {listed}'
    elif len(given) > 1:
        told = ", ".join(f"`{name}`" for name in given)
        yield path, INVALID, f'Invalid value: "{{{told}}}": must specify exactly one of: {listed}'


def _repeated(items: Sequence[dict[str, Any]], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        if name in seen:
            yield f"{path}[{index}]", DUPLICATE, f'Duplicate value: {{"name":"{name}"}}'
        seen.add(name)
