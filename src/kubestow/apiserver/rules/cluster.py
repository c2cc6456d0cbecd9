"""Nodes, namespaces, services, configuration, events and leases: a few lines each."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import INVALID, REQUIRED, config_key, qualified_name, wrong_name

SERVICES = "10.96.0.0/16"
"""Where addresses of services come from."""
SERVICE_ADDRESS = "10.96.0.1"
"""The address of this server's own."""


def default_node(obj: dict[str, Any]) -> None:
    """A node may say nothing of itself."""
    obj.setdefault("spec", {})


def validate_node(obj: dict[str, Any]) -> Iterator[Cause]:
    """Taints that are unique by key and effect."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(obj.get("spec", {}).get("taints", ())):
        path = f"spec.taints[{index}]"
        yield from wrong_name(f"{path}.key", taint.get("key", ""), qualified_name)
        if not taint.get("effect"):
            yield f"{path}.effect", REQUIRED, "Required value"
        pair = (taint.get("key", ""), taint.get("effect", ""))
        if pair in seen:
            yield path, "FieldValueDuplicate", "Duplicate value: taints must be unique by key and effect pair"
        seen.add(pair)


def default_namespace(obj: dict[str, Any]) -> None:
    """Carries its own name as a label, and is active."""
    metadata = obj["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]


def prepare_namespace(obj: dict[str, Any]) -> None:
    """A new namespace is active and is emptied before it goes."""
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def default_service(obj: dict[str, Any]) -> None:
    """An address inside the cluster; TCP; the target port is the port."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
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
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("ipFamilies", ["IPv4"])


def _node_port(uid: str, port: int, protocol: str) -> int:
    """A port out of those for nodes; nothing listens there, so two services may share one."""
    digest = hashlib.sha256(f"{uid}/{port}/{protocol}".encode()).digest()
    return 30_000 + int.from_bytes(digest[:4]) % 2_768


def give_address(obj: dict[str, Any]) -> None:
    """Gives the service an address; nothing listens there."""
    spec = obj["spec"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        digest = hashlib.sha256(obj["metadata"]["uid"].encode()).digest()
        spec["clusterIP"] = f"10.96.{digest[0] or 1}.{digest[1]}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])


def prepare_service(obj: dict[str, Any]) -> None:
    """Nothing balances load here."""
    obj["status"] = {"loadBalancer": {}}


def keep_cluster_ip(new: dict[str, Any], old: dict[str, Any]) -> None:
    """An update without an address keeps the one there is."""
    for name in ("clusterIP", "clusterIPs"):
        if name in old["spec"] and not new["spec"].get(name):
            new["spec"][name] = old["spec"][name]


def validate_config_map(obj: dict[str, Any]) -> Iterator[Cause]:
    """Keys that can be names of files."""
    for part in ("data", "binaryData"):
        for key in obj.get(part, {}):
            yield from wrong_name(f"{part}[{key}]", key, config_key)


def default_event(obj: dict[str, Any]) -> None:
    """Go writes these fields though they are empty, and clients read them."""
    for key in ("involvedObject", "source"):
        obj.setdefault(key, {})
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(key, None)
    for key in ("reportingComponent", "reportingInstance"):
        obj.setdefault(key, "")


def validate_event(obj: dict[str, Any]) -> Iterator[Cause]:
    """An event is in the namespace of what it is about; of what has none it is in any."""
    about = obj.get("involvedObject", {}).get("namespace", "")
    if about and about != obj["metadata"].get("namespace", ""):
        yield "involvedObject.namespace", INVALID, f'Invalid value: "{about}": does not match event.namespace'


def validate_lease(obj: dict[str, Any]) -> Iterator[Cause]:
    """A lease that lasts."""
    seconds = obj.get("spec", {}).get("leaseDurationSeconds", 1)
    if seconds <= 0:
        yield "spec.leaseDurationSeconds", INVALID, f"Invalid value: {seconds}: must be greater than 0"


def default_secret(obj: dict[str, Any]) -> None:
    """stringData becomes data."""
    obj.setdefault("type", "Opaque")
    for key, value in obj.pop("stringData", {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
