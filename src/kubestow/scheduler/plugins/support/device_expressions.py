"""CEL expressions of device selectors: compiled once, and evaluated once for each distinct device content.

Importing this module imports CEL. It is imported with the first selector, so that clusters without devices do not load
it.
"""

from kubestow.api.cel import CompileError, Device, EvaluationError, Selector, compile_selector
from kubestow.config.features import Features
from kubestow.scheduler.cluster.devices import DeviceEntry
from kubestow.scheduler.plugins.support.device_selectors import SelectorError


class Expression:
    """An expression and its cached results, by content of the device."""

    def __init__(self, source: str, features: Features) -> None:
        self._known: dict[int, bool | EvaluationError] = {}
        self._lists = features.dra_list_type_attributes
        self._compiled: Selector | CompileError
        try:
            self._compiled = compile_selector(source, self._lists, features.dra_consumable_capacity)
        except CompileError as error:
            self._compiled = error

    def matches(self, device: DeviceEntry) -> bool:
        """Return whether a device matches. Raises SelectorError if compilation or evaluation fails."""
        known = self._known.get(device.content)
        if known is None:
            known = self._known[device.content] = self._evaluate(device)
        if isinstance(known, EvaluationError):
            raise SelectorError(f"CEL runtime error: {known}")
        return known

    def _evaluate(self, device: DeviceEntry) -> bool | EvaluationError:
        if isinstance(self._compiled, CompileError):
            raise SelectorError(f"CEL compile error: {self._compiled}")
        try:
            return self._compiled.matches(Device(device.driver, device.device, self._lists))
        except EvaluationError as error:
            return error
