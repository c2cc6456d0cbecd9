"""Records the values that plugins poll: the plugins are created at an empty cluster, and poll as in a scheduler."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from kubestow.clock import Clock
from kubestow.config import SchedulerConfiguration
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.background import Background, live_answers
from kubestow.scheduler.cluster.gate import Gate
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.detached import detached_handle
from kubestow.scheduler.framework.handle import scoped_handle
from kubestow.scheduler.framework.polling import Http, PolledValue
from kubestow.scheduler.framework.registry import Registry
from kubestow.simulator.recording.files import RecordingWriter
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics


def record_polled(
    plugins: PluginCollection,
    configuration: SchedulerConfiguration,
    writer: RecordingWriter,
    clock: Clock,
    http: Http,
    note: Callable[[str], None],
    *,
    hides_names: bool = False,
) -> Background:
    """Record the values that plugins poll until the result is closed. Call it inside the running event loop.

    With `hides_names` they are only noted: they may contain names anywhere.
    """
    metrics, registry = SchedulerMetrics(), plugins.register(Registry())
    live = live_answers(metrics)

    async def answers(polled: PolledValue[Any]) -> AsyncIterator[Any]:
        if hides_names:
            note(f"values of {polled.name} are not recorded: --hash-names cannot replace the names in them")
            return
        async for answer in live(polled):
            if not isinstance(answer, Exception):
                writer.add_polled(clock.now(), polled.name, msgspec.to_builtins(answer))
            yield answer

    background = Background(
        loop=asyncio.get_running_loop(),
        answers=answers,
        http=http,
        clock=clock,
        metrics=metrics,
        gate=Gate(),
        notify=lambda _event, _old, _new: None,
    )
    handle = detached_handle(Cluster(), clock=clock, metrics=metrics, _background=background)
    for name in registry:
        args = next((found for one in configuration.profiles if (found := one.args_of(name)) is not None), None)
        scope = handle.scope_of(name, registry.watches(name))
        try:
            registry.make(name, args, scoped_handle(handle, scope, signs=False))
        except Exception as error:
            scope.close()
            note(f"plugin {name} cannot be created, so values that it polls are not recorded: {error}")
    return background
