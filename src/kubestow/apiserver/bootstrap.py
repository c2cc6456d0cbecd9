"""Initial objects: namespaces, priority classes, roles, nodes, and the service through which pods reach this server."""

from collections.abc import Callable
from functools import partial
from typing import Any

from kubestow.apiserver.auth import policy
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.kubelets.description import NodesFileError
from kubestow.apiserver.objects.intent import Intent, internal
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.rules.services import SERVICE_ADDRESS, SERVICES
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES = {
    "system-cluster-critical": (2_000_000_000, "For pods that the cluster requires; they may move to other nodes."),
    "system-node-critical": (2_000_001_000, "For pods that a node requires."),
}


def add_initial_objects(writer: Writer) -> None:
    """Create the initial namespaces, priority classes and service CIDR, as far as they are missing."""
    for name in _NAMESPACES:
        _ensure(writer, "namespaces", {"metadata": {"name": name}})
    for name, (value, description) in _PRIORITIES.items():
        body = {"metadata": {"name": name}, "value": value, "description": description}
        _ensure(writer, "priorityclasses.scheduling.k8s.io", body)
    _ensure(
        writer, "servicecidrs.networking.k8s.io", {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [SERVICES]}}
    )


def add_roles(writer: Writer) -> None:
    """Create the default RBAC roles and bindings: for all authenticated users, for schedulers, and roles to bind."""
    for name, rules in policy.ROLES.items():
        _ensure(writer, "clusterroles.rbac.authorization.k8s.io", {"metadata": {"name": name}, "rules": rules})
    for role, subjects in policy.ROLE_BINDINGS.items():
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        body = {"metadata": {"name": role}, "roleRef": reference, "subjects": subjects}
        _ensure(writer, "clusterrolebindings.rbac.authorization.k8s.io", body)


def advertise(writer: Writer, address: str, port: int) -> None:
    """Create or update the service default/kubernetes and its endpoints, which lead to this server."""
    ready = {"ip": address}
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    names = {"name": "kubernetes"}
    family = "IPv6" if ":" in address else "IPv4"
    objects: dict[str, dict[str, Any]] = {
        "services": {
            "metadata": {**names, "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {
                "clusterIP": SERVICE_ADDRESS,
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            },
        },
        "endpoints": {
            "metadata": {**names, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [ready], "ports": ports}],
        },
        "endpointslices.discovery.k8s.io": {
            "metadata": {**names, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": family,
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": ports,
        },
    }
    for storage, obj in objects.items():
        resource, current = BY_STORAGE[storage], writer.store.get(storage, "default", "kubernetes")
        if current is None:
            write = partial(writer.create, resource, "default", obj, internal())
        else:
            # An earlier run may have used another port.
            obj["metadata"] = current.object()["metadata"]
            write = partial(writer.update, resource, "default", "kubernetes", partial(_replacement, obj), internal())
        _attempt(write, storage, obj)


def _replacement(new: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    return new


def add_nodes(writer: Writer, nodes: list[dict[str, Any]]) -> None:
    """Create the nodes that do not exist yet. Raises NodesFileError if one is rejected."""
    for node in nodes:
        metadata = node.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        if writer.store.get("nodes", "", name) is None:
            try:
                writer.create(BY_STORAGE["nodes"], "", node, Intent(manager="kubestow", validation="Strict"))
            except ApiError as error:
                raise NodesFileError(f"node {name!r}: {error.message}") from error


def _ensure(writer: Writer, storage: str, obj: dict[str, Any]) -> None:
    if writer.store.get(storage, "", obj["metadata"]["name"]) is None:
        _attempt(partial(writer.create, BY_STORAGE[storage], "", obj, internal()), storage, obj)


def _attempt(write: Callable[[], Any], storage: str, obj: dict[str, Any]) -> None:
    """Write an initial object; log an error, such as that of a stored admission policy, which must not stop a start."""
    try:
        write()
    except Exception as error:
        log.unexpected("An initial object was not written", err=error, resource=storage, object=obj["metadata"]["name"])
