"""Many simulations of one scenario, each with other fields, seeds or sizes, over any `concurrent.futures.Executor`.

A point is all that one simulation needs, so it can run in another process or on another machine. Its result is a line
in points.jsonl as soon as it is there; a sweep that was killed goes on with the points that have none.
"""

import hashlib
import itertools
import math
import random
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import yaml

from kubestow import __version__, config
from kubestow.config import ConfigError, SchedulerConfiguration
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator import running
from kubestow.simulator.results import made
from kubestow.simulator.scenario.building import Prepared
from kubestow.simulator.scenario.format import API_VERSION, KIND
from kubestow.simulator.scenario.reading import Scenario
from kubestow.simulator.scenario.rules import FieldsError, spec_of

Value = str | int | float | bool
Values = list[Value] | range | tuple[float, float]
"""All of a list; some of whole numbers, or of all numbers between two."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)")
_TRIES = 3
_FEW = 2**48
"""Among more combinations than these, chance does not draw one twice."""
SEED = "seed"
POINTS = "points.jsonl"


class SweepError(ValueError):
    """What is to be varied cannot be; the message names the field."""


class SweepStopped(Exception):  # noqa: N818 nothing went wrong
    """Somebody had enough; the message says how far it is."""


@dataclass(frozen=True)
class Point:
    """One simulation."""

    fields: dict[str, Value]
    """What is varied, and the seed."""
    scenario: Scenario
    configuration: str
    plugin_sources: tuple[str, ...] = ()
    plugin_digests: tuple[str, ...] = ()
    """Of what is in the sources."""

    @property
    def id(self) -> str:
        """The same for the same fields of the same scenario, configuration, plugins and version of the program."""
        run_by = [__version__, self.configuration, self.plugin_sources, self.plugin_digests]
        content = msgspec.json.encode([self.fields, run_by, msgspec.to_builtins(self.scenario.spec)])
        changes = [(one.time, one.op, one.object) for one in self.scenario.changes]
        objects = msgspec.json.encode([self.scenario.objects, changes, self.scenario.traces])
        return hashlib.blake2b(content + objects, digest_size=8).hexdigest()


def parse_vary(text: str) -> tuple[str, Values]:
    """`FIELD=1,2,3` or, to be drawn by chance, `FIELD=1..10`; raises SweepError."""
    name, _, values = text.partition("=")
    require_field(name)
    try:
        span = _RANGE.fullmatch(values)
        if span is None:
            found = [yaml.safe_load(one) for one in values.split(",")]
            # What is given twice would be run twice.
            return name, list({repr(one): one for one in found}.values())
        low, high = float(span[1]), float(span[2])
    except (ValueError, yaml.YAMLError):
        raise SweepError(f"{text!r}: {values!r} is neither VALUE,VALUE nor LOW..HIGH") from None
    if low > high:
        raise SweepError(f"{text!r}: a range goes from the lower to the higher")
    if low.is_integer() and high.is_integer():
        return name, range(int(low), int(high) + 1)
    return name, [low] if low == high else (low, high)


def require_field(name: str) -> None:
    """Raises SweepError for what is no name of a field that can be varied."""
    if not name.removeprefix("config.").removeprefix("scenario.") or not name.startswith(("config.", "scenario.")):
        raise SweepError(f"{name!r}: write config.FIELD=VALUE,VALUE or scenario.FIELD=LOW..HIGH")
    if name == "scenario.spec.seed":
        raise SweepError(f"{name}: seeds are varied with --seeds")


def grid(varied: Mapping[str, Values], seeds: Iterable[int], draws: int, seed: int = 0) -> list[dict[str, Value]]:
    """Every combination of the lists; with `draws`, so many different ones by chance, if there are so many.

    Raises SweepError.
    """
    ranges = [name for name, values in varied.items() if not isinstance(values, list)]
    if ranges and not draws:
        raise SweepError(f"{ranges[0]}: a range is drawn from by chance; say how often with --random")
    chance = random.Random(seed)
    finite = [values for values in varied.values() if not isinstance(values, tuple)]
    count = math.prod(map(len, finite))
    if draws and (len(finite) < len(varied) or count > _FEW):
        found = [tuple(_draw(values, chance) for values in varied.values()) for _ in range(draws)]
    elif 0 < draws < count:
        found = [_combination(finite, number) for number in chance.sample(range(count), draws)]
    else:
        found = list(itertools.product(*finite))
    return [{**dict(zip(varied, one, strict=True)), SEED: number} for one in found for number in seeds]


def _draw(values: Values, chance: random.Random) -> Value:
    return chance.uniform(*values) if isinstance(values, tuple) else chance.choice(values)


def _combination(varied: list[Any], number: int) -> tuple[Value, ...]:
    """One of all combinations, by its number."""
    found = []
    for values in varied:
        number, index = divmod(number, len(values))
        found.append(values[index])
    return tuple(found)


def set_field(tree: Any, path: str, value: Value, name: str) -> None:
    """Set a field of a tree, such as spec.nodes[0].count; raises SweepError if the way there does not exist."""
    steps = [one or int(index) for one, index in _STEP.findall(path)]
    place = tree
    for step in steps[:-1]:
        try:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        except (IndexError, KeyError, TypeError, AttributeError):
            raise SweepError(f"{name}: there is no {step} on the way") from None
    try:
        place[steps[-1]] = value
    except (IndexError, TypeError):
        raise SweepError(f"{name}: cannot be set") from None


def prepared(point: Point) -> tuple[Prepared, SchedulerConfiguration]:
    """The scenario and the configuration of a point; raises SweepError for fields that do not fit, ObjectsError."""
    document = {"apiVersion": API_VERSION, "kind": KIND, "spec": msgspec.to_builtins(point.scenario.spec)}
    settings = yaml.safe_load(point.configuration)
    for name, value in point.fields.items():
        if name.startswith("scenario."):
            set_field(document, name.removeprefix("scenario."), value, name)
        elif name != SEED:
            set_field(settings, name.removeprefix("config."), value, name)
    try:
        configuration = config.load(yaml.safe_dump(settings), known=PluginCollection(point.plugin_sources))
        return Prepared(replace(point.scenario, spec=spec_of(document))), configuration
    except ConfigError as error:
        problems = [f"config.{problem}" for problem in error.problems]
    except FieldsError as error:
        problems = [f"scenario.{path}: {message}" for path, message in error.problems]
    told = ", ".join(f"{name}={value}" for name, value in point.fields.items() if name != SEED)
    raise SweepError("\n".join(f"{problem} (with {told})" for problem in problems))


def run_point(point: Point) -> dict[str, Any]:
    """Simulate one; what `results` has, and the fields."""
    scenario, configuration = prepared(point)
    done = running.run(
        scenario,
        seed=int(point.fields[SEED]),
        configuration=configuration,
        plugin_sources=point.plugin_sources,
    )
    if not done.results["complete"]:
        raise KeyboardInterrupt
    return {"id": point.id, "fields": point.fields, "results": done.results}


def local(workers: int | None) -> Executor:
    """All cores of this machine, or so many."""
    # Ctrl-C reaches every process: it is for the one that waits for these.
    return ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )


def sweep(
    points: list[Point], out: Path, executor: Callable[[], Executor], tell: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Run the points that have no result in the folder yet; all results, in the order of the points.

    Raises SweepError and ObjectsError for points that cannot be run, and SweepStopped for Ctrl-C.
    """
    for point in points:
        prepared(point)
    pool = executor()
    wanted = {point.id: point for point in points}
    with made(out), _lines(out / POINTS) as file:
        done = {one: result for one, result in _done(out / POINTS) if one in wanted}
        for attempt in range(1, _TRIES + 1):
            try:
                for result in _results([point for one, point in wanted.items() if one not in done], pool):
                    done[result["id"]] = result
                    file.write(msgspec.json.encode(result) + b"\n")
                    file.flush()
                    tell(len(done), len(wanted))
                break
            except BrokenProcessPool:
                # One worker was killed, which takes all others of its pool along; what they had done is kept.
                if attempt == _TRIES:
                    raise
                pool = executor()
            except KeyboardInterrupt:
                # It may have come between a result and its line.
                file.flush()
                kept = {one for one, _ in _done(out / POINTS)} & wanted.keys()
                raise SweepStopped(f"{len(kept)} of {len(wanted)} simulations are done and kept in {out}") from None
    return [done[one] for one in wanted]


@contextmanager
def _lines(path: Path) -> Iterator[BinaryIO]:
    """A file to add lines to; one that has none in the end is gone."""
    try:
        with path.open("ab") as file:
            # A line that a kill cut off ends here.
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
            # What is not begun must not begin, and nobody waits for the rest: processes of this machine end, and their
            # pool knows what to do then; to others the points are not sent.
            workers = active_children()
            for worker in workers:
                worker.terminate()
            for future in () if workers else futures:
                future.cancel()
            raise


def _done(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Results of an earlier sweep; a last line that was cut off does not count."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            result = msgspec.json.decode(line)
            yield result["id"], result
        except (msgspec.DecodeError, KeyError, TypeError):
            continue
