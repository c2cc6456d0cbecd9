"""The selectors of devices in use, by their expressions."""

from typing import TYPE_CHECKING

from kubestow.api.devices import DeviceSelector
from kubestow.config.features import Features

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.support.device_expressions import Expression

_MOST_EXPRESSIONS = 4_096


class SelectorError(Exception):
    """A selector cannot be compiled or evaluated."""


class Expressions:
    """All expressions in use."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._expressions: dict[str, Expression] = {}

    def forget(self) -> None:
        """What was said of devices no longer holds."""
        self._expressions = {}

    def of(self, selector: DeviceSelector) -> "Expression":
        source = "" if selector.cel is None else selector.cel.expression
        found = self._expressions.get(source)
        if found is None:
            # Imported only now: start-up must not pay for CEL.
            from kubestow.scheduler.plugins.support.device_expressions import Expression

            while len(self._expressions) >= _MOST_EXPRESSIONS:
                del self._expressions[next(iter(self._expressions))]
            found = self._expressions[source] = Expression(source, self._features)
        return found
