"""Checks shared by claims, classes, slices and taint rules: names, lists, taints, tolerations, conditions."""

import re
from collections.abc import Iterator, Sequence, Sized
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import check_choice, check_required, invalid, required
from kubestow.apiserver.rules.lists import check_unique
from kubestow.apiserver.rules.names import Wrong, check_name, dns_label, dns_subdomain, label_value, qualified_name

MAX_DOMAIN_LENGTH, MAX_NAME_LENGTH = 63, 32
_TOO_LONG, _TOO_MANY = "FieldValueTooLong", "FieldValueTooMany"
_MAX_CONDITIONS = 4
_OPERATORS = ("Equal", "Exists")
_OPERATIONS = ("*", "NodePrepareResources", "NodeUnprepareResources")
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_NO_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    f"or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
)


def check_text(text: str | None, path: str, name_format: Wrong) -> Iterator[Cause]:
    """Check that a text is set and valid."""
    if not text:
        yield required(path)
    else:
        yield from check_name(path, text, name_format)


def check_driver(driver: str, path: str) -> Iterator[Cause]:
    """Check the name of a driver; upper case is allowed."""
    yield from check_text(driver, path, lambda text: dns_subdomain(text.lower()))
    yield from check_length(driver, MAX_DOMAIN_LENGTH, path)


def check_pool(pool: str, path: str) -> Iterator[Cause]:
    """Check the name of a pool: DNS subdomains separated by slashes."""
    for part in pool.split("/"):
        yield from check_text(part, path, dns_subdomain)


def check_attribute_name(name: str, path: str) -> Iterator[Cause]:
    """Check the name of an attribute or a capacity, with or without its domain."""
    domain, slash, identifier = name.rpartition("/")
    if "/" in domain:  # Kubernetes does not check this case either.
        return
    if slash:
        if not domain:
            yield invalid(path, "", "the domain must not be empty")
            return
        yield from check_driver(domain, path)
        if not identifier:
            yield invalid(path, "", "the name must not be empty")
            return
    yield from check_length(identifier, MAX_NAME_LENGTH, path)
    if not re.fullmatch(_IDENTIFIER, identifier):
        yield invalid(path, identifier, _NO_IDENTIFIER)


def check_qualified_name(name: str, path: str) -> Iterator[Cause]:
    """Check the name of an attribute with its domain."""
    yield from check_attribute_name(name, path)
    if "/" not in name:
        yield invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def check_skipped_operations(owner: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the operations on nodes that devices do not need."""
    operations, where = owner.get("skipNodeOperations") or (), f"{path}.skipNodeOperations"
    for index, one in enumerate(operations):
        yield from check_choice(one, _OPERATIONS, f"{where}[{index}]")
    yield from check_unique(operations, where)
    if _OPERATIONS[1] in operations and not {_OPERATIONS[0], _OPERATIONS[2]}.intersection(operations):
        why = f"{_OPERATIONS[1]} cannot be skipped unless {_OPERATIONS[2]} is also skipped"
        yield invalid(where, operations, why)


def check_length(text: str, limit: int, path: str) -> Iterator[Cause]:
    """Check the maximum length of a text in bytes."""
    if len(text.encode()) > limit:
        yield path, _TOO_LONG, f"Too long: may not be more than {limit} bytes"


def check_size(items: Sized, limit: int, path: str) -> Iterator[Cause]:
    """Check the maximum number of items."""
    if len(items) > limit:
        noun = "item" if limit == 1 else "items"
        yield path, _TOO_MANY, f"Too many: {len(items)}: must have at most {limit} {noun}"


def check_names(items: Sequence[dict[str, Any]], limit: int, path: str) -> Iterator[Cause]:
    """Check the number of items, and that their names are unique DNS labels."""
    yield from check_size(items, limit, path)
    for index, one in enumerate(items):
        yield from check_text(one.get("name", ""), f"{path}[{index}].name", dns_label)
    yield from check_unique([one.get("name", "") for one in items], path)


def check_taint(taint: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the key, value and effect of a taint."""
    yield from check_name(f"{path}.key", taint.get("key", ""), qualified_name)
    yield from check_name(f"{path}.value", taint.get("value", ""), label_value)
    yield from check_required(taint, path, "effect")
    if taint.get("effect"):
        yield from check_choice(taint["effect"], _EFFECTS, f"{path}.effect")


def check_toleration(toleration: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check the key, operator, value and effect of a toleration."""
    operator, value = toleration["operator"], toleration.get("value", "")
    if toleration.get("key"):
        yield from check_name(f"{path}.key", toleration["key"], qualified_name)
    yield from check_choice(operator, _OPERATORS, f"{path}.operator")
    if operator == "Exists" and value:
        yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from check_name(f"{path}.value", value, label_value)
    if toleration.get("effect"):
        yield from check_choice(toleration["effect"], _EFFECTS, f"{path}.effect")


def check_conditions(owner: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check binding conditions and binding failure conditions: both or none are set, and all differ."""
    ready, failed = "bindingConditions", "bindingFailureConditions"
    named: dict[str, Sequence[str]] = {name: owner.get(name) or () for name in (ready, failed)}
    for name, conditions in named.items():
        where = f"{path}.{name}"
        yield from check_size(conditions, _MAX_CONDITIONS, where)
        for index, one in enumerate(conditions):
            yield from check_name(f"{where}[{index}]", one, qualified_name)
        yield from check_unique(conditions, where)
    for index, one in enumerate(named[failed]):
        if one in named[ready]:
            yield invalid(f"{path}.{failed}[{index}]", one, f"{failed} must not overlap with {ready}")
    for name, other in ((ready, failed), (failed, ready)):
        if named[other] and not named[name]:
            yield invalid(f"{path}.{name}", None, f"{name} are required to use {other}")
