"""Admission of pod groups: the finalizer of those in use."""

from typing import Any

from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer that keeps a group until none of its pods is running."""


def protect(group: Object, _: Store) -> None:
    """Add the finalizer that keeps a group until its pods have finished."""
    finalizers = group["metadata"].get("finalizers") or []
    if PROTECTION not in finalizers:
        group["metadata"]["finalizers"] = [*finalizers, PROTECTION]
