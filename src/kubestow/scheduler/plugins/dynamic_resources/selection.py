"""The device selectors of a class and a request, with cached results."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubestow.api.devices import DeviceClass, DeviceSelector
from kubestow.scheduler.cluster.devices import DeviceEntry
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError
from kubestow.scheduler.plugins.support.device_selectors import Expressions, SelectorError

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.support.device_expressions import Expression


class Selection:
    """The selectors that a device must match for one option of a request."""

    def __init__(self, named: Sequence[tuple[str, int, "Expression"]]) -> None:
        self._named = named
        self._known: dict[int, bool] = {}

    def matches(self, device: DeviceEntry, claim: str) -> bool:
        known = self._known.get(device.content)
        if known is None:
            known = self._known[device.content] = self._matches(device, claim)
        return known

    def may_match(self, device: DeviceEntry) -> bool:
        """Return the cached result of `matches`, True if there is none."""
        return self._known.get(device.content, True)

    def _matches(self, device: DeviceEntry, claim: str) -> bool:
        for owner, number, expression in self._named:
            try:
                if not expression.matches(device):
                    return False
            except SelectorError as error:
                where = f"{owner or f'claim {claim}'}: selector #{number}"
                if error.device:
                    where += f" on device {error.device}"
                raise AllocationError(f"{where}: {error}") from None
        return True


class Selectors:
    """Creates selections; expressions that they share are evaluated once."""

    def __init__(self) -> None:
        self._expressions = Expressions()

    def clear(self) -> None:
        """Drop all cached results, because the numbers of device contents have been reassigned."""
        self._expressions.clear()

    def of(self, device_class: DeviceClass, selectors: Sequence[DeviceSelector]) -> Selection:
        owner = f"class {device_class.metadata.name}"
        named = [(owner, *of) for of in enumerate(map(self._expressions.of, device_class.spec.selectors))]
        return Selection([*named, *(("", *of) for of in enumerate(map(self._expressions.of, selectors)))])
