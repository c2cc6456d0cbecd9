"""The reading verbs get and list: selectors, paging, and the resource version that a list shows."""

import base64
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from kubestow.api.codec import NOT_JSON
from kubestow.api.labels import Selector
from kubestow.apiserver.errors import ApiError, bad_request, expired, not_found
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.selectors import FieldSelector, parse_fields, parse_labels
from kubestow.apiserver.store.collection import NAME, NAMESPACE, Topic
from kubestow.apiserver.store.records import Record
from kubestow.apiserver.store.store import Store

_PAGING_SECONDS = 300.0
"""Time for which a list can be paged at one resource version; etcd's compaction interval in Kubernetes."""


@dataclass(slots=True)
class Selection:
    """A selection of the objects of a resource."""

    namespace: str | None
    labels: Selector | None
    fields: FieldSelector | None

    def matches(self, record: Record) -> bool:
        """Return whether an object is selected."""
        return (
            (self.namespace is None or record.namespace == self.namespace)
            and (self.fields is None or self.fields.matches(record))
            and (self.labels is None or self.labels.matches(record.labels))
        )

    @property
    def topic(self) -> Topic | None:
        """A value that all selected objects share: that of a field, their name or their namespace."""
        if self.fields is not None:
            for index, fallback, equal, value in self.fields.terms:
                if equal and index == fallback:
                    return index, value
            for equal, value in self.fields.name:
                if equal:
                    return NAME, value
        return None if self.namespace is None else (NAMESPACE, self.namespace)

    @property
    def everything(self) -> bool:
        """Whether every object is selected."""
        return self.namespace is None and self.labels is None and self.fields is None


def selection(resource: Resource, namespace: str | None, name: str, query: dict[str, str]) -> Selection:
    """Return the selection of a request."""
    fields = parse_fields(query.get("fieldSelector", ""), resource)
    if name:
        fields = fields or FieldSelector()
        fields.name.append((True, name))
    return Selection(namespace, parse_labels(query.get("labelSelector", "")), fields)


def get(store: Store, resource: Resource, namespace: str, name: str) -> Record:
    """Return an object; raises ApiError if it does not exist."""
    record = store.get(resource.storage, namespace, name)
    if record is None:
        raise not_found(resource.group, resource.plural, name)
    return record


def version_of(text: str) -> int:
    """Parse a resource version; an empty text is 0."""
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise bad_request(f'resourceVersion: "{text}" is not a version')
    return int(text)


def whole_number(query: dict[str, str], name: str) -> int:
    """Return a parameter that is a non-negative integer; 0 if it is absent."""
    text = query.get(name, "")
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise bad_request(f'{name}: "{text}" is not a whole number')
    return int(text)


def is_true(query: dict[str, str], name: str) -> bool:
    """Return whether a boolean parameter is true."""
    return query.get(name, "").lower() in ("1", "true", "t")


@dataclass(slots=True)
class Page:
    """Some or all objects of a list, and its metadata with the continue token."""

    records: list[Record]
    metadata: dict[str, Any]


def list_page(store: Store, resource: Resource, selected: Selection, query: dict[str, str]) -> Page:
    """Return a page of the selected objects, ordered by namespace and name; all of them without a `limit`."""
    collection = store.collection(resource.storage)
    limit = whole_number(query, "limit")
    start = _read_token(query.get("continue", ""))
    rv = _version(store, query) if start is None else _version_of_page(store, start)
    after = (start.namespace, start.name) if start is not None else None
    try:
        objects, keys = collection.key_range(selected.namespace, None if rv == store.rv else rv, after)
    except ApiError as error:
        if start is None or error.code != 410:
            raise
        raise _expired_token(start) from error
    list_rv = store.rv if rv is None else rv
    issued = start.issued if start is not None and start.rv >= 0 else store.clock.now()
    metadata: dict[str, Any] = {"resourceVersion": str(list_rv)}
    if selected.fields is None and selected.labels is None:
        records = [objects[key] for key in (keys[:limit] if limit else keys)]
        left = len(keys) - len(records)
        if left:
            metadata["remainingItemCount"] = left
    else:
        # The number of remaining items is left out, as counting them means evaluating every object.
        matching = (record for record in map(objects.__getitem__, keys) if selected.matches(record))
        records = list(islice(matching, limit + 1)) if limit else list(matching)
        left = len(records) - limit if limit else 0
        records = records[:limit] if limit else records
    if left > 0:
        metadata["continue"] = _Token(list_rv, issued, records[-1].namespace, records[-1].name).encode()
    return Page(records, metadata)


class _Token(msgspec.Struct, array_like=True, frozen=True):
    """A continue token: continue after an object, at a resource version; a negative version is the current state."""

    rv: int
    issued: float
    namespace: str
    name: str

    def encode(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode()


def _read_token(token: str) -> _Token | None:
    if not token:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=_Token)
    except (*NOT_JSON, ValueError) as error:
        raise bad_request("continue: this is not a valid token") from error


def _expired_token(start: _Token) -> ApiError:
    """Return the error for an expired token, with a token that continues in the current state."""
    message = "The provided continue parameter is too old to display a consistent list result. You can start a new list"
    message += " without the continue parameter, or use the continue token in this response to retrieve the remainder"
    message += " of the results. Continuing with the provided token results in an inconsistent list."
    return expired(message, _Token(-1, 0, start.namespace, start.name).encode())


def _version_of_page(store: Store, start: _Token) -> int | None:
    if start.rv < 0:
        return None
    if start.rv > store.rv or store.clock.now() - start.issued > _PAGING_SECONDS:
        raise _expired_token(start)
    return start.rv


def _version(store: Store, query: dict[str, str]) -> int | None:
    """Return the version to list at; None for the current one."""
    rv = version_of(query.get("resourceVersion", ""))
    match = query.get("resourceVersionMatch", "")
    if match not in ("", "Exact", "NotOlderThan"):
        raise bad_request(f'resourceVersionMatch: "{match}" is neither Exact nor NotOlderThan')
    if match and "resourceVersion" not in query:
        raise bad_request("resourceVersionMatch: forbidden unless resourceVersion is provided")
    if rv > store.rv:
        raise ApiError(504, "Timeout", f"Too large resource version: {rv}, current: {store.rv}")
    if match != "Exact":
        return None
    if rv == 0:
        raise bad_request('resourceVersionMatch: Exact is forbidden for resourceVersion "0"')
    return rv
