"""Heads and rows of tables."""

from functools import cache
from typing import Any

from kubestow.apiserver.printing.columns import COLUMNS, PLAIN
from kubestow.apiserver.resources import Resource
from kubestow.apiserver.store.records import Record

_NUMBERS = ("Desired", "Current", "Available", "Up-to-date", "Data", "Secrets", "Allowed Disruptions", "Value", "Count")


@cache
def table_head(resource: Resource) -> list[dict[str, Any]]:
    """Definitions of a resource's columns."""
    head = []
    for title, _ in COLUMNS.get(resource.storage, PLAIN):
        name = title.lstrip("+")
        head.append(
            {
                "name": name,
                "type": "integer" if name in _NUMBERS and resource.storage != "pods" else "string",
                "format": "name" if name == "Name" and not title.startswith("+") else "",
                "description": "",
                "priority": 1 if title.startswith("+") else 0,
            }
        )
    return head


def table_row(resource: Resource, record: Record, include: str) -> dict[str, Any]:
    """One object's row; with it go its metadata, the whole object or nothing."""
    obj = record.object()
    row: dict[str, Any] = {"cells": [value(obj) for _, value in COLUMNS.get(resource.storage, PLAIN)]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return row
