"""The representation of CEL values in Python, and their comparison.

int, double, string, bytes, bool, null, list and map are Python's own types; a struct is a map. The other types are here
or, with their functions, in `library`. In Python, True equals 1, but not in CEL, so that every comparison here tests
the classes of the values.
"""

from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Any

from kubestow.api.cel.errors import EvaluationError

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class Uint(int):
    """An unsigned integer: equal to an int of the same value, but of another type."""

    __slots__ = ()


class TypeValue:
    """A type as a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


class Optional:
    """A value that may be missing."""

    __slots__ = ("present", "value")

    def __init__(self, present: bool, value: object = None) -> None:
        self.present = present
        self.value = value

    def __str__(self) -> str:
        return f"optional({text_of(self.value)})" if self.present else "optional.none()"


NONE = Optional(False)


class KubernetesValue:
    """A value of a type that Kubernetes adds, compared by `key`.

    A comparison with a value of another type is an error, not false.
    """

    __slots__ = ("key",)
    type_name = ""
    go_type = ""

    def __init_subclass__(cls) -> None:
        TYPE_NAMES[cls] = cls.type_name

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KubernetesValue) and other.__class__ is self.__class__ and bool(other.key == self.key)

    def __hash__(self) -> int:
        return hash((self.__class__, self.key))


def _empty(_key: str) -> object:
    return {}


class DefaultingMap(dict[str, object]):
    """A map with a default for missing keys, which is an empty map unless given; `in` tests for existing keys."""

    __slots__ = ("_missing",)

    def __init__(self, known: Mapping[str, object], missing: Callable[[str], object] = _empty) -> None:
        super().__init__(known)
        self._missing = missing

    def __missing__(self, key: str) -> object:
        return self._missing(key)


TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    NoneType: "null_type",
    list: "list",
    dict: "map",
    DefaultingMap: "map",
    TypeValue: "type",
    Optional: "optional_type",
}
_GO_TYPES = {"bool": "Bool", "int": "Int", "uint": "Uint", "double": "Double", "string": "String", "bytes": "Bytes"} | {
    "null_type": "Null",
    "google.protobuf.Duration": "Duration",
    "google.protobuf.Timestamp": "Timestamp",
}
_NUMBERS: frozenset[type] = frozenset((int, Uint, float))
_MAPS: frozenset[type] = frozenset((dict, DefaultingMap))
_NESTED: frozenset[type] = frozenset((list, dict, DefaultingMap, Optional))


def type_name(value: object) -> str:
    """Return the name of the type of a value."""
    return TYPE_NAMES[value.__class__]


def go_type(value: object) -> str:
    """Return the name of the Go type of a value, which occurs in some messages of cel-go."""
    return value.go_type if isinstance(value, KubernetesValue) else f"types.{_GO_TYPES.get(type_name(value), '?')}"


def text_of(value: object) -> str:
    """Return the text of a value in a message."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "null"
        case list() | dict():
            return "[...]" if isinstance(value, list) else "{...}"
    return str(value)


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal: numbers of any types, others only of the same type."""
    kind, other = left.__class__, right.__class__
    if kind is other and kind not in _NESTED:
        return bool(left == right)
    if kind in _NUMBERS and other in _NUMBERS:
        return bool(
            float(left) == right if other is float else left == float(right) if kind is float else left == right
        )
    if left is None or right is None:
        return False
    if kind is other is list:
        return len(left) == len(right) and all(map(equal, left, right))
    if kind in _MAPS and other in _MAPS:
        return len(left) == len(right) and all(
            (found := find(right, key))[0] and equal(value, found[1]) for key, value in left.items()
        )
    if kind is other is Optional:
        return left.present == right.present and equal(left.value, right.value)
    if isinstance(left, KubernetesValue):
        raise no_such_overload()
    return False


def unequal(left: object, right: object) -> bool:
    """Return whether two values differ; those that cannot be compared do."""
    try:
        return not equal(left, right)
    except EvaluationError:
        return True


def equals(left: object, right: object) -> bool:
    """Return whether two values are equal; those that cannot be compared are not."""
    return not unequal(left, right)


def compare(function: str, left: Any, right: Any) -> int:
    """Return a negative number, 0 or a positive number if `left` is less than, equal to or greater than `right`."""
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS and other in _NUMBERS:
        if kind is float or other is float:
            if left != left or right != right:
                raise EvaluationError("NaN values cannot be ordered")
            left, right = float(left), float(right)
    elif kind in _NESTED or kind in (NoneType, TypeValue) or isinstance(left, KubernetesValue):
        raise EvaluationError(f"no such overload: {function}")
    elif kind is not other:
        raise no_such_overload()
    return bool(left > right) - bool(left < right)


def find(container: Mapping[Any, Any], key: Any) -> tuple[bool, Any]:
    """Return whether a map has a key, and its value."""
    if container.__class__ is DefaultingMap:
        return True, container[key] if key.__class__ is str else {}
    try:
        if key not in container or (isinstance(key, bool) is not isinstance(next(iter(container)), bool)):
            return False, None
    except TypeError:  # an unhashable value cannot be a key
        return False, None
    return True, container[key]


def look_up(container: Any, key: Any) -> tuple[bool, Any]:
    """Return whether a map or list has a key or index, and its value."""
    kind: type = container.__class__
    if kind in _MAPS:
        return find(container, key)
    if kind is not list:
        return False, None
    if type(key) not in _NUMBERS:
        raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
    if key != key or key in (float("inf"), float("-inf")) or int(key) != key or not INT_MIN <= key <= INT_MAX:
        raise EvaluationError(f"unsupported index value {text_of(key)} in list")
    return (True, container[int(key)]) if 0 <= key < len(container) else (False, None)


def index(container: Any, key: Any) -> Any:
    """Return the value at a key or index; for an optional container, an optional value."""
    if container.__class__ is Optional:
        return index_optional(container, key)
    found, value = look_up(container, key)
    if not found:
        what = "index out of bounds" if container.__class__ is list else "no such key"
        raise EvaluationError(f"{what}: {text_of(key)}")
    return value


def index_optional(container: Any, key: Any) -> Optional:
    """Return the optional value at a key or index."""
    if container.__class__ is Optional:
        if not container.present:
            return NONE
        container = container.value
    found, value = look_up(container, key)
    return Optional(True, value) if found else NONE


def has(container: Any, field: str) -> bool:
    """Return whether a map has a key."""
    return index_optional(container, field).present


def contains(container: Any, value: Any) -> bool:
    """Evaluate the `in` operator."""
    if container.__class__ is list:
        return any(equals(value, item) for item in container)
    if container.__class__ is DefaultingMap:
        return value.__class__ is str and value in container
    if container.__class__ is dict:
        return find(container, value)[0]
    raise no_such_overload()


def boolean(value: object) -> bool:
    """Return the value. Raises EvaluationError if it is not a bool."""
    if value is True or value is False:
        return value
    raise no_such_overload()


def keys_or_items(value: Any) -> Iterable[Any]:
    """Return the elements for a macro with one variable: items or keys."""
    if isinstance(value, list | dict):
        return value
    raise EvaluationError(f"got '{go_type(value)}', expected iterable type")


def pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the elements for a macro with two variables: indexes and items, or keys and values."""
    if isinstance(value, list):
        return enumerate(value)
    if isinstance(value, dict):
        return value.items()
    raise EvaluationError(f"unsupported comprehension range type: {go_type(value)}")
