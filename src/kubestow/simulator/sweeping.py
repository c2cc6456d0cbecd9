"""Runs many simulations of one scenario with varied fields, seeds or sizes, on any `concurrent.futures.Executor`.

A point contains everything that one simulation needs, so it can run in another process or on another machine. Its
result is appended to points.jsonl at once; a sweep that was killed continues with the points without a result.
"""

import hashlib
import itertools
import math
import random
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import yaml

from kubestow import __version__, config
from kubestow.config import ConfigError, SchedulerConfiguration
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator import running
from kubestow.simulator.results import new_folder
from kubestow.simulator.scenario.building import Prepared
from kubestow.simulator.scenario.format import API_VERSION, KIND
from kubestow.simulator.scenario.reading import Scenario
from kubestow.simulator.scenario.rules import FieldsError, parse_spec

Value = str | int | float | bool
Values = list[Value] | range | tuple[float, float]
"""All values of a list, or random ones from a range of integers or floats."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)")
_TRIES = 3
_MAX_UNIQUE_DRAWS = 2**48
"""Above this number of combinations, random draws are not checked for repetitions."""
SEED = "seed"
POINTS = "points.jsonl"


class SweepError(ValueError):
    """A field cannot be varied as requested; the message names the field."""


class SweepStopped(Exception):  # noqa: N818 nothing went wrong
    """The user interrupted the sweep; the message says how many simulations are done."""


@dataclass(frozen=True)
class Point:
    """The inputs of one simulation."""

    fields: dict[str, Value]
    """The varied fields, and the seed."""
    scenario: Scenario
    configuration: str
    plugin_sources: tuple[str, ...] = ()
    plugin_digests: tuple[str, ...] = ()
    """Digests of the contents of the sources."""
    polled: Mapping[str, Sequence[tuple[float, Any]]] = field(default_factory=dict)
    """As in Settings."""

    @property
    def id(self) -> str:
        """A hash of the fields, the scenario, the configuration, the plugins and the program's version."""
        run_by = [__version__, self.configuration, self.plugin_sources, self.plugin_digests, self.polled]
        content = msgspec.json.encode([self.fields, run_by, msgspec.to_builtins(self.scenario.spec)])
        changes = [(one.time, one.op, one.object) for one in self.scenario.changes]
        objects = msgspec.json.encode([self.scenario.objects, changes, self.scenario.traces])
        return hashlib.blake2b(content + objects, digest_size=8).hexdigest()


def parse_vary(text: str) -> tuple[str, Values]:
    """Parse `FIELD=1,2,3` or, for random values, `FIELD=1..10`; raises SweepError."""
    name, _, values = text.partition("=")
    require_field(name)
    try:
        span = _RANGE.fullmatch(values)
        if span is None:
            found = [yaml.safe_load(one) for one in values.split(",")]
            # Repeated values would be run twice.
            return name, list({repr(one): one for one in found}.values())
        low, high = float(span[1]), float(span[2])
    except (ValueError, yaml.YAMLError):
        raise SweepError(f"{text!r}: {values!r} is neither VALUE,VALUE nor LOW..HIGH") from None
    if low > high:
        raise SweepError(f"{text!r}: the low end of a range must not exceed the high end")
    if low.is_integer() and high.is_integer():
        return name, range(int(low), int(high) + 1)
    return name, [low] if low == high else (low, high)


def require_field(name: str) -> None:
    """Raise SweepError unless `name` is the name of a field that can be varied."""
    if not name.removeprefix("config.").removeprefix("scenario.") or not name.startswith(("config.", "scenario.")):
        raise SweepError(f"{name!r}: write config.FIELD=VALUE,VALUE or scenario.FIELD=LOW..HIGH")
    if name == "scenario.spec.seed":
        raise SweepError(f"{name}: seeds are varied with --seeds")


def grid(varied: Mapping[str, Values], seeds: Iterable[int], draws: int, seed: int = 0) -> list[dict[str, Value]]:
    """Return every combination of the lists or, if `draws` is not 0, up to that many random ones.

    Raises SweepError.
    """
    ranges = [name for name, values in varied.items() if not isinstance(values, list)]
    if ranges and not draws:
        raise SweepError(f"{ranges[0]}: a range needs random draws; set their number with --random")
    rng = random.Random(seed)
    finite = [values for values in varied.values() if not isinstance(values, tuple)]
    count = math.prod(map(len, finite))
    if draws and (len(finite) < len(varied) or count > _MAX_UNIQUE_DRAWS):
        found = [tuple(_draw(values, rng) for values in varied.values()) for _ in range(draws)]
    elif 0 < draws < count:
        found = [_combination(finite, number) for number in rng.sample(range(count), draws)]
    else:
        found = list(itertools.product(*finite))
    return [{**dict(zip(varied, one, strict=True)), SEED: number} for one in found for number in seeds]


def _draw(values: Values, rng: random.Random) -> Value:
    return rng.uniform(*values) if isinstance(values, tuple) else rng.choice(values)


def _combination(varied: list[Any], number: int) -> tuple[Value, ...]:
    """Return the combination with the given number."""
    found = []
    for values in varied:
        number, index = divmod(number, len(values))
        found.append(values[index])
    return tuple(found)


def set_field(tree: Any, path: str, value: Value, name: str) -> None:
    """Set a field of a tree by its path, such as spec.nodes[0].count; raises SweepError if the path does not exist."""
    steps = [one or int(index) for one, index in _STEP.findall(path)]
    place = tree
    for step in steps[:-1]:
        try:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        except (IndexError, KeyError, TypeError, AttributeError):
            raise SweepError(f"{name}: there is no {step} in its path") from None
    try:
        place[steps[-1]] = value
    except (IndexError, TypeError):
        raise SweepError(f"{name}: cannot be set") from None


def prepare(point: Point) -> tuple[Prepared, SchedulerConfiguration]:
    """Return scenario and configuration of a point; raises SweepError if its fields are invalid, ObjectsError."""
    document = {"apiVersion": API_VERSION, "kind": KIND, "spec": msgspec.to_builtins(point.scenario.spec)}
    settings = yaml.safe_load(point.configuration)
    for name, value in point.fields.items():
        if name.startswith("scenario."):
            set_field(document, name.removeprefix("scenario."), value, name)
        elif name != SEED:
            set_field(settings, name.removeprefix("config."), value, name)
    try:
        configuration = config.load(yaml.safe_dump(settings), known=PluginCollection(point.plugin_sources))
        return Prepared(replace(point.scenario, spec=parse_spec(document, point.scenario.declared))), configuration
    except ConfigError as error:
        problems = [f"config.{problem}" for problem in error.problems]
    except FieldsError as error:
        problems = [f"scenario.{path}: {message}" for path, message in error.problems]
    combination = ", ".join(f"{name}={value}" for name, value in point.fields.items() if name != SEED)
    raise SweepError("\n".join(f"{problem} (with {combination})" for problem in problems))


def run_point(point: Point) -> dict[str, Any]:
    """Simulate one point; return its ID, fields and results."""
    scenario, configuration = prepare(point)
    done = running.run(
        scenario,
        seed=int(point.fields[SEED]),
        configuration=configuration,
        plugin_sources=point.plugin_sources,
        polled=point.polled,
    )
    if not done.results["complete"]:
        raise KeyboardInterrupt
    return {"id": point.id, "fields": point.fields, "results": done.results}


def local(workers: int | None) -> Executor:
    """Return an executor with the given number of processes, by default one per core."""
    # Ctrl-C reaches every process; only the parent handles it.
    return ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )


def sweep(
    points: list[Point], out: Path, executor: Callable[[], Executor], on_progress: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Run the points that have no result in the folder yet; return all results in the order of the points.

    Raises SweepError and ObjectsError for invalid points, and SweepStopped after Ctrl-C.
    """
    for point in points:
        prepare(point)
    pool = executor()
    wanted = {point.id: point for point in points}
    with new_folder(out), _appending(out / POINTS) as file:
        done = {one: result for one, result in _read_results(out / POINTS) if one in wanted}
        for attempt in range(1, _TRIES + 1):
            try:
                for result in _results([point for one, point in wanted.items() if one not in done], pool):
                    done[result["id"]] = result
                    file.write(msgspec.json.encode(result) + b"\n")
                    file.flush()
                    on_progress(len(done), len(wanted))
                break
            except BrokenProcessPool:
                # One killed worker ends all others of its pool; finished results are kept.
                if attempt == _TRIES:
                    raise
                pool = executor()
            except KeyboardInterrupt:
                # The interrupt may have come between a result and its line.
                file.flush()
                kept = {one for one, _ in _read_results(out / POINTS)} & wanted.keys()
                raise SweepStopped(f"{len(kept)} of {len(wanted)} simulations are done and kept in {out}") from None
    return [done[one] for one in wanted]


@contextmanager
def _appending(path: Path) -> Iterator[BinaryIO]:
    """Open a file to append lines; remove it if it is empty in the end."""
    try:
        with path.open("ab") as file:
            # Terminate a line that was cut off by a kill.
            file.write(b"\n")
            yield file
    finally:
        if not path.read_bytes().strip():
            path.unlink()


def _results(points: list[Point], executor: Executor) -> Iterator[dict[str, Any]]:
    with executor:
        futures: list[Future[dict[str, Any]]] = [executor.submit(run_point, point) for point in points]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            # Pending points must not start. Local worker processes are terminated, which ends their pool; on other
            # executors the points are cancelled.
            workers = active_children()
            for worker in workers:
                worker.terminate()
            for future in () if workers else futures:
                future.cancel()
            raise


def _read_results(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the results of an earlier sweep; a line that was cut off is skipped."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            result = msgspec.json.decode(line)
            yield result["id"], result
        except (msgspec.DecodeError, KeyError, TypeError):
            continue
