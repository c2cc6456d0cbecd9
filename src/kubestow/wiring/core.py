"""The scheduler core put together: everything but the connection to an API server."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain

import msgspec

from kubestow.binding.conditions import Conditions
from kubestow.binding.dispatcher import Dispatcher
from kubestow.binding.waiting import WaitingPods
from kubestow.cluster.gate import Gate
from kubestow.cluster.state import Cluster
from kubestow.config import Features, SchedulerConfiguration
from kubestow.config.configuration import Extender
from kubestow.cycle.scheduling import Choose, SchedulingCycles, choose_at_random
from kubestow.extenders.extender import Ask, ask_nobody
from kubestow.framework.handle import ApiPort, Handle, Recorder
from kubestow.framework.profile import Profile
from kubestow.framework.queueing import QueueRules
from kubestow.framework.registry import Registry
from kubestow.intake import Intake
from kubestow.model.clock import Clock
from kubestow.model.pod import Pod
from kubestow.model.rng import Rng
from kubestow.queue.nominator import Nominator
from kubestow.queue.ordering import queue_order
from kubestow.queue.rules import QueueSettings
from kubestow.queue.scheduling_queue import SchedulingQueue
from kubestow.reporting.metrics.scheduler import SchedulerMetrics
from kubestow.scheduler import Decided, Observer, Scheduler
from kubestow.wiring.profiles import build_profiles


class Outside(msgspec.Struct, frozen=True):
    """What the core is given: time, chance, and somewhere to write."""

    clock: Clock
    stopwatch: Callable[[], float]
    rng: Rng
    api: ApiPort
    recorder: Recorder
    metrics: SchedulerMetrics
    decided: Decided
    ask: Ask = ask_nobody
    """How extenders are asked."""
    observer: Observer | None = None
    """Who keeps what is decided, and why; None: nobody, and nothing is collected."""


class Core(msgspec.Struct, frozen=True):
    """The parts of a scheduler, for those who drive or watch it."""

    cluster: Cluster
    queue: SchedulingQueue
    profiles: dict[str, Profile]
    """Shared by all who ask for them."""
    handle: Handle
    build: Callable[[SchedulerConfiguration, Registry], dict[str, Profile]]
    """Makes other profiles; raises ProfileError."""
    use_extenders: Callable[[Sequence[Extender]], None]
    """Has other extenders asked about the pods that begin from now on."""
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
    cluster, nominator, waiting, conditions = Cluster(features), Nominator(), WaitingPods(), Conditions()
    dispatcher, work_arrived, gate = Dispatcher(outside.api, outside.metrics), asyncio.Event(), Gate()

    # Plugins may ask for what is made only after them; by the time they do, it is there.
    def activate(pods: Iterable[Pod]) -> None:
        queue.activate(pods)

    def is_preempting(uid: str) -> bool:
        return scheduler.evictions.is_preempting(uid)

    handle = Handle(
        cluster=cluster,
        features=features,
        clock=outside.clock,
        rng=outside.rng,
        nominator=nominator,
        api=dispatcher,
        recorder=outside.recorder,
        waiting_pods=waiting,
        metrics=outside.metrics,
        activate=activate,
        wait_until=conditions.wait_until,
        write_aside=dispatcher.write_aside,
        is_preempting=is_preempting,
    )
    build = partial(build_profiles, handle=handle, stopwatch=outside.stopwatch)
    profiles = build(configuration, registry)
    outside.metrics.plugin_evaluations.watch(
        lambda: dict(chain.from_iterable(profile.evaluations().items() for profile in profiles.values()))
    )
    queue = SchedulingQueue(
        outside.clock,
        {name: QueueRules(profile) for name, profile in profiles.items()},
        QueueSettings(
            float(configuration.podInitialBackoffSeconds),
            float(configuration.podMaxBackoffSeconds),
            longest_unschedulable,
            max(float(configuration.podMaxBackoffSeconds), 1.0) if features.generic_workload else None,
            features.scheduler_pop_from_backoff_q,
        ),
        outside.metrics,
        queue_order(next(iter(profiles.values()))),
        nominator,
        work_arrived.set,
    )
    cycles = SchedulingCycles(
        cluster,
        nominator,
        choose or choose_at_random(outside.rng),
        configuration.percentageOfNodesToScore,
        metrics=outside.metrics,
        upcoming=queue.upcoming,
        traces=outside.observer is not None,
    )
    intake = Intake(
        cluster, queue, profiles.keys(), waiting.reject, conditions.changed, outside.metrics, outside.stopwatch, gate
    )
    scheduler = Scheduler(
        cluster,
        queue,
        profiles,
        cycles,
        intake,
        dispatcher,
        outside.recorder,
        outside.metrics,
        outside.decided,
        outside.clock,
        outside.stopwatch,
        waiting,
        work_arrived,
        gate,
        outside.ask,
        announces_expectation=features.nominated_node_name_for_expectation,
        observer=outside.observer,
    )
    if cluster.groups is not None:
        # Imported only now: they are behind a gate.
        from kubestow.cycle.pod_group import GroupCycles
        from kubestow.group_scheduling import GroupScheduling, told_to_nobody

        observer = outside.observer
        group_cycles = GroupCycles(cluster, cycles, nominator, features, outside.rng, explains=observer is not None)
        if observer is not None:
            observer.is_group_pending = cluster.groups.is_pending
        scheduler.groups = GroupScheduling(
            cluster.groups,
            queue,
            group_cycles,
            scheduler,
            dispatcher,
            outside.metrics,
            outside.clock,
            outside.stopwatch,
            told_to_nobody if observer is None else observer.group_decided,
        )

    def use_extenders(configured: Sequence[Extender]) -> None:
        if not configured:
            handle.extenders_judge_preemption = lambda _pod: False
            cycles.use_extenders(None)
            scheduler.binder.extender_binding = None
            return
        # Imported only now: few have any.
        from kubestow.extenders.asking import Extenders
        from kubestow.extenders.binding import ExtenderBinding

        extenders = Extenders(configured, cluster.nodes)
        handle.extenders_judge_preemption = extenders.judge_preemption
        cycles.use_extenders(extenders)
        scheduler.binder.extender_binding = ExtenderBinding(extenders, outside.ask)

    use_extenders(configuration.extenders)
    return Core(
        cluster, queue, profiles, handle, build, use_extenders, cycles, waiting, dispatcher, intake, scheduler, gate
    )
