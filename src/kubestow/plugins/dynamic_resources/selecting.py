"""Which devices the selectors of a class and of a request let through.

An expression is compiled once, and evaluated once for each content that a device can have.
"""

from collections.abc import Sequence

from kubestow.cel import CompileError, Device, EvaluationError, Selector, compile_selector
from kubestow.cluster.devices import DeviceEntry
from kubestow.model.devices import DeviceClass, DeviceSelector
from kubestow.plugins.dynamic_resources.errors import AllocationError

_MOST_EXPRESSIONS = 4_096


class _Expression:
    """An expression, with what it said of devices."""

    def __init__(self, source: str) -> None:
        self._known: dict[int, bool | EvaluationError] = {}
        self._compiled: Selector | CompileError
        try:
            self._compiled = compile_selector(source)
        except CompileError as error:
            self._compiled = error

    def matches(self, device: DeviceEntry) -> bool:
        known = self._known.get(device.content)
        if known is None:
            known = self._known[device.content] = self._evaluate(device)
        if isinstance(known, EvaluationError):
            raise AllocationError(f"CEL runtime error: {known}")
        return known

    def _evaluate(self, device: DeviceEntry) -> bool | EvaluationError:
        if isinstance(self._compiled, CompileError):
            raise AllocationError(f"CEL compile error: {self._compiled}")
        try:
            return self._compiled.matches(Device(device.driver, device.device))
        except EvaluationError as error:
            return error


class Selection:
    """The selectors that devices must pass for one option of a request."""

    def __init__(self, named: Sequence[tuple[str, int, _Expression]]) -> None:
        self._named = named
        self._known: dict[int, bool] = {}

    def matches(self, device: DeviceEntry, claim: str) -> bool:
        known = self._known.get(device.content)
        if known is None:
            known = self._known[device.content] = self._matches(device, claim)
        return known

    def may_match(self, device: DeviceEntry) -> bool:
        """Whether it matches, as far as that is known."""
        return self._known.get(device.content, True)

    def _matches(self, device: DeviceEntry, claim: str) -> bool:
        for owner, number, expression in self._named:
            try:
                if not expression.matches(device):
                    return False
            except AllocationError as error:
                raise AllocationError(f"{owner or f'claim {claim}'}: selector #{number}: {error}") from None
        return True


class Selectors:
    """All expressions in use."""

    def __init__(self) -> None:
        self._expressions: dict[str, _Expression] = {}

    def forget(self) -> None:
        """What was said of devices no longer holds."""
        self._expressions = {}

    def of(self, device_class: DeviceClass, selectors: Sequence[DeviceSelector]) -> Selection:
        owner = f"class {device_class.metadata.name}"
        named = [(owner, *of) for of in enumerate(map(self._expression, device_class.spec.selectors))]
        return Selection([*named, *(("", *of) for of in enumerate(map(self._expression, selectors)))])

    def _expression(self, selector: DeviceSelector) -> _Expression:
        source = "" if selector.cel is None else selector.cel.expression
        found = self._expressions.get(source)
        if found is None:
            while len(self._expressions) >= _MOST_EXPRESSIONS:
                del self._expressions[next(iter(self._expressions))]
            found = self._expressions[source] = _Expression(source)
        return found
