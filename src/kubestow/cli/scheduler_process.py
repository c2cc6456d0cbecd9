"""The process: its log, its event loop, its signals, its exit code.

SIGTERM and SIGINT stop it in good order, exit code 0; a second one ends it at once with 1. SIGUSR2 makes it tell the
log what it knows, and compare that with the API server. A lost lease, or anything unforeseen, ends it with 1.
"""

import asyncio
import os
import signal
from dataclasses import asdict

import click

from kubestow.cli.scheduler_flags import FLAGS
from kubestow.cli.scheduler_settings import Flags, SettingsError
from kubestow.client.election import LeaseLostError
from kubestow.client.errors import ClientError
from kubestow.config import Features, SchedulerConfiguration
from kubestow.framework.profile import ProfileError
from kubestow.reporting.build import KUBERNETES, BuildInfo
from kubestow.reporting.log_setup import LogOptions, LogOutput
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.catalogue import Metrics
from kubestow.reporting.metrics.options import MetricOptions
from kubestow.wiring.clients import access_of
from kubestow.wiring.live import LiveOptions, LiveScheduler

log = get_logger(__name__)


def tell_version(*, raw: bool) -> None:
    """Write the version to standard output."""
    build = BuildInfo()
    click.echo(str(asdict(build)) if raw else f"Kubernetes {build.git_version} (does as kube-scheduler v{KUBERNETES})")


def run(
    flags: Flags,
    configuration: SchedulerConfiguration,
    features: Features,
    log_options: LogOptions,
    metric_options: MetricOptions,
) -> int:
    """Run until stopped; returns the exit code. Raises SettingsError before anything has begun."""
    try:
        access = access_of(configuration, flags["master"])
    except ClientError as error:
        raise SettingsError(str(error)) from None
    options = LiveOptions(
        configuration,
        access,
        features,
        longest_unschedulable=flags["pod-max-in-unschedulable-pods-duration"].seconds,
    )
    output = LogOutput(log_options)
    output.open()
    try:
        _tell_flags(flags)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_main(options, metric_options, output, flags["log-flush-frequency"].seconds))
    finally:
        output.close()


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    loop: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return loop


def _tell_flags(flags: Flags) -> None:
    for name, value in flags.items():
        line = f'FLAG: --{name}="{FLAGS[name].type.write(value)}"'
        log.info(line, v=1)
    for name in sorted(flags.given):
        if FLAGS[name].ignored:
            log.info("Flag has no effect", v=1, flag=f"--{name}", reason=FLAGS[name].ignored)


async def _main(options: LiveOptions, metric_options: MetricOptions, output: LogOutput, flush_seconds: float) -> int:
    log.info("Starting Kubernetes Scheduler", version=BuildInfo().git_version)
    try:
        scheduler = LiveScheduler(options, Metrics(options.features, metric_options))
    except (ClientError, ProfileError) as error:
        log.error("The scheduler cannot be set up", err=error)
        return 1
    running = asyncio.create_task(scheduler.run(), name="scheduler")
    flushing = asyncio.create_task(_flush(output, flush_seconds), name="flush logs")
    _handle_signals(running, output)
    try:
        await running
    except asyncio.CancelledError:
        log.info("Requested to terminate, exiting")
        return 0
    except LeaseLostError as error:
        log.error("Leaderelection lost", err=error)
    except (ClientError, OSError) as error:
        log.error("The scheduler has failed", err=error)
    except Exception as error:
        log.unexpected("The scheduler has failed", err=error)
    finally:
        flushing.cancel()
    return 1


def _handle_signals(running: asyncio.Task[None], output: LogOutput) -> None:
    loop = asyncio.get_running_loop()

    def stop(name: str) -> None:
        if running.cancelling():
            log.error("Asked to stop again, exiting at once", signal=name)
            output.flush()
            os._exit(1)
        log.info("Stopping", signal=name)
        running.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number.name)


async def _flush(output: LogOutput, seconds: float) -> None:
    while True:
        await asyncio.sleep(max(seconds, 0.1))
        output.flush()
