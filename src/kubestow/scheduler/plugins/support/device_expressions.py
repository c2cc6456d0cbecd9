"""CEL expressions of device selectors: compiled once, and evaluated once for each distinct device content.

Importing this module imports CEL. It is imported with the first selector, so that clusters without devices do not load
it.
"""

from kubestow.api.cel import CompileError, Device, EvaluationError, Selector, compile_selector
from kubestow.scheduler.cluster.devices import DeviceEntry
from kubestow.scheduler.plugins.support.device_selectors import SelectorError

_MISSING_KEY = "no such key:"
_HINT = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for "
    "optional fields"
)


class Expression:
    """An expression and its cached results, by content of the device."""

    def __init__(self, source: str) -> None:
        self._known: dict[int, bool | EvaluationError] = {}
        self._compiled: Selector | CompileError
        try:
            # The API server checks the feature gates; a stored expression may use everything.
            self._compiled = compile_selector(source, lists=True, shares=True)
        except CompileError as error:
            self._compiled = error

    def matches(self, device: DeviceEntry) -> bool:
        """Return whether a device matches. Raises SelectorError if compilation or evaluation fails."""
        known = self._known.get(device.content)
        if known is None:
            known = self._known[device.content] = self._evaluate(device)
        if isinstance(known, EvaluationError):
            hint = f". {_HINT}" if _MISSING_KEY in str(known) else ""
            raise SelectorError(f"CEL runtime error: {known}{hint}", device.id)
        return known

    def _evaluate(self, device: DeviceEntry) -> bool | EvaluationError:
        if isinstance(self._compiled, CompileError):
            raise SelectorError(f"CEL compile error: {self._compiled}")
        try:
            return self._compiled.matches(Device(device.driver, device.device, lists=True))
        except EvaluationError as error:
            return error
