"""Assembly of a scheduler at an API server: clients, core, watches, lease, and the lifecycle that runs them."""

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kubestow.cli.scheduler.file_watch import FileWatch
from kubestow.cli.scheduler.lifecycle import Lifecycle, Permission
from kubestow.cli.scheduler.options import DecisionOptions, TracingOptions
from kubestow.cli.scheduler.reload import Reloader, Setup
from kubestow.cli.scheduler.watches import DeclaredWatches, Watches, prepare_watches
from kubestow.client.access import Access
from kubestow.client.api import ApiClient
from kubestow.client.candidate import Candidate
from kubestow.client.clients import user_agent
from kubestow.client.election import Elector, Terms
from kubestow.client.events import EventRecorder
from kubestow.client.http import HttpClient
from kubestow.client.leases import LeaseLock
from kubestow.client.recording import PodRecorder
from kubestow.client.resources import PODS
from kubestow.client.writes import LiveApi
from kubestow.clock import Clock, SystemClock
from kubestow.config import Features, SchedulerConfiguration
from kubestow.insight.decisions.recording import build_recorded
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.assembly import Outside, Polling
from kubestow.scheduler.background import live_answers
from kubestow.scheduler.extenders.client import ExtenderClient
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.intake import IntakeHandler
from kubestow.scheduler.observer import Observer
from kubestow.server.inspection import Inspection
from kubestow.telemetry.metrics.catalogue import Metrics

if TYPE_CHECKING:
    from kubestow.cli.scheduler.annotator import Annotator
    from kubestow.cli.scheduler.tracing import Tracing
    from kubestow.insight.decisions.log import DecisionLog


def _identity() -> str:
    # Unique per process: two on one host must not share an identity.
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class ReloadOptions(msgspec.Struct, frozen=True):
    """Options of reloading configuration and plugins."""

    plugins: PluginCollection
    """The plugins loaded at the start."""
    load: Callable[[], Setup]
    """Reads everything again. Called in its own thread; raises an exception if something is invalid."""
    files: tuple[Path, ...] = ()
    """Files to watch for changes besides those of plugins."""


class LiveOptions(msgspec.Struct, frozen=True):
    """Options of a live scheduler."""

    configuration: SchedulerConfiguration
    access: Access
    features: Features = msgspec.field(default_factory=Features)
    registry: Registry = msgspec.field(default_factory=in_tree_registry)
    longest_unschedulable: float = 300.0
    seed: int | None = None
    """Makes the choice among equally good nodes repeatable."""
    identity: str = msgspec.field(default_factory=_identity)
    clock: Clock = msgspec.field(default_factory=SystemClock)
    reload: ReloadOptions | None = None
    """None: no reload."""
    decisions: DecisionOptions = msgspec.field(default_factory=DecisionOptions)
    tracing: TracingOptions | None = None
    """None: no spans."""


class LiveScheduler:
    """A scheduler instance. Create it inside the running event loop."""

    def __init__(self, options: LiveOptions, metrics: Metrics | None = None, watches: Watches | None = None) -> None:
        """`watches` may already be started."""
        self.options = options
        self.metrics = metrics = Metrics(options.features) if metrics is None else metrics
        self.stopping = False
        """Whether a stop was requested."""
        configuration, clock, chance = options.configuration, options.clock, random.Random()
        self._tracing = self._traces(metrics)
        if watches is None:
            client = ApiClient if self._tracing is None else self._tracing.traced
            watches = prepare_watches(configuration, options.features, options.access, clock, metrics.client, client)
        self.informers = watches.informers
        self.clients = clients = watches.clients
        events = self._events(clock, chance.random)
        election = configuration.leaderElection
        lock = LeaseLock(clients.leases, election.resourceNamespace, election.resourceName, options.identity)
        electing = election.leaderElect
        self.elector = self._elector(lock, events, clock, chance.random) if electing else None
        may_write, recorder = Permission(self.elector), PodRecorder(events)
        api = LiveApi(clients.writes, may_write)
        self.extenders = ExtenderClient(configuration.extenders, clock, user_agent("scheduler"), may_write)
        self._http = HttpClient(user_agent("scheduler"), clock)
        answers = live_answers(metrics.scheduler, chance.random)
        self.core, self.decisions = build_recorded(
            configuration,
            options.features,
            options.registry,
            Outside(
                clock=clock,
                stopwatch=time.perf_counter,
                rng=random.Random(options.seed),
                api=api,
                recorder=recorder,
                metrics=metrics.scheduler,
                ask=self.extenders.ask,
                observer=self._tracing or Observer(),
                polling=Polling(loop=asyncio.get_running_loop(), answers=answers, http=self._http),
            ),
            options.decisions.record_bytes,
            longest_unschedulable=options.longest_unschedulable,
        )
        core = self.core
        declared = DeclaredWatches(self.informers, core.cluster.listers.forget)
        for profile in core.profiles.values():
            declared.add(profile.declared_kinds)
        self.pods = pods = watches.stores[PODS.name].objects.values
        """All pods, of any scheduler."""
        self.reloader = None
        if options.reload is not None:
            self.reloader = Reloader(
                core,
                Setup(configuration, options.registry, options.reload.plugins),
                partial(asyncio.to_thread, options.reload.load),
                pods,
                lambda kind, reason, what: events.announce(self._speaker, lock, what, reason=reason, kind=kind),
                metrics.reload,
                self.extenders,
                declared,
            )
        self._log = self._decision_log()
        self._annotator = self._annotations(api)
        self.inspection = Inspection(core.cluster, core.queue, core.profiles.keys(), clients.watches)
        self._life = Lifecycle(
            scheduler=core.scheduler,
            dispatcher=core.dispatcher,
            informers=self.informers,
            handler_of=lambda resource: IntakeHandler(core.intake, resource.kind),
            events=events,
            recorder=recorder,
            elector=self.elector,
            candidate=self._candidate(lock, clock),
            may_write=may_write,
            delays_watching=electing and configuration.delayCacheUntilActive,
        )
        self.synced = self._life.synced

    def _decision_log(self) -> "DecisionLog | None":
        """Return the decision log, if it is on. Raises OSError if the file is not writable."""
        options = self.options.decisions
        if self.decisions is None or not options.log:
            return None
        # Imported only now: few want it.
        from kubestow.insight.decisions.log import DecisionLog

        return DecisionLog(
            self.decisions, options.log, size=options.log_bytes, backups=options.log_backups, nodes=options.log_nodes
        )

    def _annotations(self, api: LiveApi) -> "Annotator | None":
        if self.decisions is None or not self.options.decisions.annotates:
            return None
        # Imported only now: few want it.
        from kubestow.cli.scheduler.annotator import Annotator

        return Annotator(self.decisions, self.core.intake.latest, api.annotate_pod)

    def _traces(self, metrics: Metrics) -> "Tracing | None":
        if self.options.tracing is None:
            return None
        # Imported only now: few want it.
        from kubestow.cli.scheduler.tracing import Tracing

        return Tracing(self.options.tracing, metrics.scheduler, time.perf_counter)

    def _events(self, clock: Clock, chance: Callable[[], float]) -> EventRecorder:
        metrics = self.metrics.client
        return EventRecorder(
            self.clients.events, hostname=socket.gethostname(), clock=clock, random=chance, metrics=metrics
        )

    def _elector(self, lock: LeaseLock, events: EventRecorder, clock: Clock, chance: Callable[[], float]) -> Elector:
        election = self.options.configuration.leaderElection
        terms = Terms(election.leaseDuration.seconds, election.renewDeadline.seconds, election.retryPeriod.seconds)
        return Elector(
            lock,
            terms,
            clock=clock,
            random=chance,
            announce=lambda held, what: events.announce(self._speaker, held, what),
            metrics=self.metrics.client,
            coordinated=self.options.features.coordinated_leader_election,
        )

    def _candidate(self, lock: LeaseLock, clock: Clock) -> Candidate | None:
        features, election = self.options.features, self.options.configuration.leaderElection
        if self.elector is None or not features.coordinated_leader_election:
            return None
        return Candidate(self.clients.leases, lock, clock, election.retryPeriod.seconds, features.versions.emulated)

    @property
    def _speaker(self) -> str:
        """The name of the scheduler in its own events."""
        return self.options.configuration.profiles[0].schedulerName

    @property
    def configuration(self) -> SchedulerConfiguration:
        """The configuration in use."""
        return self.options.configuration if self.reloader is None else self.reloader.setup.configuration

    @property
    def leads(self) -> bool:
        """Whether this instance may schedule."""
        return self.elector is None or self.elector.leads

    async def run(self) -> None:
        """Schedule until cancelled. Raises LeaseLostError when the lease is lost."""
        tasks = [self._watch_files()]
        if self._annotator is not None:
            tasks.append(asyncio.create_task(self._annotator.run(), name="annotate pods"))
        try:
            await self._life.run()
        finally:
            for task in tasks:
                if task is not None:
                    task.cancel()
            if self._log is not None:
                self._log.close()
            self.core.close()
            self._http.close()
            self.extenders.close()
            self.clients.close()
            if self._tracing is not None:
                await self._tracing.close()

    def _watch_files(self) -> asyncio.Task[None] | None:
        if self.reloader is None or self.options.reload is None:
            return None
        plugins = self.options.reload.plugins
        watch = FileWatch((*self.options.reload.files, *plugins.files), since=plugins.created_at)
        return asyncio.create_task(watch.run(self.reloader.reload), name="watch files") if watch else None
