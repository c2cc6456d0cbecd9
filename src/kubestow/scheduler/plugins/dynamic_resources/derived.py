"""Attributes that a request derives from those of a device, for the constraints of its claim.

Importing this module imports CEL. It is imported with the first derived attribute.
"""

from kubestow.api.cel import CompileError, Derivation, Device, EvaluationError
from kubestow.api.devices import DeviceAttribute, DeviceDerivedAttribute
from kubestow.scheduler.cluster.devices import DeviceEntry
from kubestow.scheduler.plugins.dynamic_resources.errors import AllocationError


class DerivedAttribute:
    """An attribute with its compiled expression, and the values by content of the device."""

    def __init__(self, source: DeviceDerivedAttribute) -> None:
        self._name = source.name
        self._known: dict[int, DeviceAttribute | EvaluationError] = {}
        self._compiled: Derivation | CompileError
        try:
            self._compiled = Derivation(source.expression)
        except CompileError as error:
            self._compiled = error

    def of(self, device: DeviceEntry) -> DeviceAttribute:
        """Return the attribute of a device. Raises AllocationError if there is none."""
        if isinstance(self._compiled, CompileError):
            raise AllocationError(f"compile derived attribute {self._name} failed: {self._compiled}")
        if device.content not in self._known:
            self._known[device.content] = _evaluated(self._compiled, device)
        known = self._known[device.content]
        if isinstance(known, EvaluationError):
            raise AllocationError(f"evaluate derived attribute {self._name} on device {device.id} failed: {known}")
        return known


def _evaluated(compiled: Derivation, device: DeviceEntry) -> DeviceAttribute | EvaluationError:
    try:
        return compiled.attribute(Device(device.driver, device.device, lists=True))
    except EvaluationError as error:
        return error
