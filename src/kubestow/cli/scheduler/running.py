"""Runs the scheduler and its HTTPS server once the initial lists are requested.

The server listens at once, but answers only after the lists are complete or a delay: creating a certificate and
importing the modules for it would delay the first pods.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from kubestow.cli.scheduler.live import LiveOptions, LiveScheduler, ReloadOptions
from kubestow.cli.scheduler.policy_source import policy_source
from kubestow.cli.scheduler.reload import Setup
from kubestow.cli.scheduler.settings import (
    Flags,
    Settings,
    SettingsError,
    configuration_of,
    listening_address,
    plugins_of,
)
from kubestow.cli.scheduler.watches import Watches
from kubestow.clock import Clock
from kubestow.config import Features
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue
from kubestow.server.http.listening import ListenError
from kubestow.telemetry.metrics.catalogue import Metrics

SERVING_DELAY = 1.0
"""Seconds after which the server starts even if the lists are not complete."""
FIRST_PODS_DELAY = 0.1
"""Seconds between complete lists and the start of the server if there are pods to schedule."""

Begin = Callable[[LiveScheduler], None]
Run = Callable[[Settings, Metrics, Clock, Watches | None, Begin], Coroutine[Any, Any, None]]


async def run(settings: Settings, metrics: Metrics, clock: Clock, watches: Watches | None, begin: Begin) -> None:
    """Schedule and serve until cancelled; `begin` receives the scheduler. Raises LeaseLostError, SettingsError."""
    try:
        live = LiveScheduler(_options(settings, clock), metrics, watches)
    except ProfileError as error:
        raise SettingsError(str(error)) from None
    begin(live)
    listener = _listener(settings.flags) if settings.has_server else None
    try:
        async with asyncio.TaskGroup() as tasks:
            serving = None if listener is None else tasks.create_task(_serve(settings, live, listener), name="serve")
            try:
                await live.run()
            finally:
                if serving is not None:
                    serving.cancel()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        if listener is not None:
            listener.close()


def _listener(flags: Flags) -> socket.socket:
    try:
        return listening_address(flags).open()
    except ListenError as error:
        raise SettingsError(str(error)) from None


async def _serve(settings: Settings, live: LiveScheduler, listener: socket.socket) -> None:
    await give_way(live.synced, live.core.queue)
    serve = await asyncio.to_thread(_load)
    await serve(settings, live, listener)


async def give_way(synced: asyncio.Event, queue: SchedulingQueue) -> None:
    """Wait until serving does not delay the first pods; at most the delays."""
    try:
        async with asyncio.timeout(SERVING_DELAY):
            await synced.wait()
    except TimeoutError:
        return
    if queue.has_work:
        await asyncio.sleep(FIRST_PODS_DELAY)


def _load() -> Callable[[Settings, LiveScheduler, socket.socket], Coroutine[Any, Any, None]]:
    from kubestow.cli.scheduler.pages import serve

    return serve


def _options(settings: Settings, clock: Clock) -> LiveOptions:
    flags, features, plugins = settings.flags, settings.features, settings.plugins
    return LiveOptions(
        settings.configuration,
        settings.access,
        features,
        plugins.register(in_tree_registry()),
        longest_unschedulable=flags["pod-max-in-unschedulable-pods-duration"].seconds,
        clock=clock,
        reload=_reload_options(flags, features, plugins) if flags["reload"] else None,
        decisions=settings.decisions,
        tracing=settings.tracing,
    )


def _reload_options(flags: Flags, features: Features, plugins: PluginCollection) -> ReloadOptions:
    def load() -> Setup:
        found = plugins_of(flags)
        configuration = configuration_of(flags, features, found)
        return Setup(configuration, found.register(in_tree_registry()), found)

    policy = policy_source(flags)
    names = (flags["config"], policy.place if policy is not None else "")
    return ReloadOptions(plugins, load, tuple(Path(name) for name in names if isinstance(name, str) and name))
