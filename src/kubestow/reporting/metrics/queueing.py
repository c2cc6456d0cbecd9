"""The queue: how many pods wait where, why they came there, and how the hints fare."""

from collections.abc import Mapping
from typing import Protocol

from kubestow.model.pod import Pod
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.framework import PLUGIN_BUCKETS
from kubestow.reporting.metrics.instruments import ALPHA, BETA, STABLE, Counter, Gauge, Histogram
from kubestow.reporting.metrics.registry import Registry

log = get_logger(__name__)


class QueueLike(Protocol):
    """What is asked of the queue."""

    def lengths(self) -> Mapping[str, int]: ...

    def rejections(self) -> Mapping[tuple[str, str], int]: ...

    def in_flight_counts(self) -> Mapping[str, int]: ...


class QueueMetrics:
    """Observes the queue."""

    def __init__(self, registry: Registry) -> None:
        add = registry.add
        self._incoming = add(
            Counter(
                "scheduler_queue_incoming_pods_total",
                STABLE,
                "How many pods came into a queue, by the event that brought them.",
                "event queue",
            )
        )
        self._hint_seconds = add(
            Histogram(
                "scheduler_queueing_hint_execution_duration_seconds",
                ALPHA,
                "How long a plugin needed to say whether an event may let a pod in.",
                PLUGIN_BUCKETS,
                "event hint plugin",
            )
        )
        self._pending = add(
            Gauge(
                "scheduler_pending_pods",
                STABLE,
                "How many pods wait, by queue: 'active', to be tried next; 'backoff', after a pause; 'unschedulable', "
                "until something changes; 'gated', never tried since something holds them back.",
                "queue",
            )
        )
        self._unschedulable = add(
            Gauge(
                "scheduler_unschedulable_pods",
                BETA,
                "How many waiting pods a plugin has rejected. A pod counts for every plugin that did: do not sum up.",
                "plugin profile",
            )
        )
        self._in_flight = add(
            Gauge(
                "scheduler_inflight_events",
                ALPHA,
                "How many events are kept for pods that are being scheduled.",
                "event",
            )
        )

    def pod_entered(self, queue: str, event: str) -> None:
        self._incoming.inc(event, queue)

    def hint_ran(self, plugin: str, event: str, result: str, seconds: float) -> None:
        self._hint_seconds.observe(seconds, event, result, plugin)

    def hint_failed(self, plugin: str, event: str, pod: Pod, error: Exception) -> None:
        log.unexpected(
            "Queueing hint failed; the pod will be tried again", err=error, plugin=plugin, event=event, pod=pod.key
        )

    def sort_failed(self, plugin: str, pod: Pod, error: BaseException) -> None:
        log.unexpected("Queue sort plugin failed; the pod goes after the others", err=error, plugin=plugin, pod=pod.key)

    def watch_queue(self, queue: QueueLike) -> None:
        """Take the numbers of waiting pods and kept events from here."""
        self._pending.watch(lambda: {(name,): length for name, length in queue.lengths().items()})
        self._unschedulable.watch(lambda: {(plugin, profile): n for (plugin, profile), n in queue.rejections().items()})
        self._in_flight.watch(lambda: {(event,): count for event, count in queue.in_flight_counts().items()})
