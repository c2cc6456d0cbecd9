"""Heads and rows of tables."""

from typing import Any

from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.store.records import Record


def table_head(resource: Resource) -> list[dict[str, Any]]:
    """Definitions of a resource's columns."""
    return [
        {
            "name": one.name,
            "type": one.type,
            "format": one.format,
            "description": one.description,
            "priority": int(one.wide),
        }
        for one in resource.columns
    ]


def table_row(resource: Resource, record: Record, include: str) -> dict[str, Any]:
    """One object's row; with it go its metadata, the whole object or nothing."""
    obj = record.object()
    row: dict[str, Any] = {"cells": [one.value(obj) for one in resource.columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return row
