"""Which devices the selectors of a class and of a request let through."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubestow.api.devices import DeviceClass, DeviceSelector
from kubestow.config.features import Features
from kubestow.scheduler.cluster.devices import DeviceEntry
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError
from kubestow.scheduler.plugins.support.device_selectors import Expressions, SelectorError

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.support.device_expressions import Expression


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
            except SelectorError as error:
                raise AllocationError(f"{owner or f'claim {claim}'}: selector #{number}: {error}") from None
        return True


class Selectors:
    """Makes selections; expressions that they share are evaluated once."""

    def __init__(self, features: Features) -> None:
        self._expressions = Expressions(features)

    def forget(self) -> None:
        """What was said of devices no longer holds."""
        self._expressions.forget()

    def of(self, device_class: DeviceClass, selectors: Sequence[DeviceSelector]) -> Selection:
        owner = f"class {device_class.metadata.name}"
        named = [(owner, *of) for of in enumerate(map(self._expressions.of, device_class.spec.selectors))]
        return Selection([*named, *(("", *of) for of in enumerate(map(self._expressions.of, selectors)))])
