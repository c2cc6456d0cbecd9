"""What claims, classes, slices and taint rules have in common: names, lists, taints, tolerations, conditions."""

import re
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import required
from kubestow.apiserver.rules.names import (
    DUPLICATE,
    INVALID,
    NOT_SUPPORTED,
    Wrong,
    dns_label,
    dns_subdomain,
    label_value,
    qualified_name,
    wrong_name,
)

LONGEST_DOMAIN, LONGEST_NAME = 63, 32
_TOO_LONG, _TOO_MANY = "FieldValueTooLong", "FieldValueTooMany"
_MAX_CONDITIONS = 4
_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_NO_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    f"or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
)


def wrong_text(text: str | None, path: str, wrong: Wrong) -> Iterator[Cause]:
    """Report a text that is missing or malformed."""
    if not text:
        yield required(path)
    else:
        yield from wrong_name(path, text, wrong)


def wrong_driver(driver: str, path: str) -> Iterator[Cause]:
    """The name of a driver; upper case is not minded."""
    yield from wrong_text(driver, path, lambda text: dns_subdomain(text.lower()))
    yield from too_long(driver, LONGEST_DOMAIN, path)


def wrong_pool(pool: str, path: str) -> Iterator[Cause]:
    """The name of a pool: parts with slashes between them."""
    for part in pool.split("/"):
        yield from wrong_text(part, path, dns_subdomain)


def wrong_attribute_name(name: str, path: str) -> Iterator[Cause]:
    """The name of an attribute or a capacity, with its domain or without."""
    domain, slash, identifier = name.rpartition("/")
    if "/" in domain:  # passed over by Kubernetes, too
        return
    if slash:
        if not domain:
            yield path, INVALID, 'Invalid value: "": the domain must not be empty'
            return
        yield from wrong_driver(domain, path)
        if not identifier:
            yield path, INVALID, 'Invalid value: "": the name must not be empty'
            return
    yield from too_long(identifier, LONGEST_NAME, path)
    if not re.fullmatch(_IDENTIFIER, identifier):
        yield path, INVALID, f'Invalid value: "{identifier}": {_NO_IDENTIFIER}'


def too_long(text: str, most: int, path: str) -> Iterator[Cause]:
    """A text of more bytes than there may be."""
    if len(text.encode()) > most:
        yield path, _TOO_LONG, f"Too long: may not be more than {most} bytes"


def wrong_size(items: Sized, most: int, path: str) -> Iterator[Cause]:
    """Report more items than allowed."""
    if len(items) > most:
        items_word = "item" if most == 1 else "items"
        yield path, _TOO_MANY, f"Too many: {len(items)}: must have at most {most} {items_word}"


def repeated(texts: Sequence[str], path: str) -> Iterator[Cause]:
    """Texts that come twice."""
    seen: set[str] = set()
    for index, text in enumerate(texts):
        if text and text in seen:
            yield f"{path}[{index}]", DUPLICATE, f'Duplicate value: "{text}"'
        seen.add(text)


def wrong_names(items: Sequence[dict[str, Any]], most: int, path: str) -> Iterator[Cause]:
    """Too many items, names that are no DNS labels, and names that come twice."""
    yield from wrong_size(items, most, path)
    for index, one in enumerate(items):
        yield from wrong_text(one.get("name", ""), f"{path}[{index}].name", dns_label)
    yield from repeated([one.get("name", "") for one in items], path)


def not_supported(text: str, supported: Sequence[str], path: str) -> Iterator[Cause]:
    """A word that is none of those there are."""
    if text not in supported:
        among = ", ".join(f'"{one}"' for one in supported)
        yield path, NOT_SUPPORTED, f'Unsupported value: "{text}": supported values: {among}'


def wrong_taint(taint: dict[str, Any], path: str) -> Iterator[Cause]:
    """A key and an effect; a value if there is one."""
    yield from wrong_name(f"{path}.key", taint.get("key", ""), qualified_name)
    yield from wrong_name(f"{path}.value", taint.get("value", ""), label_value)
    if not taint.get("effect"):
        yield required(f"{path}.effect")
    else:
        yield from not_supported(taint["effect"], _EFFECTS, f"{path}.effect")


def wrong_toleration(toleration: dict[str, Any], path: str) -> Iterator[Cause]:
    """An operator, and what it needs."""
    operator, value = toleration["operator"], toleration.get("value", "")
    if toleration.get("key"):
        yield from wrong_name(f"{path}.key", toleration["key"], qualified_name)
    yield from not_supported(operator, _OPERATORS, f"{path}.operator")
    if operator == "Exists" and value:
        yield f"{path}.value", INVALID, f'Invalid value: "{value}": must be empty for operator `Exists`'
    elif operator == "Equal":
        yield from wrong_name(f"{path}.value", value, label_value)
    if toleration.get("effect"):
        yield from not_supported(toleration["effect"], _EFFECTS, f"{path}.effect")


def wrong_conditions(owner: dict[str, Any], path: str) -> Iterator[Cause]:
    """Conditions to bind and to give up: both or none of them, all different."""
    ready, failed = "bindingConditions", "bindingFailureConditions"
    named: dict[str, Sequence[str]] = {name: owner.get(name) or () for name in (ready, failed)}
    for name, conditions in named.items():
        where = f"{path}.{name}"
        yield from wrong_size(conditions, _MAX_CONDITIONS, where)
        for index, one in enumerate(conditions):
            yield from wrong_name(f"{where}[{index}]", one, qualified_name)
        yield from repeated(conditions, where)
    for index, one in enumerate(named[failed]):
        if one in named[ready]:
            message = f"{failed} must not overlap with {ready}"
            yield f"{path}.{failed}[{index}]", INVALID, f'Invalid value: "{one}": {message}'
    for name, other in ((ready, failed), (failed, ready)):
        if named[other] and not named[name]:
            yield f"{path}.{name}", INVALID, f"Invalid value: null: {name} are required to use {other}"


Check = Callable[[dict[str, Any], str], Iterator[Cause]]


def wrong_items(items: Sequence[dict[str, Any]], path: str, check: Check) -> Iterator[Cause]:
    """What is wrong with each item of a list."""
    for index, one in enumerate(items):
        yield from check(one, f"{path}[{index}]")
