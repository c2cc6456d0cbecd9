"""What is wrong with a pod's spec: checks that matter for scheduling and running, each naming the field."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    dns_label,
    dns_subdomain,
    qualified_name,
    wrong_labels,
    wrong_name,
)
from kubestow.model import quantity

_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_NO_VALUES = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_PORTS = "must be between 1 and 65535, inclusive"
_NAMES = {
    "serviceAccountName": dns_subdomain,
    "nodeName": dns_subdomain,
    "hostname": dns_label,
    "subdomain": dns_label,
    "priorityClassName": dns_subdomain,
    "runtimeClassName": dns_subdomain,
}


def _is_extended(name: str) -> bool:
    return ("/" in name and not qualified_name(name)) or name.startswith("hugepages-")


def wrong_pod_spec(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Everything wrong with a pod spec found at a path."""
    volumes = {volume.get("name") for volume in spec.get("volumes", ())}
    if "volumes" in spec:
        yield from _wrong_volumes(spec["volumes"], f"{path}.volumes")
    if not spec.get("containers"):
        yield f"{path}.containers", REQUIRED, "Required value"
    names: set[str] = set()
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind, ())):
            yield from _wrong_container(container, f"{path}.{kind}[{index}]", names, volumes)
    if "nodeSelector" in spec:
        yield from wrong_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if "affinity" in spec:
        yield from _wrong_affinity(spec["affinity"], f"{path}.affinity")
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        yield from wrong_name(f"{path}.schedulingGates[{index}]", gate.get("name", ""), qualified_name)
    if "schedulingGroup" in spec:
        yield from _wrong_group(spec["schedulingGroup"], f"{path}.schedulingGroup.podGroupName")
    if "topologySpreadConstraints" in spec:
        yield from _wrong_spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    for name, wrong in _NAMES.items():
        if spec.get(name):
            yield from wrong_name(f"{path}.{name}", spec[name], wrong)
    deadline = spec.get("activeDeadlineSeconds", 1)
    if not 0 < deadline < 2**31:
        message = f"Invalid value: {deadline}: must be between 1 and 2147483647, inclusive"
        yield f"{path}.activeDeadlineSeconds", INVALID, message
    if "tolerations" in spec:
        yield from _wrong_tolerations(spec["tolerations"], f"{path}.tolerations")
    grace = spec.get("terminationGracePeriodSeconds", 0)
    if grace < 0:
        message = f"Invalid value: {grace}: must be greater than or equal to 0"
        yield f"{path}.terminationGracePeriodSeconds", INVALID, message


def _wrong_group(group: dict[str, Any], path: str) -> Iterator[Cause]:
    if group.get("podGroupName") is None:
        yield path, INVALID, "Invalid value: null: must specify one of: `podGroupName`"
    else:
        yield from wrong_name(path, group["podGroupName"], dns_subdomain)


def _wrong_container(
    container: dict[str, Any], path: str, names: set[str], volumes: set[str | None]
) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield f"{path}.name", REQUIRED, "Required value"
    elif dns_label(name):
        yield from wrong_name(f"{path}.name", name, dns_label)
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
                yield f"{path}.ports[{index}].{key}", INVALID, f"Invalid value: {number}: {_PORTS}"
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
                message = f'Invalid value: "{name}": must be a standard resource type or fully qualified'
                yield f"{path}.{kind}[{name}]", INVALID, message
            if amount[0] == "-" and quantity.nano(amount) < 0:
                message = f'Invalid value: "{amount}": must be greater than or equal to 0'
                yield f"{path}.{kind}[{name}]", INVALID, message
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
        if not name:
            yield f"{path}[{index}].name", REQUIRED, "Required value"
        elif dns_label(name):
            yield from wrong_name(f"{path}[{index}].name", name, dns_label)
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
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield f"{where}.operator", INVALID, f'Invalid value: "{operator}": {why}'
        if toleration.get("key") and qualified_name(toleration["key"]):
            yield from wrong_name(f"{where}.key", toleration["key"], qualified_name)
        if operator == "Exists" and toleration.get("value"):
            why = "value must be empty when `operator` is 'Exists'"
            yield f"{where}.operator", INVALID, f'Invalid value: "{toleration["value"]}": {why}'
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield f"{where}.effect", INVALID, f'Invalid value: "{toleration.get("effect", "")}": {why}'


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
            message = 'Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"'
            yield f"{where}.whenUnsatisfiable", NOT_SUPPORTED, message
        if (key, when) in seen:
            yield where, DUPLICATE, f'Duplicate value: "{{{key}, {when}}}"'
        seen.add((key, when))
        if "minDomains" in constraint and when != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            yield f"{where}.minDomains", INVALID, f"Invalid value: {constraint['minDomains']}: {why}"
        if constraint.get("minDomains", 1) <= 0:
            message = f"Invalid value: {constraint['minDomains']}: must be greater than zero"
            yield f"{where}.minDomains", INVALID, message
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
            yield f"{where}.values", FORBIDDEN, _NO_VALUES
        yield from wrong_name(f"{where}.key", term.get("key", ""), qualified_name)


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
            yield f"{where}.values", FORBIDDEN, _NO_VALUES
        if operator in ("Gt", "Lt") and len(values) != 1:
            yield (
                f"{where}.values",
                REQUIRED,
                "Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
            )
        yield from wrong_name(f"{where}.key", one.get("key", ""), qualified_name)
    for index, one in enumerate(term.get("matchFields", ())):
        if one.get("key") != "metadata.name":
            yield (
                f"{path}.matchFields[{index}].key",
                INVALID,
                f'Invalid value: "{one.get("key")}": not a valid field selector key',
            )


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
