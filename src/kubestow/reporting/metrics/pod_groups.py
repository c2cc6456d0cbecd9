"""Groups of pods that are scheduled together."""

from kubestow.config.features import Features
from kubestow.reporting.metrics.instruments import ALPHA, Counter, Histogram
from kubestow.reporting.metrics.registry import Registry
from kubestow.reporting.metrics.scheduling import ATTEMPT_BUCKETS


class PodGroupMetrics:
    """Is told what comes of groups."""

    def __init__(self, registry: Registry, features: Features) -> None:
        served = features.generic_workload
        self._attempts = registry.add(
            Counter(
                "scheduler_podgroup_schedule_attempts_total",
                ALPHA,
                "How often a pod group was tried, by result: 'scheduled', 'unschedulable', 'waiting_on_preemption' or "
                "'error'.",
                "profile result",
            ),
            served=served,
        )
        self._attempt_seconds = registry.add(
            Histogram(
                "scheduler_podgroup_scheduling_attempt_duration_seconds",
                ALPHA,
                "How long it took to try a pod group, deciding and binding together.",
                ATTEMPT_BUCKETS,
                "profile result",
            ),
            served=served,
        )
        self._algorithm_seconds = registry.add(
            Histogram(
                "scheduler_podgroup_scheduling_algorithm_duration_seconds",
                ALPHA,
                "How long it took to choose nodes for a pod group.",
                ATTEMPT_BUCKETS,
            ),
            served=served,
        )

    def attempt_finished(self, profile: str, result: str, seconds: float) -> None:
        """`scheduled`, `unschedulable`, `waiting_on_preemption` or `error`."""
        self._attempts.inc(profile, result)
        self._attempt_seconds.observe(seconds, profile, result)

    def algorithm_finished(self, seconds: float) -> None:
        self._algorithm_seconds.observe(seconds)
