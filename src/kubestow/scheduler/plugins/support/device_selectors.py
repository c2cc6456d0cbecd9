"""A cache of compiled device selectors."""

from typing import TYPE_CHECKING

from kubestow.api.devices import DeviceSelector

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.support.device_expressions import Expression

_MAX_EXPRESSIONS = 4_096


class SelectorError(Exception):
    """A selector cannot be compiled, or not be evaluated for a device."""

    def __init__(self, message: str, device: str = "") -> None:
        """`device`: the ID of the device, empty if the selector cannot be compiled."""
        super().__init__(message)
        self.device = device


class Expressions:
    """The compiled expressions by source, limited in number; the oldest is dropped first."""

    def __init__(self) -> None:
        self._expressions: dict[str, Expression] = {}

    def clear(self) -> None:
        """Drop all cached results, because the numbers of device contents have been reassigned."""
        self._expressions = {}

    def of(self, selector: DeviceSelector) -> "Expression":
        source = "" if selector.cel is None else selector.cel.expression
        found = self._expressions.get(source)
        if found is None:
            # Imported here, so that start-up does not load CEL.
            from kubestow.scheduler.plugins.support.device_expressions import Expression

            while len(self._expressions) >= _MAX_EXPRESSIONS:
                del self._expressions[next(iter(self._expressions))]
            found = self._expressions[source] = Expression(source)
        return found
