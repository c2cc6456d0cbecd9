"""The metrics of work queues: workqueue_..."""

from time import perf_counter

from kubestow.telemetry.metrics.instruments import (
    BETA,
    MAX_RECENT,
    Counter,
    Gauge,
    Histogram,
    Observations,
    exponential_buckets,
)
from kubestow.telemetry.metrics.registry import Registry

_WORK = exponential_buckets(10e-9, 10, 10)


class QueueMetrics:
    """The metrics of one queue, whose items are processed one at a time: cheaper to update than those by name."""

    __slots__ = ("_began", "_waited", "_worked", "adds", "retries")

    def __init__(self, waited: Observations, worked: Observations) -> None:
        self.adds = self.retries = 0
        self._waited, self._worked = waited, worked
        self._began = 0.0

    def begin(self, waited: float) -> None:
        """Begin to process an item that waited for some seconds."""
        self._waited.recent.append(waited)
        self._began = perf_counter()

    def end(self) -> None:
        """End the processing of an item."""
        self._worked.recent.append(perf_counter() - self._began)
        if len(self._worked.recent) >= MAX_RECENT:
            self._waited.count()
            self._worked.count()


class WorkQueueMetrics:
    """The metrics that queues update, each with its name as label."""

    def __init__(self, registry: Registry) -> None:
        add = registry.add
        # A table. Each row: name, stability level, help, buckets of a histogram, labels.
        # fmt: off
        self.work_adds = add(Counter("workqueue_adds_total", BETA, "Number of added items.", "name"))
        self.work_retries = add(Counter("workqueue_retries_total", BETA, "Number of retried items.", "name"))
        self.work_depth = add(Gauge("workqueue_depth", BETA, "Number of waiting items.", "name"))
        self.work_waited = add(Histogram("workqueue_queue_duration_seconds",
            BETA, "Time that items waited in the queue.", _WORK, "name"))
        self.work_seconds = add(Histogram("workqueue_work_duration_seconds",
            BETA, "Time that items took to process.", _WORK, "name"))
        self.work_unfinished = add(Gauge("workqueue_unfinished_work_seconds",
            BETA, "Sum of the time that the items in progress have taken so far. A value that keeps growing indicates "
            "a hang.", "name"))
        self.work_longest = add(Gauge("workqueue_longest_running_processor_seconds",
            BETA, "Time that the oldest item in progress has taken so far.", "name"))

    def queue(self, name: str) -> QueueMetrics:
        """Return new metrics of a queue; those of queues with the same name are added up."""
        queue = QueueMetrics(self.work_waited.of(name), self.work_seconds.of(name))
        self.work_adds.watch(lambda: {(name,): queue.adds})
        self.work_retries.watch(lambda: {(name,): queue.retries})
        return queue
