"""Waiting in PreBind until the devices of a pod's claims have been made ready."""

from collections.abc import Sequence

from kubestow.cluster.listers import key_of
from kubestow.cluster.pods import PodInfo
from kubestow.framework.handle import Handle
from kubestow.model.devices import ResourceClaim
from kubestow.plugins.dynamic_resources.conditions import DeviceBindingError, has_conditions, is_late, is_ready
from kubestow.plugins.dynamic_resources.extended import IN_MEMORY
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

_LOOK_EVERY = 5.0
"""Seconds between two looks at the clock."""


async def wait_until_ready(
    claims: Sequence[ResourceClaim], pod: PodInfo, node: str, handle: Handle, seconds: float
) -> None:
    """Wait for the binding conditions of all claims; raises DeviceBindingError."""
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
                if is_late(claim, handle.clock.now(), seconds):
                    raise DeviceBindingError(f"device binding timeout: claim={claim.metadata.name}", "timeout")
                return False
        return True

    while not await handle.wait_until(are_ready, max(0.0, min(_LOOK_EVERY, end - handle.clock.now()))):
        if handle.clock.now() >= end:
            raise DeviceBindingError("device binding timeout: context deadline exceeded", "timeout")
