"""Many simulations of one scenario, each with other fields, seeds or sizes, over any `concurrent.futures.Executor`.

A point is all that one simulation needs, so it can run in another process or on another machine. Its result is a line
in points.jsonl as soon as it is there; a sweep that was killed goes on with the points that have none.
"""

import hashlib
import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubestow import __version__, config
from kubestow.config import ConfigError
from kubestow.simulator import running
from kubestow.simulator.scenario.building import Prepared
from kubestow.simulator.scenario.format import Spec
from kubestow.simulator.scenario.reading import Scenario

Value = str | int | float | bool
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_RANGE = re.compile(r"(-?[\d.]+)\.\.(-?[\d.]+)")
_TRIES = 3
SEED = "seed"
POINTS = "points.jsonl"


class SweepError(ValueError):
    """What is to be varied cannot be; the message names the field."""


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
        objects = msgspec.json.encode([self.scenario.objects, self.scenario.changes, self.scenario.traces])
        return hashlib.blake2b(content + objects, digest_size=8).hexdigest()


def parse_vary(text: str) -> tuple[str, list[Value] | tuple[float, float]]:
    """`FIELD=1,2,3` or, to be drawn by chance, `FIELD=1..10`; raises SweepError."""
    name, _, values = text.partition("=")
    if not values or not name.startswith(("config.", "scenario.")):
        raise SweepError(f"{text!r}: write config.FIELD=VALUE,VALUE or scenario.FIELD=LOW..HIGH")
    span = _RANGE.fullmatch(values)
    if span:
        return name, (float(span[1]), float(span[2]))
    return name, [yaml.safe_load(one) for one in values.split(",")]


def grid(varied: Mapping[str, Any], seeds: Iterable[int], draws: int, seed: int = 0) -> list[dict[str, Value]]:
    """Every combination of the lists; with `draws`, so many of them by chance. Raises SweepError."""
    ranges = [name for name, values in varied.items() if isinstance(values, tuple)]
    if ranges and not draws:
        raise SweepError(f"{ranges[0]}: a range is drawn from by chance; say how often with --random")
    if draws:
        chance = random.Random(seed)
        found = [{name: _draw(values, chance) for name, values in varied.items()} for _ in range(draws)]
    else:
        found = [dict(zip(varied, one, strict=True)) for one in itertools.product(*varied.values())]
    return [{**one, SEED: number} for one in found for number in seeds]


def _draw(values: Any, chance: random.Random) -> Value:
    if isinstance(values, tuple):
        low, high = values
        return (
            chance.randint(int(low), int(high)) if low == int(low) and high == int(high) else chance.uniform(low, high)
        )
    chosen: Value = chance.choice(values)
    return chosen


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


def prepared(point: Point) -> tuple[Scenario, str]:
    """The scenario and the configuration of a point; raises SweepError for fields that do not fit."""
    spec = {"spec": msgspec.to_builtins(point.scenario.spec)}
    settings = yaml.safe_load(point.configuration)
    for name, value in point.fields.items():
        if name.startswith("scenario."):
            set_field(spec, name.removeprefix("scenario."), value, name)
        elif name != SEED:
            set_field(settings, name.removeprefix("config."), value, name)
    configuration = yaml.safe_dump(settings)
    try:
        config.load(configuration)
        scenario = replace(point.scenario, spec=msgspec.convert(spec["spec"], Spec))
    except ConfigError as error:
        raise SweepError(f"{point.fields}: {error.problems[0]}") from None
    except msgspec.ValidationError as error:
        raise SweepError(f"{point.fields}: scenario: {error}") from None
    return scenario, configuration


def run_point(point: Point) -> dict[str, Any]:
    """Simulate one; what `results` has, and the fields."""
    scenario, configuration = prepared(point)
    done = running.run(
        Prepared(scenario),
        seed=int(point.fields[SEED]),
        configuration=configuration,
        plugin_sources=point.plugin_sources,
    )
    return {"id": point.id, "fields": point.fields, "results": done.results}


def local(workers: int | None) -> Executor:
    """All cores of this machine, or so many."""
    return ProcessPoolExecutor(workers, get_context("spawn"))


def sweep(
    points: list[Point], out: Path, executor: Callable[[], Executor], tell: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Run the points that have no result in the folder yet; all results, in the order of the points."""
    for point in points:
        prepared(point)
    pool = executor()
    out.mkdir(parents=True, exist_ok=True)
    done = dict(_done(out / POINTS))
    with (out / POINTS).open("ab") as file:
        # A line that a kill cut off ends here.
        file.write(b"\n")
        for attempt in range(1, _TRIES + 1):
            left = [point for point in points if point.id not in done]
            try:
                for result in _results(left, pool):
                    done[result["id"]] = result
                    file.write(msgspec.json.encode(result) + b"\n")
                    file.flush()
                    tell(len(done), len(points))
                break
            except BrokenProcessPool:
                # One worker was killed, which takes all others of its pool along; what they had done is kept.
                if attempt == _TRIES:
                    raise
                pool = executor()
    return [done[point.id] for point in points]


def _results(points: list[Point], executor: Executor) -> Iterator[dict[str, Any]]:
    with executor:
        futures: list[Future[dict[str, Any]]] = [executor.submit(run_point, point) for point in points]
        for future in as_completed(futures):
            yield future.result()


def _done(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Results of an earlier sweep; a last line that was cut off does not count."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            result = msgspec.json.decode(line)
            yield result["id"], result
        except (msgspec.DecodeError, KeyError, TypeError):
            continue
