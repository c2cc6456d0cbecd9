"""Rules for ingresses, network policies, endpoint slices, CIDR ranges and addresses."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import (
    check_choice,
    check_enums,
    check_required,
    check_text,
    forbidden,
    invalid,
    required,
)
from kubestow.apiserver.rules.containers import check_port
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.lists import check_items, check_new, each
from kubestow.apiserver.rules.names import check_name, dns_label, dns_subdomain
from kubestow.apiserver.rules.placement import check_label_selector
from kubestow.apiserver.rules.podvalidation import check_address

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def validate_ingress(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the hosts, paths and backends of an ingress."""
    spec = obj["spec"]
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for index, entry in enumerate(spec.get("tls", ())):
        for number, host in enumerate(entry.get("hosts", ())):
            yield from check_name(f"spec.tls[{index}].hosts[{number}]", host.removeprefix("*."), dns_subdomain)
    for index, rule in enumerate(spec.get("rules", ())):
        where, host = f"spec.rules[{index}]", rule.get("host", "")
        if host and not list(check_address(host, "")):
            yield invalid(f"{where}.host", host, "must be a DNS name, not an IP address")
        elif host:
            yield from check_name(f"{where}.host", host.removeprefix("*."), dns_subdomain)
        if "http" in rule and not rule["http"].get("paths"):
            yield required(f"{where}.http.paths")
        yield from check_items(rule.get("http", {}).get("paths", ()), f"{where}.http.paths", _check_path)
    if "defaultBackend" in spec:
        yield from _check_backend(spec["defaultBackend"], "spec.defaultBackend")
    if "ingressClassName" in spec:
        yield from check_name("spec.ingressClassName", spec["ingressClassName"], dns_subdomain)


def _check_path(path: dict[str, Any], where: str) -> Iterator[Cause]:
    kind, text = path.get("pathType"), path.get("path", "")
    if not kind:
        yield required(f"{where}.pathType", "pathType must be specified")
    yield from check_enums(path, where, {"pathType": _PATH_TYPES})
    if not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        yield invalid(f"{where}.path", text, "must be an absolute path")
    elif kind in ("Exact", "Prefix"):
        for part in ("//", "/./", "/../", "%2f", "%2F"):
            if part in text:
                yield invalid(f"{where}.path", text, f"must not contain '{part}'")
    yield from _check_backend(path.get("backend", {}), f"{where}.backend")


def _check_backend(backend: dict[str, Any], path: str) -> Iterator[Cause]:
    service = backend.get("service")
    if service is None:
        if "resource" not in backend:
            yield invalid(path, "", "resource or service backend is required")
        return
    port = service.get("port", {})
    yield from check_text(service, f"{path}.service", "name", dns_label)
    if port.get("name") and port.get("number"):
        yield invalid(path, "", "cannot set both port name & port number")
    elif not port.get("name") and not port.get("number"):
        yield required(path, "port name or number is required")
    elif port.get("number"):
        yield from check_port(port["number"], f"{path}.service.port.number")


def default_policy(obj: dict[str, Any]) -> None:
    """Set the policy types: Ingress always, Egress if there are such rules; and TCP as protocol."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            port.setdefault("protocol", "TCP")


def validate_policy(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the pod selector, the policy types, the ports and the peers."""
    spec = obj["spec"]
    yield from check_label_selector(spec["podSelector"], "spec.podSelector")
    for index, kind in enumerate(spec["policyTypes"]):
        yield from check_choice(kind, ("Ingress", "Egress"), f"spec.policyTypes[{index}]")
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for where, rule in each(spec.get(side, ()), f"spec.{side}"):
            yield from check_items(rule.get("ports", ()), f"{where}.ports", _check_policy_port)
            yield from check_items(rule.get(peers, ()), f"{where}.{peers}", _check_peer)


def _check_policy_port(port: dict[str, Any], path: str) -> Iterator[Cause]:
    yield from check_enums(port, path, {"protocol": ("TCP", "UDP", "SCTP")})
    if "port" in port:
        yield from check_port(port["port"], f"{path}.port")
        if isinstance(port["port"], int) and port.get("endPort", port["port"]) < port["port"]:
            yield invalid(f"{path}.endPort", port["port"], "must be greater than or equal to `port`")


def _check_peer(peer: dict[str, Any], path: str) -> Iterator[Cause]:
    if not peer:
        yield required(path, "must specify a peer")
    elif "ipBlock" in peer:
        if len(peer) > 1:
            yield forbidden(path, "may not specify both ipBlock and another peer")
        yield from _check_range(peer["ipBlock"].get("cidr", ""), f"{path}.ipBlock.cidr")
    for name in ("podSelector", "namespaceSelector"):
        yield from check_label_selector(peer.get(name), f"{path}.{name}")


def _check_range(text: str, path: str) -> Iterator[Cause]:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        yield invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")


def validate_range(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that there are ranges, and each is a CIDR."""
    ranges = obj.get("spec", {}).get("cidrs", [])
    if not ranges:
        yield required("spec.cidrs", "at least one CIDR required")
    yield from check_items(ranges, "spec.cidrs", _check_range)


def validate_range_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the existing ranges are unchanged, as addresses may be allocated from them."""
    before, after = old.get("spec", {}).get("cidrs", []), new.get("spec", {}).get("cidrs", [])
    if after[: len(before)] != before:
        yield invalid("spec.cidrs", after, "field is immutable")


def address(name: str) -> list[str]:
    """Check that a name is an IP address in canonical form."""
    try:
        invalid_name = str(ipaddress.ip_address(name)) != name
    except ValueError:
        invalid_name = True
    return ["must be an IP address in canonical form, (e.g. 10.9.8.7 or 2001:db8::ffff)"] if invalid_name else []


def validate_address(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the reference to the parent."""
    yield from check_required(obj.get("spec", {}).get("parentRef", {}), "spec.parentRef", "resource", "name")


def default_slice(obj: dict[str, Any]) -> None:
    """Set an empty name and TCP for ports, and empty conditions for endpoints."""
    for port in obj.get("ports", ()):
        set_missing(port, {"name": "", "protocol": "TCP"})
    for endpoint in obj.get("endpoints", ()):
        endpoint.setdefault("conditions", {})


def validate_slice(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check the addresses of endpoints, and that port names are unique."""
    yield from check_enums(obj, "", {"addressType": ("FQDN", "IPv4", "IPv6")})
    for index, endpoint in enumerate(obj.get("endpoints", ())):
        path = f"endpoints[{index}].addresses"
        if not endpoint.get("addresses"):
            yield required(path, "must contain at least 1 address")
        for number, text in enumerate(endpoint.get("addresses", ())):
            if obj.get("addressType") != "FQDN":
                yield from check_address(text, f"{path}[{number}]")
    names: set[str] = set()
    for index, port in enumerate(obj.get("ports", ())):
        name = port["name"]
        if name:
            yield from check_name(f"ports[{index}].name", name, dns_label)
        yield from check_new(name, names, f"ports[{index}].name")
