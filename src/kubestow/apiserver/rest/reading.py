"""Get and list: selectors, pages, and which version of the world a list shows."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import msgspec

from kubestow.apiserver.errors import ApiError, bad_request, expired, not_found
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.selectors import FieldSelector, LabelSelector, parse_fields, parse_labels
from kubestow.apiserver.store.records import Record
from kubestow.apiserver.store.store import Store


@dataclass(slots=True)
class Selection:
    """Which objects of a resource are meant."""

    namespace: str | None
    labels: LabelSelector | None
    fields: FieldSelector | None

    def matches(self, record: Record) -> bool:
        """Whether an object is among them."""
        return (
            (self.namespace is None or record.namespace == self.namespace)
            and (self.fields is None or self.fields.matches(record))
            and (self.labels is None or self.labels.matches(record.labels))
        )

    @property
    def everything(self) -> bool:
        """Whether no object is left out."""
        return self.namespace is None and self.labels is None and self.fields is None


def selection(resource: Resource, namespace: str | None, name: str, query: dict[str, str]) -> Selection:
    """The selection a request asks for."""
    fields = parse_fields(query.get("fieldSelector", ""), resource)
    if name:
        fields = fields or FieldSelector()
        fields.name.append((True, name))
    return Selection(namespace, parse_labels(query.get("labelSelector", "")), fields)


def get(store: Store, resource: Resource, namespace: str, name: str) -> Record:
    """One object."""
    record = store.get(resource.storage, namespace, name)
    if record is None:
        raise not_found(resource.group, resource.plural, name)
    return record


def version_of(text: str, what: str = "resourceVersion") -> int:
    """A version in a parameter; 0 when it is empty."""
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise bad_request(f'{what}: "{text}" is not a version')
    return int(text)


def whole_number(query: dict[str, str], name: str) -> int:
    """A parameter that is a whole number, not below zero; 0 when it is absent."""
    text = query.get(name, "")
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise bad_request(f'{name}: "{text}" is not a whole number')
    return int(text)


def is_true(query: dict[str, str], name: str) -> bool:
    """Whether a parameter says yes."""
    return query.get(name, "").lower() in ("1", "true", "t")


@dataclass(slots=True)
class Page:
    """Some or all objects of a list, and where it goes on."""

    records: list[Record]
    metadata: dict[str, Any]


def list_page(store: Store, resource: Resource, selected: Selection, query: dict[str, str]) -> Page:
    """The objects that are selected, by namespace and name, a page at a time if so wished."""
    collection = store.collection(resource.storage)
    limit = whole_number(query, "limit")
    rv, start = _from_where(store, query)
    if rv is not None and rv == store.rv:
        rv = None
    records = collection.ordered(selected.namespace, rv)
    shown_rv = store.rv if rv is None else rv
    if selected.fields is not None or selected.labels is not None:
        records = [record for record in records if selected.matches(record)]
    if start is not None:
        records = [record for record in records if (record.namespace, record.name) > start]
    metadata: dict[str, Any] = {"resourceVersion": str(shown_rv)}
    if limit and len(records) > limit:
        metadata["remainingItemCount"] = len(records) - limit
        records = records[:limit]
        last = records[-1]
        token = msgspec.json.encode([shown_rv, last.namespace, last.name])
        metadata["continue"] = base64.urlsafe_b64encode(token).decode()
    return Page(records, metadata)


def _from_where(store: Store, query: dict[str, str]) -> tuple[int | None, tuple[str, str] | None]:
    """The version to list at (None for now) and the key to go on after."""
    token = query.get("continue", "")
    if token:
        try:
            rv, namespace, name = msgspec.json.decode(base64.urlsafe_b64decode(token), type=tuple[int, str, str])
        except (msgspec.DecodeError, binascii.Error, ValueError) as error:
            raise bad_request("continue: this token is not one of ours") from error
        if rv > store.rv:
            raise expired("The provided continue parameter is too old; start the list again")
        return rv, (namespace, name)
    rv = version_of(query.get("resourceVersion", ""))
    match = query.get("resourceVersionMatch", "")
    if match not in ("", "Exact", "NotOlderThan"):
        raise bad_request(f'resourceVersionMatch: "{match}" is neither Exact nor NotOlderThan')
    if match and "resourceVersion" not in query:
        raise bad_request("resourceVersionMatch: forbidden unless resourceVersion is provided")
    if rv > store.rv:
        raise ApiError(504, "Timeout", f"Too large resource version: {rv}, current: {store.rv}")
    if match == "Exact":
        if rv == 0:
            raise bad_request('resourceVersionMatch: Exact is forbidden for resourceVersion "0"')
        return rv, None
    return None, None
