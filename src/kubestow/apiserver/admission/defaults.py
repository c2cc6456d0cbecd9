"""Defaults of new nodes and volume claims: a taint until the node is ready, and the default storage class."""

from typing import Any

from kubestow.apiserver.store.store import Store

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def taint_new(node: dict[str, Any], _: Store) -> None:
    """Taint a new node as not ready; the node controller removes the taint."""
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    if not any(one.get("key") == _NOT_READY["key"] and one.get("effect") == "NoSchedule" for one in taints):
        taints.append(dict(_NOT_READY))


def set_default_class(claim: dict[str, Any], store: Store) -> None:
    """Set the default class of a claim without a class: the newest, if there are several."""
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
