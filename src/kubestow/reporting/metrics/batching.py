"""Pods that are the same to the scheduler: how often what was found for one served the next."""

from kubestow.reporting.metrics.instruments import ALPHA, Counter, Histogram, exponential_buckets
from kubestow.reporting.metrics.registry import Registry

_BUCKETS = exponential_buckets(0.00001, 2, 12)

HINT_USED, HINT_NOT_USED, NO_HINT = "hint_used", "hint_not_used", "no_hint"


class BatchMetrics:
    """Is told how classes of same pods fare. A hint is what a class knows from the pods before."""

    def __init__(self, registry: Registry) -> None:
        add = registry.add
        self._attempts = add(
            Counter(
                "scheduler_batch_attempts_total",
                ALPHA,
                "How often what was known from a same pod was used, not used, or not there.",
                "profile result",
            )
        )
        self._flushed = add(
            Counter(
                "scheduler_batch_cache_flushed_total",
                ALPHA,
                "How often what was known from same pods was given up, by reason.",
                "profile reason",
            )
        )
        self._hint_seconds = add(
            Histogram(
                "scheduler_get_node_hint_duration_seconds",
                ALPHA,
                "How long it took to look up what is known from a same pod.",
                _BUCKETS,
                "hinted profile",
            )
        )
        self._store_seconds = add(
            Histogram(
                "scheduler_store_schedule_results_duration_seconds",
                ALPHA,
                "How long it took to keep what was found for the next same pod.",
                _BUCKETS,
                "profile",
            )
        )

    def batch_tried(self, profile: str, result: str) -> None:
        """`hint_used`, `hint_not_used` or `no_hint`."""
        self._attempts.inc(profile, result)

    def batch_flushed(self, profile: str, reason: str) -> None:
        """What was known is of no use any more."""
        self._flushed.inc(profile, reason)

    def hint_looked_up(self, profile: str, found: bool, seconds: float) -> None:
        self._hint_seconds.observe(seconds, "hint" if found else NO_HINT, profile)

    def results_stored(self, profile: str, seconds: float) -> None:
        self._store_seconds.observe(seconds, profile)
