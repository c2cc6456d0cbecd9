"""What is wrong with a pod's spec: checks that matter for scheduling and running, each naming the field."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    is_dns_label,
    is_dns_subdomain,
    is_qualified_name,
    wrong_labels,
)
from kubestow.model import quantity

_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def _is_extended(name: str) -> bool:
    return ("/" in name and is_qualified_name(name)) or name.startswith("hugepages-")


def wrong_pod_spec(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Everything wrong with a pod spec found at a path."""
    containers = spec.get("containers")
    if not containers:
        yield f"{path}.containers", REQUIRED, "Required value"
    names: set[str] = set()
    volumes = {volume.get("name") for volume in spec.get("volumes", ())}
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind, ())):
            yield from _wrong_container(container, f"{path}.{kind}[{index}]", names, volumes)
    if "volumes" in spec:
        yield from _wrong_volumes(spec["volumes"], f"{path}.volumes")
    node = spec.get("nodeName")
    if node and not is_dns_subdomain(node):
        yield f"{path}.nodeName", INVALID, f'Invalid value: "{node}": use lower case letters, digits, - and .'
    if "nodeSelector" in spec:
        yield from wrong_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if "tolerations" in spec:
        yield from _wrong_tolerations(spec["tolerations"], f"{path}.tolerations")
    if "topologySpreadConstraints" in spec:
        yield from _wrong_spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    if "affinity" in spec:
        yield from _wrong_affinity(spec["affinity"], f"{path}.affinity")
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        yield f"{path}.terminationGracePeriodSeconds", INVALID, f"Invalid value: {grace}: must not be negative"
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        if not is_qualified_name(gate.get("name", "")):
            yield f"{path}.schedulingGates[{index}]", INVALID, f'Invalid value: "{gate.get("name", "")}": not a name'


def _wrong_container(
    container: dict[str, Any], path: str, names: set[str], volumes: set[str | None]
) -> Iterator[Cause]:
    name = container.get("name", "")
    if not is_dns_label(name):
        yield f"{path}.name", INVALID, f'Invalid value: "{name}": use lower case letters, digits and - (at most 63)'
    elif name in names:
        yield f"{path}.name", DUPLICATE, f'Duplicate value: "{name}"'
    names.add(name)
    if not container.get("image"):
        yield f"{path}.image", REQUIRED, "Required value"
    resources = container.get("resources")
    if resources:
        yield from wrong_resources(resources, f"{path}.resources")
    for index, port in enumerate(container.get("ports", ())):
        for key in ("containerPort", "hostPort"):
            number = port.get(key, 1)
            if not 0 < number < 65536 and not (key == "hostPort" and number == 0):
                yield f"{path}.ports[{index}].{key}", INVALID, f"Invalid value: {number}: must be between 1 and 65535"
    for index, mount in enumerate(container.get("volumeMounts", ())):
        if mount.get("name") not in volumes:
            yield f"{path}.volumeMounts[{index}].name", "FieldValueNotFound", f'Not found: "{mount.get("name")}"'


def wrong_resources(resources: dict[str, Any], path: str) -> Iterator[Cause]:
    """Requests above limits, amounts below zero."""
    limits = resources.get("limits", {})
    requests = resources.get("requests", {})
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if name not in _RESOURCES and not _is_extended(name):
                yield (
                    f"{path}.{kind}.{name}",
                    INVALID,
                    f'Invalid value: "{name}": must be {", ".join(_RESOURCES)}, or begin with a domain and /',
                )
            if amount[0] == "-" and quantity.nano(amount) < 0:
                yield f"{path}.{kind}.{name}", INVALID, f'Invalid value: "{amount}": must not be negative'
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is not None and limit != request and quantity.nano(request) > quantity.nano(limit):
            yield (
                f"{path}.requests",
                INVALID,
                f'Invalid value: "{request}": must be less than or equal to {name} limit of {limit}',
            )


def _wrong_volumes(volumes: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        if not is_dns_label(name):
            yield f"{path}[{index}].name", INVALID, f'Invalid value: "{name}": not a DNS label'
        elif name in seen:
            yield f"{path}[{index}].name", DUPLICATE, f'Duplicate value: "{name}"'
        seen.add(name)
        if len(volume) > 2:
            yield f"{path}[{index}]", FORBIDDEN, "Forbidden: may not specify more than 1 volume type"


def _wrong_tolerations(tolerations: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        operator = toleration.get("operator") or "Equal"
        if not toleration.get("key") and operator != "Exists":
            yield f"{where}.operator", INVALID, f'Invalid value: "{operator}": must be Exists when `key` is empty'
        if toleration.get("key") and not is_qualified_name(toleration["key"]):
            yield f"{where}.key", INVALID, f'Invalid value: "{toleration["key"]}": not a qualified name'
        if operator == "Exists" and toleration.get("value"):
            yield f"{where}.value", INVALID, f'Invalid value: "{toleration["value"]}": must be empty with Exists'
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            yield f"{where}.effect", INVALID, "Invalid value: must be NoExecute when `tolerationSeconds` is set"


def _wrong_spread(constraints: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        skew = constraint.get("maxSkew", 0)
        if skew <= 0:
            yield f"{where}.maxSkew", INVALID, f"Invalid value: {skew}: must be greater than zero"
        key = constraint.get("topologyKey", "")
        if not key:
            yield f"{where}.topologyKey", REQUIRED, "Required value: can not be empty"
        when = constraint.get("whenUnsatisfiable", "")
        if not when:
            yield f"{where}.whenUnsatisfiable", REQUIRED, "Required value: DoNotSchedule or ScheduleAnyway"
        if (key, when) in seen:
            yield where, DUPLICATE, f'Duplicate value: "{{{key}, {when}}}"'
        seen.add((key, when))
        if "minDomains" in constraint and when != "DoNotSchedule":
            yield f"{where}.minDomains", INVALID, "Invalid value: can only be used with DoNotSchedule"
        if constraint.get("minDomains", 1) <= 0:
            yield f"{where}.minDomains", INVALID, "Invalid value: must be greater than zero"
        yield from _wrong_label_selector(constraint.get("labelSelector"), f"{where}.labelSelector")


def _wrong_label_selector(selector: dict[str, Any] | None, path: str) -> Iterator[Cause]:
    if not selector:
        return
    if "matchLabels" in selector:
        yield from wrong_labels(selector["matchLabels"], f"{path}.matchLabels")
    for index, term in enumerate(selector.get("matchExpressions", ())):
        where = f"{path}.matchExpressions[{index}]"
        operator = term.get("operator", "")
        if operator in ("In", "NotIn") and not term.get("values"):
            yield f"{where}.values", REQUIRED, "Required value: must be specified when `operator` is 'In' or 'NotIn'"
        if operator in ("Exists", "DoesNotExist") and term.get("values"):
            yield f"{where}.values", FORBIDDEN, "Forbidden: must be empty for 'Exists' and 'DoesNotExist'"
        if not is_qualified_name(term.get("key", "")):
            yield f"{where}.key", INVALID, f'Invalid value: "{term.get("key", "")}": not a qualified name'


def wrong_node_selector(selector: dict[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with alternatives of node conditions."""
    if not selector.get("nodeSelectorTerms"):
        yield f"{path}.nodeSelectorTerms", REQUIRED, "Required value: must have at least one node selector term"
    for index, term in enumerate(selector.get("nodeSelectorTerms", ())):
        yield from _wrong_node_term(term, f"{path}.nodeSelectorTerms[{index}]")


def _wrong_node_term(term: dict[str, Any], path: str) -> Iterator[Cause]:
    for index, one in enumerate(term.get("matchExpressions", ())):
        where = f"{path}.matchExpressions[{index}]"
        operator = one.get("operator", "")
        values = one.get("values", ())
        if operator in ("In", "NotIn") and not values:
            yield f"{where}.values", REQUIRED, "Required value: must be specified when `operator` is 'In' or 'NotIn'"
        if operator in ("Exists", "DoesNotExist") and values:
            yield f"{where}.values", FORBIDDEN, "Forbidden: must be empty for 'Exists' and 'DoesNotExist'"
        if operator in ("Gt", "Lt") and len(values) != 1:
            yield f"{where}.values", REQUIRED, "Required value: must be a single number for 'Gt' and 'Lt'"
        if not is_qualified_name(one.get("key", "")):
            yield f"{where}.key", INVALID, f'Invalid value: "{one.get("key", "")}": not a qualified name'
    for index, one in enumerate(term.get("matchFields", ())):
        if one.get("key") != "metadata.name":
            yield f"{path}.matchFields[{index}].key", INVALID, f'Invalid value: "{one.get("key")}": only metadata.name'


def _wrong_affinity(affinity: dict[str, Any], path: str) -> Iterator[Cause]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    node = affinity.get("nodeAffinity", {})
    if required in node:
        yield from wrong_node_selector(node[required], f"{path}.nodeAffinity.{required}")
    for index, one in enumerate(node.get(preferred, ())):
        where = f"{path}.nodeAffinity.{preferred}[{index}]"
        yield from _wrong_weight(one, where)
        yield from _wrong_node_term(one.get("preference", {}), f"{where}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind, {})
        for index, term in enumerate(rules.get(required, ())):
            yield from _wrong_pod_term(term, f"{path}.{kind}.{required}[{index}]")
        for index, one in enumerate(rules.get(preferred, ())):
            where = f"{path}.{kind}.{preferred}[{index}]"
            yield from _wrong_weight(one, where)
            yield from _wrong_pod_term(one.get("podAffinityTerm", {}), f"{where}.podAffinityTerm")


def _wrong_weight(one: dict[str, Any], path: str) -> Iterator[Cause]:
    weight = one.get("weight", 0)
    if not 1 <= weight <= 100:
        yield f"{path}.weight", INVALID, f"Invalid value: {weight}: must be in the range 1-100"


def _wrong_pod_term(term: dict[str, Any], path: str) -> Iterator[Cause]:
    if not term.get("topologyKey"):
        yield f"{path}.topologyKey", REQUIRED, "Required value: can not be empty"
    yield from _wrong_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from _wrong_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
