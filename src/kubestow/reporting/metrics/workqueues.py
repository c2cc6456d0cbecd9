"""Queues of work beside the scheduling queue, such as events to be sent."""

from collections.abc import Callable, Iterable

from kubestow.reporting.metrics.instruments import BETA, Counter, Gauge, Histogram, exponential_buckets
from kubestow.reporting.metrics.registry import Registry

_BUCKETS = exponential_buckets(10e-9, 10, 10)


class WorkqueueMetrics:
    """Is told about every queue by its name."""

    def __init__(self, registry: Registry) -> None:
        add = registry.add
        self._adds = add(Counter("workqueue_adds_total", BETA, "How many items were added.", "name"))
        self._retries = add(Counter("workqueue_retries_total", BETA, "How many items were added again.", "name"))
        self._depth = add(Gauge("workqueue_depth", BETA, "How many items wait.", "name"))
        self._waited = add(
            Histogram(
                "workqueue_queue_duration_seconds", BETA, "How long items waited to be worked on.", _BUCKETS, "name"
            )
        )
        self._worked = add(
            Histogram("workqueue_work_duration_seconds", BETA, "How long items were worked on.", _BUCKETS, "name")
        )
        self._unfinished = add(
            Gauge(
                "workqueue_unfinished_work_seconds",
                BETA,
                "How long the items that are being worked on have been, all together. A value that keeps growing is "
                "work that hangs.",
                "name",
            )
        )
        self._longest = add(
            Gauge(
                "workqueue_longest_running_processor_seconds",
                BETA,
                "How long the item that has been worked on the longest has been.",
                "name",
            )
        )

    def added(self, queue: str) -> None:
        self._adds.inc(queue)

    def retried(self, queue: str) -> None:
        self._retries.inc(queue)

    def started(self, queue: str, waited: float) -> None:
        """An item is being worked on, after so many seconds."""
        self._waited.observe(waited, queue)

    def finished(self, queue: str, seconds: float) -> None:
        """An item is done, after so many seconds of work."""
        self._worked.observe(seconds, queue)

    def watch_workqueue(self, queue: str, depth: Callable[[], int], running: Callable[[], Iterable[float]]) -> None:
        """Take the number of waiting items from here, and for how many seconds each of the others is worked on."""
        self._depth.watch(lambda: {(queue,): depth()})
        self._unfinished.watch(lambda: {(queue,): sum(running())})
        self._longest.watch(lambda: {(queue,): max(running(), default=0.0)})
