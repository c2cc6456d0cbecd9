"""Builds a scheduler core that records its decisions."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubestow.config import Features, SchedulerConfiguration
from kubestow.scheduler.assembly import Core, Outside, build_core
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.observer import combined
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

if TYPE_CHECKING:
    from kubestow.insight.decisions.archive import Archive


def build_recorded(
    configuration: SchedulerConfiguration,
    features: Features,
    registry: Registry,
    outside: Outside,
    record_bytes: int,
    *,
    longest_unschedulable: float = 300.0,
) -> "tuple[Core, Archive | None]":
    """Build a core and the archive of its decisions; with 0 `record_bytes`, none is kept. Raises ProfileError."""

    def build(outside: Outside) -> Core:
        return build_core(configuration, features, registry, outside, longest_unschedulable=longest_unschedulable)

    if not record_bytes:
        return build(outside), None
    # Imported here, so that these modules are only loaded if decisions are recorded.
    from kubestow.insight.decisions.archive import Archive
    from kubestow.insight.decisions.details import SchedulerParts
    from kubestow.insight.decisions.recorder import Recorder

    recorder = Recorder(clock=outside.clock, stopwatch=outside.stopwatch, rng=outside.rng, limit=record_bytes)
    core = build(
        replace(
            outside,
            history=recorder.history,
            plugin_rng=recorder.rng,
            guard=recorder.plugins,
            ask_in_cycles=recorder.extenders.wrap(outside.ask),
            observer=combined(recorder, outside.observer),
        )
    )
    parts = SchedulerParts(core.cluster, core.queue.nominator, features, SchedulerMetrics(features=features))
    return core, Archive(recorder, parts)
