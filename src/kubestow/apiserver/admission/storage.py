"""Claims that name no class."""

from typing import Any

from kubestow.apiserver.store.store import Store

_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def set_class(claim: dict[str, Any], store: Store) -> None:
    """They get the default class; of several the newest."""
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
