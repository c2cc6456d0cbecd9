"""New nodes wait until they are known to be ready."""

from typing import Any

from kubestow.apiserver.store.store import Store

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def taint_new(node: dict[str, Any], _: Store) -> None:
    """Keeps pods away from a new node; the controller of nodes takes the taint off."""
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    if not any(one.get("key") == _NOT_READY["key"] and one.get("effect") == "NoSchedule" for one in taints):
        taints.append(dict(_NOT_READY))
