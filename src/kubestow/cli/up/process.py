"""The process of `kubestow up`: everything is read and checked, then started in order, shown, and stopped in order.

    files -> API server with nodes -> definitions applied -> scheduler -> other manifests applied
          -> the screen, or lines, until a signal

A signal cancels the task that does all this: the scheduler ends what is under way while the API server still answers,
then the API server stops. A second one ends the process at once with 1.
"""

import asyncio
import dataclasses
import io
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
import msgspec
import uvloop
from msgspec.structs import replace
from rich.console import Console

from kubestow import config
from kubestow.api.failures import CallError
from kubestow.api.files import ObjectsError
from kubestow.apiserver import ControlPlane, Options, StartError
from kubestow.cli import configuration_file
from kubestow.cli.nonblocking_output import NonBlockingOutput
from kubestow.cli.scheduler.live import LiveOptions, LiveScheduler, ReloadOptions
from kubestow.cli.scheduler.options import DecisionOptions
from kubestow.cli.scheduler.policy_source import WARNING
from kubestow.cli.scheduler.reload import Setup
from kubestow.cli.support import CommandError
from kubestow.cli.terminal import console
from kubestow.cli.up import lines as up_lines
from kubestow.cli.up import manifests as up_manifests
from kubestow.cli.up import screen as up_view
from kubestow.cli.up.keys import is_in_background
from kubestow.cli.up.manifests import Applicable
from kubestow.cli.up.overview import Overview
from kubestow.cli.up.serving import page, scheduler_pages
from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.clients import user_agent
from kubestow.client.kubeconfig import find_access
from kubestow.clock import SystemClock
from kubestow.config import ConfigError, Features, SchedulerConfiguration, policy
from kubestow.insight.decisions.recorder import DEFAULT_BYTES
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.server.http.listening import ListenError
from kubestow.telemetry.log_setup import LogOptions, LogOutput
from kubestow.telemetry.logs import WARNINGS_ONLY, ModuleLevel, get_logger
from kubestow.telemetry.memory import release_freed_memory

log = get_logger(__name__)

DEFAULT_NODES = 10
COMMANDS = (
    "kubectl create deployment hello --image=nginx --replicas=5",
    "kubectl get pods -o wide",
    "kubectl describe nodes",
)
"""Commands to try first."""

_RELEASE_SECONDS = 60.0
_KEPT_WARNINGS = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The command line."""

    nodes: int | None
    nodes_file: Path | None
    devices: str
    data_dir: Path | None
    repair: bool
    configuration: str | None
    plugins: PluginCollection
    policy: str | None
    features: Features
    port: int
    page_port: int
    kubeconfig: Path | None
    controllers: str
    manifests: tuple[str, ...]
    logs: LogOptions


def run(settings: Settings) -> None:
    """Run a cluster until a signal arrives. Raises CommandError."""
    configuration = _configuration(settings, settings.plugins)
    try:
        manifests = up_manifests.read(settings.manifests)
    except ObjectsError as error:
        raise CommandError(str(error)) from None
    screen = console()
    full_screen = screen.is_terminal and not screen.is_dumb_terminal and not is_in_background()
    full_screen = full_screen and settings.logs.verbosity == WARNINGS_ONLY
    warnings = _Warnings(forwarded=not full_screen)
    # Without -v only warnings and errors are logged; but reloads are reported, too.
    logs = msgspec.structs.replace(settings.logs, modules=(*settings.logs.modules, ModuleLevel("reload", 0)))
    output = LogOutput(logs, err=warnings)
    output.open()
    try:
        if settings.policy is not None:
            log.warning(WARNING)
        uvloop.run(_main(settings, configuration, manifests, screen if full_screen else None, warnings))
    finally:
        output.close()
        warnings.forward()


def _configuration(settings: Settings, plugins: PluginCollection) -> SchedulerConfiguration:
    file, policy_file, features = settings.configuration, settings.policy, settings.features
    if file is None:
        configuration = config.default(features)
        # The API server is in this process: there is no reason to limit the request rate.
        unlimited = replace(configuration.clientConnection, qps=-1.0)
        configuration = replace(configuration, clientConnection=unlimited)
    else:
        with _problems_of(file):
            configuration = configuration_file.load(file, features, plugins)
    if policy_file is not None:
        with _problems_of(policy_file):
            configuration = policy.load(configuration_file.read(policy_file), features, configuration)
    # No other scheduler runs, and after a crash no lease must expire first.
    return replace(configuration, leaderElection=replace(configuration.leaderElection, leaderElect=False))


def _load(settings: Settings) -> Setup:
    """Load all files again. Raises CommandError or PluginLoadError."""
    plugins = PluginCollection(settings.plugins.sources)
    configuration = _configuration(settings, plugins)
    return Setup(configuration, plugins.register(in_tree_registry()), plugins)


def _files(settings: Settings) -> tuple[Path, ...]:
    return tuple(Path(name) for name in (settings.configuration, settings.policy) if name is not None)


@contextmanager
def _problems_of(file: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise CommandError("\n".join(f"{file}: {problem}" for problem in error.problems)) from None


async def _main(
    settings: Settings,
    configuration: SchedulerConfiguration,
    manifests: list[Applicable],
    screen: Console | None,
    warnings: "_Warnings",
) -> None:
    output = NonBlockingOutput(sys.stdout.fileno())
    serving = asyncio.create_task(_serve(settings, configuration, manifests, screen, warnings, output), name="cluster")
    _handle_signals(serving)
    try:
        await serving
    except asyncio.CancelledError:
        output.write("stopped")
        output.flush()
    except (StartError, ObjectsError, ProfileError, CallError, ListenError) as error:
        raise CommandError(str(error)) from None


def _handle_signals(serving: asyncio.Task[None]) -> None:
    def stop() -> None:
        if serving.cancelling():
            os._exit(1)
        serving.cancel()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under nohup
        numbers.append(signal.SIGHUP)
    for number in numbers:
        asyncio.get_running_loop().add_signal_handler(number, stop)


async def _serve(
    settings: Settings,
    configuration: SchedulerConfiguration,
    manifests: list[Applicable],
    screen: Console | None,
    warnings: "_Warnings",
    output: NonBlockingOutput,
) -> None:
    async with ControlPlane(_options(settings, manifests)) as plane:
        access = find_access(str(plane.kubeconfig_path), "")
        registry = settings.plugins.register(in_tree_registry())
        # Plugins must not decide without the kinds that they watch.
        problems = await _apply([one for one in manifests if one.comes_first], access)
        reload = ReloadOptions(settings.plugins, partial(_load, settings), _files(settings))
        decisions = DecisionOptions(DEFAULT_BYTES)
        scheduler = LiveScheduler(
            LiveOptions(configuration, access, settings.features, registry, reload=reload, decisions=decisions)
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                scheduling = tasks.create_task(scheduler.run(), name="scheduler")
                releasing = tasks.create_task(_release_memory(), name="release memory")
                await scheduler.synced.wait()
                kubeconfig = shlex.quote(str(plane.kubeconfig_path.absolute()))
                async with scheduler_pages(plane, scheduler), page(plane, scheduler, settings.page_port) as address:
                    # The page has seen the cluster before: one can look back at how it filled up.
                    problems += await _apply([one for one in manifests if not one.comes_first], access)
                    if problems:
                        raise ObjectsError(problems)
                    overview = Overview(plane.store, scheduler)
                    click.echo(_banner(plane.url, address, kubeconfig, overview.node_count, len(manifests)))
                    if screen is not None:
                        head = up_view.Head(plane.url, address, kubeconfig, COMMANDS)
                        await up_view.show(screen, overview, head, warnings.last)
                    else:
                        await _write_lines(plane, scheduler, output)
                scheduling.cancel()
                releasing.cancel()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None


async def _release_memory() -> None:
    """Return freed memory to the system from time to time: objects that come and go leave gaps between others."""
    while True:
        await asyncio.sleep(_RELEASE_SECONDS)
        release_freed_memory()


def _options(settings: Settings, manifests: list[Applicable]) -> Options:
    chosen = settings.nodes is not None or settings.nodes_file is not None
    brings_nodes = any(manifest.resource.kind == "Node" for manifest in manifests)
    return Options(
        port=settings.port,
        data_dir=settings.data_dir,
        repair=settings.repair,
        kubeconfig=settings.kubeconfig,
        controllers=settings.controllers,
        nodes=settings.nodes or 0,
        nodes_if_none=0 if chosen or brings_nodes else DEFAULT_NODES,
        nodes_file=settings.nodes_file,
        devices=settings.devices,
        features=settings.features,
    )


async def _apply(manifests: list[Applicable], access: Access) -> list[str]:
    channel = open_channel(access, clock=SystemClock())
    try:
        return await up_manifests.apply(manifests, ApiClient(channel, user_agent=user_agent("up")))
    finally:
        channel.close()


def _banner(url: str, page: str, kubeconfig: str, nodes: int, applied: int) -> str:
    lines = [f"Kubestow is up at {url}: {_count(nodes, 'node')}"]
    if applied:
        lines[0] += f", {_count(applied, 'object')} applied"
    lines += ["", f"  export KUBECONFIG={kubeconfig}", *(f"  {command}" for command in COMMANDS), ""]
    lines += [f"See what happens at {page}", "Ctrl-C stops it."]
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


async def _write_lines(plane: ControlPlane, scheduler: LiveScheduler, output: NonBlockingOutput) -> None:
    """Write lines until the reader is gone."""
    try:
        await up_lines.write_lines(plane.store, () if scheduler.decisions is None else scheduler.decisions, output)
    except BrokenPipeError:
        # Python would raise again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Warnings(io.StringIO):
    """The log output for warnings and errors: passed to standard error, at once or after the screen is closed."""

    def __init__(self, *, forwarded: bool) -> None:
        super().__init__()
        self._kept: deque[str] | None = None if forwarded else deque(maxlen=_KEPT_WARNINGS)

    def write(self, text: str) -> int:
        if self._kept is None:
            return sys.stderr.write(text)
        self._kept.append(text)
        return len(text)

    def last(self) -> str:
        """Return the last warning, without time and location."""
        if not self._kept:
            return ""
        return self._kept[-1].splitlines()[0].partition("] ")[2]

    def forward(self) -> None:
        """Write all kept and all later output to standard error."""
        kept, self._kept = self._kept, None
        for text in kept or ():
            sys.stderr.write(text)
