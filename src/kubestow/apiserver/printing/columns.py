"""Columns of tables: a title, and a function that returns the cell of an object."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.cells import NONE, Object

Value = Callable[[Object], Any]
_NUMBERS = frozenset(
    ("Desired", "Current", "Available", "Up-to-date", "Data", "Secrets", "Allowed Disruptions", "Value", "Count")
)


class Column(NamedTuple):
    """A column of a table."""

    name: str
    value: Value
    wide: bool = False
    """Whether only `-o wide` shows it."""
    type: str = "string"
    format: str = ""
    description: str = ""


Columns = tuple[Column, ...]
Titled = tuple[str, Value | str]


def column(title: str, value: Value | str) -> Column:
    """Return a column; a title that begins with + is shown only by `-o wide`. `value` is a function or a path."""
    name = title.lstrip("+")
    kind = "integer" if name in _NUMBERS else "string"
    form = "name" if title == "Name" else ""
    return Column(name, value_at(value) if isinstance(value, str) else value, title.startswith("+"), kind, form)


def printed(*given: Titled, after: tuple[Titled, ...] = (), wide: tuple[Titled, ...] = ()) -> Columns:
    """Return the columns Name, `given`, Age, `after`, and `wide`, which only `-o wide` shows."""
    hidden = ((f"+{title}", value) for title, value in wide)
    return (NAME, *(column(*one) for one in given), AGE, *(column(*one) for one in (*after, *hidden)))


def value_at(path: str, none: Any = NONE) -> Value:
    """Return a function that reads the value at a path such as status.phase."""
    keys = path.split(".")

    def value(obj: Object) -> Any:
        found: Any = obj
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return none if found is None else found

    return value


def number_at(path: str) -> Value:
    """Return a cell function that reads a number at a path; a missing number is 0."""
    return value_at(path, none=0)


def boolean_at(path: str, none: bool = False) -> Value:
    """Return a function that reads a boolean at a path, as `true` or `false`."""
    value = value_at(path, none=none)
    return lambda obj: str(bool(value(obj))).lower()


def count(path: str) -> Value:
    """Return a function that counts the items at a path."""
    value = value_at(path, none=())
    return lambda obj: len(value(obj))


def joined_at(path: str, key: str, none: str = NONE) -> Value:
    """Return a function that joins a field of each object in the list at a path with commas."""
    value = value_at(path, none=())
    return lambda obj: cells.joined((one.get(key, "") for one in value(obj)), none)


def pair_at(path: str, first: str, second: str, none: str = "/") -> Value:
    """Return a function that joins two fields of the object at a path with a slash; `none` if there is no object."""
    value = value_at(path)

    def shown(obj: Object) -> str:
        found = value(obj)
        return f"{found.get(first, '')}/{found.get(second, '')}" if isinstance(found, dict) and found else none

    return shown


WORKLOAD: tuple[Titled, ...] = (
    ("Containers", joined_at("spec.template.spec.containers", "name")),
    ("Images", joined_at("spec.template.spec.containers", "image")),
    ("Selector", lambda obj: cells.selector(obj.get("spec", {}).get("selector"))),
)
NAME = column("Name", "metadata.name")
AGE = column("Age", lambda obj: cells.age(obj["metadata"].get("creationTimestamp")))
PLAIN: Columns = (NAME, AGE)
