"""The process of `kubestow sweep`: create points from varied fields, run them on workers, write a table and a page."""

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
from kubestow.api.files.sources import describe_error
from kubestow.cli.simulate.process import load_configuration, problems, read_scenario
from kubestow.cli.support import CommandError, PollData, report_count
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator import sweep_report
from kubestow.simulator.results import as_json, write_atomically
from kubestow.simulator.sweeping import POINTS, SEED, Point, SweepError, grid, local, parse_vary, require_field, sweep

_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """The command line."""

    files: tuple[str, ...]
    vary: tuple[str, ...]
    listed: Path | None
    draws: int
    seeds: int
    configuration: str | None
    plugins: PluginCollection
    polled: PollData
    objective: str
    out: Path
    workers: int | None
    dask: str | None
    ray: str | None


def run(request: Request) -> None:
    """Sweep, write the results, print the ranking. Raises CommandError, SweepStopped."""
    with problems():
        if (request.out / "results.json").exists() and not (request.out / POINTS).exists():
            raise CommandError(f"{request.out}: has results that are not of a sweep; name another folder")
        configuration = config.dump(load_configuration(request.configuration, request.plugins))
        request.polled.require_plugins(request.plugins)
        scenario = read_scenario(request.files, request.plugins.declared_kinds)
        try:
            digests = tuple(one.digest for one in request.plugins.loaded)
            points = [
                Point(fields, scenario, configuration, request.plugins.sources, digests, dict(request.polled))
                for fields in _combinations(request)
            ]
            found = sweep(points, request.out, _executor(request), report_count)
        except SweepError as error:
            raise CommandError(str(error)) from None
        write_atomically(request.out / "results.csv", sweep_report.as_csv(found))
        write_atomically(request.out / "results.json", as_json(found))
        write_atomically(request.out / "report.html", sweep_report.page_of(found, request.objective).encode())
    for line in sweep_report.lines(found, request.objective):
        click.echo(line)
    for note in dict.fromkeys(note for one in found for note in one["results"]["notes"]):
        click.echo(f"Note: {note}")
    click.echo(f"Wrote {request.out / 'report.html'}, results.csv and results.json.")


def _combinations(request: Request) -> list[dict[str, Any]]:
    """Return the field values of each point. Raises SweepError."""
    seeds = range(1, request.seeds + 1)
    if request.listed is not None:
        if request.vary or request.draws:
            raise SweepError("--list cannot be combined with --vary and --random")
        return [row | {SEED: seed} for row in _rows(request.listed) for seed in seeds]
    varied = [parse_vary(one) for one in request.vary]
    for name, _ in varied:
        if sum(name == other for other, _ in varied) > 1:
            raise SweepError(f"{name}: is given more than once; write all its values in one --vary")
    found = grid(dict(varied), seeds, request.draws)
    count = len(found) // len(seeds)
    if count < request.draws:
        click.echo(f"--random {request.draws}: running all combinations, which are only {count}", err=True)
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    """Return the combinations in a CSV file. Raises SweepError."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, restkey="more values than the first line has", restval=""))
    except (OSError, UnicodeDecodeError) as error:
        raise SweepError(f"{path}: {describe_error(error)}") from None
    found = []
    for number, row in enumerate(rows, start=2):
        try:
            for name in row:
                require_field(name)
            found.append({name: yaml.safe_load(text) for name, text in row.items()})
        except yaml.YAMLError:
            raise SweepError(f"{path}: line {number}: has a value that cannot be read") from None
        except SweepError as error:
            raise SweepError(f"{path}: line {number}: {error}") from None
    if not found:
        raise SweepError(f"{path}: has no rows; the first line has the names of fields, each other one their values")
    return found


def _executor(request: Request) -> Callable[[], Executor]:
    elsewhere = {"--workers": request.workers, "--dask": request.dask, "--ray": request.ray}
    chosen = [flag for flag, value in elsewhere.items() if value is not None]
    if len(chosen) > 1:
        raise CommandError(f"{' and '.join(chosen)}: a sweep runs in one place; choose one of them")
    if request.dask is not None:
        return _dask(request.dask)
    return partial(local, request.workers) if request.ray is None else partial(_ray, request.ray)


def _demand_answer(flag: str, address: str) -> None:
    """Raise CommandError if no server listens: the libraries would retry the connection for more than a minute."""
    try:
        where = urlsplit(address if "//" in address else f"//{address}")
        if where.hostname and where.port:
            socket.create_connection((where.hostname, where.port), timeout=_ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CommandError(f"{flag} {address}: no server answers: {reason}") from None


def _dask(address: str) -> Callable[[], Executor]:
    _demand_answer("--dask", address)
    try:
        from distributed import Client
    except ImportError:
        raise CommandError("--dask needs Dask: pip install 'kubestow[dask]'") from None
    try:
        client = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise CommandError(f"--dask {address}: {error}") from None
    # The points of a failed worker are retried on others.
    return partial(client.get_executor, retries=3)


def _ray(address: str) -> Executor:
    _demand_answer("--ray", address)
    try:
        from kubestow.simulator.ray_executor import RayExecutor
    except ImportError:
        raise CommandError("--ray needs Ray: pip install 'kubestow[ray]'") from None
    try:
        return RayExecutor(address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise CommandError(f"--ray {address}: {error}") from None
