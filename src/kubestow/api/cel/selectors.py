"""Device selectors of DeviceClasses and ResourceClaims.

`compile_selector` returns the cached program of an expression; `Selector.matches` evaluates it for a `Device`, which is
created from the device that a driver publishes. The variable `device` has the fields `driver`, `attributes`, `capacity`
and `allowMultipleAllocations`; attributes and capacity are maps by domain of maps by name. Two feature gates change the
declarations: `lists` is DRAListTypeAttributes, `shares` is DRAConsumableCapacity.
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
from kubestow.api.cel.types import ANY, BOOL, DYN, QUANTITY, STRING, Kind, Type, map_of
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
