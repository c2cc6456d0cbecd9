"""A whole scheduler on a fake cluster, in virtual time.

    with SchedulerHarness(plugins=[MyPlugin]) as harness:
        harness.cluster.add(make_node("n1"))
        harness.cluster.add(make_pod("p1"))
        harness.run_until_idle()
        assert harness.cluster.node_of("p1") == "n1"

It is the production scheduler, with the plugins of its configuration and yours. No code sleeps, and the same seed gives
the same run. On an event loop of another kind it runs in real time; see `until_idle`.
"""

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from msgspec.structs import replace

from kubestow import config
from kubestow.clock import Clock, SystemClock
from kubestow.config.configuration import Plugin, SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.config.plugin_points import IN_TREE
from kubestow.insight.decisions.recording import build_recorded
from kubestow.scheduler.assembly import Core, Outside, Polling
from kubestow.scheduler.cycle.outcome import Failed
from kubestow.scheduler.extenders.extender import CallExtenders, refuse_calls
from kubestow.scheduler.framework.registry import points_of
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.simulator.in_memory.event_log import EventLog
from kubestow.simulator.in_memory.fake_cluster import FakeCluster
from kubestow.simulator.in_memory.observers import DecisionLog
from kubestow.simulator.in_memory.polled_values import PolledValues
from kubestow.simulator.in_memory.virtual_loop import StuckError, VirtualLoop
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_POLL_SECONDS = 0.001
WAITING = "waiting"
BINDING = "binding"
IN_FLIGHT = "in flight"


class RunningCore:
    """A scheduler running on an event loop; on a virtual one, unhandled exceptions are collected."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self._core = core
        self._loop = loop
        self.task = loop.create_task(core.scheduler.run())
        self.uncaught: list[Exception] = []
        """Exceptions of callbacks and abandoned tasks, until `check` raises them."""
        if isinstance(loop, VirtualLoop):
            loop.set_exception_handler(self._collect)

    def _collect(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            self.uncaught.append(error)
        else:
            loop.default_exception_handler(context)

    def check(self) -> None:
        """Raise an unhandled exception of a callback or of the scheduler."""
        if self.uncaught:
            raise self.uncaught.pop(0)
        if self.task.done() and not self.task.cancelled():
            self.task.result()

    @property
    def is_busy(self) -> bool:
        """Whether the scheduler has work, now or after a backoff."""
        queue, scheduler = self._core.queue, self._core.scheduler
        return bool(
            queue.has_work
            or queue.awaits_retry
            or len(scheduler.binder)
            or len(scheduler.evictions)
            or scheduler.calls
            or len(self._core.dispatcher)
        )

    def cancel(self) -> None:
        """Stop scheduling and abandon all bindings."""
        self.task.cancel()
        self._core.scheduler.binder.cancel_remaining()

    def close(self) -> None:
        """Stop everything on the loop, and close it."""
        if self._loop.is_closed():
            return
        self.cancel()
        # Cancelled tasks may start others: an abandoned binding reports its failure.
        while tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()


class SchedulerHarness:
    """A running scheduler, its cluster, and its events and decisions."""

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
        polled: Mapping[str, Any] | None = None,
    ) -> None:
        """`configuration` may be YAML text. `plugins` are enabled in every profile that does not name them.

        A queue sort plugin replaces the default one. `delay` and `latency` are those of the FakeCluster. Without
        `loop`, time is virtual. `ask` calls extenders. `record_bytes` limits the memory of `decisions`; 0: none are
        recorded. `polled` are values as of `set_polled`, which plugins that do not poll ignore.
        """
        self.loop = VirtualLoop() if loop is None else loop
        self.clock: Clock = self.loop.clock if isinstance(self.loop, VirtualLoop) else SystemClock()
        self.cluster = FakeCluster(self.loop, self.clock, delay=delay, latency=latency)
        self.events = EventLog(self.loop.time)
        self.attempts = DecisionLog()
        """The outcome of each attempt."""
        features = features or config.Features()
        self.metrics = SchedulerMetrics(features=features) if metrics is None else metrics
        registry = in_tree_registry()
        for plugin in plugins:
            registry.register(plugin.name, plugin)  # type: ignore[attr-defined]
        self._polled = PolledValues({name: [(0.0, value)] for name, value in (polled or {}).items()})
        outside = Outside(
            clock=self.clock,
            stopwatch=self.loop.time,
            rng=random.Random(seed),
            api=self.cluster,
            recorder=self.events,
            metrics=self.metrics,
            ask=ask,
            observer=self.attempts,
            polling=Polling(loop=self.loop, answers=self._polled.answers),
        )
        settings = configured(configuration, plugins, features)
        try:
            self.core, self.decisions = build_recorded(settings, features, registry, outside, record_bytes)
            self._polled.check(self.core.background)
        except BaseException:
            if loop is None:
                self.loop.close()
            raise
        self._polled.wait_for_nodes = self.core.wait_for_nodes
        self.cluster.feed.listen(self.core.intake)
        self._running = RunningCore(self.core, self.loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop a scheduler in real time, and wait until all its tasks have ended."""
        scheduler, dispatcher = self.core.scheduler, self.core.dispatcher
        self._running.cancel()
        self.core.close()
        # Abandoned bindings are reported, and reports are written to the cluster.
        while len(scheduler.binder) or len(scheduler.evictions) or len(dispatcher):
            await scheduler.binder.drain()
            await scheduler.evictions.drain()
            await dispatcher.drain()
        await asyncio.wait({self._running.task})

    def close(self) -> None:
        """Stop the scheduler and its tasks, and close its loop. On a loop of another kind, use `async with`."""
        if not isinstance(self.loop, VirtualLoop):
            raise TypeError("this scheduler runs in real time: use it with `async with`")
        self._running.close()

    # Custom resources

    def remove_crd(self, kind: type) -> None:
        """Stop serving a kind that a plugin declares; its objects are deleted."""
        self.cluster.remove_crd(kind)

    def install_crd(self, kind: type) -> None:
        """Serve a kind again after `remove_crd`."""
        self.cluster.install_crd(kind)

    # Polled values

    def set_polled(self, plugin: str, value: Any) -> None:
        """Replace a value that a plugin polls, for good. A name like `TargetLoad.fetch` selects one of several values.

        `fetch` is not called in virtual time; without this, values come from `simulate`. The value may be JSON, which
        is converted to the result of `fetch`. Raises LookupError if no plugin polls it.
        """
        self._polled.give(self.core.background, plugin, value, self.time)

    def fail_poll(self, plugin: str, message: str = "not available") -> None:
        """Let polls of a plugin fail from now on: the latest value stays, and becomes stale."""
        self._polled.give(self.core.background, plugin, RuntimeError(message), self.time)

    # Time

    @property
    def time(self) -> float:
        """Seconds on the loop's clock; virtual time starts at 0."""
        return self.loop.time()

    def run_for(self, seconds: float) -> None:
        """Let the given virtual time pass."""
        with self._virtual_loop() as loop:
            loop.run_for(seconds)

    def run_until(self, condition: Callable[[], bool], limit: float = 3600.0) -> None:
        """Run until a condition holds once all work of a moment is done; raises StuckError after `limit` seconds."""
        with self._virtual_loop() as loop:
            is_met = loop.run_until(condition, limit)
        if not is_met:
            raise StuckError(f"condition not met after {limit:g} s of virtual time: {self._describe_work()}")

    def run_until_idle(self, limit: float = 3600.0) -> None:
        """Run until nothing happens by itself except the retry, after minutes, of unschedulable pods.

        Raises StuckError after `limit` seconds of virtual time.
        """
        self.run_until(lambda: self.is_idle, limit)

    async def until_idle(self) -> None:
        """Wait until idle; for use on a running loop of any kind, in that loop's time."""
        while not self.is_idle:
            await asyncio.sleep(_POLL_SECONDS)
            self._running.check()

    @property
    def is_idle(self) -> bool:
        """Whether no work is pending, apart from retries of unschedulable pods."""
        return not (self._running.is_busy or self.cluster.is_busy)

    def _describe_work(self) -> str:
        pods: dict[str, list[str]] = {}
        places = self.places()
        for pod in self.core.intake.pending_pods():
            place = ", ".join(places.get(pod.metadata.uid, ["nowhere"]))
            pods.setdefault(place, []).append(pod.key)
        listed = [f"{place}: {', '.join(sorted(keys)[:5])}" for place, keys in sorted(pods.items())]
        if self.attempts.decisions and isinstance(latest := self.attempts.decisions[-1][1], Failed):
            listed.append(f"latest failure: {latest.located_message}")
        return "; ".join(listed) or "no pod is pending, but the cluster is changing"

    @contextmanager
    def _virtual_loop(self) -> Iterator[VirtualLoop]:
        if not isinstance(self.loop, VirtualLoop):
            raise TypeError("this scheduler runs in real time: await until_idle() instead")
        yield self.loop
        self._running.check()

    # Pods

    @property
    def bindings(self) -> dict[str, str]:
        """Node by pod, in the order of binding."""
        return {binding.pod: binding.node for binding in self.cluster.bindings}

    def place_of(self, name: str, namespace: str = "default") -> str:
        """Return the place of a pod: a part of the queue, WAITING (for permission), BINDING, IN_FLIGHT, or ""."""
        places = self.places().get(self.cluster.pod(name, namespace).metadata.uid)
        return places[0] if places else ""

    def places(self) -> dict[str, list[str]]:
        """Return the places of each pod by UID; more than one is a bug."""
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
    """Return a configuration with `plugins` enabled in every profile that does not name them; parses YAML text.

    A queue sort plugin replaces the default one.
    """
    known = {**IN_TREE, **{plugin.name: points_of(plugin) for plugin in plugins}}
    if configuration is None:
        configuration = config.default(features)
    elif isinstance(configuration, str):
        configuration = config.load(configuration, features, known)
    names = {plugin.name: points_of(plugin) for plugin in plugins}
    return replace(configuration, profiles=tuple(_with_plugins(profile, names) for profile in configuration.profiles))


def _with_plugins(profile: Any, points: Mapping[str, Collection[str]]) -> Any:
    named = enabled_names(profile.plugins)
    multi = profile.plugins.multiPoint
    added = [name for name in points if name not in named]
    replaced = {"PrioritySort"} if any("queueSort" in points[name] for name in added) else set()
    enabled = (*(one for one in multi.enabled if one.name not in replaced), *map(Plugin, added))
    return replace(profile, plugins=replace(profile.plugins, multiPoint=replace(multi, enabled=enabled)))
