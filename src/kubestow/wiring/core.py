"""The scheduler core put together: everything but the connection to an API server."""

import asyncio
from collections.abc import Callable
from itertools import chain

import msgspec

from kubestow.attempts import Attempts
from kubestow.binding.binder import Binder
from kubestow.binding.conditions import Conditions
from kubestow.binding.dispatcher import Dispatcher
from kubestow.binding.evictions import Evictions
from kubestow.binding.waiting import WaitingPods
from kubestow.cluster.gate import Gate
from kubestow.cluster.history import History
from kubestow.cluster.state import Cluster
from kubestow.config import Features, SchedulerConfiguration
from kubestow.cycle.scheduling import Choose, SchedulingCycles, choose_at_random
from kubestow.extenders.configured import ConfiguredExtenders
from kubestow.extenders.extender import Ask, ask_nobody
from kubestow.framework.guard import Guard
from kubestow.framework.handle import ApiPort, Handle, Recorder
from kubestow.framework.profile import Profile
from kubestow.framework.queueing import QueueRules
from kubestow.framework.registry import Registry
from kubestow.intake import Intake
from kubestow.model.clock import Clock
from kubestow.model.rng import Rng
from kubestow.observer import NoObserver, Observer
from kubestow.queue.nominator import Nominator
from kubestow.queue.ordering import queue_order
from kubestow.queue.rules import QueueSettings
from kubestow.queue.scheduling_queue import SchedulingQueue
from kubestow.reporting.metrics.scheduler import SchedulerMetrics
from kubestow.scheduler import Scheduler
from kubestow.wiring.profiles import build_profiles


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """What the core is given: time, chance, where to write, and who observes it."""

    clock: Clock
    stopwatch: Callable[[], float]
    rng: Rng
    rng_of_plugins: Rng | None = None
    """What plugins draw from, if not from the same."""
    api: ApiPort
    recorder: Recorder
    metrics: SchedulerMetrics
    ask: Ask = ask_nobody
    """How extenders are asked."""
    ask_about_nodes: Ask | None = None
    """How they are asked during a cycle, if differently."""
    guard: Guard | None = None
    """Stands around plugins that are neither the scheduler's own nor pure."""
    observer: Observer = NoObserver()
    history: History | None = None
    """Where changes of the cluster are noted; None to note nothing."""


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a scheduler, for those who drive or watch it."""

    cluster: Cluster
    queue: SchedulingQueue
    profiles: dict[str, Profile]
    """By scheduler name; the same dict for all parts, also after a reload."""
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


def build_core(
    configuration: SchedulerConfiguration,
    features: Features,
    registry: Registry,
    outside: Outside,
    *,
    longest_unschedulable: float = 300.0,
    choose: Choose | None = None,
) -> Core:
    """Put a scheduler together; raises ProfileError for plugins that cannot be made."""
    metrics, observer, recorder = outside.metrics, outside.observer, outside.recorder
    clock, stopwatch = outside.clock, outside.stopwatch
    # What does not depend on profiles comes first. Plugins use the queue and evictions only once the scheduler runs.
    cluster, nominator = Cluster(features, outside.history), Nominator(history=outside.history)
    waiting, conditions, gate, work_arrived = WaitingPods(), Conditions(), Gate(), asyncio.Event()
    dispatcher = Dispatcher(outside.api, metrics)
    extenders = ConfiguredExtenders(ask=outside.ask)
    extenders.configure(configuration.extenders, cluster.nodes)
    handle = Handle(
        cluster=cluster,
        features=features,
        clock=clock,
        rng=outside.rng_of_plugins or outside.rng,
        nominator=nominator,
        api=dispatcher,
        recorder=recorder,
        waiting_pods=waiting,
        metrics=metrics,
        activate=lambda pods: queue.activate(pods),
        wait_until=conditions.wait_until,
        write_aside=dispatcher.write_aside,
        is_preempting=lambda uid: evictions.is_preempting(uid),
        extenders_judge_preemption=extenders.judge_preemption,
    )

    def build(configuration: SchedulerConfiguration, registry: Registry) -> dict[str, Profile]:
        return build_profiles(configuration, registry, handle, stopwatch, outside.guard)

    profiles = build(configuration, registry)
    longest_backoff = float(configuration.podMaxBackoffSeconds)
    queue = SchedulingQueue(
        clock=clock,
        rules={name: QueueRules(profile) for name, profile in profiles.items()},
        settings=QueueSettings(
            float(configuration.podInitialBackoffSeconds),
            longest_backoff,
            longest_unschedulable,
            max(longest_backoff, 1.0) if features.generic_workload else None,
            features.scheduler_pop_from_backoff_q,
        ),
        metrics=metrics,
        order=queue_order(next(iter(profiles.values()))),
        nominator=nominator,
        arrived=work_arrived.set,
        moved=observer.moved,
    )
    cycles = SchedulingCycles(
        cluster,
        nominator,
        choose or choose_at_random(outside.rng),
        configuration.percentageOfNodesToScore,
        extenders=extenders,
        metrics=metrics,
        upcoming=queue.upcoming,
    )
    intake = Intake(
        cluster=cluster,
        queue=queue,
        scheduler_names=profiles.keys(),
        reject_waiting=waiting.reject,
        changed=conditions.changed,
        metrics=metrics,
        stopwatch=stopwatch,
        gate=gate,
    )
    binder = Binder(
        dispatcher=dispatcher,
        waiting=waiting,
        free_events=queue.done,
        extenders=extenders,
        on_step=observer.step,
        metrics=metrics,
        stopwatch=stopwatch,
        gate=gate,
        announces_expectation=features.nominated_node_name_for_expectation,
    )
    evictions = Evictions(
        cluster=cluster,
        dispatcher=dispatcher,
        waiting=waiting,
        pre_binding=binder,
        recorder=recorder,
        activate=queue.activate,
        wait_only_for=queue.wait_only_for,
        now=clock.now,
        metrics=metrics,
    )
    attempts = Attempts(
        cluster=cluster,
        queue=queue,
        profiles=profiles,
        cycles=cycles,
        intake=intake,
        binder=binder,
        evictions=evictions,
        dispatcher=dispatcher,
        recorder=recorder,
        metrics=metrics,
        observer=observer,
        clock=clock,
        stopwatch=stopwatch,
    )
    groups = None
    if cluster.groups is not None:
        # Imported only now: pod groups are behind a feature gate.
        from kubestow.cycle.pod_group import GroupCycles
        from kubestow.group_scheduling import GroupScheduling

        groups = GroupScheduling(
            groups=cluster.groups,
            queue=queue,
            cycles=GroupCycles(cluster, cycles, nominator, features, outside.rng),
            attempts=attempts,
            evictions=evictions,
            dispatcher=dispatcher,
            observer=observer,
            metrics=metrics,
            clock=clock,
            stopwatch=stopwatch,
        )
    scheduler = Scheduler(
        queue=queue,
        cycles=cycles,
        attempts=attempts,
        groups=groups,
        binder=binder,
        evictions=evictions,
        work_arrived=work_arrived,
        gate=gate,
        ask=outside.ask_about_nodes or outside.ask,
        metrics=metrics,
        clock=clock,
        stopwatch=stopwatch,
    )
    metrics.plugin_evaluations.watch(
        lambda: dict(chain.from_iterable(profile.evaluations().items() for profile in profiles.values()))
    )
    metrics.cache_size.track(lambda: len(cluster.nodes.row_of), "nodes")
    metrics.cache_size.track(lambda: cluster.pod_count, "pods")
    metrics.cache_size.track(lambda: cluster.assumed_count, "assumed_pods")
    return Core(
        cluster=cluster,
        queue=queue,
        profiles=profiles,
        handle=handle,
        build=build,
        extenders=extenders,
        cycles=cycles,
        waiting_pods=waiting,
        dispatcher=dispatcher,
        intake=intake,
        scheduler=scheduler,
        gate=gate,
    )
