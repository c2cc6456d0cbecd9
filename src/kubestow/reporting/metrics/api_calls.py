"""Calls to the API server that nobody waits for."""

from collections.abc import Mapping

from kubestow.config.features import Features
from kubestow.model.pod import Pod
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.instruments import ALPHA, Counter, Gauge, Histogram
from kubestow.reporting.metrics.registry import Registry
from kubestow.reporting.metrics.scheduling import ATTEMPT_BUCKETS

log = get_logger(__name__)


class ApiCallMetrics:
    """Observes the dispatcher of calls."""

    def __init__(self, registry: Registry, features: Features) -> None:
        served = features.scheduler_async_api_calls
        self._calls = registry.add(
            Counter(
                "scheduler_async_api_call_execution_total",
                ALPHA,
                "How many calls were sent that nobody waited for.",
                "call_type result",
            ),
            served=served,
        )
        self._call_seconds = registry.add(
            Histogram(
                "scheduler_async_api_call_execution_duration_seconds",
                ALPHA,
                "How long calls took that nobody waited for.",
                ATTEMPT_BUCKETS,
                "call_type result",
            ),
            served=served,
        )
        self._pending = registry.add(
            Gauge(
                "scheduler_pending_async_api_calls",
                ALPHA,
                "How many calls that nobody waits for are still to be sent.",
                "call_type",
            ),
            served=served,
        )

    def api_call_finished(self, call: str, result: str, seconds: float) -> None:
        """A call has ended in `success` or `error`."""
        self._calls.inc(call, result)
        self._call_seconds.observe(seconds, call, result)

    def api_call_failed(self, call: str, pod: Pod, error: Exception) -> None:
        """A call was given up."""
        log.error("API call failed", err=error, call=call, pod=pod.key)

    def watch_waiting(self, waiting: Mapping[str, int]) -> None:
        """Take the number of calls still to be sent from here, by kind."""
        self._pending.watch(lambda: {(call,): count for call, count in waiting.items()})
