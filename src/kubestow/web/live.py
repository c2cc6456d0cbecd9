"""The page about a live scheduler: looks at it every so often, and tells whoever listens.

A look may take no more than a small share of the time: after a long one, the next comes later.
"""

import asyncio
import time

from kubestow.decisions.reading import read_groups
from kubestow.decisions.recorder import Recorder
from kubestow.decisions.telling import tell_moves
from kubestow.explaining.world import Setup
from kubestow.plugin.loading import PluginCollection
from kubestow.reporting.logs import get_logger
from kubestow.web.api import Api
from kubestow.web.decisions import Recorded
from kubestow.web.events import Events
from kubestow.web.history import History
from kubestow.web.pages import Site
from kubestow.web.run import Run, ToldConfiguration
from kubestow.web.scenes import Scene, collected
from kubestow.web.trying import Bench
from kubestow.web.watching import Watch, Watched
from kubestow.wiring.live import LiveScheduler

log = get_logger(__name__)

SECONDS = 1.0
"""Between two looks while nobody listens."""
SHORTEST_SECONDS = 0.25
MOST_SHARE = 0.04
_AFTER_FAILURE = 10.0


class LivePage:
    """The site of a scheduler that keeps records."""

    def __init__(self, scheduler: LiveScheduler, recorder: Recorder, name: str) -> None:
        core, clock = scheduler.core, scheduler.options.clock
        self._history = History()
        self._events = Events(self._history)
        self._watch = Watch(
            Watched(core.cluster, core.queue, core.waiting_pods, scheduler.metrics.scheduler, recorder, clock),
            # So a scheduler that starts anew never says a number that readers know from before.
            number=int(clock.now()) * 10,
        )
        features = scheduler.options.features
        decisions = Recorded(recorder)

        def plugins() -> PluginCollection:
            return PluginCollection() if scheduler.reloader is None else scheduler.reloader.setup.plugins

        def scene() -> Scene:
            registry = scheduler.options.registry if scheduler.reloader is None else scheduler.reloader.setup.registry
            objects = collected(core)
            return Scene(Setup(scheduler.configuration, features, registry), lambda: objects, clock.now())

        def moves(uid: str) -> object:
            queued = core.queue.get(uid)
            return () if queued is None else tell_moves(queued.history, recorder.move_names)

        run = Run(
            name,
            self._history,
            decisions,
            ToldConfiguration(lambda: scheduler.configuration, features, plugins),
            Bench(scene, decisions, plugins, lambda query: read_groups(recorder.groups, query).items),
            lambda: core.cluster.listers.pod_groups,
            moves,
        )
        self._site = Site(Api([run], self._events))
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Site:
        """Begin to look."""
        self._looking = asyncio.create_task(self._run(), name="page")
        return self._site

    async def __aexit__(self, *_: object) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})

    async def _run(self) -> None:
        while True:
            try:
                pause = self._look()
            except Exception as error:
                log.unexpected("The page cannot be told what is new", err=error)
                pause = _AFTER_FAILURE
            await asyncio.sleep(pause)

    def _look(self) -> float:
        """For how long to wait until the next look."""
        begin = time.perf_counter()
        moment = self._watch.look()
        if moment is not None:
            self._history.add(moment)
            self._events.tell(moment)
        spent = time.perf_counter() - begin
        return max(SHORTEST_SECONDS if self._events else SECONDS, spent / MOST_SHARE)
