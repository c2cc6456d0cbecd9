"""What is wrong with a field, in Kubernetes' words: each function makes one cause, or yields those there are."""

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
    shown,
    wrong_name,
)

PORTS = "must be between 1 and 65535, inclusive"


def required(path: str, why: str = "") -> Cause:
    """Something is missing."""
    return path, REQUIRED, f"Required value: {why}" if why else "Required value"


def invalid(path: str, value: Any, why: str) -> Cause:
    """A value that may not be."""
    return path, INVALID, f"Invalid value: {shown(value)}: {why}"


def unsupported(path: str, value: Any, known: Sequence[str]) -> Cause:
    """A word that is none of those known."""
    return path, NOT_SUPPORTED, f"Unsupported value: {shown(value)}: supported values: {', '.join(map(shown, known))}"


def forbidden(path: str, why: str) -> Cause:
    """Something that may not be said here."""
    return path, FORBIDDEN, f"Forbidden: {why}"


def duplicate(path: str, value: Any) -> Cause:
    """Something said twice."""
    return path, DUPLICATE, f"Duplicate value: {shown(value)}"


def wrong_amount(path: str, amount: str, *, whole: bool) -> Iterator[Cause]:
    """A quantity that may not be negative, and where it counts things is `whole`."""
    if amount[0] == "-" and quantity.nano(amount) < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    if whole and quantity.nano(amount) % 10**9:
        yield invalid(path, amount, "must be an integer")


def below_zero(holder: dict[str, Any], path: str, *names: str) -> Iterator[Cause]:
    """Numbers that may not be negative."""
    for name in names:
        value = holder.get(name)
        if value is not None and value < 0:
            yield invalid(f"{path}.{name}", value, "must be greater than or equal to 0")


def out_of(holder: dict[str, Any], path: str, choices: Mapping[str, Sequence[str]]) -> Iterator[Cause]:
    """Words that are none of their choices."""
    for name, known in choices.items():
        value = holder.get(name)
        if value is not None and value not in known:
            yield unsupported(f"{path}.{name}" if path else name, value, known)


def changed(new: dict[str, Any], old: dict[str, Any], path: str, *names: str) -> Iterator[Cause]:
    """Fields that can never change."""
    for name in names:
        if new.get(name) != old.get(name):
            yield invalid(f"{path}.{name}" if path else name, new.get(name), "field is immutable")


def immutable(*names: str, of: str = "") -> Callable[[dict[str, Any], dict[str, Any]], Iterator[Cause]]:
    """Return an update rule that refuses changes of fields of an object, or of the object in its field `of`."""

    def holder(obj: dict[str, Any]) -> dict[str, Any]:
        return obj.get(of, {}) if of else obj

    return lambda new, old: changed(holder(new), holder(old), of, *names)


def unnamed(holder: dict[str, Any], path: str, name: str, wrong: Wrong | None = None) -> Iterator[Cause]:
    """A name that is missing, or is no name."""
    text = holder.get(name)
    if not text:
        yield required(f"{path}.{name}")
    elif wrong is not None:
        yield from wrong_name(f"{path}.{name}", text, wrong)


def several(holder: dict[str, Any], path: str, kinds: Sequence[str], what: str) -> Iterator[Cause]:
    """More than one of a few that exclude each other; the first one counts."""
    for name in [one for one in kinds if one in holder][1:]:
        yield forbidden(f"{path}.{name}", f"may not specify more than 1 {what} type")
