"""Rules for pod groups, for groups of them, and for workloads, which hold templates of both.

After creation, only the size of a gang can change, unless it is one of groups.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_enums, check_required, duplicate, forbidden, invalid, required
from kubestow.apiserver.rules.device_fields import check_size, check_text
from kubestow.apiserver.rules.lists import check_new, each
from kubestow.apiserver.rules.names import INVALID, check_name, dns_label, dns_subdomain, path_segment, qualified_name
from kubestow.config.features import Features

Object = dict[str, Any]
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
_MAX_TEMPLATES, _MAX_CLAIMS, _MAX_DEPTH = 8, 4, 4
_HIGHEST_PRIORITY = 1_000_000_000
_IMMUTABLE = "Invalid value: field is immutable"
_KEPT = (
    "parentCompositePodGroupName", "workloadRef", "schedulingConstraints", "resourceClaims", "disruptionMode",
    "priorityClassName", "priority", "preemptionPolicy",
)  # fmt: skip
_LEAVES, _NODES = "podGroupTemplates", "compositePodGroupTemplates"
_ONE_PRIORITY = "all priority and priorityClassName values must be identical, detected multiple values"


def default_group(obj: Object) -> None:
    """Set the disruption mode: pods, or the groups of a composite group, are disrupted one by one."""
    if not obj["spec"].get("disruptionMode"):
        obj["spec"]["disruptionMode"] = {"single": {}}


def drop_disabled_fields(new: Object, old: Object | None, features: Features) -> None:
    """Drop the fields of disabled features from a group, unless the old group has them."""
    _drop(new["spec"], {} if old is None else old["spec"], features)


def drop_disabled_template_fields(new: Object, old: Object | None, features: Features) -> None:
    """Drop the fields of disabled features from the templates of a workload, unless the old workload has them."""
    spec, before = new["spec"], {} if old is None else old["spec"]
    _drop(spec, before, features)
    for template in _templates(spec):
        _drop(template, _named(_templates(before)).get(template.get("name"), {}), features)


def _drop(spec: Object, before: Object, features: Features) -> None:
    gates = {
        "preemptionPolicy": features.pod_group_preemption_policy,
        "parentCompositePodGroupName": features.composite_pod_group,
        "resourceClaims": features.dra_workload_resource_claims,
        _NODES: features.composite_pod_group,
    }
    for name, enabled in gates.items():
        if not enabled and not before.get(name):
            spec.pop(name, None)


def validate_group(obj: Object) -> Iterator[Cause]:
    """Check the workload reference and the scheduling fields of a group."""
    spec = obj["spec"]
    if spec.get("parentCompositePodGroupName") is not None:
        yield from check_name("spec.parentCompositePodGroupName", spec["parentCompositePodGroupName"], dns_subdomain)
        if spec.get("workloadRef") is None:
            yield required("spec.workloadRef", "must be set when parentCompositePodGroupName is set")
    yield from _check_group(spec, "minCount")


def validate_composite_group(obj: Object) -> Iterator[Cause]:
    """Check the parent, the workload reference and the scheduling fields of a composite group."""
    spec = obj["spec"]
    if spec.get("parentCompositePodGroupName") is not None:
        yield from check_name("spec.parentCompositePodGroupName", spec["parentCompositePodGroupName"], dns_subdomain)
    yield from _check_group(spec, "minGroupCount")


def _check_group(spec: Object, count: str) -> Iterator[Cause]:
    reference = spec.get("workloadRef")
    if reference is not None:
        yield from check_text(reference.get("workloadName"), "spec.workloadRef.workloadName", dns_subdomain)
        yield from check_text(reference.get("templateName"), "spec.workloadRef.templateName", dns_label)
    yield from check_scheduling(spec, "spec", count)


def validate_group_update(new: Object, old: Object) -> Iterator[Cause]:
    """Check that the spec is unchanged, except for the size of a gang."""
    return _check_unchanged(new["spec"], old["spec"], "spec")


def validate_composite_group_update(new: Object, old: Object) -> Iterator[Cause]:
    """Check that the spec is unchanged."""
    return _check_same(new["spec"], old["spec"], "spec", (*_KEPT, "schedulingPolicy"))


def validate_group_status(new: Object, _old: Object) -> Iterator[Cause]:
    """Check the required fields of conditions, and that the spec has the claims in the status."""
    claims = {claim.get("name") for claim in new["spec"].get("resourceClaims", ())}
    for path, condition in each(new.get("status", {}).get("conditions", ()), "status.conditions"):
        yield from check_required(condition, path, "type", "status", "reason", "lastTransitionTime")
    for index, claim in enumerate(new.get("status", {}).get("resourceClaimStatuses", ())):
        if claim.get("name") not in claims:
            path, why = f"status.resourceClaimStatuses[{index}].name", "must match the name of an entry in"
            yield invalid(path, claim.get("name", ""), f"{why} `spec.resourceClaims`")


def validate_workload(obj: Object) -> Iterator[Cause]:
    """Check the controller reference and the tree of templates: its names, depth and priorities."""
    spec = obj["spec"]
    controller = spec.get("controllerRef")
    if controller is not None:
        if controller.get("apiGroup"):
            yield from check_name("spec.controllerRef.apiGroup", controller["apiGroup"], dns_subdomain)
        for name in ("kind", "name"):
            yield from check_text(controller.get(name), f"spec.controllerRef.{name}", path_segment)
    yield from _check_union({name: spec.get(name) or None for name in (_LEAVES, _NODES)}, (_LEAVES, _NODES), "spec")
    yield from _check_templates(spec, "spec", set())
    for index, template in enumerate(spec.get(_NODES) or ()):
        if _depth(template) >= _MAX_DEPTH:
            why = f"maximum template hierarchy depth is {_MAX_DEPTH}"
            yield f"spec.{_NODES}[{index}]", INVALID, f"Invalid value: {why}"
    priorities = {(one.get("priorityClassName", ""), one.get("priority")) for one in _templates(spec)}
    if len(priorities) > 1:
        why = _ONE_PRIORITY if spec.get(_NODES) else "detected multiple priority configurations"
        yield "spec", INVALID, f"Invalid value: {why}"


def validate_workload_update(new: Object, old: Object) -> Iterator[Cause]:
    """Check that the spec is unchanged, except for the sizes of gangs."""
    if new["spec"].get("controllerRef") != old["spec"].get("controllerRef"):
        yield "spec.controllerRef", INVALID, _IMMUTABLE
    yield from _check_same_templates(new["spec"], old["spec"], "spec")


def _templates(parent: Object) -> Iterator[Object]:
    """Yield all templates below a spec or a template."""
    yield from parent.get(_LEAVES) or ()
    for one in parent.get(_NODES) or ():
        yield one
        yield from _templates(one)


def _depth(template: Object) -> int:
    return 1 + max(map(_depth, template.get(_NODES) or ()), default=0)


def _named(templates: Iterator[Object] | Sequence[Object]) -> dict[Any, Object]:
    return {one.get("name"): one for one in templates}


def _check_templates(parent: Object, path: str, names: set[str]) -> Iterator[Cause]:
    """Check the templates below a spec or a template. `names` are those of the templates before."""
    for kind, count in ((_LEAVES, "minCount"), (_NODES, "minGroupCount")):
        templates = parent.get(kind) or ()
        yield from check_size(templates, _MAX_TEMPLATES, f"{path}.{kind}")
        yield from _check_unique(templates, f"{path}.{kind}")
        for index, template in enumerate(templates):
            where, name = f"{path}.{kind}[{index}]", template.get("name")
            yield from check_text(name, f"{where}.name", dns_label)
            if name in names:
                yield duplicate(f"{where}.name", name)
            yield from check_scheduling(template, where, count)
        names |= {one.get("name", "") for one in templates}
    for where, template in each(parent.get(_NODES) or (), f"{path}.{_NODES}"):
        if not template.get(_LEAVES) and not template.get(_NODES):
            why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            yield invalid(where, template.get("name", ""), why)
        yield from _check_templates(template, where, names)


def _check_same_templates(new: Object, old: Object, path: str) -> Iterator[Cause]:
    for kind in (_LEAVES, _NODES):
        after, before = new.get(kind) or (), _named(old.get(kind) or ())
        for index, template in enumerate(after):
            where, previous = f"{path}.{kind}[{index}]", before.get(template.get("name"))
            if previous is None:
                yield forbidden(where, "item may not be added")
                continue
            yield from _check_unchanged(template, previous, where)
            yield from _check_same_templates(template, previous, where)
        for _ in before.keys() - _named(after).keys():
            yield forbidden(f"{path}.{kind}", "item may not be removed")


def _check_unchanged(new: Object, old: Object, path: str) -> Iterator[Cause]:
    """Check that the fields of a group or template are unchanged, except for the size of a gang."""
    yield from _check_same(new, old, path, _KEPT)
    after, before = new.get("schedulingPolicy") or {}, old.get("schedulingPolicy") or {}
    if after.get("basic") != before.get("basic"):
        yield f"{path}.schedulingPolicy.basic", INVALID, _IMMUTABLE
    yield from check_presence(after, before, f"{path}.schedulingPolicy", "gang")


def _check_same(new: Object, old: Object, path: str, names: Sequence[str]) -> Iterator[Cause]:
    for name in names:
        if new.get(name) != old.get(name):
            yield f"{path}.{name}", INVALID, _IMMUTABLE


def check_presence(new: Object, old: Object, path: str, name: str) -> Iterator[Cause]:
    """Check that a field is set if and only if it was set on creation."""
    if (new.get(name) is None) != (old.get(name) is None):
        what = "cannot be set once created" if old.get(name) is None else "cannot be cleared once set"
        yield f"{path}.{name}", INVALID, f"Invalid value: field {what}"


def check_scheduling(spec: Object, path: str, count: str = "minCount", *, optional: bool = False) -> Iterator[Cause]:
    """Check the scheduling fields of a group or a template.

    `count` is the name of the size of a gang. `optional`: the policy, and the size of a gang, may be left out.
    """
    policy, where = spec.get("schedulingPolicy"), f"{path}.schedulingPolicy"
    if policy is not None or not optional:
        yield from _check_union(policy or {}, ("basic", "gang"), where)
    if policy and policy.get("gang") is not None:
        size = policy["gang"].get(count, 1 if optional else 0)
        if size == 0 and not optional:
            yield required(f"{where}.gang.{count}")
        elif size < 1:
            yield invalid(f"{where}.gang.{count}", size, "must be greater than or equal to 1")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
    yield from check_size(topology, 1, f"{path}.schedulingConstraints.topology")
    for index, constraint in enumerate(topology):
        where = f"{path}.schedulingConstraints.topology[{index}].key"
        yield from check_text(constraint.get("key"), where, qualified_name)
    yield from _check_claims(spec.get("resourceClaims") or (), f"{path}.resourceClaims")
    if spec.get("disruptionMode") is not None:
        yield from _check_union(spec["disruptionMode"], ("single", "all"), f"{path}.disruptionMode")
    if spec.get("priorityClassName"):
        yield from check_name(f"{path}.priorityClassName", spec["priorityClassName"], dns_subdomain)
    priority = spec.get("priority") or 0
    if priority > _HIGHEST_PRIORITY:
        yield invalid(f"{path}.priority", priority, f"must be less than or equal to {_HIGHEST_PRIORITY}")
    yield from check_enums(spec, path, {"preemptionPolicy": _PREEMPTION_POLICIES})


def _check_claims(claims: Sequence[Object], path: str) -> Iterator[Cause]:
    yield from check_size(claims, _MAX_CLAIMS, path)
    yield from _check_unique(claims, path)
    for index, claim in enumerate(claims):
        yield from check_text(claim.get("name"), f"{path}[{index}].name", dns_label)
        names = ("resourceClaimName", "resourceClaimTemplateName")
        yield from _check_union(claim, names, f"{path}[{index}]")
        for name in names:
            if claim.get(name):
                yield from check_name(f"{path}[{index}].{name}", claim[name], dns_subdomain)


def _check_union(members: Object, names: Sequence[str], path: str) -> Iterator[Cause]:
    given = [name for name in names if members.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in names)
    if not given:
        yield invalid(path, "", f"must specify one of: {listed}")
    elif len(given) > 1:
        fields = ", ".join(f"`{name}`" for name in given)
        yield invalid(path, f"{{{fields}}}", f"must specify exactly one of: {listed}")


def _check_unique(items: Sequence[Object], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        yield from check_new(name, seen, f"{path}[{index}]", {"name": name})
