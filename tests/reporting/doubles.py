"""What metrics watch, in its simplest form; and a run in which everything happens once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubestow.reporting.metrics.catalogue import Metrics


@dataclass
class Queue:
    waiting: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)
    kept: Mapping[str, int] = field(default_factory=dict)

    def lengths(self) -> Mapping[str, int]:
        return self.waiting

    def rejections(self) -> Mapping[tuple[str, str], int]:
        return self.rejected

    def in_flight_counts(self) -> Mapping[str, int]:
        return self.kept


@dataclass
class Nodes:
    row_of: Mapping[str, int]


@dataclass
class Cluster:
    nodes: Nodes
    pod_count: int = 0
    assumed_count: int = 0


@dataclass
class Hook:
    name: str
    all_evaluations: int = 0


@dataclass
class Profile:
    name: str
    hooks: Mapping[str, tuple[Hook, ...]]

    def points(self) -> Mapping[str, tuple[Hook, ...]]:
        return self.hooks


def everything_happens(metrics: Metrics) -> None:
    """Every method of every part is called, every source watched."""
    scheduler = metrics.scheduler
    scheduler.attempt_finished("p", "scheduled", 0.01)
    scheduler.algorithm_finished(0.01)
    scheduler.pod_scheduled(2, 0.5, True)
    scheduler.event_handled("NodeAdd", 0.001)
    scheduler.permit_waited("Success", 1)
    scheduler.watch_preemptions(lambda: 1)
    scheduler.victims_chosen(3)
    scheduler.victims_evicted("success", 0.1)
    scheduler.watch_cluster(Cluster(Nodes({"n1": 0}), 2, 1))
    scheduler.watch_tasks(lambda: {"binding": 1})
    metrics.framework.plugin_called("Filter", "NodeName", "Success", 0.001)
    metrics.framework.point_ran("p", "Filter", "Success", 0.001)
    metrics.framework.watch_profile(Profile("p", {"Filter": (Hook("NodeName", 7),)}))
    metrics.queue.pod_entered("active", "PodAdd")
    metrics.queue.hint_ran("NodeName", "NodeAdd", "Queue", 0.001)
    metrics.queue.watch_queue(Queue({"active": 1}, {("NodeName", "p"): 1}, {"NodeAdd": 1}))
    metrics.batching.batch_tried("p", "hint_used")
    metrics.batching.batch_flushed("p", "pod_failed")
    metrics.batching.hint_looked_up("p", True, 0.001)
    metrics.batching.results_stored("p", 0.001)
    metrics.pod_groups.attempt_finished("p", "scheduled", 0.01)
    metrics.pod_groups.algorithm_finished(0.01)
    metrics.volumes.cache_used("add")
    metrics.volumes.stage_failed("bind")
    metrics.devices.claim_created("success")
    metrics.devices.conditions_awaited("p", "gpu.example.com", "success", 1)
    metrics.api_calls.api_call_finished("pod_binding", "success", 0.01)
    metrics.api_calls.watch_waiting({"pod_binding": 1})
    metrics.requests.request_done("POST", "h:6443", "201", 0.01, 300, 200)
    metrics.requests.request_retried("POST", "h:6443", "429")
    metrics.requests.rate_limited("POST", "h:6443", 0.1)
    metrics.credentials.plugin_called(True, 60)
    metrics.transports.transport_created(cached=False)
    metrics.transports.watch_transports(lambda: 1)
    metrics.election.leading("kube-scheduler", True)
    metrics.election.slow_renewal("kube-scheduler")
    metrics.workqueues.added("events")
    metrics.workqueues.retried("events")
    metrics.workqueues.started("events", 0.001)
    metrics.workqueues.finished("events", 0.001)
    metrics.workqueues.watch_workqueue("events", lambda: 1, lambda: [1.0, 2.0])
