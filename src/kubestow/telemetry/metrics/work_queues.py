"""The metrics of work queues: workqueue_..."""

from kubestow.telemetry.metrics.instruments import BETA, Counter, Gauge, Histogram, exponential_buckets
from kubestow.telemetry.metrics.registry import Registry

_WORK = exponential_buckets(10e-9, 10, 10)


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
