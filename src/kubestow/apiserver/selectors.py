"""Label and field selectors of query strings, and label selectors of objects.

They are compiled to conditions on the labels and fields that the store keeps beside each object, so that no object is
decoded to evaluate them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubestow.apiserver.errors import bad_request
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.store.records import Record

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*\Z")
_COMPARE = re.compile(rf"\s*({_KEY})\s*(==|!=|=|>|<)\s*({_VALUE})\s*\Z")
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*\Z")
_PLAIN_VALUE = re.compile(rf"{_VALUE}\Z")

LabelCondition = tuple[str, str, frozenset[str]]
"""Key, operator (In, NotIn, Exists, DoesNotExist, Gt, Lt) and values."""


@dataclass(slots=True, eq=False)
class LabelSelector:
    """Conditions on labels; all of them must match."""

    conditions: tuple[LabelCondition, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels match every condition."""
        return all(_label_holds(labels.get(key), operator, values) for key, operator, values in self.conditions)


def _label_holds(value: str | None, operator: str, values: frozenset[str]) -> bool:
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None:
        return False
    try:
        bound = int(next(iter(values)))
        return int(value) > bound if operator == "Gt" else int(value) < bound
    except ValueError:
        return False


def parse_labels(text: str) -> LabelSelector | None:
    """Parse a `labelSelector` parameter; None if it selects everything. Raises ApiError if it is invalid."""
    conditions: list[LabelCondition] = []
    for part in _split(text):
        if match := _SET.match(part):
            key, word, listed = match.groups()
            values = [value.strip() for value in listed.split(",")]
            if not all(_PLAIN_VALUE.match(value) for value in values):
                raise bad_request(f'labelSelector: "{part.strip()}" contains an invalid label value')
            conditions.append((key, "In" if word == "in" else "NotIn", frozenset(values)))
        elif match := _COMPARE.match(part):
            key, sign, value = match.groups()
            operator = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}[sign]
            if operator in ("Gt", "Lt") and not value.isdecimal():
                raise bad_request(f'labelSelector: "{part.strip()}" compares with a value that is not a number')
            conditions.append((key, operator, frozenset((value,))))
        elif match := _EXISTS.match(part):
            conditions.append((match[2], "DoesNotExist" if match[1] else "Exists", frozenset()))
        else:
            raise bad_request(f'labelSelector: cannot parse "{part.strip()}"; try key=value or key in (a,b)')
    return LabelSelector(tuple(conditions)) if conditions else None


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    if not text.strip():
        return []
    parts: list[str] = []
    depth = 0
    start = 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def parse_label_pairs(text: str) -> dict[str, str]:
    """Parse labels such as `a=b,c=d`."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def from_object(selector: Mapping[str, Any] | None) -> LabelSelector | None:
    """Compile a LabelSelector object; None if it is missing, which selects nothing."""
    if selector is None:
        return None
    conditions: list[LabelCondition] = [
        (key, "In", frozenset((value,))) for key, value in selector.get("matchLabels", {}).items()
    ]
    conditions.extend(
        (term["key"], term["operator"], frozenset(term.get("values", ())))
        for term in selector.get("matchExpressions", ())
    )
    return LabelSelector(tuple(conditions))


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
    selector = FieldSelector()
    for part in text.split(",") if text.strip() else ():
        if not part.strip():
            continue
        for sign in ("!=", "==", "="):
            path, found, value = part.partition(sign)
            if found:
                break
        else:
            raise bad_request(f'fieldSelector: cannot parse "{part}"; try path=value or path!=value')
        path = path.strip()
        equal = sign != "!="
        path = resource.field_aliases.get(path, path)
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
    return selector if selector.name or selector.namespace or selector.terms else None
