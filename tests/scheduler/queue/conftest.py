"""A scheduling queue in virtual time, with plugins that return given answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodSchedulingGate, PodSchedulingGroup, PodSpec, PodStatus
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Registration, Resource, on
from kubestow.scheduler.framework.results import Rejection
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.scheduler.queue.rules import QueueSettings
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

START = 1_000.0


class VirtualClock:
    def __init__(self, time: float = START) -> None:
        self.time = time

    def now(self) -> float:
        return self.time


@dataclass
class FakeRules:
    """A profile in which the plugin Gates rejects pods with scheduling gates."""

    registrations: Mapping[str, Sequence[Registration]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    """Names of pods that the plugin Door rejects."""
    has_operation: bool = False
    """Whether Door waits for the end of an operation for the pod."""
    awaited: str = ""
    """The pod or group whose events alone matter to Door."""
    calls: int = 0

    def pre_enqueue(self, pod: Pod, gating_plugin: str | None) -> Rejection | None:
        self.calls += 1
        if pod.metadata.name in self.closed:
            return Rejection(
                ("closed",), plugin="Door", awaits=pod.metadata.uid if self.has_operation else self.awaited
            )
        return Rejection(("waiting for gates",), plugin="Gates") if pod.spec.schedulingGates else None


DEFAULT_REGISTRATIONS = {
    "Fit": [on(Resource.NODE, Action.ADD), on(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)],
    "Ports": [on(Resource.POD, Action.DELETE)],
    "Gates": [on(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)],
    "Door": [on(Resource.POD_GROUP, Action.ADD)],
}


class Kit:
    """The queue under test with its dependencies."""

    def __init__(
        self,
        registrations: Mapping[str, Sequence[Registration]] | None = None,
        settings: QueueSettings | None = None,
        order: Callable[[Pod, float], Any] | None = None,
        more_profiles: Mapping[str, FakeRules] | None = None,
        queue: type[SchedulingQueue] = SchedulingQueue,
    ) -> None:
        self.clock = VirtualClock()
        self.rules = FakeRules(DEFAULT_REGISTRATIONS if registrations is None else registrations)
        self.metrics = SchedulerMetrics()
        options: dict[str, Any] = {} if order is None else {"order": order}
        self.queue = queue(
            clock=self.clock,
            rules={"default": self.rules, **(more_profiles or {})},
            settings=settings or QueueSettings(),
            metrics=self.metrics,
            **options,
        )

    def pod(
        self,
        name: str,
        priority: int = 0,
        gates: Sequence[str] = (),
        nominated: str = "",
        profile: str = "default",
        group: str = "",
    ) -> Pod:
        return Pod(
            metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"),
            spec=PodSpec(
                schedulerName=profile,
                priority=priority,
                schedulingGates=tuple(PodSchedulingGate(g) for g in gates),
                schedulingGroup=PodSchedulingGroup(group) if group else None,
            ),
            status=PodStatus(nominatedNodeName=nominated),
        )

    def add(self, name: str, **fields: Any) -> Pod:
        pod = self.pod(name, **fields)
        self.queue.add(pod)
        return pod

    def pop(self) -> QueuedPod:
        queued = self.queue.pop()
        assert queued is not None
        return queued

    def pop_names(self) -> list[str]:
        """Pop all pods that are ready, and return their names in order; all of them are done at once."""
        names = []
        while queued := self.queue.pop():
            names.append(queued.pod.metadata.name)
            self.queue.done(queued.uid)
        return names

    def reject(self, name: str, *plugins: str, pending: Sequence[str] = (), **fields: Any) -> QueuedPod:
        """Add a pod, pop it, and reject it."""
        self.add(name, **fields)
        queued = self.pop()
        assert queued.pod.metadata.name == name
        self.queue.requeue_failed(queued, plugins, pending)
        return queued

    def where(self) -> dict[str, list[str]]:
        """Return the names of the waiting pods by place, without empty places."""
        snapshot = self.queue.snapshot()
        return {place: sorted(pod.metadata.name for pod in pods) for place, pods in snapshot.items() if pods}

    def arrivals(self, queue: str, event: str) -> float:
        """Return the number of pods that arrived in a queue because of an event."""
        return self.metrics.queue_incoming_pods.read().get((event, queue), 0)

    def hints(self) -> list[tuple[str, ...]]:
        """Return the results of hints, as (event, result, plugin)."""
        return list(self.metrics.queueing_hint_seconds.read())

    def happens(self, event: ClusterEvent, old: Any = None, new: Any = None) -> None:
        self.queue.on_event(event, old, new)

    def advance(self, seconds: float) -> None:
        """Advance the time, then flush."""
        self.clock.time += seconds
        self.queue.flush_backoff()
        self.queue.flush_unschedulable()

    @staticmethod
    def changed(pod: Pod, *, status: PodStatus | None = None, **spec: Any) -> Pod:
        return msgspec.structs.replace(
            pod, spec=msgspec.structs.replace(pod.spec, **spec), status=pod.status if status is None else status
        )


@pytest.fixture
def kit() -> Kit:
    return Kit()


@pytest.fixture(scope="session")
def make_kit() -> type[Kit]:
    """Return the class for queues with other rules or settings."""
    return Kit
