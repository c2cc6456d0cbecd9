"""The web page of a live scheduler: polls for changes and sends them to readers.

Polling is limited to a small share of the CPU: after a long poll, the next one is later.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kubestow.cli.scheduler.live import LiveScheduler
from kubestow.clock import Clock
from kubestow.config import SchedulerConfiguration
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.reading import read_groups
from kubestow.insight.explain.world import Setup
from kubestow.insight.page.api import Api
from kubestow.insight.page.decisions import Recorded
from kubestow.insight.page.events import Events
from kubestow.insight.page.history import PageHistory
from kubestow.insight.page.pages import Site
from kubestow.insight.page.run import Run, page_configuration
from kubestow.insight.page.scenes import Scene, all_objects
from kubestow.insight.page.trying import DryRuns
from kubestow.insight.page.watching import Watch, WatchedScheduler
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.assembly import Core
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

SHORTEST_SECONDS = 0.25
MOST_SHARE = 0.04
SECONDS, LONGEST_SECONDS = 1.0, 10.0
"""The shortest and longest time between two polls without readers."""
SHARE_ALONE = 0.005
"""The share of the CPU without readers."""
_AFTER_FAILURE = 10.0


class PagePoller:
    """Polls a scheduler for changes."""

    def __init__(self, watch: Watch, history: PageHistory) -> None:
        self.watch = watch
        self._history = history
        self.events = Events(history)

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            try:
                pause = self.poll()
            except Exception as error:
                log.unexpected("Updating the page failed", err=error)
                pause = _AFTER_FAILURE
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.events.came.wait()
            self.events.came.clear()

    def poll(self) -> float:
        """Poll once; return the seconds until the next poll."""
        begin = time.thread_time()
        moment = self.watch.next_moment()
        if moment is not None:
            self._history.add(moment)
            self.events.publish(moment)
        spent = time.thread_time() - begin
        if self.events:
            return max(SHORTEST_SECONDS, spent / MOST_SHARE)
        return min(max(SECONDS, spent / SHARE_ALONE), LONGEST_SECONDS)


def live_run(
    name: str,
    core: Core,
    archive: Archive,
    clock: Clock,
    setup: Callable[[], Setup],
    plugins: Callable[[], PluginCollection] = PluginCollection,
) -> Run:
    """Return a scheduler as the API needs it; `plugins` are those that a configuration may name."""
    decisions = Recorded(archive)
    shown: tuple[SchedulerConfiguration, dict[str, Any]] | None = None

    def configuration() -> dict[str, Any]:
        """Return the configuration in use as the API has it; made again when it is another one."""
        nonlocal shown
        in_use, features, _ = setup()
        if shown is None or shown[0] is not in_use:
            shown = in_use, page_configuration(in_use, features, plugins())
        return shown[1]

    def scene() -> Scene:
        return Scene(setup(), all_objects(core.cluster, core.intake.pending_pods()), clock.now())

    return Run(
        name,
        PageHistory(core.cluster, core.queue.nominator, archive.recorder.history),
        decisions,
        configuration,
        DryRuns(scene, decisions, plugins, lambda query: read_groups(archive, query).items),
        archive.moves_of,
    )


class LivePage:
    """The site of a scheduler that keeps records."""

    def __init__(self, scheduler: LiveScheduler, archive: Archive, name: str) -> None:
        core, options = scheduler.core, scheduler.options

        def plugins() -> PluginCollection:
            return PluginCollection() if scheduler.reloader is None else scheduler.reloader.setup.plugins

        def setup() -> Setup:
            registry = options.registry if scheduler.reloader is None else scheduler.reloader.setup.registry
            return Setup(scheduler.configuration, options.features, registry)

        run = live_run(name, core, archive, options.clock, setup, plugins)
        # A restarted scheduler must not reuse numbers that readers have seen.
        first = int(options.clock.now()) * 10
        watched = WatchedScheduler(core, scheduler.metrics.scheduler, archive.recorder, options.clock)
        self.poller = PagePoller(Watch(watched, first), run.history)
        self._site = Site(Api([run], self.poller.events))
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Site:
        """Start polling."""
        self._task = asyncio.create_task(self.poller.run(), name="page")
        return self._site

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
