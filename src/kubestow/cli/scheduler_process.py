"""The process: its log, its event loop, its signals, its exit code.

SIGTERM and SIGINT stop it in good order, exit code 0; a second one ends it at once with 1. SIGHUP makes it reload its
configuration and plugins. SIGUSR2 makes it tell the log what it knows, and compare that with the API server. A lost
lease, or anything unforeseen, ends it with 1.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubestow.cli.policy_source import WARNING, policy_source
from kubestow.cli.scheduler_flags import FLAGS
from kubestow.cli.scheduler_serving import listening_of, serving_of, written
from kubestow.cli.scheduler_settings import Flags, SettingsError, configuration_of, plugins_of
from kubestow.config import Features, SchedulerConfiguration
from kubestow.framework.profile import ProfileError
from kubestow.http.server import ListenError
from kubestow.model.failures import CallError, LeaseLostError
from kubestow.plugin.loading import PluginCollection
from kubestow.reporting.build import KUBERNETES, BuildInfo
from kubestow.reporting.log_setup import LogOptions, LogOutput
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.catalogue import Metrics
from kubestow.reporting.metrics.options import MetricOptions
from kubestow.running.reloading import Reloader, Setup
from kubestow.server.options import ServingOptions
from kubestow.server.tls import TlsError
from kubestow.wiring.clients import access_of
from kubestow.wiring.live import DecisionOptions, LiveOptions, LiveScheduler, ReloadOptions
from kubestow.wiring.registry import in_tree_registry
from kubestow.wiring.serving import Serving

if TYPE_CHECKING:
    from kubestow.running.tracing_options import TracingOptions

log = get_logger(__name__)


def tell_version(*, raw: bool) -> None:
    """Write the version to standard output."""
    build = BuildInfo()
    click.echo(str(asdict(build)) if raw else f"Kubernetes {build.git_version} (does as kube-scheduler v{KUBERNETES})")


def run(
    flags: Flags,
    configuration: SchedulerConfiguration,
    features: Features,
    plugins: PluginCollection,
    log_options: LogOptions,
    metric_options: MetricOptions,
) -> int:
    """Run until stopped; returns the exit code. Raises SettingsError before anything has begun."""
    try:
        access = access_of(configuration, flags["master"])
    except CallError as error:
        raise SettingsError(str(error)) from None
    output = LogOutput(log_options)
    listening = listening_of(flags)
    serving = None if listening is None else serving_of(flags, listening, output.set_verbosity)
    options = LiveOptions(
        configuration,
        access,
        features,
        plugins.register(in_tree_registry()),
        longest_unschedulable=flags["pod-max-in-unschedulable-pods-duration"].seconds,
        reload=_reload_options(flags, features, plugins) if flags["reload"] else None,
        decisions=_decision_options(flags),
        tracing=_tracing_options(flags),
    )
    output.open()
    try:
        _tell_flags(flags)
        for loaded in plugins.loaded:
            log.info("Loaded plugin", plugin=loaded.name, source=loaded.source, sha256=loaded.digest)
        if policy_source(flags) is not None:
            log.warning(WARNING)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            process = _Process(output, flags["log-flush-frequency"].seconds)
            return runner.run(process.run(options, metric_options, serving))
    finally:
        output.close()


def _decision_options(flags: Flags) -> DecisionOptions:
    """What is kept of decisions; raises SettingsError."""
    room, path, size = flags["decision-records-bytes"], flags["decision-log"], flags["decision-log-max-size"]
    for name in ("decision-log", "annotate-decisions", "ui"):
        if flags[name] and not room:
            raise SettingsError(f"--{name}: needs records; --decision-records-bytes must not be 0")
    for name in ("decision-records-bytes", "decision-log-max-size", "decision-log-max-backups"):
        if flags[name] < 0:
            raise SettingsError(f"--{name}: must not be negative")
    if path and path != "-":
        try:
            Path(path).open("ab").close()
        except OSError as error:
            raise SettingsError(f"--decision-log: cannot write {path}: {error.strerror}") from None
    backups, nodes = flags["decision-log-max-backups"], flags["decision-log-nodes"]
    return DecisionOptions(room, path, size, backups, nodes, flags["annotate-decisions"])


def _tracing_options(flags: Flags) -> "TracingOptions | None":
    """Where spans are sent; raises SettingsError."""
    path = flags["tracing-config-file"]
    if not path:
        return None
    # Imported only now: few want it.
    from kubestow.running.tracing_options import tracing_options

    try:
        found = tracing_options(Path(path).read_text(encoding="utf-8"), plugins=flags["tracing-plugins"])
        import kubestow.running.tracing  # noqa: F401 to see that it can be
    except OSError as error:
        raise SettingsError(f"--tracing-config-file: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"--tracing-config-file: {path}: {error}") from None
    except ImportError as error:
        raise SettingsError(f"--tracing-config-file: install kubestow[otel] to send spans: {error}") from None
    return found


def _reload_options(flags: Flags, features: Features, plugins: PluginCollection) -> ReloadOptions:
    def load() -> Setup:
        found = plugins_of(flags)
        configuration = configuration_of(flags, features, found)
        return Setup(configuration, found.register(in_tree_registry()), found)

    policy = policy_source(flags)
    names = (flags["config"], policy.place if policy is not None else "")
    return ReloadOptions(plugins, load, tuple(Path(name) for name in names if isinstance(name, str) and name))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _tell_flags(flags: Flags) -> None:
    for name, value in written(flags).items():
        line = f'FLAG: --{name}="{value}"'
        log.info(line, v=1)
    for name in sorted(flags.given):
        if FLAGS[name].ignored:
            log.warning("Flag has no effect", flag=f"--{name}", reason=FLAGS[name].ignored)


class _Process:
    """One run of the scheduler."""

    def __init__(self, output: LogOutput, flush_seconds: float) -> None:
        self._output = output
        self._flush_seconds = max(flush_seconds, 0.1)
        self._live: LiveScheduler | None = None
        self._comparing: asyncio.Task[list[str]] | None = None
        self._reloading: set[asyncio.Task[bool]] = set()

    async def run(self, options: LiveOptions, metric_options: MetricOptions, serving: ServingOptions | None) -> int:
        """Until it is stopped or fails; returns the exit code."""
        log.info("Starting Kubernetes Scheduler", version=BuildInfo().git_version)
        flushing = asyncio.create_task(self._flush(), name="flush logs")
        running = asyncio.create_task(self._schedule(options, metric_options, serving), name="scheduler")
        self._stop_on_signals(running)
        try:
            await running
        except asyncio.CancelledError:
            log.info("Requested to terminate, exiting")
            return 0
        except LeaseLostError as error:
            log.error("Leaderelection lost", err=error)
        except (CallError, ProfileError, ListenError, TlsError) as error:
            log.error("The scheduler cannot run", err=error)
        except Exception as error:
            log.unexpected("The scheduler has failed", err=error)
        finally:
            flushing.cancel()
        return 1

    async def _schedule(
        self, options: LiveOptions, metric_options: MetricOptions, serving: ServingOptions | None
    ) -> None:
        live = self._live = LiveScheduler(options, Metrics(options.features, metric_options))
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, self._inspect, live)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload, live.reloader)
        if serving is None:
            await live.run()
            return
        async with AsyncExitStack() as stack:
            page = None
            if serving.has_page and live.decisions is not None:
                # Imported only now: few want it.
                from kubestow.web.live import LivePage

                page = await stack.enter_async_context(LivePage(live, live.decisions, "kubestow scheduler"))
            server = Serving(serving, live, page)
            stack.push_async_callback(server.stop)
            await server.start()
            await live.run()

    def _stop_on_signals(self, running: asyncio.Task[None]) -> None:
        def stop(name: str) -> None:
            if running.cancelling():
                log.error("Asked to stop again, exiting at once", signal=name)
                self._output.flush()
                os._exit(1)
            log.info("Stopping", signal=name)
            if self._live is not None:
                self._live.stopping = True
            running.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop, number.name)

    def _inspect(self, live: LiveScheduler) -> None:
        live.inspection.tell_what_is_known()
        if self._comparing is None or self._comparing.done():
            self._comparing = asyncio.create_task(
                live.inspection.compare_with_server(), name="compare with the API server"
            )

    def _reload(self, reloader: Reloader | None) -> None:
        if reloader is None:
            log.info("Configuration not reloaded, because of --reload=off")
            return
        task = asyncio.create_task(reloader.reload(), name="reload")
        self._reloading.add(task)
        task.add_done_callback(self._reloading.discard)

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(self._flush_seconds)
            self._output.flush()
