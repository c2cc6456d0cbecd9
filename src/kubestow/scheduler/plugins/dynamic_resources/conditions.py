"""Binding conditions of devices: PreBind waits until the devices of a pod's claims are ready.

The driver of a device reports its conditions in the status of the claim.
"""

from collections.abc import Sequence

from kubestow.api.devices import AllocatedDeviceStatus, DeviceCondition, DeviceRequestAllocationResult, ResourceClaim
from kubestow.api.timestamps import parse_time
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.plugins.dynamic_resources.extended import IN_MEMORY
from kubestow.telemetry.log_messages import quote
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_CHECK_INTERVAL = 5.0
"""Seconds between two checks for a timeout."""


class DeviceBindingError(Exception):
    """Devices did not become ready. `status` is the label value for the metrics."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all devices of a claim are ready. Raises DeviceBindingError if one has failed."""
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


def has_timed_out(claim: ResourceClaim, now: float, seconds: float) -> bool:
    """Return whether a claim has been waiting for its devices for more than `seconds`."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocationTimestamp is None or not has_conditions(claim):
        return False
    return parse_time(allocation.allocationTimestamp) + seconds < now


def has_conditions(claim: ResourceClaim) -> bool:
    """Return whether a claim has devices with binding conditions."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.bindingConditions for result in allocation.devices.results)


def has_failed(claim: ResourceClaim, now: float, seconds: float) -> bool:
    """Return whether the devices of a claim have failed or timed out, so that others should be allocated."""
    try:
        return not is_ready(claim) and has_timed_out(claim, now, seconds)
    except DeviceBindingError:
        return True


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next((of for of in claim.status.devices if (of.driver, of.pool, of.device) == wanted), None)


async def wait_until_ready(
    claims: Sequence[ResourceClaim], pod: PodInfo, node: str, handle: Handle, seconds: float
) -> None:
    """Wait for the binding conditions of all claims. Raises DeviceBindingError if a device fails or time is up."""
    if True not in map(has_conditions, claims):
        return
    note = f"waiting for binding conditions for device on node {node}"
    handle.recorder.event(pod.pod, "Normal", "BindingConditionsPending", "Scheduling", note)
    start, status = handle.clock.now(), "success"
    try:
        keys = [key_of(claim) for claim in claims if claim.metadata.name != IN_MEMORY]
        await _wait(keys, handle, start + seconds, seconds)
    except DeviceBindingError as error:
        status = error.status
        raise
    finally:
        _count(claims, pod.pod.spec.schedulerName, status, handle.clock.now() - start, handle.metrics)


def _count(
    claims: Sequence[ResourceClaim], profile: str, status: str, seconds: float, metrics: SchedulerMetrics
) -> None:
    allocations = [claim.status.allocation for claim in claims if claim.status.allocation is not None]
    for result in [result for allocation in allocations for result in allocation.devices.results]:
        metrics.binding_conditions_seconds.observe(seconds, result.driver, profile, status)
        if result.bindingConditions:
            metrics.binding_conditions_allocations.inc(result.driver, profile, status)


async def _wait(keys: Sequence[str], handle: Handle, end: float, seconds: float) -> None:
    store = handle.cluster.listers.resource_claims

    def are_ready() -> bool:
        for key in keys:
            claim = store.get(key)
            if claim is None:
                raise DeviceBindingError(f'could not find ResourceClaim "{key}"', "error")
            if not is_ready(claim):
                if has_timed_out(claim, handle.clock.now(), seconds):
                    raise DeviceBindingError(f"device binding timeout: claim={claim.metadata.name}", "timeout")
                return False
        return True

    while not await handle.wait_until(are_ready, max(0.0, min(_CHECK_INTERVAL, end - handle.clock.now()))):
        if handle.clock.now() >= end:
            raise DeviceBindingError("device binding timeout: context deadline exceeded", "timeout")
