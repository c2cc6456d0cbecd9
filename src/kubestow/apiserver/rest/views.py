"""Objects as they go out: whole, as rows of tables, or their metadata only, whichever form a client wants.

Whole objects are the stored bytes where possible; other forms are made from the decoded object.
"""

from functools import lru_cache
from typing import Any

from kubestow.apiserver.errors import not_acceptable
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.store.records import Change, Record, encode
from kubestow.server.http.messages import chunk

Object = dict[str, Any]
OBJECT = "object"
TABLE = "table"
PARTIAL = "partial"
_FORMS = {"Table": TABLE, "PartialObjectMetadata": PARTIAL, "PartialObjectMetadataList": PARTIAL}


@lru_cache(maxsize=256)
def wanted_form(accept: str) -> str:
    """The first form of an Accept header that this server writes."""
    if not accept.strip():
        return OBJECT
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        if media not in ("application/json", "*/*", "application/*"):
            continue
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        kind = options.get("as")
        if kind is None:
            return OBJECT
        if kind in _FORMS and options.get("g", "meta.k8s.io") == "meta.k8s.io" and options.get("v", "v1") == "v1":
            return _FORMS[kind]
    raise not_acceptable()


def _body(resource: Resource, record: Record) -> bytes:
    if resource.conversion is not None:
        return encode(resource.conversion.from_stored(record.object()))
    return record.body


def _partial(metadata: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}


def single(resource: Resource, record: Record, form: str, include: str = "Metadata") -> bytes:
    """Return one object in the form wanted."""
    if form == OBJECT:
        return _body(resource, record)
    if form == PARTIAL:
        return encode(_partial(record.object()["metadata"]))
    return encode(_table(resource, {"resourceVersion": str(record.rv)}, [_row(resource, record, include)]))


def listing(resource: Resource, records: list[Record], metadata: Object, form: str, include: str) -> bytes:
    """Return many objects in the form wanted."""
    if form == TABLE:
        return encode(_table(resource, metadata, [_row(resource, record, include) for record in records]))
    if form == PARTIAL:
        kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        bodies = [encode(_partial(record.object()["metadata"])) for record in records]
    else:
        kind, api_version = resource.list_kind, resource.api_version
        bodies = [_body(resource, record) for record in records]
    names = (kind.encode(), api_version.encode(), encode(metadata))
    return b"".join((b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % names, b",".join(bodies), b"]}"))


def _table(resource: Resource, metadata: Object, rows: list[Object]) -> Object:
    head = [
        {
            "name": one.name,
            "type": one.type,
            "format": one.format,
            "description": one.description,
            "priority": int(one.wide),
        }
        for one in resource.columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": head,
        "rows": rows,
    }


def _row(resource: Resource, record: Record, include: str) -> Object:
    """The cells of one object, and with them its metadata, the whole object or nothing."""
    obj = record.object()
    row: Object = {"cells": [one.value(obj) for one in resource.columns]}
    if include != "None":
        row["object"] = obj if include == "Object" else _partial(obj["metadata"])
    return row


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
        line = event_line(type_, single(resource, record, form, include))
        change.lines[key] = line
    return line


def event_line(type_: str, body: bytes) -> bytes:
    """A watch event, framed as a chunk of its own."""
    return chunk(b'{"type":"%b","object":%b}\n' % (type_.encode(), body))


def bookmark(resource: Resource, rv: int, form: str, *, initial_end: bool = False) -> bytes:
    """An event that says how far a watch has come."""
    metadata: Object = {"resourceVersion": str(rv), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    if form == PARTIAL:
        body = _partial(metadata)
    elif form == TABLE:
        body = _table(resource, {"resourceVersion": str(rv)}, [{"cells": [], "object": _partial(metadata)}])
    else:
        body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return event_line("BOOKMARK", encode(body))
