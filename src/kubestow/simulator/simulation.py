"""A cluster in virtual time that can be inspected at any moment, and forked for what-if questions.

    timeline, user ──> control plane (store, controllers, kubelets) ──watch latency──> scheduler
                            ^                                                              │
                            └──────────────────── request latency ─────────────────────────┘

Everything runs on one `VirtualLoop`. A fork has the same objects and the same planned actions, and starts as a control
plane and a scheduler do after a restart: pending pods are attempted at once.
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
from kubestow.scheduler.assembly import Core, Outside, Polling
from kubestow.scheduler.binding.binder import Attempt
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.observer import Observer
from kubestow.simulator.bulk import BulkPods
from kubestow.simulator.checking import Invariants
from kubestow.simulator.contents import Contents
from kubestow.simulator.in_memory.change_feed import ChangeFeed
from kubestow.simulator.in_memory.harness import RunningCore, configured
from kubestow.simulator.in_memory.polled_values import PolledValues
from kubestow.simulator.in_memory.virtual_loop import Handle, StuckError, VirtualLoop
from kubestow.simulator.plane import Plane
from kubestow.simulator.port import SimulatedApi
from kubestow.simulator.settings import Settings, require_callable, require_seconds, with_changes
from kubestow.simulator.timeline import Timeline
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

Action = Callable[["Simulation"], None]


@runtime_checkable
class RecurringAction(Protocol):
    """An action that repeats itself for ever, and may have nothing left to do."""

    def __call__(self, simulation: "Simulation") -> None: ...

    def is_busy(self, simulation: "Simulation") -> bool:
        """Return whether the action will still change something by itself."""


DecisionCallback = Callable[[Pod, Placed | Failed], None]
_SOON = 1.0
"""Work of controllers that is due within this many seconds delays `is_settled`."""


class _NoEvents:
    """Discards the scheduler's events."""

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None:
        del pod, kind, reason, action, note, related


class _DecisionCallbacks(Observer):
    """Calls the callbacks for decisions."""

    def __init__(self, on_decision: Sequence[DecisionCallback]) -> None:
        self._on_decision = on_decision

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        del seconds
        for callback in self._on_decision:
            callback(attempt.queued.pod, outcome)


def _registry(settings: Settings) -> Registry:
    """Return the plugins of a simulation."""
    registry = PluginCollection(settings.plugin_sources).register(in_tree_registry())
    for plugin in settings.plugins:
        registry.register(plugin.name, plugin)  # type: ignore[attr-defined]
    return registry


class Simulation(Contents):
    """A running cluster whose time passes on demand."""

    def __init__(self, settings: Settings | None = None, *, of: "Simulation | None" = None, **changes: Any) -> None:
        """`changes` are fields of Settings; `of` is the simulation to fork. Raises ArgumentError for invalid arguments,
        and the errors of an invalid configuration or plugin."""
        settings = with_changes(settings, changes)
        self.settings: Settings = settings
        self.loop = loop = VirtualLoop(settings.start)
        if of is not None:
            loop.set_time(of.loop.nanoseconds)
            of.bulk.put_in_store()
        self._registry = _registry(settings)
        kinds = (*settings.kinds, *(one.kind for name in self._registry for one in self._registry.watches(name)))
        self.plane: Plane = Plane(loop, settings, None if of is None else of.plane, kinds=kinds)
        super().__init__(self.plane)
        self.bulk: BulkPods = BulkPods(self.plane, settings.pace, loop.call_later, kubelets=settings.kubelets)
        self.metrics = SchedulerMetrics(features=settings.features)
        self.on_decision: list[DecisionCallback] = []
        """Callbacks for each decision about a pod: `(pod, outcome)`."""
        self.notes: list[str] = []
        """Notes on inputs that had no effect."""
        self.timeline: Timeline[Action] = Timeline() if of is None else of.timeline.copied()
        """The planned actions; `at` adds one."""
        self._timer: Handle | None = None
        self._acting = False
        self._feed = ChangeFeed(loop, self.plane.current, settings.latencies.watch)
        self._polled: PolledValues = PolledValues(settings.polled if of is None else of._polled.given)  # noqa: SLF001 its own class
        try:
            self.core, self.decisions = self._build()
            self._polled.check(self.core.background)
        except BaseException:
            loop.close()
            raise
        self._polled.wait_for_nodes = self.core.wait_for_nodes
        self._invariants = Invariants(self.core, self.plane, self._feed) if settings.checked else None
        self.plane.listeners.append(lambda object_id, _old, new, _phase: self._feed.changed(object_id, new))
        self._feed.listen(self.core.intake)
        self._running = RunningCore(self.core, loop)
        loop.run(self.plane.start())
        self._set_timer()

    def _build(self) -> tuple[Core, Archive | None]:
        """Return the scheduler, and its decisions if they are recorded."""
        settings = self.settings
        outside = Outside(
            clock=self.loop.clock,
            stopwatch=time.perf_counter if settings.timed else self.loop.time,
            rng=random.Random(settings.seed),
            api=SimulatedApi(self.plane, self.bulk, settings.latencies.request),
            recorder=_NoEvents(),
            metrics=self.metrics,
            observer=_DecisionCallbacks(self.on_decision),
            polling=Polling(loop=self.loop, answers=self._polled.answers),
        )
        configuration = configured(settings.configuration, settings.plugins, settings.features)
        return build_recorded(configuration, settings.features, self._registry, outside, settings.record_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and free its memory."""
        if not self.loop.is_closed():
            self.plane.stop()
            self._running.close()

    def fork(self, **changes: Any) -> "Simulation":
        """Return a simulation with the same objects, time and plans; `changes` are fields of Settings."""
        return Simulation(self.settings, of=self, **changes)

    def _locate(self, kind: str, name: str, namespace: str) -> tuple[Resource, str]:
        if kind == "Pod":
            self.bulk.put_in_store([f"{namespace}/{name}"])
        return super()._locate(kind, name, namespace)

    # Time

    @property
    def time(self) -> float:
        """Seconds since the start of the simulation."""
        return self.loop.time()

    def at(self, seconds: float, action: Action) -> None:
        """Run an action at a time, in this simulation or in the fork that reaches it."""
        require_seconds("seconds", seconds)
        require_callable("action", action)
        # Whole nanoseconds, as in the loop: otherwise a timer between two of them would fire too early.
        if self.timeline.add(max(round(seconds, 9), self.time), action) and not self._acting:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due = self.timeline.next_due
        self._timer = None if due is None else self.loop.call_at(due, self._run_due_actions)

    def _run_due_actions(self) -> None:
        self._acting = True
        try:
            while (action := self.timeline.pop(self.time)) is not None:
                action(self)
        finally:
            self._acting = False
            self._set_timer()

    def step(self) -> bool:
        """Advance to the next moment with pending work and run it; return False if there is none."""
        moved = self.loop.step()
        self._check()
        return moved

    def run_for(self, seconds: float) -> None:
        """Let the given time pass."""
        require_seconds("seconds", seconds)
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], limit: float) -> bool:
        """Let time pass until a condition holds once all work of a moment is done; return whether it holds in time."""
        require_seconds("limit", limit)
        require_callable("condition", condition)
        invariants = self._invariants

        def is_done() -> bool:
            if invariants is not None:
                invariants.check()
            return bool(self._running.uncaught) or condition()

        reached = self.loop.run_until(is_done, limit)
        self._check()
        return reached

    def settle(self, limit: float = 3600.0) -> None:
        """Let time pass until every pod is bound or unschedulable; raises StuckError after `limit` seconds.

        Does not wait for running pods to end, nor for actions planned with `at`.
        """
        if not self.run_until(lambda: self.is_settled, limit):
            raise StuckError(f"the cluster was still changing after {limit:g} s of virtual time")

    @property
    def is_settled(self) -> bool:
        """Whether no work is pending in the near future."""
        due = self.plane.controllers.next_due()
        return not (
            self._running.is_busy or self._feed.is_busy or (due is not None and due <= self.loop.clock.now() + _SOON)
        )

    @property
    def is_over(self) -> bool:
        """Whether no work is pending, including the end of pods that run to completion."""
        return (
            self.is_settled
            and not self.plane.controllers.has_scheduled_keys
            and not self.bulk.has_running
            and not any(one.is_busy(self) for one in self.timeline if isinstance(one, RecurringAction))
        )

    def _check(self) -> None:
        if self._invariants is not None:
            self._invariants.check()
        self._running.check()

    def set_polled(self, plugin: str, value: Any) -> None:
        """Replace a value that a plugin polls, until it is replaced again; see `SchedulerHarness.set_polled`."""
        self._polled.give(self.core.background, plugin, value, self.time)

    # Pods

    def node_of(self, name: str, namespace: str = "default") -> str:
        """Return the node of a pod, "" if unbound; raises KeyError if the pod does not exist or has ended."""
        found = self.pod(f"{namespace}/{name}")
        if found is None:
            raise KeyError(f"there is no pod {namespace}/{name}, or it has ended")
        return found.spec.nodeName

    def pod(self, key: str) -> Pod | None:
        """Return a pod by namespace/name, None if it does not exist or has ended."""
        found: Pod | None = self.plane.current.get((Pod, key))
        return found

    def scheduled_pods(self) -> Iterator[Pod]:
        """Yield the bound pods that have not ended."""
        return (obj for (kind, _), obj in self.plane.current.items() if kind is Pod and obj.spec.nodeName)

    def pending_pods(self) -> list[Pod]:
        """Return the pods without a node, oldest first."""
        pods = [obj for (kind, _), obj in self.plane.current.items() if kind is Pod and not obj.spec.nodeName]
        return sorted(pods, key=lambda pod: int(pod.metadata.resourceVersion))
