"""A scheduler at a real API server, from its options to the end.

    clients -> core -> what it serves -> watches, until all is known -> lease -> scheduling

Whoever does not get the lease keeps watching, so that it knows everything the moment it does (unless the configuration
delays that). Cancelling `run` is the orderly way to stop: no more pods are taken, bindings under way may finish, what
is left to write is written, the lease is released. A lost lease is the opposite: nothing is written any more.
"""

import asyncio
import gc
import random
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from kubestow.client.access import Access
from kubestow.client.election import Elector, Terms
from kubestow.client.events import QUEUE, EventRecorder
from kubestow.client.informers import Informers
from kubestow.client.leases import LeaseLock
from kubestow.config import Features, SchedulerConfiguration
from kubestow.framework.registry import Registry
from kubestow.model.clock import Clock
from kubestow.reporting.decisions import Decisions
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.catalogue import Metrics
from kubestow.wiring.api import LiveApi
from kubestow.wiring.clients import open_clients
from kubestow.wiring.core import Outside, build_core
from kubestow.wiring.memory import keep_freed_memory
from kubestow.wiring.observing import LiveObserver
from kubestow.wiring.recording import LiveRecorder
from kubestow.wiring.registry import in_tree_registry
from kubestow.wiring.watches import watch_everything

log = get_logger(__name__)

BINDING_SECONDS = 10.0
"""How long bindings under way may take when the scheduler is asked to stop."""
WRITING_SECONDS = 5.0
"""How long what is left to write (conditions, evictions, events) may take then."""

GC_THRESHOLDS = (200_000, 12, 1_000)
"""Scheduling leaves no cycles behind, and each of thousands of bindings under way is some thirty objects to look at."""


class WallClock:
    """The time of day."""

    def now(self) -> float:
        return time.time()


WALL_CLOCK = WallClock()


def _identity() -> str:
    # A process of its own each: two on one host must not take each other for themselves.
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True)
class LiveOptions:
    """What a live scheduler is made from."""

    configuration: SchedulerConfiguration
    access: Access
    features: Features = field(default_factory=Features)
    registry: Registry = field(default_factory=in_tree_registry)
    longest_unschedulable: float = 300.0
    seed: int | None = None
    """Makes the choice among equally good nodes repeatable."""
    identity: str = field(default_factory=_identity)
    clock: Clock = WALL_CLOCK


class LiveScheduler:
    """One instance; made inside the running loop."""

    def __init__(self, options: LiveOptions, metrics: Metrics | None = None) -> None:
        self.options = options
        self.metrics = Metrics(options.features) if metrics is None else metrics
        self.decisions = Decisions()
        self.synced = asyncio.Event()
        self.stopping = False
        configuration, clock, chance = options.configuration, options.clock, random.Random()
        self.clients = open_clients(
            configuration, options.access, clock, self.metrics.requests, self.metrics.credentials
        )
        for _ in range(self.clients.ways):
            self.metrics.transports.transport_created(cached=False)
        self.metrics.transports.watch_transports(lambda: self.clients.ways)
        self.events = EventRecorder(
            self.clients.events,
            hostname=socket.gethostname(),
            clock=clock,
            random=chance.random,
            observer=self.metrics.workqueues,
        )
        self.metrics.workqueues.watch_workqueue(QUEUE, lambda: self.events.pending, self.events.being_written)
        self.elector = self._elector(clock, chance.random) if configuration.leaderElection.leaderElect else None
        self._recorder = LiveRecorder(self.events)
        self._writes = True
        observer = LiveObserver(self.metrics, self.decisions, clock)
        self.core = build_core(
            configuration,
            options.features,
            options.registry,
            Outside(
                clock=clock,
                stopwatch=time.perf_counter,
                rng=random.Random(options.seed),
                api=LiveApi(self.clients.writes, self._may_write),
                recorder=self._recorder,
                observer=observer,
            ),
            longest_unschedulable=options.longest_unschedulable,
        )
        observer.watch(self.core)
        self.informers = Informers(self.clients.watches, chance.random)
        self.stores = watch_everything(self.informers, self.core.intake)

    def _elector(self, clock: Clock, chance: Callable[[], float]) -> Elector:
        election = self.options.configuration.leaderElection
        lock = LeaseLock(self.clients.leases, election.resourceNamespace, election.resourceName, self.options.identity)
        terms = Terms(election.leaseDuration.seconds, election.renewDeadline.seconds, election.retryPeriod.seconds)
        speaker = self.options.configuration.profiles[0].schedulerName
        return Elector(
            lock,
            terms,
            clock=clock,
            random=chance,
            announce=lambda held, what: self.events.announce(speaker, held, what),
            observer=self.metrics.election,
        )

    def _may_write(self) -> bool:
        return self._writes and (self.elector is None or self.elector.may_act)

    @property
    def leads(self) -> bool:
        """Whether this is the instance that schedules."""
        return self.elector is None or self.elector.leads

    async def run(self) -> None:
        """Schedule until cancelled; raises LeaseLostError when the lease is lost."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.events.run(), name="write events")
                if not self._delays_watching:
                    self._start_watching(tasks)
                    await self._all_known()
                if self.elector is None:
                    await self._schedule(tasks)
                else:
                    await self.elector.run(lambda: self._schedule(tasks))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self.clients.close()

    @property
    def _delays_watching(self) -> bool:
        return self.elector is not None and self.options.configuration.delayCacheUntilActive

    def _start_watching(self, tasks: asyncio.TaskGroup) -> None:
        keep_freed_memory()
        gc.set_threshold(*GC_THRESHOLDS)
        tasks.create_task(self.informers.run(), name="watch")

    async def _all_known(self) -> None:
        await self.informers.wait_synced()
        # What was just listed lives as long as the process: the collector need not look at it, not even once.
        gc.freeze()
        self.synced.set()
        log.info("Handlers synced", v=3)

    async def _schedule(self, tasks: asyncio.TaskGroup) -> None:
        if self._delays_watching:
            self._start_watching(tasks)
            await self._all_known()
        try:
            await self.core.scheduler.run()
        finally:
            await self._finish()

    async def _finish(self) -> None:
        """End in good order what is under way, as far as it is still allowed; give up the rest without a word."""
        scheduler = self.core.scheduler
        if self._may_write():
            if not await scheduler.binder.drain(BINDING_SECONDS):
                log.warning("Bindings did not end in time", seconds=BINDING_SECONDS, bindings=len(scheduler.binder))
            try:
                async with asyncio.timeout(WRITING_SECONDS):
                    await scheduler.evictions.drain()
                    await self.core.dispatcher.drain()
            except TimeoutError:
                log.warning("Not everything could be written in time", seconds=WRITING_SECONDS)
            await self.events.drain(WRITING_SECONDS)
        self._writes = False
        self._recorder.close()
        scheduler.binder.abandon()
