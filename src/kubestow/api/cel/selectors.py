"""Device selectors of DeviceClasses and ResourceClaims, and derived attributes of ResourceClaims.

`compile_selector` returns the cached program of an expression; `Selector.matches` evaluates it for a `Device`, which is
created from the device that a driver publishes. `Derivation.attribute` evaluates to an attribute. The variable `device`
has the fields `driver`, `attributes`, `capacity` and `allowMultipleAllocations`; attributes and capacity are maps by
domain of maps by name. Two feature gates change the declarations: `lists` is DRAListTypeAttributes, `shares` is
DRAConsumableCapacity.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from kubestow.api.cel.environment import Environment
from kubestow.api.cel.errors import CompileError, EvaluationError
from kubestow.api.cel.library import KUBERNETES
from kubestow.api.cel.library.lists import ATTRIBUTES
from kubestow.api.cel.library.quantity import Quantity
from kubestow.api.cel.library.semver import Semver
from kubestow.api.cel.program import Program
from kubestow.api.cel.types import ANY, BOOL, DYN, INT, QUANTITY, SEMVER, STRING, Kind, Type, map_of
from kubestow.api.cel.values import DefaultingMap, KubernetesValue, type_name
from kubestow.api.devices import Device as ModelDevice
from kubestow.api.devices import DeviceAttribute, DeviceCapacity
from kubestow.api.quantity import QuantityError

CACHED = 1_024

_DEVICE = Type(Kind.STRUCT, "kubernetes.DRADevice")


@cache
def environment(lists: bool = False, shares: bool = True) -> Environment:
    """Return the declarations for selectors."""
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, DYN if lists else ANY)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
        "allowMultipleAllocations": BOOL,
    }
    if not shares:
        del fields["allowMultipleAllocations"]
    functions = {**KUBERNETES, **ATTRIBUTES} if lists else KUBERNETES
    return Environment(functions=functions, variables={"device": _DEVICE}, structs={_DEVICE.name: fields})


class Device:
    """The variable `device` of an expression, which does not contain the name of the device."""

    __slots__ = ("fields",)

    def __init__(self, driver: str, device: ModelDevice, lists: bool = False) -> None:
        """Convert a published device. Raises EvaluationError for an invalid value."""
        attributes = {name: _value(name, attribute, lists) for name, attribute in device.attributes.items()}
        self.fields: dict[str, object] = {
            "driver": driver,
            "attributes": _by_domain(driver, attributes),
            "capacity": _by_domain(driver, {name: _amount(name, c) for name, c in device.capacity.items()}),
            "allowMultipleAllocations": device.allowMultipleAllocations or False,
        }


def _by_domain(driver: str, values: Mapping[str, object]) -> DefaultingMap:
    """Return values by domain and name. The domain of a name without one is the driver."""
    domains: dict[str, dict[str, object]] = {}
    for qualified, value in values.items():
        domain, slash, name = qualified.partition("/")
        if not slash:
            domain, name = driver, qualified
        domains.setdefault(domain, {})[name] = value
    return DefaultingMap(domains)


def _value(name: str, attribute: DeviceAttribute, lists: bool) -> object:
    try:
        if lists:
            for values in (attribute.ints, attribute.bools, attribute.strings):
                if values is not None:
                    return list(values)
            if attribute.versions is not None:
                return [Semver(version) for version in attribute.versions]
        for value in (attribute.integer, attribute.boolean, attribute.string):
            if value is not None:
                return value
        if attribute.version is None:
            raise EvaluationError(f"attribute {name}: unsupported attribute value")
        return Semver(attribute.version)
    except ValueError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None


def _amount(name: str, capacity: DeviceCapacity) -> Quantity:
    try:
        return Quantity.read(capacity.value)
    except QuantityError as error:
        raise EvaluationError(f"capacity {name}: {error}") from None


class Selector(Program):
    """A compiled expression that selects devices."""

    __slots__ = ()

    def __init__(self, source: str, lists: bool = False, shares: bool = True) -> None:
        """Compile an expression. Raises CompileError."""
        super().__init__(source, environment(lists, shares))
        if self.type not in (BOOL, ANY) and not (lists and self.type == DYN):
            raise CompileError(f"must evaluate to bool or the unknown type, not {self.type.declared}")

    def matches(self, device: Device) -> bool:
        """Return whether the device is selected. Raises EvaluationError if the expression has no boolean value."""
        try:
            result = self._fast(device.fields)
        except Exception as error:
            result = self._evaluate_carefully(error, device.fields)
        if result is True or result is False:
            return result
        raise EvaluationError(
            f"CEL result of type {type_name(result)} could not be converted to bool: {_conversion_problem(result)}"
        )


_SCALARS = (BOOL, INT, STRING, SEMVER, ANY, DYN)
_ATTRIBUTE_FIELDS: dict[type, tuple[str, str, str]] = {
    bool: ("boolean", "bools", "bool"),
    int: ("integer", "ints", "int"),
    str: ("string", "strings", "string"),
    Semver: ("version", "versions", "semver"),
}
"""By type of a value: the field of an attribute for one value, that for a list, and the name in messages."""
_GO_TYPES = {
    "bool": "bool",
    "bytes": "[]uint8",
    "double": "float64",
    "google.protobuf.Duration": "time.Duration",
    "google.protobuf.Timestamp": "time.Time",
    "int": "int64",
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "null_type": "structpb.NullValue",
    "string": "string",
    "uint": "uint64",
}


class Derivation(Program):
    """A compiled expression that derives an attribute of a device."""

    __slots__ = ()

    def __init__(self, source: str) -> None:
        """Compile an expression, which may use everything that a gate enables. Raises CompileError."""
        super().__init__(source, environment(lists=True, shares=True))
        if self.type not in _SCALARS and not (self.type.kind is Kind.LIST and self.type.params[0] in _SCALARS):
            scalars = "a primitive scalar (string, integer, boolean, semver) or a list of these scalars"
            raise CompileError(f"must evaluate to {scalars}, not {self.type.declared}")

    def attribute(self, device: Device) -> DeviceAttribute:
        """Return the attribute of a device. Raises EvaluationError if the value cannot be one."""
        value = self.evaluate(device.fields)
        fields = _ATTRIBUTE_FIELDS.get(value.__class__)
        if fields is not None:
            return DeviceAttribute(**{fields[0]: _plain(value)})
        if value.__class__ is not list:
            raise EvaluationError(f"unsupported CEL return type: {_go_type(value)}")
        if not value:
            return DeviceAttribute(strings=())
        fields = _ATTRIBUTE_FIELDS.get(value[0].__class__)
        if fields is None:
            raise EvaluationError(f"unsupported list element type: {_go_type(value[0])}")
        for number, element in enumerate(value):
            if element.__class__ is not value[0].__class__:
                problem = f"to be {fields[2]}, got {_go_type(element)}"
                raise EvaluationError(f"expected list element at index {number} {problem}")
        elements: Any = tuple(map(_plain, value))
        return DeviceAttribute(**{fields[1]: elements})


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, Semver) else value


def _go_type(value: object) -> str:
    return _GO_TYPES.get(type_name(value), type_name(value))


def _conversion_problem(result: Any) -> str:
    if isinstance(result, KubernetesValue):
        return f"type conversion error from '{result.go_type.removeprefix('cel.')}' to 'bool'"
    if result.__class__ is str:
        return "unsupported native conversion from string to 'bool'"
    if result.__class__ is int:
        return "unsupported type conversion from 'int' to bool"
    return f"type conversion error from {type_name(result)} to 'bool'"


@lru_cache(maxsize=CACHED)
def compile_selector(source: str, lists: bool = False, shares: bool = True) -> Selector:
    """Return the selector of an expression, cached. Raises CompileError."""
    return Selector(source, lists, shares)
