"""Objects as they go out: the stored bytes where possible, otherwise made once from the decoded object."""

from typing import Any

from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.printing.tables import table_head, table_row
from kubestow.apiserver.rest.negotiation import OBJECT, PARTIAL, TABLE
from kubestow.apiserver.store.records import Change, Record, encode
from kubestow.http.messages import chunk


def body_of(resource: Resource, record: Record) -> bytes:
    """An object, whole."""
    if resource.conversion is not None:
        return encode(resource.conversion.from_stored(record.object()))
    return record.body


def partial(record: Record) -> dict[str, Any]:
    """An object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": record.object()["metadata"],
    }


def single(resource: Resource, record: Record, form: str) -> bytes:
    """One object in the form wanted."""
    if form == OBJECT:
        return body_of(resource, record)
    if form == PARTIAL:
        return encode(partial(record))
    return encode(_table(resource, [record], {"resourceVersion": str(record.rv)}))


def listing(resource: Resource, records: list[Record], metadata: dict[str, Any], form: str, include: str) -> bytes:
    """Many objects in the form wanted."""
    if form == TABLE:
        return encode(_table(resource, records, metadata, include))
    if form == PARTIAL:
        kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        bodies = [encode(partial(record)) for record in records]
    else:
        kind, api_version = resource.list_kind, resource.api_version
        if resource.conversion is not None:
            bodies = [body_of(resource, record) for record in records]
        else:
            bodies = [record.body for record in records]
    return b"".join(
        (
            b'{"kind":"',
            kind.encode(),
            b'","apiVersion":"',
            api_version.encode(),
            b'","metadata":',
            encode(metadata),
            b',"items":[',
            b",".join(bodies),
            b"]}",
        )
    )


def _table(
    resource: Resource, records: list[Record], metadata: dict[str, Any], include: str = "Metadata"
) -> dict[str, Any]:
    head = table_head(resource)
    rows = [table_row(resource, record, include) for record in records]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": head,
        "rows": rows,
    }


def watch_line(resource: Resource, change: Change, type_: str, form: str, include: str = "Metadata") -> bytes:
    """One event of a watch, made once for all watchers that want this form of it."""
    key = (type_, f"{form}{include}" if form == TABLE else form + resource.api_version)
    line = change.lines.get(key)
    if line is None:
        record = change.record
        if type_ == "DELETED" and change.type != "DELETED" and change.previous is not None:
            # It left the selection rather than the store: the state before, under the version at which it left.
            obj = change.previous.object()
            obj["metadata"]["resourceVersion"] = str(change.rv)
            record = change.previous.renewed(change.rv, encode(obj))
        line = event_line(type_, single_in_watch(resource, record, form, include))
        change.lines[key] = line
    return line


def single_in_watch(resource: Resource, record: Record, form: str, include: str) -> bytes:
    """One object of a watch in the form wanted."""
    if form == TABLE:
        return encode(_table(resource, [record], {"resourceVersion": str(record.rv)}, include))
    return single(resource, record, form)


def event_line(type_: str, body: bytes) -> bytes:
    """A watch event, framed as a chunk of its own."""
    return chunk(b'{"type":"%b","object":%b}\n' % (type_.encode(), body))


def bookmark(resource: Resource, rv: int, form: str, *, initial_end: bool = False) -> bytes:
    """An event that says how far a watch has come."""
    metadata: dict[str, Any] = {"resourceVersion": str(rv), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    body: dict[str, Any] = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    if form == PARTIAL:
        body = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    elif form == TABLE:
        row = {"cells": [], "object": {**body, "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}}
        body = {
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": str(rv)},
            "columnDefinitions": table_head(resource), "rows": [row],
        }  # fmt: skip
    return event_line("BOOKMARK", encode(body))
