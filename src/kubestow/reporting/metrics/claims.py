"""What pods claim besides room: volumes and devices."""

from kubestow.config.features import Features
from kubestow.reporting.metrics.instruments import ALPHA, Counter, Histogram, exponential_buckets
from kubestow.reporting.metrics.registry import Registry


class VolumeMetrics:
    """Is told how finding and binding volumes fares."""

    def __init__(self, registry: Registry) -> None:
        self._requests = registry.add(
            Counter(
                "scheduler_volume_binder_cache_requests_total",
                ALPHA,
                "How often assumed volumes were kept or looked up.",
                "operation",
            )
        )
        self._failures = registry.add(
            Counter(
                "scheduler_volume_scheduling_stage_error_total",
                ALPHA,
                "How often finding or binding volumes failed, by stage.",
                "operation",
            )
        )

    def cache_used(self, operation: str) -> None:
        self._requests.inc(operation)

    def stage_failed(self, operation: str) -> None:
        """`predicate`, `assume` or `bind` failed."""
        self._failures.inc(operation)


class DeviceMetrics:
    """Is told how allocating devices fares."""

    def __init__(self, registry: Registry, features: Features) -> None:
        self._creations = registry.add(
            Counter(
                "scheduler_resourceclaim_creates_total",
                ALPHA,
                "How often a resource claim was to be created for a pod.",
                "status",
            ),
            served=features.dra_extended_resource,
        )
        waits = features.dra_device_binding_conditions
        self._allocations = registry.add(
            Counter(
                "scheduler_dra_bindingconditions_allocations_total",
                ALPHA,
                "How often devices with binding conditions were allocated, by driver and attempt.",
                "driver profile status",
            ),
            served=waits,
        )
        self._wait_seconds = registry.add(
            Histogram(
                "scheduler_dra_bindingconditions_wait_duration_seconds",
                ALPHA,
                "How long PreBind waited for binding conditions of devices.",
                exponential_buckets(0.1, 2, 14),
                "driver profile status",
            ),
            served=waits,
        )

    def claim_created(self, status: str) -> None:
        """`success` or `failure`."""
        self._creations.inc(status)

    def conditions_awaited(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """`success`, `failure`, `timeout` or `error`."""
        self._allocations.inc(driver, profile, status)
        self._wait_seconds.observe(seconds, driver, profile, status)
