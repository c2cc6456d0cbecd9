"""A whole scheduler on a fake cluster, in virtual time.

    with SchedulerHarness(plugins=[MyPlugin]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p1"))
        harness.run_until_idle()
        assert harness.cluster.node_of("p1") == "n1"

It is the scheduler that runs in production, with the plugins of its configuration and yours. Nothing is slept, and the
same seed gives the same run. Given an event loop of another kind, it runs on that, in real time; see `until_idle`.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from msgspec.structs import replace

from kubestow import config
from kubestow.clock import Clock, SystemClock
from kubestow.config.configuration import Plugin, SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.config.plugin_points import IN_TREE
from kubestow.insight.decisions.recording import build_recorded
from kubestow.scheduler.assembly import Core, Outside
from kubestow.scheduler.extenders.extender import CallExtenders, refuse_calls
from kubestow.scheduler.framework.registry import points_of
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.simulator.in_memory.event_log import EventLog
from kubestow.simulator.in_memory.fake_cluster import FakeCluster
from kubestow.simulator.in_memory.observers import DecisionLog
from kubestow.simulator.in_memory.virtual_loop import StuckError, VirtualLoop
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_POLL_SECONDS = 0.001
WAITING = "waiting"
BINDING = "binding"
IN_FLIGHT = "in flight"


class RunningCore:
    """A scheduler that runs on an event loop; on a virtual one, exceptions that nothing handles are kept."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self._core = core
        self._loop = loop
        self.task = loop.create_task(core.scheduler.run())
        self.uncaught: list[Exception] = []
        """What callbacks and forgotten tasks have raised, until `check` raises it."""
        if isinstance(loop, VirtualLoop):
            loop.set_exception_handler(self._keep)

    def _keep(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            self.uncaught.append(error)
        else:
            loop.default_exception_handler(context)

    def check(self) -> None:
        """Raise what went wrong, in a callback or in the scheduler itself."""
        if self.uncaught:
            raise self.uncaught.pop(0)
        if self.task.done() and not self.task.cancelled():
            self.task.result()

    @property
    def is_busy(self) -> bool:
        """Whether the scheduler has anything to do now or after a backoff."""
        queue, scheduler = self._core.queue, self._core.scheduler
        return bool(
            queue.has_work
            or queue.lengths()["backoff"]
            or len(scheduler.binder)
            or len(scheduler.evictions)
            or scheduler.calls
            or len(self._core.dispatcher)
        )

    def cancel(self) -> None:
        """Stop scheduling and give up all bindings."""
        self.task.cancel()
        self._core.scheduler.binder.abandon()

    def close(self) -> None:
        """Stop everything on the loop, and close it."""
        if self._loop.is_closed():
            return
        self.cancel()
        # What is cancelled may start something in its turn: a binding that is given up reports it.
        while tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()


class SchedulerHarness:
    """A running scheduler, the cluster it schedules, and what it said."""

    def __init__(
        self,
        configuration: SchedulerConfiguration | str | None = None,
        *,
        plugins: Iterable[type] = (),
        features: config.Features | None = None,
        seed: int = 0,
        delay: float = 0.0,
        latency: float = 0.0,
        loop: asyncio.AbstractEventLoop | None = None,
        metrics: SchedulerMetrics | None = None,
        ask: CallExtenders = refuse_calls,
        record_bytes: int = 0,
    ) -> None:
        """`configuration` may be the text of a file. `plugins` are enabled in every profile that does not name them.

        `delay` and `latency` are those of the FakeCluster. Without `loop`, time is virtual. `ask` stands for extenders.
        `record_bytes` is how much room there is for `decisions`; without any, none are kept.
        """
        self.loop = VirtualLoop() if loop is None else loop
        self.clock: Clock = self.loop.clock if isinstance(self.loop, VirtualLoop) else SystemClock()
        self.cluster = FakeCluster(self.loop, self.clock, delay=delay, latency=latency)
        self.events = EventLog(self.loop.time)
        self.attempts = DecisionLog()
        """What each attempt came to."""
        features = features or config.Features()
        self.metrics = SchedulerMetrics(features=features) if metrics is None else metrics
        registry = in_tree_registry()
        for plugin in plugins:
            registry.register(plugin.name, plugin)  # type: ignore[attr-defined]
        outside = Outside(
            clock=self.clock,
            stopwatch=self.loop.time,
            rng=random.Random(seed),
            api=self.cluster,
            recorder=self.events,
            metrics=self.metrics,
            ask=ask,
            observer=self.attempts,
        )
        settings = configured(configuration, plugins, features)
        self.core, self.decisions = build_recorded(settings, features, registry, outside, record_bytes)
        self.cluster.feed.listen(self.core.intake)
        self._running = RunningCore(self.core, self.loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """For a scheduler on a loop that runs: stop it, and wait until nothing of it is left."""
        scheduler, dispatcher = self.core.scheduler, self.core.dispatcher
        self._running.cancel()
        # What is given up is reported, and what is reported is written.
        while len(scheduler.binder) or len(scheduler.evictions) or len(dispatcher):
            await scheduler.binder.drain()
            await scheduler.evictions.drain()
            await dispatcher.drain()
        await asyncio.wait({self._running.task})

    def close(self) -> None:
        """Stop the scheduler and all it has begun, and close its loop. On a loop of another kind, use `async with`."""
        if not isinstance(self.loop, VirtualLoop):
            raise TypeError("this scheduler runs in real time: use it with `async with`")
        self._running.close()

    # Time

    @property
    def time(self) -> float:
        """Seconds on the loop's clock; virtual time begins with 0."""
        return self.loop.time()

    def run_for(self, seconds: float) -> None:
        """Let so much virtual time pass."""
        with self._driving() as loop:
            loop.run_for(seconds)

    def run_until(self, condition: Callable[[], bool], limit: float = 3600.0) -> None:
        """Run until a condition holds when nothing more is to be done at that moment; StuckError if it never does."""
        with self._driving() as loop:
            came_true = loop.run_until(condition, limit)
        if not came_true:
            raise StuckError(f"not so after {limit:g} s of virtual time: {self._busy_with()}")

    def run_until_idle(self, limit: float = 3600.0) -> None:
        """Run until nothing will happen any more but the retry, after minutes, of pods that cannot be scheduled.

        Raises StuckError if that is not so after `limit` seconds of virtual time.
        """
        self.run_until(lambda: self.is_idle, limit)

    async def until_idle(self) -> None:
        """The same from within a running loop of any kind, in that loop's time."""
        while not self.is_idle:
            await asyncio.sleep(_POLL_SECONDS)
            self._running.check()

    @property
    def is_idle(self) -> bool:
        """Whether nothing more will happen by itself."""
        return not (self._running.is_busy or self.cluster.is_busy)

    def _busy_with(self) -> str:
        pods: dict[str, list[str]] = {}
        places = self.places()
        for pod in self.core.intake.pending_pods():
            place = ", ".join(places.get(pod.metadata.uid, ["nowhere"]))
            pods.setdefault(place, []).append(pod.key)
        listed = [f"{place}: {', '.join(sorted(keys)[:5])}" for place, keys in sorted(pods.items())]
        return "; ".join(listed) or "no pod waits, but the cluster is changing"

    @contextmanager
    def _driving(self) -> Iterator[VirtualLoop]:
        if not isinstance(self.loop, VirtualLoop):
            raise TypeError("this scheduler runs in real time: await until_idle() instead")
        yield self.loop
        self._running.check()

    # What became of pods

    @property
    def bindings(self) -> dict[str, str]:
        """Node by pod, in the order of binding."""
        return {binding.pod: binding.node for binding in self.cluster.bindings}

    def place_of(self, name: str, namespace: str = "default") -> str:
        """Where a pod is: in which part of the queue, waiting for permission, binding, or in none of them ("")."""
        places = self.places().get(self.cluster.pod(name, namespace).metadata.uid)
        return places[0] if places else ""

    def places(self) -> dict[str, list[str]]:
        """Every place where each pod (by uid) is found; there should be one at most."""
        places: dict[str, list[str]] = {}
        for place, pods in self.core.queue.snapshot().items():
            for pod in pods:
                places.setdefault(pod.metadata.uid, []).append(place)
        binding = self.core.scheduler.binder.pods()
        for uid in binding:
            places.setdefault(uid, []).append(BINDING if self.core.waiting_pods.get(uid) is None else WAITING)
        for pod in self.core.queue.in_flight_pods():
            if pod.metadata.uid not in binding:
                places.setdefault(pod.metadata.uid, []).append(IN_FLIGHT)
        return places


def configured(
    configuration: SchedulerConfiguration | str | None, plugins: Iterable[Any], features: config.Features
) -> SchedulerConfiguration:
    """A configuration, or the text of one, with `plugins` enabled in every profile that does not name them."""
    known = {**IN_TREE, **{plugin.name: points_of(plugin) for plugin in plugins}}
    if configuration is None:
        configuration = config.default(features)
    elif isinstance(configuration, str):
        configuration = config.load(configuration, features, known)
    names = [plugin.name for plugin in plugins]
    return replace(configuration, profiles=tuple(_with_plugins(profile, names) for profile in configuration.profiles))


def _with_plugins(profile: Any, names: Iterable[str]) -> Any:
    mentioned = enabled_names(profile.plugins)
    multi = profile.plugins.multiPoint
    enabled = (*multi.enabled, *(Plugin(name) for name in names if name not in mentioned))
    return replace(profile, plugins=replace(profile.plugins, multiPoint=replace(multi, enabled=enabled)))
