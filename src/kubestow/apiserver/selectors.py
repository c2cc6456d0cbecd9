"""Label and field selectors of query strings, and label selectors of objects.

They are evaluated on the labels and fields that the store keeps beside each object, so that no object is decoded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubestow.api import fields
from kubestow.api.labels import API_OPERATORS, NOTHING, Operator, Requirement, Selector, SelectorError, parse_selector
from kubestow.apiserver.errors import bad_request
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.store.records import Record


def parse_labels(text: str) -> Selector | None:
    """Parse a `labelSelector` parameter; None if it selects everything. Raises ApiError if it is invalid."""
    try:
        selector = parse_selector(text)
    except SelectorError as error:
        raise bad_request(f"labelSelector: {error}") from None
    return None if selector.is_everything else selector


def parse_label_pairs(text: str) -> dict[str, str]:
    """Parse labels such as `a=b,c=d`."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def from_object(selector: Mapping[str, Any] | None) -> Selector | None:
    """Compile a LabelSelector object; None if it is missing, which selects nothing. Its values are not checked."""
    if selector is None:
        return None
    terms = selector.get("matchExpressions", ())
    if any(term["operator"] not in API_OPERATORS for term in terms):
        return NOTHING
    equal = [Requirement(key, Operator.EQUALS, (value,)) for key, value in selector.get("matchLabels", {}).items()]
    others = (Requirement(one["key"], API_OPERATORS[one["operator"]], one.get("values", ())) for one in terms)
    return Selector((*equal, *others))


@dataclass(slots=True, eq=False)
class FieldSelector:
    """Comparisons with fields of an object; all of them must match."""

    name: list[tuple[bool, str]] = field(default_factory=list)
    namespace: list[tuple[bool, str]] = field(default_factory=list)
    terms: list[tuple[int, int, bool, str]] = field(default_factory=list)
    """Index of the field, index of the field used if it is empty, whether the values must be equal, and the value."""

    def matches(self, record: Record) -> bool:
        """Return whether a stored object matches every comparison."""
        fields = record.fields
        for index, fallback, equal, value in self.terms:
            if ((fields[index] or fields[fallback]) == value) is not equal:
                return False
        return all((record.name == value) is equal for equal, value in self.name) and all(
            (record.namespace == value) is equal for equal, value in self.namespace
        )


def parse_fields(text: str, resource: Resource) -> FieldSelector | None:
    """Parse a `fieldSelector` parameter; None if it selects everything. Raises ApiError if it is invalid."""
    try:
        terms = fields.parse_fields(text).terms
    except SelectorError as error:
        raise bad_request(f"fieldSelector: {error}") from None
    selector = FieldSelector()
    for given, value, equal in terms:
        path = resource.field_aliases.get(given.strip(), given.strip())
        if path == "metadata.name":
            selector.name.append((equal, value))
        elif path == "metadata.namespace":
            selector.namespace.append((equal, value))
        elif path in resource.selectable_fields:
            index, other = map(resource.selectable_fields.index, (path, resource.field_fallbacks.get(path, path)))
            selector.terms.append((index, other, equal, value))
        else:
            known = ("metadata.name", "metadata.namespace", *resource.selectable_fields)
            raise bad_request(
                f'fieldSelector: "{path}" is not a known field selector for {resource.plural}; '
                f"known: {', '.join(known)}"
            )
    return selector if terms else None
