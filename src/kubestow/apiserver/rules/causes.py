"""Causes of invalid fields, with Kubernetes' messages: functions that return a cause, and checks that yield causes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubestow.api import quantity
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    Wrong,
    check_name,
    quote_value,
)

PORTS = "must be between 1 and 65535, inclusive"


def required(path: str, why: str = "") -> Cause:
    """Return the cause of a missing value."""
    return path, REQUIRED, f"Required value: {why}" if why else "Required value"


def invalid(path: str, value: Any, why: str) -> Cause:
    """Return the cause of an invalid value."""
    return path, INVALID, f"Invalid value: {quote_value(value)}: {why}"


def unsupported(path: str, value: Any, known: Sequence[str]) -> Cause:
    """Return the cause of a value that is not in an enumeration."""
    return (
        path,
        NOT_SUPPORTED,
        f"Unsupported value: {quote_value(value)}: supported values: {', '.join(map(quote_value, known))}",
    )


def forbidden(path: str, why: str) -> Cause:
    """Return the cause of a field that may not be set."""
    return path, FORBIDDEN, f"Forbidden: {why}"


def duplicate(path: str, value: Any) -> Cause:
    """Return the cause of a repeated value."""
    return path, DUPLICATE, f"Duplicate value: {quote_value(value)}"


def check_amount(path: str, amount: str, *, whole: bool) -> Iterator[Cause]:
    """Check that a quantity is not negative and, if `whole`, is an integer."""
    if amount[0] == "-" and quantity.nano(amount) < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    if whole and quantity.nano(amount) % 10**9:
        yield invalid(path, amount, "must be an integer")


def check_not_negative(holder: dict[str, Any], path: str, *names: str) -> Iterator[Cause]:
    """Check that the numbers in some fields are not negative."""
    for name in names:
        value = holder.get(name)
        if value is not None and value < 0:
            yield invalid(f"{path}.{name}", value, "must be greater than or equal to 0")


def check_required(holder: dict[str, Any], path: str, *names: str) -> Iterator[Cause]:
    """Check that some fields are set and not empty."""
    for name in names:
        if not holder.get(name):
            yield required(f"{path}.{name}")


def check_choice(value: Any, known: Sequence[str], path: str) -> Sequence[Cause]:
    """Check that a value is in an enumeration."""
    return () if value in known else (unsupported(path, value, known),)


def check_enums(holder: dict[str, Any], path: str, choices: Mapping[str, Sequence[str]]) -> Iterator[Cause]:
    """Check that the values of some fields, where set, are in their enumerations."""
    for name, known in choices.items():
        value = holder.get(name)
        if value is not None and value not in known:
            yield unsupported(f"{path}.{name}" if path else name, value, known)


def check_unchanged(new: dict[str, Any], old: dict[str, Any], path: str, *names: str) -> Iterator[Cause]:
    """Check that some fields are unchanged."""
    for name in names:
        if new.get(name) != old.get(name):
            yield invalid(f"{path}.{name}" if path else name, new.get(name), "field is immutable")


def immutable(*names: str, of: str = "") -> Callable[[dict[str, Any], dict[str, Any]], Iterator[Cause]]:
    """Return an update rule that rejects changes of fields of an object, or of the object in its field `of`."""

    def holder(obj: dict[str, Any]) -> dict[str, Any]:
        return obj.get(of, {}) if of else obj

    return lambda new, old: check_unchanged(holder(new), holder(old), of, *names)


def check_text(holder: dict[str, Any], path: str, name: str, name_format: Wrong | None = None) -> Sequence[Cause]:
    """Check that a field is set and, with `name_format`, valid."""
    text = holder.get(name)
    if not text:
        return (required(f"{path}.{name}"),)
    return () if name_format is None else check_name(f"{path}.{name}", text, name_format)


def check_one(holder: dict[str, Any], path: str, kinds: Sequence[str], what: str) -> Iterator[Cause]:
    """Check that at most one of some exclusive fields is set; the first one is the valid one."""
    for name in [one for one in kinds if one in holder][1:]:
        yield forbidden(f"{path}.{name}", f"may not specify more than 1 {what} type")
