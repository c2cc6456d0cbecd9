"""What new nodes and volume claims get: a taint until the node is known to be ready, and the default class."""

from typing import Any

from kubestow.apiserver.store.store import Store

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def taint_new(node: dict[str, Any], _: Store) -> None:
    """Keeps pods away from a new node; the controller of nodes takes the taint off."""
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    if not any(one.get("key") == _NOT_READY["key"] and one.get("effect") == "NoSchedule" for one in taints):
        taints.append(dict(_NOT_READY))


def set_class(claim: dict[str, Any], store: Store) -> None:
    """Set the default class of a claim that names none; of several the newest."""
    if "storageClassName" in claim["spec"]:
        return
    defaults = [
        (metadata["creationTimestamp"], metadata["name"])
        for record in store.collection("storageclasses.storage.k8s.io").objects.values()
        for metadata in (record.object()["metadata"],)
        if metadata.get("annotations", {}).get(_DEFAULT) == "true"
    ]
    if defaults:
        newest = max(made for made, _ in defaults)
        claim["spec"]["storageClassName"] = min(name for made, name in defaults if made == newest)
