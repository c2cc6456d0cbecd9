"""Keeping decisions: what a core is given for it, and the archive of what it decided."""

from msgspec.structs import replace

from kubestow.decisions.archive import Archive
from kubestow.decisions.details import Scheduled
from kubestow.decisions.recorder import Recorder
from kubestow.observer import observers
from kubestow.reporting.metrics.scheduler import SchedulerMetrics
from kubestow.wiring.core import Core, Outside


class Recording:
    """The recorder of a core that is about to be built; `limit` is in bytes."""

    def __init__(self, outside: Outside, limit: int) -> None:
        self.recorder = recorder = Recorder(
            clock=outside.clock, stopwatch=outside.stopwatch, rng=outside.rng, limit=limit
        )
        self.outside = replace(
            outside,
            history=recorder.history,
            rng_of_plugins=recorder.rng,
            guard=recorder.plugins,
            ask_about_nodes=recorder.extenders.around(outside.ask),
            observer=observers(recorder, outside.observer),
        )
        """What to build the core with."""

    def archive(self, core: Core) -> Archive:
        """Return the decisions of the core."""
        features = core.handle.features
        extenders = core.extenders
        return Archive(
            self.recorder,
            Scheduled(
                cluster=core.cluster,
                nominator=core.queue.nominator,
                features=features,
                extenders=lambda: extenders.configured,
                metrics=SchedulerMetrics(features=features),
            ),
        )
