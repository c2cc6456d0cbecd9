"""Running `kubestow sweep`: points from what is varied, run wherever there are hands, then a table and a page."""

import csv
import socket
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import yaml

from kubestow import config
from kubestow.cli.counting import tell_count
from kubestow.cli.simulate_process import SimulateError, load_configuration, problems
from kubestow.objects.sources import problem_of
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator import sweep_report
from kubestow.simulator.results import as_json, write_whole
from kubestow.simulator.scenario.reading import read
from kubestow.simulator.sweeping import SEED, Point, SweepError, grid, local, parse_vary, sweep

_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line says."""

    scenario: tuple[str, ...]
    vary: tuple[str, ...]
    listed: Path | None
    draws: int
    seeds: int
    configuration: str | None
    plugins: PluginCollection
    objective: str
    out: Path
    workers: int | None
    dask: str | None
    ray: str | None


def run(request: Request) -> None:
    """Sweep, write the folder, tell the best; raises SimulateError."""
    with problems():
        scenario = read(request.scenario)
        configuration = config.dump(load_configuration(request.configuration, request.plugins))
        try:
            digests = tuple(one.digest for one in request.plugins.loaded)
            points = [
                Point(fields, scenario, configuration, request.plugins.sources, digests)
                for fields in _combinations(request)
            ]
            found = sweep(points, request.out, _executor(request), tell_count)
        except SweepError as error:
            raise SimulateError(str(error)) from None
        write_whole(request.out / "results.csv", sweep_report.as_csv(found))
        write_whole(request.out / "results.json", as_json(found))
        write_whole(request.out / "report.html", sweep_report.page_of(found, request.objective).encode())
    for line in sweep_report.lines(found, request.objective):
        click.echo(line)
    click.echo(f"Wrote {request.out / 'report.html'}, results.csv and results.json.")


def _combinations(request: Request) -> list[dict[str, Any]]:
    seeds = range(1, request.seeds + 1)
    if request.listed is None:
        return grid(dict(map(parse_vary, request.vary)), seeds, request.draws)
    try:
        with request.listed.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise SimulateError(f"{request.listed}: {problem_of(error)}") from None
    return [{name: yaml.safe_load(text) for name, text in row.items()} | {SEED: seed} for row in rows for seed in seeds]


def _executor(request: Request) -> Callable[[], Executor]:
    elsewhere = {"--workers": request.workers, "--dask": request.dask, "--ray": request.ray}
    chosen = [flag for flag, value in elsewhere.items() if value is not None]
    if len(chosen) > 1:
        raise SimulateError(f"{' and '.join(chosen)}: a sweep runs in one place; choose one of them")
    if request.dask is not None:
        return _dask(request.dask)
    return partial(local, request.workers) if request.ray is None else partial(_ray, request.ray)


def _demand_answer(flag: str, address: str) -> None:
    """Raises SimulateError if nobody listens there: what connects to it later would try again for a minute and more."""
    try:
        where = urlsplit(address if "//" in address else f"//{address}")
        if where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), timeout=_ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SimulateError(f"{flag} {address}: nobody answers there: {said}") from None


def _dask(address: str) -> Callable[[], Executor]:
    _demand_answer("--dask", address)
    try:
        from distributed import Client
    except ImportError:
        raise SimulateError("--dask needs Dask: pip install 'kubestow[dask]'") from None
    try:
        client = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise SimulateError(f"--dask {address}: {error}") from None
    # A worker that dies gives its points back; each is tried again elsewhere.
    return partial(client.get_executor, retries=3)


def _ray(address: str) -> Executor:
    _demand_answer("--ray", address)
    try:
        from kubestow.simulator.ray_executor import RayExecutor
    except ImportError:
        raise SimulateError("--ray needs Ray: pip install 'kubestow[ray]'") from None
    try:
        return RayExecutor(address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SimulateError(f"--ray {address}: {error}") from None
