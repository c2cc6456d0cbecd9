"""Checks of pod specs, as far as they matter for scheduling and running."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_enums, check_one, check_text, duplicate, forbidden, invalid, required
from kubestow.apiserver.rules.containers import check_containers, check_resources, check_security
from kubestow.apiserver.rules.lists import check_new, each
from kubestow.apiserver.rules.names import check_labels, check_name, dns_label, dns_subdomain, qualified_name
from kubestow.apiserver.rules.placement import check_affinity, check_spread, check_tolerations

_NAMES = {
    "serviceAccountName": dns_subdomain,
    "nodeName": dns_subdomain,
    "hostname": dns_label,
    "subdomain": dns_label,
    "priorityClassName": dns_subdomain,
    "runtimeClassName": dns_subdomain,
}
_CHOICES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
}
_VOLUMES = {
    "hostPath": "path",
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "nfs": "server",
    "csi": "driver",
}
"""Required field by type of volume."""


def check_pod_spec(spec: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the pod spec at a path."""
    if "volumes" in spec:
        yield from _check_volumes(spec["volumes"], f"{path}.volumes")
    if "resourceClaims" in spec:
        yield from _check_claims(spec["resourceClaims"], f"{path}.resourceClaims")
    yield from check_containers(spec, path)
    if spec.get("resources"):
        yield from check_resources(spec["resources"], f"{path}.resources")
    yield from check_enums(spec, path, _CHOICES)
    if "nodeSelector" in spec:
        yield from check_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("securityContext"):
        yield from check_security(spec["securityContext"], f"{path}.securityContext")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.securityContext.shareProcessNamespace", True, why)
    if "affinity" in spec:
        yield from check_affinity(spec["affinity"], f"{path}.affinity")
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig", {}).get("nameservers"):
        yield required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    for index, gate in enumerate(spec.get("readinessGates", ())):
        where = f"{path}.readinessGates[{index}].conditionType"
        yield from check_name(where, gate.get("conditionType", ""), qualified_name)
    if "schedulingGates" in spec:
        yield from _check_gates(spec["schedulingGates"], f"{path}.schedulingGates")
    if "topologySpreadConstraints" in spec:
        yield from check_spread(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    if spec.get("hostUsers") is False:
        for name in ("hostNetwork", "hostPID", "hostIPC"):
            if spec.get(name):
                yield forbidden(f"{path}.{name}", "when `hostUsers` is false")
    for name, name_format in _NAMES.items():
        if spec.get(name):
            yield from check_name(f"{path}.{name}", spec[name], name_format)
    deadline = spec.get("activeDeadlineSeconds", 1)
    if not 0 < deadline < 2**31:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    if "tolerations" in spec:
        yield from check_tolerations(spec["tolerations"], f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases", ())):
        yield from check_address(alias.get("ip", ""), f"{path}.hostAliases[{index}].ip")
    if "os" in spec:
        yield from check_enums({"os": spec["os"].get("name", "")}, path, {"os": ("linux", "windows")})
    if "schedulingGroup" in spec:
        yield from _check_group(spec["schedulingGroup"], f"{path}.schedulingGroup.podGroupName")


def _check_group(group: dict[str, Any], path: str) -> Iterator[Cause]:
    if group.get("podGroupName") is None:
        yield invalid(path, None, "must specify one of: `podGroupName`")
    else:
        yield from check_name(path, group["podGroupName"], dns_subdomain)


def check_address(text: str, path: str) -> Iterator[Cause]:
    """Check that a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def _check_gates(gates: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from check_name(f"{path}[{index}]", name, qualified_name)
        yield from check_new(name, seen, f"{path}[{index}]")


def _check_volumes(volumes: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for where, volume in each(volumes, path):
        name = volume.get("name", "")
        yield from check_text(volume, where, "name", dns_label)
        if name and name in seen:
            yield duplicate(f"{where}.name", name)
        seen.add(name)
        kinds = [kind for kind in volume if kind != "name"]
        yield from check_one(volume, where, kinds, "volume")
        if kinds and kinds[0] in _VOLUMES:
            yield from check_text(volume[kinds[0]], f"{where}.{kinds[0]}", _VOLUMES[kinds[0]])


def _check_claims(claims: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    kinds = ("resourceClaimName", "resourceClaimTemplateName")
    for where, claim in each(claims, path):
        name = claim.get("name", "")
        if name and name in seen:
            yield duplicate(f"{where}.name", name)
        else:
            yield from check_text(claim, where, "name", dns_label)
        seen.add(name)
        given = [kind for kind in kinds if kind in claim]
        if len(given) > 1:
            yield invalid(
                where, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
        elif not given:
            yield invalid(where, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for kind in given:
            yield from check_name(f"{where}.{kind}", claim[kind], dns_subdomain)
