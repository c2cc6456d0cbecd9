"""Devices that must be made ready before a pod can be bound, and say so in the status of their claim."""

from kubestow.model.devices import AllocatedDeviceStatus, DeviceCondition, DeviceRequestAllocationResult, ResourceClaim
from kubestow.model.timestamps import parse_time
from kubestow.reporting.log_messages import quote


class DeviceBindingError(Exception):
    """Devices were not made ready; `status` says how that counts."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all devices of a claim are; raises DeviceBindingError if one never will be."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results:
        if not result.bindingConditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        conditions = {condition.type: condition for condition in status.conditions}
        for name in result.bindingFailureConditions:
            failed = conditions.get(name)
            if failed is not None and failed.status == "True":
                raise DeviceBindingError(_failure(claim, failed), "failure")
        if not all(name in conditions and conditions[name].status == "True" for name in result.bindingConditions):
            return False
    return True


def _failure(claim: ResourceClaim, failed: DeviceCondition) -> str:
    what = f"claim={claim.metadata.name}, reason={failed.reason}, message={quote(failed.message)}"
    return f"device binding failed: {what}"


def is_late(claim: ResourceClaim, now: float, seconds: float) -> bool:
    """Whether a claim has waited too long for its devices."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocationTimestamp is None or not has_conditions(claim):
        return False
    return parse_time(allocation.allocationTimestamp) + seconds < now


def has_conditions(claim: ResourceClaim) -> bool:
    """Whether a claim has devices that must be made ready."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.bindingConditions for result in allocation.devices.results)


def is_hopeless(claim: ResourceClaim, now: float, seconds: float) -> bool:
    """Whether other devices should be tried."""
    try:
        return not is_ready(claim) and is_late(claim, now, seconds)
    except DeviceBindingError:
        return True


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next((of for of in claim.status.devices if (of.driver, of.pool, of.device) == wanted), None)
