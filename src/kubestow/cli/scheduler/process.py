"""The process of the scheduler: logging, event loop, signals, exit code.

SIGTERM and SIGINT shut it down with exit code 0; a second one exits at once with 1. SIGHUP reloads configuration and
plugins. SIGUSR2 logs the state of cache and queue, and compares it with the API server. Both are deferred until the
scheduler exists. A lost lease or an unexpected error exits with 1.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from kubestow.api.failures import CallError, LeaseLostError
from kubestow.cli.scheduler.early_signals import EarlySignals
from kubestow.cli.scheduler.flags import FLAGS
from kubestow.cli.scheduler.options import DecisionOptions, TracingOptions, tracing_options
from kubestow.cli.scheduler.policy_source import WARNING, policy_source
from kubestow.cli.scheduler.settings import Flags, Settings, SettingsError, flag_values, has_server
from kubestow.cli.scheduler.watches import prepare_watches
from kubestow.client.clients import configured_access
from kubestow.client.kubeconfig import load_kubeconfig
from kubestow.clock import SystemClock
from kubestow.config import Features, SchedulerConfiguration
from kubestow.plugin.loading import PluginCollection
from kubestow.telemetry.build import KUBERNETES, BuildInfo
from kubestow.telemetry.log_setup import LogOutput
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.telemetry.metrics.options import MetricOptions

if TYPE_CHECKING:
    from kubestow.cli.scheduler.live import LiveScheduler
    from kubestow.cli.scheduler.reload import Reloader
    from kubestow.cli.scheduler.running import Run

log = get_logger(__name__)

_CERTIFICATES = ("cert-dir", "client-ca-file", "requestheader-client-ca-file")
"""Flags that name certificates, besides the TLS flags."""


def print_version(*, raw: bool) -> None:
    """Print the version."""
    build = BuildInfo()
    click.echo(
        str(asdict(build)) if raw else f"Kubernetes {build.git_version} (compatible with kube-scheduler v{KUBERNETES})"
    )


def run(
    flags: Flags,
    configuration: SchedulerConfiguration,
    features: Features,
    plugins: PluginCollection,
    output: LogOutput,
    metric_options: MetricOptions,
    early: EarlySignals,
) -> int:
    """Run until stopped; return the exit code. Raises SettingsError before anything is started."""
    try:
        access = configured_access(configuration, flags["master"], flags["config"])
    except CallError as error:
        raise SettingsError(str(error)) from None
    settings = Settings(
        flags,
        configuration,
        features,
        plugins,
        access,
        has_server(flags),
        decision_options(flags),
        _tracing_options(flags),
        output.set_verbosity,
    )
    if settings.has_server:
        _check_serving(flags)
    _log_flags(flags)
    for warning in features.warnings():
        log.warning("Feature gates", warning=warning)
    for loaded in plugins.loaded:
        log.info("Loaded plugin", plugin=loaded.name, source=loaded.source, sha256=loaded.digest)
    if policy_source(flags) is not None:
        log.warning(WARNING)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        process = _Process(output, flags["log-flush-frequency"].seconds, early)
        return runner.run(process.run(settings, Metrics(features, metric_options)))


def _check_serving(flags: Flags) -> None:
    """Check the files for serving before anything is started. Raises SettingsError."""
    for name in ("authentication-kubeconfig", "authorization-kubeconfig"):
        if flags[name]:
            try:
                load_kubeconfig([flags[name]], must_exist=True)
            except CallError as error:
                raise SettingsError(f"--{name}: {error}") from None
    if any(name in _CERTIFICATES or name.startswith("tls-") for name in flags.given):
        # Imported only now: a slow import for rare flags.
        from kubestow.cli.scheduler.pages import check_certificates

        check_certificates(flags)


def decision_options(flags: Flags) -> DecisionOptions:
    """Return the options of decision records. Raises SettingsError."""
    record_bytes, path, size = flags["decision-records-bytes"], flags["decision-log"], flags["decision-log-max-size"]
    for name in ("decision-log", "annotate-decisions", "ui"):
        if flags[name] and not record_bytes:
            raise SettingsError(f"--{name}: needs records; --decision-records-bytes must not be 0")
    for name in sorted(flags.given):
        if name.startswith("decision-log-") and not path:
            raise SettingsError(f"--{name}: has no effect without --decision-log, which names the file to write")
    for name in ("decision-records-bytes", "decision-log-max-size", "decision-log-max-backups"):
        if flags[name] < 0:
            raise SettingsError(f"--{name}: must not be negative")
    if path and path != "-":
        try:
            Path(path).open("ab").close()
        except OSError as error:
            raise SettingsError(f"--decision-log: cannot write {path}: {error.strerror}") from None
    if not (flags["secure-port"] or path or flags["annotate-decisions"] or "decision-records-bytes" in flags.given):
        # Nothing could read the records.
        record_bytes = 0
    backups, nodes = flags["decision-log-max-backups"], flags["decision-log-nodes"]
    return DecisionOptions(record_bytes, path, size, backups, nodes, flags["annotate-decisions"])


def _tracing_options(flags: Flags) -> TracingOptions | None:
    """Return the options of tracing, None if it is off. Raises SettingsError."""
    path = flags["tracing-config-file"]
    if not path:
        if flags["tracing-plugins"]:
            raise SettingsError("--tracing-plugins: there are no spans without --tracing-config-file")
        return None
    try:
        found = tracing_options(Path(path).read_text(encoding="utf-8"), plugins=flags["tracing-plugins"])
        # Imported only now: few want it.
        import kubestow.cli.scheduler.tracing  # noqa: F401 to check that it is possible
    except OSError as error:
        raise SettingsError(f"--tracing-config-file: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"--tracing-config-file: {path}: {error}") from None
    except ImportError as error:
        raise SettingsError(f"--tracing-config-file: install kubestow[otel] to send spans: {error}") from None
    return found


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _log_flags(flags: Flags) -> None:
    for name, value in flag_values(flags).items():
        log.line(f'FLAG: --{name}="{value}"', v=1)
    for name in sorted(flags.given):
        if FLAGS[name].ignored:
            log.warning("Flag has no effect", flag=f"--{name}", reason=FLAGS[name].ignored)


def _load() -> "Run":
    from kubestow.cli.scheduler.running import run

    return run


class _Process:
    """One run of the scheduler."""

    def __init__(self, output: LogOutput, flush_seconds: float, early: EarlySignals) -> None:
        self._output = output
        self._early = early
        self._flush_seconds = max(flush_seconds, 0.1)
        self._live: LiveScheduler | None = None
        self._comparing: asyncio.Task[list[str]] | None = None
        self._reloading: set[asyncio.Task[bool]] = set()

    async def run(self, settings: Settings, metrics: Metrics) -> int:
        """Run until stopped or failed; return the exit code."""
        flushing = asyncio.create_task(self._flush(), name="flush logs")
        running = asyncio.create_task(self._schedule(settings, metrics), name="scheduler")
        self._stop_on_signals(running)
        log.info("Starting Kubernetes Scheduler", version=BuildInfo().git_version)
        try:
            await running
        except asyncio.CancelledError:
            log.info("Requested to terminate, exiting")
            return 0
        except LeaseLostError as error:
            log.error("Leaderelection lost", err=error)
        except (CallError, SettingsError) as error:
            log.error("The scheduler cannot run", err=error)
        except Exception as error:
            log.unexpected("The scheduler has failed", err=error)
        finally:
            flushing.cancel()
        return 1

    async def _schedule(self, settings: Settings, metrics: Metrics) -> None:
        clock, watches = SystemClock(), None
        if settings.watches_at_once:
            watches = prepare_watches(settings.configuration, settings.features, settings.access, clock, metrics.client)
            watches.informers.start()
        # Import the rest while waiting for the API server.
        run = await asyncio.to_thread(_load)
        await run(settings, metrics, clock, watches, self._begin)

    def _begin(self, live: "LiveScheduler") -> None:
        self._live = live
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGUSR2: partial(self._inspect, live), signal.SIGHUP: partial(self._reload, live.reloader)}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
            if number in self._early.received:
                handler()

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

    def _inspect(self, live: "LiveScheduler") -> None:
        live.inspection.log_state()
        if self._comparing is None or self._comparing.done():
            self._comparing = asyncio.create_task(
                live.inspection.compare_with_server(), name="compare with the API server"
            )

    def _reload(self, reloader: "Reloader | None") -> None:
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
