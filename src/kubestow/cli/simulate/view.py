"""The process of `kubestow view`: reads results, replays recordings into temporary folders, and serves the page."""

import asyncio
import signal
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import uvloop

from kubestow.cli.simulate.process import simulate
from kubestow.insight.page.api import Api
from kubestow.insight.page.local import LocalServer
from kubestow.insight.page.pages import Site
from kubestow.insight.page.run import Run
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator.page_files import ViewError, read
from kubestow.simulator.recording.files import is_recording


def serve(paths: list[Path], port: int, configuration: str | None, plugins: PluginCollection) -> None:
    """Serve until a signal arrives. Raises ViewError, CommandError, ListenError."""
    with ExitStack() as stack:
        runs = [_run(path, configuration, plugins, stack) for path in paths]
        uvloop.run(_serve_runs(runs, port))


def _run(path: Path, configuration: str | None, plugins: PluginCollection, stack: ExitStack) -> Run:
    if not path.exists():
        raise ViewError(f"{path}: there is no such file or folder")
    if path.is_dir():
        return read(path, plugins)
    if not is_recording(str(path)):
        raise ViewError(f"{path}: is neither a recording nor a folder of results")
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="kubestow-view-")))
    click.echo(f"Running {path} again ...", err=True)
    simulate((str(path),), 0, folder, configuration, plugins)
    run = read(folder, plugins)
    run.name = str(path)
    return run


async def _serve_runs(runs: list[Run], port: int) -> None:
    server = LocalServer(Site(Api(runs)))
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        address = await server.start(port)
        click.echo(f"See it at {address}\nCtrl-C stops it.")
        await stopped.wait()
    finally:
        await server.stop()
