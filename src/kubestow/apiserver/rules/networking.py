"""Ingresses, network policies, and the addresses of services."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import INVALID, REQUIRED


def default_ingress(obj: dict[str, Any]) -> None:
    """Nothing that is not said."""
    obj.setdefault("spec", {})


def prepare_ingress(obj: dict[str, Any]) -> None:
    """Nothing balances load here."""
    obj["status"] = {"loadBalancer": {}}


def validate_ingress(obj: dict[str, Any]) -> Iterator[Cause]:
    """Somewhere to send requests to, by paths that begin with a slash."""
    spec = obj["spec"]
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield "spec", INVALID, "Invalid value: []: either `defaultBackend` or `rules` must be specified"
    for index, rule in enumerate(spec.get("rules", ())):
        for number, path in enumerate(rule.get("http", {}).get("paths", ())):
            where = f"spec.rules[{index}].http.paths[{number}]"
            if not path.get("pathType"):
                yield f"{where}.pathType", REQUIRED, "Required value: pathType must be specified"
            text = path.get("path", "")
            if not text.startswith("/") and (text or path.get("pathType") != "ImplementationSpecific"):
                yield f"{where}.path", INVALID, f'Invalid value: "{text}": must be an absolute path'


def default_policy(obj: dict[str, Any]) -> None:
    """What comes in is always meant, what goes out if it is spoken of; traffic is TCP."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            port.setdefault("protocol", "TCP")


def validate_range(obj: dict[str, Any]) -> Iterator[Cause]:
    """One range, or one of each family."""
    ranges = obj.get("spec", {}).get("cidrs", [])
    if not ranges:
        yield "spec.cidrs", REQUIRED, "Required value: at least one CIDR required"
    for index, text in enumerate(ranges):
        try:
            ipaddress.ip_network(text)
        except ValueError:
            message = f'Invalid value: "{text}": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'
            yield f"spec.cidrs[{index}]", INVALID, message


def keep_range(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Addresses have been taken from a range: it cannot change."""
    before, after = old.get("spec", {}).get("cidrs", []), new.get("spec", {}).get("cidrs", [])
    if after[: len(before)] != before:
        yield "spec.cidrs", INVALID, "Invalid value: field is immutable"


def address(name: str) -> list[str]:
    """An address as it is written in short."""
    try:
        wrong = str(ipaddress.ip_address(name)) != name
    except ValueError:
        wrong = True
    return ["must be an IP address in canonical form, (e.g. 10.9.8.7 or 2001:db8::ffff)"] if wrong else []


def validate_address(obj: dict[str, Any]) -> Iterator[Cause]:
    """It belongs to something."""
    parent = obj.get("spec", {}).get("parentRef", {})
    for name in ("resource", "name"):
        if not parent.get(name):
            yield f"spec.parentRef.{name}", REQUIRED, "Required value"
