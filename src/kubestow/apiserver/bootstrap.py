"""What is there from the start: four namespaces and the two priority classes of the system."""

from typing import Any

from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.kubelets.description import NodesFileError
from kubestow.apiserver.objects.intent import Intent, internal
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES = {
    "system-cluster-critical": (2_000_000_000, "For pods the cluster cannot do without; they may move to other nodes."),
    "system-node-critical": (2_000_001_000, "For pods a node cannot do without."),
}


def fill(writer: Writer) -> None:
    """Creates what is missing."""
    for name in _NAMESPACES:
        _ensure(writer, "namespaces", {"metadata": {"name": name}})
    for name, (value, description) in _PRIORITIES.items():
        body = {"metadata": {"name": name}, "value": value, "description": description}
        _ensure(writer, "priorityclasses.scheduling.k8s.io", body)


def add_nodes(writer: Writer, nodes: list[dict[str, Any]]) -> None:
    """Creates the nodes that are not there yet."""
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
        writer.create(BY_STORAGE[storage], "", obj, internal())
