"""A cluster in virtual time: build it, let time pass, look at it, and fork it to see what would happen if.

    timeline, user ──> control plane (store, controllers, kubelets) ──watch latency──> scheduler
                            ^                                                              │
                            └──────────────────── request latency ─────────────────────────┘

Everything happens on one `VirtualLoop`. A fork has the same objects and the same future, and begins as a control plane
and a scheduler do after a restart: pods without a node are tried at once.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from kubestow.api.pod import Pod
from kubestow.apiserver.resources import Resource
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.recording import build_recorded
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.assembly import Core, Outside
from kubestow.scheduler.binding.binder import Attempt
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.observer import Observer
from kubestow.simulator.bulk import BulkPods
from kubestow.simulator.checking import Invariants
from kubestow.simulator.contents import Contents
from kubestow.simulator.in_memory.change_feed import ChangeFeed
from kubestow.simulator.in_memory.harness import RunningCore, configured
from kubestow.simulator.in_memory.virtual_loop import Handle, StuckError, VirtualLoop
from kubestow.simulator.plane import Plane
from kubestow.simulator.port import SimulatedApi
from kubestow.simulator.settings import Settings, changed, demand_callable, demand_seconds
from kubestow.simulator.timeline import Timeline
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

Action = Callable[["Simulation"], None]


@runtime_checkable
class Attendant(Protocol):
    """An action that looks after something for ever, and may find nothing more to do."""

    def __call__(self, simulation: "Simulation") -> None: ...

    def is_busy(self, simulation: "Simulation") -> bool:
        """Whether it will do something by itself."""


Decided = Callable[[Pod, Placed | Failed], None]
_SOON = 1.0
"""What controllers have to do within so many seconds is waited for when a cluster settles."""


class _Silence:
    """Takes the scheduler's events."""

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None:
        del pod, kind, reason, action, note, related


class _Decided(Observer):
    """Calls functions for each decision about a pod."""

    def __init__(self, on_decision: Sequence[Decided]) -> None:
        self._on_decision = on_decision

    def decided(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        del seconds
        for call in self._on_decision:
            call(attempt.queued.pod, outcome)


class Simulation(Contents):
    """A running cluster whose time passes when you say so."""

    def __init__(self, settings: Settings | None = None, *, of: "Simulation | None" = None, **changes: Any) -> None:
        """`changes` are fields of Settings; `of` is what this is a fork of. Raises ArgumentError for those that
        cannot be used, and what is wrong with a configuration or a plugin.
        """
        settings = changed(settings, changes)
        self.settings: Settings = settings
        self.loop = loop = VirtualLoop(settings.start)
        if of is not None:
            loop.set_time(of.loop.nanoseconds)
            of.bulk.put_in_store()
        self.plane: Plane = Plane(loop, settings, None if of is None else of.plane)
        super().__init__(self.plane)
        self.bulk: BulkPods = BulkPods(self.plane, settings.pace, loop.call_later, kubelets=settings.kubelets)
        self.metrics = SchedulerMetrics(features=settings.features)
        self.on_decision: list[Decided] = []
        """Called for each decision about a pod: `(pod, outcome)`."""
        self.notes: list[str] = []
        """What is no mistake, but maybe not what was meant."""
        self.timeline: Timeline[Action] = Timeline() if of is None else of.timeline.copied()
        """What is planned; `at` adds to it."""
        self._timer: Handle | None = None
        self._acting = False
        self._feed = ChangeFeed(loop, self.plane.current, settings.latencies.watch)
        self.core, self.decisions = self._build()
        self._invariants = Invariants(self.core, self.plane, self._feed) if settings.checked else None
        self.plane.listeners.append(lambda which, _old, new, _phase: self._feed.changed(which, new))
        self._feed.listen(self.core.intake)
        self._running = RunningCore(self.core, loop)
        loop.run(self.plane.start())
        self._set_timer()

    def _build(self) -> tuple[Core, Archive | None]:
        """Return the scheduler, and its decisions if they are kept."""
        settings = self.settings
        registry = PluginCollection(settings.plugin_sources).register(in_tree_registry())
        for plugin in settings.plugins:
            registry.register(plugin.name, plugin)  # type: ignore[attr-defined]
        outside = Outside(
            clock=self.loop.clock,
            stopwatch=time.perf_counter if settings.timed else self.loop.time,
            rng=random.Random(settings.seed),
            api=SimulatedApi(self.plane, self.bulk, settings.latencies.request),
            recorder=_Silence(),
            metrics=self.metrics,
            observer=_Decided(self.on_decision),
        )
        configuration = configured(settings.configuration, settings.plugins, settings.features)
        return build_recorded(configuration, settings.features, registry, outside, settings.record_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything, and free what it held."""
        if not self.loop.is_closed():
            self.plane.stop()
            self._running.close()

    def fork(self, **changes: Any) -> "Simulation":
        """Another simulation with the same objects, time and plans; `changes` are fields of Settings."""
        return Simulation(self.settings, of=self, **changes)

    def _where(self, kind: str, name: str, namespace: str) -> tuple[Resource, str]:
        if kind == "Pod":
            self.bulk.put_in_store([f"{namespace}/{name}"])
        return super()._where(kind, name, namespace)

    # Time

    @property
    def time(self) -> float:
        """Seconds since the simulation began."""
        return self.loop.time()

    def at(self, seconds: float, action: Action) -> None:
        """Have something done, to this simulation or to the fork in which the moment comes."""
        demand_seconds("seconds", seconds)
        demand_callable("action", action)
        # In whole nanoseconds, as the loop counts: a timer would ring before a moment between two of them.
        if self.timeline.add(max(round(seconds, 9), self.time), action) and not self._acting:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due = self.timeline.next_due
        self._timer = None if due is None else self.loop.call_at(due, self._act)

    def _act(self) -> None:
        self._acting = True
        try:
            while (action := self.timeline.pop(self.time)) is not None:
                action(self)
        finally:
            self._acting = False
            self._set_timer()

    def step(self) -> bool:
        """Go on to the next moment at which something happens, and let it; False if nothing ever will."""
        moved = self.loop.step()
        self._look()
        return moved

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        demand_seconds("seconds", seconds)
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], limit: float) -> bool:
        """Let time pass until a condition holds when nothing more is to be done at that moment; whether it came to."""
        demand_seconds("limit", limit)
        demand_callable("condition", condition)
        invariants = self._invariants

        def is_enough() -> bool:
            if invariants is not None:
                invariants.check()
            return bool(self._running.uncaught) or condition()

        reached = self.loop.run_until(is_enough, limit)
        self._look()
        return reached

    def settle(self, limit: float = 3600.0) -> None:
        """Let time pass until every pod has a node or cannot have one now; raises StuckError after so many seconds.

        Pods that run to their end later, and what is planned with `at`, are not waited for.
        """
        if not self.run_until(lambda: self.is_settled, limit):
            raise StuckError(f"the cluster was still changing after {limit:g} s of virtual time")

    @property
    def is_settled(self) -> bool:
        """Whether nothing will happen by itself for a while."""
        due = self.plane.controllers.next_due()
        return not (
            self._running.is_busy or self._feed.is_busy or (due is not None and due <= self.loop.clock.now() + _SOON)
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen by itself any more: pods that are meant to end have ended, too."""
        return (
            self.is_settled
            and not self.plane.controllers.has_scheduled_keys
            and not self.bulk.has_running
            and not any(one.is_busy(self) for one in self.timeline if isinstance(one, Attendant))
        )

    def _look(self) -> None:
        if self._invariants is not None:
            self._invariants.check()
        self._running.check()

    # What became of pods

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Where a pod is bound, "" if it is not; raises KeyError for one that is not there, or has ended."""
        found = self.pod(f"{namespace}/{name}")
        if found is None:
            raise KeyError(f"there is no pod {namespace}/{name}, or it has ended")
        return found.spec.nodeName

    def pod(self, key: str) -> Pod | None:
        """A pod that has not ended, by namespace/name."""
        found: Pod | None = self.plane.current.get((Pod, key))
        return found

    def scheduled_pods(self) -> Iterator[Pod]:
        """Pods that have a node and have not ended."""
        return (obj for (kind, _), obj in self.plane.current.items() if kind is Pod and obj.spec.nodeName)

    def pending_pods(self) -> list[Pod]:
        """Pods that wait for a node, oldest first."""
        pods = [obj for (kind, _), obj in self.plane.current.items() if kind is Pod and not obj.spec.nodeName]
        return sorted(pods, key=lambda pod: int(pod.metadata.resourceVersion))
