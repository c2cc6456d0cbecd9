"""What comes of pods: attempts, how long they take, preemption; and how much the scheduler has at hand."""

from collections.abc import Callable, Mapping, Sized
from typing import Protocol

from kubestow.config.features import Features
from kubestow.reporting.metrics.instruments import (
    ALPHA,
    BETA,
    STABLE,
    Counter,
    Gauge,
    Histogram,
    Key,
    exponential_buckets,
)
from kubestow.reporting.metrics.registry import Registry

ATTEMPT_BUCKETS = exponential_buckets(0.001, 2, 15)
EVENT_BUCKETS = exponential_buckets(0.0001, 2, 12)
WAIT_BUCKETS = exponential_buckets(0.01, 2, 20)

_MANY_ATTEMPTS = 15
_ATTEMPTS = (*map(str, range(_MANY_ATTEMPTS)), f"{_MANY_ATTEMPTS}+")


class NodesLike(Protocol):
    @property
    def row_of(self) -> Sized: ...


class ClusterLike(Protocol):
    """What is asked of the cluster."""

    @property
    def nodes(self) -> NodesLike: ...

    @property
    def pod_count(self) -> int: ...

    @property
    def assumed_count(self) -> int: ...


class SchedulerMetrics:
    """Is told by the scheduler what it did."""

    def __init__(self, registry: Registry, features: Features) -> None:
        add = registry.add
        self._attempts = add(
            Counter(
                "scheduler_schedule_attempts_total",
                STABLE,
                "How often a pod was tried, by result: 'scheduled'; 'unschedulable', no node would take it; 'error', "
                "something went wrong inside.",
                "profile result",
            )
        )
        self._attempt_seconds = add(
            Histogram(
                "scheduler_scheduling_attempt_duration_seconds",
                STABLE,
                "How long it took to try a pod, deciding and binding together.",
                ATTEMPT_BUCKETS,
                "profile result",
            )
        )
        self._algorithm_seconds = add(
            Histogram(
                "scheduler_scheduling_algorithm_duration_seconds",
                ALPHA,
                "How long it took to choose a node.",
                ATTEMPT_BUCKETS,
            )
        )
        self._pod_attempts = add(
            Histogram(
                "scheduler_pod_scheduling_attempts",
                STABLE,
                "How many attempts a pod needed until it was scheduled.",
                exponential_buckets(1, 2, 5),
            )
        )
        self._pod_seconds = add(
            Histogram(
                "scheduler_pod_scheduling_sli_duration_seconds",
                BETA,
                "How long a pod needed until it was scheduled, counted from its first attempt, gated time left out.",
                WAIT_BUCKETS,
                "attempts",
            )
        )
        self._after_flush = add(
            Counter(
                "scheduler_pod_scheduled_after_flush_total",
                ALPHA,
                "How many pods were scheduled only since they had waited too long: no event had said that they would "
                "fit. Queueing hints that are wrong show here.",
            )
        )
        self._event_seconds = add(
            Histogram(
                "scheduler_event_handling_duration_seconds",
                ALPHA,
                "How long it took to take in a change in the cluster.",
                EVENT_BUCKETS,
                "event",
            )
        )
        self._permit_seconds = add(
            Histogram(
                "scheduler_permit_wait_duration_seconds",
                BETA,
                "How long pods waited for permission.",
                ATTEMPT_BUCKETS,
                "result",
            )
        )
        self._cache_size = add(
            Gauge("scheduler_cache_size", ALPHA, "How many nodes, pods and assumed pods are known.", "type")
        )
        self._tasks = add(
            Gauge(
                "scheduler_goroutines",
                BETA,
                "How many tasks run beside the scheduling loop, by what they do, such as binding.",
                "operation",
            )
        )
        self._preemptions = add(
            Counter("scheduler_preemption_attempts_total", STABLE, "How often preemption was tried.")
        )
        self._victims = add(
            Histogram(
                "scheduler_preemption_victims",
                STABLE,
                "How many victims were chosen at once.",
                exponential_buckets(1, 2, 7),
            )
        )
        evicts_aside = features.scheduler_async_preemption
        self._evictions = add(
            Counter(
                "scheduler_preemption_goroutines_execution_total",
                ALPHA,
                "How many preemptions were carried out beside the scheduling loop.",
                "result",
            ),
            served=evicts_aside,
        )
        self._eviction_seconds = add(
            Histogram(
                "scheduler_preemption_goroutines_duration_seconds",
                ALPHA,
                "How long it took to carry out a preemption beside the scheduling loop.",
                WAIT_BUCKETS,
                "result",
            ),
            served=evicts_aside,
        )

    def attempt_finished(self, profile: str, result: str, seconds: float) -> None:
        """A pod was tried; the result is `scheduled`, `unschedulable` or `error`."""
        self._attempts.inc(profile, result)
        self._attempt_seconds.observe(seconds, profile, result)

    def algorithm_finished(self, seconds: float) -> None:
        """A node was chosen."""
        self._algorithm_seconds.observe(seconds)

    def pod_scheduled(self, attempts: int, seconds: float | None, was_flushed: bool) -> None:
        """A pod is bound: after how many attempts, how long after the first, and whether it had waited too long."""
        self._pod_attempts.observe(attempts)
        if seconds is not None:
            self._pod_seconds.observe(seconds, _ATTEMPTS[min(attempts, _MANY_ATTEMPTS)])
        if was_flushed:
            self._after_flush.inc()

    def event_handled(self, event: str, seconds: float) -> None:
        """A change in the cluster was taken in."""
        self._event_seconds.observe(seconds, event)

    def permit_waited(self, result: str, seconds: float) -> None:
        """A pod no longer waits for permission; the result is a status, as plugins answer it."""
        self._permit_seconds.observe(seconds, result)

    def victims_chosen(self, count: int) -> None:
        """So many pods have to go."""
        self._victims.observe(count)

    def victims_evicted(self, result: str, seconds: float) -> None:
        """A preemption was carried out; the result is `success` or `error`."""
        self._evictions.inc(result)
        self._eviction_seconds.observe(seconds, result)

    def watch_cluster(self, cluster: ClusterLike) -> None:
        """Take the number of nodes and pods from here."""

        def sizes() -> dict[Key, float]:
            return {
                ("assumed_pods",): cluster.assumed_count,
                ("nodes",): len(cluster.nodes.row_of),
                ("pods",): cluster.pod_count,
            }

        self._cache_size.watch(sizes)

    def watch_preemptions(self, tried: Callable[[], int]) -> None:
        """Take from here how often somebody looked for victims."""
        self._preemptions.watch(lambda: {(): tried()})

    def watch_tasks(self, running: Callable[[], Mapping[str, int]]) -> None:
        """Take the number of running tasks from here, by what they do (`binding`, `prioritizing_extender`)."""
        self._tasks.watch(lambda: {(operation,): count for operation, count in running().items()})
