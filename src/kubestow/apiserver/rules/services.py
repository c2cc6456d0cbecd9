"""Rules for services. Cluster IPs and node ports are derived from UIDs, as there is no proxy behind them."""

import hashlib
import ipaddress
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import PORTS, check_enums, forbidden, invalid, required
from kubestow.apiserver.rules.containers import check_port
from kubestow.apiserver.rules.defaults import set_missing
from kubestow.apiserver.rules.lists import check_items, check_new
from kubestow.apiserver.rules.names import check_labels, check_name, dns_label
from kubestow.apiserver.rules.podvalidation import check_address

SERVICES = "10.96.0.0/16"
"""Range of cluster IPs."""
SERVICE_ADDRESS = "10.96.0.1"
"""Cluster IP of this server."""
_NODE_PORTS = range(30_000, 32_768)
_EXTERNAL = ("NodePort", "LoadBalancer")
_OF_ADDRESSES = ("internalTrafficPolicy", "ipFamilyPolicy", "ipFamilies", "clusterIP", "clusterIPs")
_CHOICES = {
    "type": ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    "sessionAffinity": ("ClientIP", "None"),
    "internalTrafficPolicy": ("Cluster", "Local"),
    "externalTrafficPolicy": ("Cluster", "Local"),
    "trafficDistribution": ("PreferClose", "PreferSameZone", "PreferSameNode"),
}


def default_service(obj: dict[str, Any]) -> None:
    """Set the defaults of a service and its ports."""
    spec = obj.setdefault("spec", {})
    set_missing(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        for port in spec.get("ports", ()):
            if not port.get("nodePort"):
                port["nodePort"] = _node_port(obj["metadata"].get("uid", ""), port.get("port", 0), port["protocol"])
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}).setdefault("timeoutSeconds", 10800)
    if spec["type"] == "ExternalName":
        for name in _OF_ADDRESSES:
            spec.pop(name, None)
    else:
        defaults = {"internalTrafficPolicy": "Cluster", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}
        set_missing(spec, defaults)


def _node_port(uid: str, port: int, protocol: str) -> int:
    """Return a node port; it need not be unique, as nothing listens there."""
    digest = hashlib.sha256(f"{uid}/{port}/{protocol}".encode()).digest()
    return 30_000 + int.from_bytes(digest[:4]) % 2_768


def allocate_address(obj: dict[str, Any]) -> None:
    """Set the cluster IP; nothing listens there."""
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        digest = hashlib.sha256(obj["metadata"]["uid"].encode()).digest()
        spec["clusterIP"] = f"10.96.{digest[0] or 1}.{digest[1]}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])


def keep_cluster_ip(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Keep the cluster IP in an update without one."""
    if new["spec"]["type"] == "ExternalName":
        return
    for name in ("clusterIP", "clusterIPs"):
        if name in old["spec"] and not new["spec"].get(name):
            new["spec"][name] = old["spec"][name]


def validate_service(obj: dict[str, Any]) -> Iterator[Cause]:
    """Check that ports are unique, the address is in the range, and no field of another type of service is set."""
    spec = obj["spec"]
    headless, outside = spec.get("clusterIP") == "None", spec["type"] in _EXTERNAL
    if not spec.get("ports") and not headless and spec["type"] != "ExternalName":
        yield required("spec.ports")
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    yield from _check_ports(spec.get("ports", ()), outside)
    yield from check_labels(spec.get("selector") or {}, "spec.selector")
    yield from check_enums(spec, "spec", _CHOICES)
    if spec.get("clusterIP") and not headless:
        yield from _check_cluster_address(spec["clusterIP"])
    yield from check_items(spec.get("externalIPs", ()), "spec.externalIPs", check_address)
    if "IPv6" in spec.get("ipFamilies", ())[:1]:
        yield invalid("spec.ipFamilies[0]", "IPv6", "not configured on this cluster")
    if spec.get("externalTrafficPolicy") and not outside and not spec.get("externalIPs"):
        why = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", spec["externalTrafficPolicy"], why)
    if spec.get("loadBalancerClass") and spec["type"] != "LoadBalancer":
        yield forbidden("spec.loadBalancerClass", "may only be used when `type` is 'LoadBalancer'")


def _check_cluster_address(text: str) -> Iterator[Cause]:
    causes = list(check_address(text, "spec.clusterIPs[0]"))
    yield from causes
    if not causes and ipaddress.ip_address(text) not in ipaddress.ip_network(SERVICES):
        why = f"the provided IP ({text}) is not in the valid range. The range of valid IPs is {SERVICES}"
        yield invalid("spec.clusterIPs", [text], f"failed to allocate IP {text}: {why}")


def _check_ports(ports: list[dict[str, Any]], outside: bool) -> Iterator[Cause]:
    names: set[str] = set()
    seen: set[tuple[Any, ...]] = set()
    for index, port in enumerate(ports):
        where, name, number = f"spec.ports[{index}]", port.get("name", ""), port.get("port", 0)
        if name:
            yield from check_name(f"{where}.name", name, dns_label)
            yield from check_new(name, names, f"{where}.name")
        elif len(ports) > 1:
            yield required(f"{where}.name")
        if not 0 < number < 65536:
            yield invalid(f"{where}.port", number, PORTS)
        yield from check_enums(port, where, {"protocol": ("SCTP", "TCP", "UDP")})
        yield from check_port(port["targetPort"], f"{where}.targetPort")
        yield from check_new((number, port["protocol"]), seen, where, {"protocol": port["protocol"], "port": number})
        node_port = port.get("nodePort")
        if node_port and not outside:
            yield forbidden(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'")
        elif node_port and node_port not in _NODE_PORTS:
            why = "provided port is not in the valid range. The range of valid ports is 30000-32767"
            yield invalid(f"{where}.nodePort", node_port, why)


def validate_service_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[Cause]:
    """Check that the cluster IP is unchanged once set."""
    address, was = new["spec"].get("clusterIP"), old["spec"].get("clusterIP")
    if was and address and address != was:
        yield invalid("spec.clusterIPs[0]", [address], "may not change once set")
