"""The forms of objects in responses: whole objects, rows of tables, or metadata only, as the client accepts.

Whole objects are sent as the stored bytes where possible; other forms are built from the decoded object.
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
def negotiate_form(accept: str) -> str:
    """Return the first form in an Accept header that is supported; raises ApiError if there is none."""
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
    """Return an object in a form."""
    if form == OBJECT:
        return _body(resource, record)
    if form == PARTIAL:
        return encode(_partial(record.object()["metadata"]))
    return encode(_table(resource, {"resourceVersion": str(record.rv)}, [_row(resource, record, include)]))


def listing(resource: Resource, records: list[Record], metadata: Object, form: str, include: str) -> bytes:
    """Return a list of objects in a form."""
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
    """Return the table row of an object; `include` selects what is added to the cells: metadata, object or nothing."""
    obj = record.object()
    row: Object = {"cells": [one.value(obj) for one in resource.columns]}
    if include != "None":
        row["object"] = obj if include == "Object" else _partial(obj["metadata"])
    return row


def watch_line(resource: Resource, change: Change, type_: str, form: str, include: str = "Metadata") -> bytes:
    """Return a watch event as bytes, encoded once for all watchers with the same form."""
    key = (type_, f"{form}{include}" if form == TABLE else form + resource.api_version)
    line = change.lines.get(key)
    if line is None:
        record = change.record
        if type_ == "DELETED" and change.type != "DELETED" and change.previous is not None:
            # The object left the selection, not the store: send its previous state with the version of this change.
            obj = change.previous.object()
            obj["metadata"]["resourceVersion"] = str(change.rv)
            record = change.previous.next_version(change.rv, encode(obj))
        line = event_line(type_, single(resource, record, form, include))
        change.lines[key] = line
    return line


def event_line(type_: str, body: bytes) -> bytes:
    """Return a watch event, framed as one HTTP chunk."""
    return chunk(b'{"type":"%b","object":%b}\n' % (type_.encode(), body))


def bookmark(resource: Resource, rv: int, form: str, *, initial_end: bool = False) -> bytes:
    """Return a BOOKMARK event: the version up to which a watch has sent all changes."""
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
