"""A scheduler at a real API server, put together: clients, core, watches, lease, and the life that runs them."""

import random
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from kubestow.client.access import Access
from kubestow.client.election import Elector, Terms
from kubestow.client.events import EventRecorder
from kubestow.client.informers import Informers
from kubestow.client.leases import LeaseLock
from kubestow.client.recording import PodRecorder
from kubestow.client.writes import LiveApi
from kubestow.config import Features, SchedulerConfiguration
from kubestow.framework.registry import Registry
from kubestow.model.clock import Clock
from kubestow.reporting.decisions import Decisions
from kubestow.reporting.metrics.catalogue import Metrics
from kubestow.running.clock import WallClock
from kubestow.running.lifecycle import Lifecycle, Permission
from kubestow.running.observing import telling
from kubestow.server.inspection import Inspection
from kubestow.wiring.clients import open_clients
from kubestow.wiring.core import Outside, build_core
from kubestow.wiring.registry import in_tree_registry
from kubestow.wiring.watches import watch_everything


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
    clock: Clock = field(default_factory=WallClock)


class LiveScheduler:
    """One instance; made inside the running loop."""

    def __init__(self, options: LiveOptions, metrics: Metrics | None = None) -> None:
        self.options = options
        self.metrics = metrics = Metrics(options.features) if metrics is None else metrics
        self.decisions = Decisions()
        self.stopping = False
        """Whether it was asked to stop."""
        configuration, clock, chance = options.configuration, options.clock, random.Random()
        self.clients = clients = open_clients(configuration, options.access, clock, metrics.client)
        events = self._events(clock, chance.random)
        electing = configuration.leaderElection.leaderElect
        self.elector = self._elector(events, clock, chance.random) if electing else None
        may_write, recorder = Permission(self.elector), PodRecorder(events)
        self.core = core = build_core(
            configuration,
            options.features,
            options.registry,
            Outside(
                clock=clock,
                stopwatch=time.perf_counter,
                rng=random.Random(options.seed),
                api=LiveApi(clients.writes, may_write),
                recorder=recorder,
                metrics=metrics.scheduler,
                decided=telling(self.decisions, clock),
            ),
            longest_unschedulable=options.longest_unschedulable,
        )
        self.informers = Informers(clients.watches, chance.random)
        watch_everything(self.informers, core.intake, options.features)
        self.inspection = Inspection(core.cluster, core.queue, core.profiles.keys(), clients.watches)
        self._life = Lifecycle(
            scheduler=core.scheduler,
            dispatcher=core.dispatcher,
            informers=self.informers,
            events=events,
            recorder=recorder,
            elector=self.elector,
            may_write=may_write,
            delays_watching=electing and configuration.delayCacheUntilActive,
        )
        self.synced = self._life.synced

    def _events(self, clock: Clock, chance: Callable[[], float]) -> EventRecorder:
        metrics = self.metrics.client
        return EventRecorder(
            self.clients.events, hostname=socket.gethostname(), clock=clock, random=chance, metrics=metrics
        )

    def _elector(self, events: EventRecorder, clock: Clock, chance: Callable[[], float]) -> Elector:
        election = self.options.configuration.leaderElection
        lock = LeaseLock(self.clients.leases, election.resourceNamespace, election.resourceName, self.options.identity)
        terms = Terms(election.leaseDuration.seconds, election.renewDeadline.seconds, election.retryPeriod.seconds)
        speaker = self.options.configuration.profiles[0].schedulerName
        return Elector(
            lock,
            terms,
            clock=clock,
            random=chance,
            announce=lambda held, what: events.announce(speaker, held, what),
            metrics=self.metrics.client,
        )

    @property
    def leads(self) -> bool:
        """Whether this is the instance that schedules."""
        return self.elector is None or self.elector.leads

    async def run(self) -> None:
        """Schedule until cancelled; raises LeaseLostError when the lease is lost."""
        try:
            await self._life.run()
        finally:
            self.clients.close()
