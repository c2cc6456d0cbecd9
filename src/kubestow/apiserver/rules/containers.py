"""Checks of the containers of a pod: names, ports, environment, mounts, probes, hooks, resources, security."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kubestow.api import quantity
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.quota import MEASURED
from kubestow.apiserver.rules.causes import (
    PORTS,
    check_amount,
    check_choice,
    check_enums,
    check_not_negative,
    check_one,
    check_required,
    check_text,
    duplicate,
    forbidden,
    invalid,
    required,
)
from kubestow.apiserver.rules.lists import check_new, each
from kubestow.apiserver.rules.names import check_name, config_key, dns_label, port_name, qualified_name

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_CHOICES = {
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
}
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_RESTARTS = ("Always", "Never", "OnFailure")
_VARIABLE = re.compile(r"[ -<>-~]+\Z")
_IDENTITIES = ("fsGroup", "runAsUser", "runAsGroup")
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_ONCE = "may not have more than one field specified at a time"


def check_containers(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the containers of a pod spec."""
    yield from check_required(spec, path, "containers")
    names: set[str] = set()
    ports: set[str] = set()
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for where, container in each(spec[kind], f"{path}.{kind}") if kind in spec else ():
            yield from _check_container(container, where, spec)
            name = container.get("name", "")
            if name and name in names:
                yield duplicate(f"{where}.name", name)
            names.add(name)
            if kind == "containers":
                yield from _check_hooks_and_probes(container, where, spec)
                yield from _check_host_ports(container, where, ports)
            elif kind == "initContainers":
                yield from _check_init_container(container, where, spec)


def _check_container(container: dict[str, Any], path: str, spec: dict[str, Any]) -> Iterator[Cause]:
    yield from check_text(container, path, "name", dns_label)
    yield from check_required(container, path, "image")
    if "ports" in container:
        yield from _check_ports(container["ports"], f"{path}.ports")
    if "env" in container:
        yield from _check_variables(container["env"], f"{path}.env")
    if "envFrom" in container:
        yield from _check_sources(container["envFrom"], f"{path}.envFrom")
    if "volumeMounts" in container:
        yield from _check_mounts(container["volumeMounts"], f"{path}.volumeMounts", spec)
    yield from check_enums(container, path, _CHOICES)
    resources = container.get("resources")
    if resources:
        yield from check_resources(resources, f"{path}.resources")
        yield from _check_claims(resources, f"{path}.resources.claims", spec)
    for rule in container.get("resizePolicy", ()):
        yield from check_choice(rule.get("resourceName", ""), ("cpu", "memory"), f"{path}.resizePolicy")
        yield from check_choice(rule.get("restartPolicy"), ("NotRequired", "RestartContainer"), f"{path}.resizePolicy")
    if "securityContext" in container:
        yield from check_security(container["securityContext"], f"{path}.securityContext")


def _check_ports(ports: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for where, port in each(ports, path):
        name = port.get("name")
        if name:
            yield from check_name(f"{where}.name", name, port_name)
            yield from check_new(name, names, f"{where}.name")
        yield from check_required(port, where, "containerPort")
        for key in ("containerPort", "hostPort"):
            number = port.get(key)
            if number and not 0 < number < 65536:
                yield invalid(f"{where}.{key}", number, PORTS)
        yield from check_enums(port, where, {"protocol": _PROTOCOLS})


def _check_host_ports(container: dict[str, Any], path: str, ports: set[str]) -> Iterator[Cause]:
    """Check that host ports are unique in the pod; adds them to `ports`."""
    for index, port in enumerate(container.get("ports", ())):
        if port.get("hostPort"):
            host_port = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
            yield from check_new(host_port, ports, f"{path}.ports[{index}].hostPort")


def _check_variables(variables: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    for where, variable in each(variables, path):
        if not variable.get("name"):
            yield required(f"{where}.name")
        else:
            yield from check_name(f"{where}.name", variable["name"], _variable)
        if "valueFrom" in variable:
            yield from _check_source(variable["valueFrom"], f"{where}.valueFrom", bool(variable.get("value")))


def _variable(name: str) -> Sequence[str]:
    if _VARIABLE.match(name):
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def _check_source(source: dict[str, Any], path: str, has_value: bool) -> Iterator[Cause]:
    if "fieldRef" in source:
        field = source["fieldRef"].get("fieldPath", "")
        if not field:
            yield required(f"{path}.fieldRef.fieldPath")
        elif field not in _FIELDS and not re.match(r"metadata\.(labels|annotations)\['.+'\]\Z", field):
            why = f"error converting fieldPath: field label not supported: {field}"
            yield invalid(f"{path}.fieldRef.fieldPath", field, why)
    if "resourceFieldRef" in source:
        yield from check_text(source["resourceFieldRef"], f"{path}.resourceFieldRef", "resource")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            yield from check_text(source[kind], f"{path}.{kind}", "key", config_key)
    given = [one for one in _SOURCES if one in source]
    if not given:
        listed = ", ".join(f"`{one}`" for one in _SOURCES[:-1])
        yield invalid(path, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`")
    elif has_value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", _ONCE)


def _check_sources(sources: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    for index, source in enumerate(sources):
        given = [one for one in ("configMapRef", "secretRef") if one in source]
        for kind in given:
            yield from check_text(source[kind], f"{path}[{index}].{kind}", "name")
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(path, "", _ONCE)


def _check_mounts(mounts: list[dict[str, Any]], path: str, spec: dict[str, Any]) -> Iterator[Cause]:
    volumes = {volume.get("name") for volume in spec.get("volumes", ())}
    seen: set[str] = set()
    for where, mount in each(mounts, path):
        yield from check_text(mount, where, "name")
        if mount.get("name") not in volumes:
            yield f"{where}.name", "FieldValueNotFound", f'Not found: "{mount.get("name", "")}"'
        target = mount.get("mountPath", "")
        yield from check_required(mount, where, "mountPath")
        if target in seen:
            yield invalid(f"{where}.mountPath", target, "must be unique")
        seen.add(target)


def _check_hooks_and_probes(container: dict[str, Any], path: str, spec: dict[str, Any]) -> Iterator[Cause]:
    """Check lifecycle hooks and probes."""
    for name in ("postStart", "preStop"):
        hook = container.get("lifecycle", {}).get(name)
        if hook is not None:
            yield from _check_handler(hook, f"{path}.lifecycle.{name}", spec)
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            where = f"{path}.{name}"
            yield from _check_handler(probe, where, spec)
            numbers = ("initialDelay", "timeout", "period")
            yield from check_not_negative(probe, where, *(f"{one}Seconds" for one in numbers))
            yield from check_not_negative(probe, where, "successThreshold", "failureThreshold")
            if name != "readinessProbe" and probe.get("successThreshold", 1) != 1:
                yield invalid(f"{where}.successThreshold", probe["successThreshold"], "must be 1")


def _check_handler(handler: dict[str, Any], path: str, spec: dict[str, Any]) -> Iterator[Cause]:
    given = [one for one in _HANDLERS if one in handler]
    if not given:
        yield required(path, "must specify a handler type")
        return
    yield from check_one(handler, path, _HANDLERS, "handler")
    kind, action, where = given[0], handler[given[0]], f"{path}.{given[0]}"
    if kind == "exec" and not action.get("command"):
        yield required(f"{where}.command")
    elif kind in ("httpGet", "tcpSocket"):
        yield from check_port(action.get("port", 0), f"{where}.port")
        yield from check_enums(action, where, {"scheme": ("HTTP", "HTTPS")})
    elif kind == "sleep":
        grace, seconds = spec.get("terminationGracePeriodSeconds", 30), action.get("seconds", 0)
        if not 0 <= seconds <= grace:
            why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            yield invalid(where, seconds, why)


def check_port(port: int | str, path: str) -> Iterator[Cause]:
    """Check the number or name of a port."""
    if isinstance(port, str):
        yield from check_name(path, port, port_name)
    elif not 0 < port < 65536:
        yield invalid(path, port, PORTS)


def _check_init_container(container: dict[str, Any], path: str, spec: dict[str, Any]) -> Iterator[Cause]:
    """Check an init container: only those that keep running can have hooks and probes."""
    yield from check_enums(container, path, {"restartPolicy": _RESTARTS})
    if container.get("restartPolicy") == "Always":
        yield from _check_hooks_and_probes(container, path, spec)
        return
    for name in ("lifecycle", *_PROBES):
        if name in container:
            yield forbidden(f"{path}.{name}", "may not be set for init containers without restartPolicy=Always")


def check_resources(resources: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check amounts, requests above limits, and requests without a required limit."""
    limits = resources.get("limits", {})
    requests = resources.get("requests", {})
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _check_amount(name, amount, f"{path}.{kind}[{name}]")
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if _is_extended(name):
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif limit != request:
            if _is_extended(name) and quantity.nano(request) != quantity.nano(limit):
                yield invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
            elif quantity.nano(request) > quantity.nano(limit):
                yield invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")
    huge = any(name.startswith("hugepages-") for name in (*limits, *requests))
    if huge and not any(name in amounts for name in ("cpu", "memory") for amounts in (limits, requests)):
        yield forbidden(path, "HugePages require cpu or memory")


def _is_extended(name: str) -> bool:
    return "/" in name or name.startswith("hugepages-")


def _check_amount(name: str, amount: str, path: str) -> Iterator[Cause]:
    extended = _is_extended(name)
    if name not in MEASURED and (not extended or qualified_name(name)):
        yield from check_name(path, name, qualified_name)
        if not extended:
            yield invalid(path, name, "must be a standard resource type or fully qualified")
            yield invalid(path, name, "must be a standard resource for containers")
    yield from check_amount(path, amount, whole=extended)


def _check_claims(resources: dict[str, Any], path: str, spec: dict[str, Any]) -> Iterator[Cause]:
    """Check that the pod has the claims of a container."""
    names = [claim.get("name") for claim in spec.get("resourceClaims", ())]
    for index, claim in enumerate(resources.get("claims", ())):
        if claim.get("name") not in names:
            known = f"must be one of the names in pod.spec.resourceClaims{'' if names else ' which is empty'}"
            yield f"{path}[{index}]", "FieldValueNotFound", f'Not found: "{claim.get("name", "")}": {known}'


def check_security(context: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check user and group IDs, profiles and sysctls."""
    for name in _IDENTITIES:
        number = context.get(name)
        if number is not None and not 0 <= number < 2**31:
            yield invalid(f"{path}.{name}", number, "must be between 0 and 2147483647, inclusive")
    for index, setting in enumerate(context.get("sysctls", ())):
        name = setting.get("name", "")
        if not name:
            yield required(f"{path}.sysctls[{index}].name")
        elif len(name) > 253 or not re.match(_SYSCTL, name):
            yield invalid(
                f"{path}.sysctls[{index}].name", name, f"must have at most 253 characters and match regex {_SYSCTL}"
            )
    if "seccompProfile" in context:
        yield from check_enums(context["seccompProfile"], f"{path}.seccompProfile", {"type": _SECCOMP})
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        yield invalid(path, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
