"""Which devices the selectors of a class and of a request let through."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubestow.cluster.devices import DeviceEntry
from kubestow.model.devices import DeviceClass, DeviceSelector
from kubestow.plugins.dynamic_resources.errors import AllocationError

if TYPE_CHECKING:
    from kubestow.plugins.dynamic_resources.expressions import Expression

_MOST_EXPRESSIONS = 4_096


class Selection:
    """The selectors that devices must pass for one option of a request."""

    def __init__(self, named: Sequence[tuple[str, int, "Expression"]]) -> None:
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
        self._expressions: dict[str, Expression] = {}

    def forget(self) -> None:
        """What was said of devices no longer holds."""
        self._expressions = {}

    def of(self, device_class: DeviceClass, selectors: Sequence[DeviceSelector]) -> Selection:
        owner = f"class {device_class.metadata.name}"
        named = [(owner, *of) for of in enumerate(map(self._expression, device_class.spec.selectors))]
        return Selection([*named, *(("", *of) for of in enumerate(map(self._expression, selectors)))])

    def _expression(self, selector: DeviceSelector) -> "Expression":
        source = "" if selector.cel is None else selector.cel.expression
        found = self._expressions.get(source)
        if found is None:
            # Imported only now: start-up must not pay for CEL.
            from kubestow.plugins.dynamic_resources.expressions import Expression

            while len(self._expressions) >= _MOST_EXPRESSIONS:
                del self._expressions[next(iter(self._expressions))]
            found = self._expressions[source] = Expression(source)
        return found
