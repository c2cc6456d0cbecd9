"""Builds the scheduler core: everything but the connection to an API server."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.config import Features, SchedulerConfiguration
from kubestow.rng import Rng
from kubestow.scheduler.attempts import Attempts
from kubestow.scheduler.background import Answers, Background
from kubestow.scheduler.binding.binder import Binder
from kubestow.scheduler.binding.conditions import Conditions
from kubestow.scheduler.binding.dispatcher import Dispatcher
from kubestow.scheduler.binding.evictions import Evictions
from kubestow.scheduler.binding.waiting import WaitingPods
from kubestow.scheduler.cluster.events import ClusterEvent
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.cluster.history import History
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.scheduling import Choose, SchedulingCycles, choose_at_random
from kubestow.scheduler.extenders.configured import ConfiguredExtenders
from kubestow.scheduler.extenders.extender import CallExtenders, refuse_calls
from kubestow.scheduler.framework.guard import Guard
from kubestow.scheduler.framework.handle import ApiPort, Handle, Recorder
from kubestow.scheduler.framework.polling import Background as PluginBackground
from kubestow.scheduler.framework.polling import Http, NoBackground, NoHttp
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.intake import Intake
from kubestow.scheduler.loop import GroupScheduling, Scheduler
from kubestow.scheduler.observer import Observer
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.scheduler.queue.ordering import queue_order
from kubestow.scheduler.queue.rules import QueueSettings
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

if TYPE_CHECKING:
    from kubestow.scheduler.queue.group_queue import GroupQueue


class Polling(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of timers and polls of plugins."""

    loop: asyncio.AbstractEventLoop
    answers: Answers
    """Where polled values come from."""
    http: Http = NoHttp()


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of the core: clock, random numbers, API, metrics, extenders and observers."""

    clock: Clock
    stopwatch: Callable[[], float]
    rng: Rng
    plugin_rng: Rng | None = None
    """The random numbers of plugins; None: `rng`."""
    api: ApiPort
    recorder: Recorder
    metrics: SchedulerMetrics
    ask: CallExtenders = refuse_calls
    """Calls extenders."""
    ask_in_cycles: CallExtenders | None = None
    """Calls extenders during a cycle; None: `ask`."""
    guard: Guard | None = None
    """Wraps plugins that are neither built in nor pure."""
    observer: Observer = Observer()
    polling: Polling | None = None
    """Runs the timers and polls of plugins; None: they never happen."""
    history: History | None = None
    """Log of the changes of the cluster; None: changes are not logged."""


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a scheduler, for the code that runs or observes it."""

    cluster: Cluster
    queue: SchedulingQueue
    profiles: dict[str, Profile]
    """Profiles by scheduler name; the same dict for all parts, also after a reload."""
    handle: Handle
    build: Callable[[SchedulerConfiguration, Registry], dict[str, Profile]]
    """Builds other profiles; raises ProfileError."""
    extenders: ConfiguredExtenders
    cycles: SchedulingCycles
    waiting_pods: WaitingPods
    dispatcher: Dispatcher
    intake: Intake
    scheduler: Scheduler
    gate: Gate
    background: Background | None
    """The timers and polls of plugins."""

    async def wait_for_nodes(self, seconds: float) -> None:
        """Wait until the cluster has nodes, at most for a time."""
        await self.handle.wait_until(lambda: bool(self.cluster.nodes.row_of), seconds)

    def close(self) -> None:
        """End the timers and polls of plugins."""
        if self.background is not None:
            self.background.close()


def build_core(
    configuration: SchedulerConfiguration,
    features: Features,
    registry: Registry,
    outside: Outside,
    *,
    longest_unschedulable: float = 300.0,
    choose: Choose | None = None,
) -> Core:
    """Build a scheduler; raises ProfileError for plugins that cannot be created."""
    parts = _shared_parts(configuration, features, outside)
    background = _background(parts, lambda event, old, new: intake.notify(event, old, new))
    # Plugins need profiles to be created, and use the queue and evictions only once the scheduler runs.
    handle = _handle(
        parts,
        activate=lambda pods: queue.activate(pods),
        reorder_queue=lambda: queue.reorder(),
        is_preempting=lambda uid: evictions.is_preempting(uid),
        background=background or NoBackground(),
    )

    def build(configuration: SchedulerConfiguration, registry: Registry) -> dict[str, Profile]:
        return build_profiles(configuration, registry, handle, outside.stopwatch, outside.guard)

    profiles = build(configuration, registry)
    queue = _queue(parts, configuration, profiles, longest_unschedulable)
    cycles = SchedulingCycles(
        parts.cluster,
        parts.nominator,
        choose or choose_at_random(outside.rng),
        configuration.percentageOfNodesToScore,
        extenders=parts.extenders,
        metrics=outside.metrics,
        upcoming=queue.upcoming,
    )
    intake = _intake(parts, queue, profiles)
    binder = _binder(parts, queue)
    evictions = _evictions(parts, queue, binder)
    attempts = _attempts(parts, queue, profiles, cycles, intake, binder, evictions)
    scheduler = _scheduler(parts, queue, cycles, binder, evictions, attempts)
    _track_sizes(parts, profiles)
    return Core(
        cluster=parts.cluster,
        queue=queue,
        profiles=profiles,
        handle=handle,
        build=build,
        extenders=parts.extenders,
        cycles=cycles,
        waiting_pods=parts.waiting,
        dispatcher=parts.dispatcher,
        intake=intake,
        scheduler=scheduler,
        gate=parts.gate,
        background=background,
    )


class _Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that do not depend on profiles; they are passed to most other parts."""

    features: Features
    outside: Outside
    cluster: Cluster
    nominator: Nominator
    waiting: WaitingPods
    conditions: Conditions
    gate: Gate
    work_arrived: asyncio.Event
    dispatcher: Dispatcher
    extenders: ConfiguredExtenders


def _shared_parts(configuration: SchedulerConfiguration, features: Features, outside: Outside) -> _Parts:
    cluster = Cluster(features, outside.history)
    extenders = ConfiguredExtenders(ask=outside.ask)
    extenders.configure(configuration.extenders, cluster.nodes)
    return _Parts(
        features=features,
        outside=outside,
        cluster=cluster,
        nominator=Nominator(history=outside.history),
        waiting=WaitingPods(),
        conditions=Conditions(),
        gate=Gate(),
        work_arrived=asyncio.Event(),
        dispatcher=Dispatcher(outside.api, outside.metrics),
        extenders=extenders,
    )


def _background(parts: _Parts, notify: Callable[[ClusterEvent, Any, Any], None]) -> Background | None:
    polling, outside = parts.outside.polling, parts.outside
    if polling is None:
        return None
    return Background(
        loop=polling.loop,
        answers=polling.answers,
        http=polling.http,
        clock=outside.clock,
        metrics=outside.metrics,
        gate=parts.gate,
        notify=notify,
    )


def _handle(
    parts: _Parts,
    *,
    activate: Callable[[Iterable[Pod]], None],
    reorder_queue: Callable[[], None],
    is_preempting: Callable[[str], bool],
    background: PluginBackground,
) -> Handle:
    outside = parts.outside
    return Handle(
        cluster=parts.cluster,
        features=parts.features,
        clock=outside.clock,
        rng=outside.plugin_rng or outside.rng,
        nominator=parts.nominator,
        api=parts.dispatcher,
        recorder=outside.recorder,
        waiting_pods=parts.waiting,
        metrics=outside.metrics,
        activate=activate,
        reorder_queue=reorder_queue,
        wait_until=parts.conditions.wait_until,
        _writer=parts.dispatcher,
        write_aside=parts.dispatcher.write_aside,
        is_preempting=is_preempting,
        extenders_judge_preemption=parts.extenders.supports_preemption,
        _background=background,
    )


def _queue(
    parts: _Parts,
    configuration: SchedulerConfiguration,
    profiles: dict[str, Profile],
    longest_unschedulable: float,
) -> SchedulingQueue:
    features, outside = parts.features, parts.outside
    longest_backoff = float(configuration.podMaxBackoffSeconds)
    kind: type[SchedulingQueue] = SchedulingQueue
    if parts.cluster.groups is not None:
        # Imported here because pod groups are behind a feature gate.
        from kubestow.scheduler.queue.group_queue import GroupQueue

        kind = GroupQueue
    return kind(
        clock=outside.clock,
        rules={name: QueueRules(profile) for name, profile in profiles.items()},
        settings=QueueSettings(
            float(configuration.podInitialBackoffSeconds),
            longest_backoff,
            longest_unschedulable,
            features.scheduler_pop_from_backoff_q,
        ),
        metrics=outside.metrics,
        order=queue_order(next(iter(profiles.values()))),
        nominator=parts.nominator,
        on_arrival=parts.work_arrived.set,
        on_move=outside.observer.on_pod_moved,
    )


def _intake(parts: _Parts, queue: SchedulingQueue, profiles: dict[str, Profile]) -> Intake:
    return Intake(
        cluster=parts.cluster,
        queue=queue,
        scheduler_names=profiles.keys(),
        reject_waiting=parts.waiting.reject,
        changed=parts.conditions.evaluate,
        metrics=parts.outside.metrics,
        stopwatch=parts.outside.stopwatch,
        gate=parts.gate,
        queues_deferred_resizes=parts.features.in_place_pod_vertical_scaling_scheduler_preemption,
        groups=_group_queue(queue),
    )


def _binder(parts: _Parts, queue: SchedulingQueue) -> Binder:
    return Binder(
        dispatcher=parts.dispatcher,
        waiting=parts.waiting,
        stop_recording_events=queue.done,
        extenders=parts.extenders,
        on_step=parts.outside.observer.on_binding_step,
        metrics=parts.outside.metrics,
        stopwatch=parts.outside.stopwatch,
        gate=parts.gate,
        announces_expected_node=parts.features.nominated_node_name_for_expectation,
    )


def _evictions(parts: _Parts, queue: SchedulingQueue, binder: Binder) -> Evictions:
    return Evictions(
        cluster=parts.cluster,
        dispatcher=parts.dispatcher,
        waiting=parts.waiting,
        cancel_pre_bind=binder.cancel_pre_bind,
        recorder=parts.outside.recorder,
        activate=queue.activate,
        wait_only_for=queue.wait_only_for,
        now=parts.outside.clock.now,
        metrics=parts.outside.metrics,
    )


def _attempts(
    parts: _Parts,
    queue: SchedulingQueue,
    profiles: dict[str, Profile],
    cycles: SchedulingCycles,
    intake: Intake,
    binder: Binder,
    evictions: Evictions,
) -> Attempts:
    outside = parts.outside
    return Attempts(
        cluster=parts.cluster,
        queue=queue,
        profiles=profiles,
        cycles=cycles,
        intake=intake,
        binder=binder,
        evictions=evictions,
        dispatcher=parts.dispatcher,
        recorder=outside.recorder,
        metrics=outside.metrics,
        observer=outside.observer,
        clock=outside.clock,
        stopwatch=outside.stopwatch,
    )


def _scheduler(
    parts: _Parts,
    queue: SchedulingQueue,
    cycles: SchedulingCycles,
    binder: Binder,
    evictions: Evictions,
    attempts: Attempts,
) -> Scheduler:
    outside = parts.outside
    return Scheduler(
        queue=queue,
        cycles=cycles,
        attempts=attempts,
        groups=_groups(parts, queue, cycles, evictions, attempts),
        binder=binder,
        evictions=evictions,
        work_arrived=parts.work_arrived,
        gate=parts.gate,
        ask=outside.ask_in_cycles or outside.ask,
        metrics=outside.metrics,
        clock=outside.clock,
        stopwatch=outside.stopwatch,
    )


def _group_queue(queue: SchedulingQueue) -> "GroupQueue | None":
    """Return the queue if it has pod groups."""
    if type(queue) is SchedulingQueue:
        return None
    from kubestow.scheduler.queue.group_queue import GroupQueue

    return queue if isinstance(queue, GroupQueue) else None


def _groups(
    parts: _Parts, queue: SchedulingQueue, cycles: SchedulingCycles, evictions: Evictions, attempts: Attempts
) -> GroupScheduling | None:
    cluster, outside = parts.cluster, parts.outside
    group_queue = _group_queue(queue)
    if cluster.groups is None or group_queue is None:
        return None
    # Imported here because pod groups are behind a feature gate.
    from kubestow.scheduler import groups as group_scheduling
    from kubestow.scheduler.cycle.pod_group import GroupCycles

    return group_scheduling.GroupScheduling(
        cluster=cluster,
        groups=cluster.groups,
        queue=group_queue,
        cycles=GroupCycles(cluster, cycles, parts.nominator, parts.features, outside.rng),
        attempts=attempts,
        evictions=evictions,
        dispatcher=parts.dispatcher,
        observer=outside.observer,
        metrics=outside.metrics,
        features=parts.features,
        clock=outside.clock,
        stopwatch=outside.stopwatch,
    )


def _track_sizes(parts: _Parts, profiles: dict[str, Profile]) -> None:
    cluster, metrics = parts.cluster, parts.outside.metrics
    metrics.plugin_evaluations.watch(
        lambda: dict(chain.from_iterable(profile.evaluations().items() for profile in profiles.values()))
    )
    metrics.cache_size.track(lambda: len(cluster.nodes.row_of), "nodes")
    metrics.cache_size.track(lambda: cluster.pod_count, "pods")
    metrics.cache_size.track(lambda: cluster.assumed_count, "assumed_pods")
