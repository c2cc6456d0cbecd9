"""Builds a simulation from a scenario."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from kubestow.api.files import ObjectsError
from kubestow.api.timestamps import parse_time
from kubestow.apiserver.kubelets import description
from kubestow.apiserver.kubelets.scripts import Pace
from kubestow.simulator.contents import ObjectError
from kubestow.simulator.in_memory.virtual_loop import START
from kubestow.simulator.results import format_duration
from kubestow.simulator.scenario import events, traces
from kubestow.simulator.scenario.arrivals import Stream
from kubestow.simulator.scenario.autoscaling import Autoscaler
from kubestow.simulator.scenario.format import Arrival, seconds
from kubestow.simulator.scenario.reading import Scenario
from kubestow.simulator.scenario.references import missing_objects
from kubestow.simulator.settings import Latencies
from kubestow.simulator.simulation import Simulation

_MAX_TAIL_SECONDS = 3600.0
_MINUTE, _SAMPLES = 60.0, 1440
"""Default interval of samples where the scenario has a duration, and the maximum number of samples."""
_DEVIATIONS = 6.0
"""Assumed maximum deviation of a random time from its mean, in standard deviations."""


def build(scenario: Scenario, *, seed: int | None = None, **settings: Any) -> Simulation:
    """Return a simulation at time zero; `settings` are fields of Settings. Raises ObjectsError for invalid objects."""
    spec = scenario.spec
    pods, latencies = spec.pods, spec.latencies
    seed = spec.seed if seed is None else seed
    simulation = Simulation(
        seed=seed,
        start=max([START, *map(_created, scenario.objects)]),
        pace=Pace(seconds(pods.start), seconds(pods.run), seconds(pods.stop)),
        latencies=Latencies(seconds(latencies.request), seconds(latencies.watch)),
        **settings,
    )
    try:
        _fill(simulation, scenario, seed)
    except ObjectsError:
        simulation.close()
        raise
    return simulation


def _created(obj: dict[str, Any]) -> int:
    """Return the creation time of an object, which must not be later than the start of the simulation."""
    text = obj.get("metadata", {}).get("creationTimestamp")
    try:
        return math.ceil(parse_time(text)) if isinstance(text, str) else 0
    except ValueError:
        # The API server reports the invalid timestamp.
        return 0


def _fill(simulation: Simulation, scenario: Scenario, seed: int) -> None:
    spec, place = scenario.spec, scenario.place.at("spec")
    nodes = [
        (index, {"apiVersion": "v1", "kind": "Node", **one})
        for index, group in enumerate(spec.nodes)
        for one in description.expand(group)
    ]
    try:
        simulation.add(*(node for _, node in nodes), *scenario.objects)
    except ObjectError as error:
        problems = [place.at(f"nodes[{index}]").describe(str(error)) for index, node in nodes if node is error.object]
        given = zip(scenario.objects, scenario.places, strict=False)
        problems += [f"{where}: {error}" for obj, where in given if obj is error.object]
        raise ObjectsError(problems or [str(error)]) from None
    for index, arrival in enumerate(spec.arrivals):
        where, rows = place.at(f"arrivals[{index}]"), scenario.traces.get(arrival.name, [])
        Stream(arrival, where, rows, seed, seconds(spec.pods.run), simulation).plan(simulation)
    for index, group in enumerate(spec.nodeGroups):
        Autoscaler(group, place.at(f"nodeGroups[{index}]")).start(simulation)
    for index, event in enumerate(spec.events):
        events.plan(event, place.at(f"events[{index}]"), f"{seed}/events/{index}", simulation)
    for change in scenario.changes:
        simulation.at(change.time, partial(events.change, change))


class Prepared:
    """A scenario that can be run any number of times."""

    def __init__(self, scenario: Scenario) -> None:
        """Raises ObjectsError for events on objects that cannot exist."""
        problems = [scenario.place.at(path).describe(message) for path, message in missing_objects(scenario)]
        if problems:
            raise ObjectsError(problems)
        self._scenario = scenario
        self.name, spec = scenario.name, scenario.spec
        self.duration = None if spec.duration is None else seconds(spec.duration)
        """In seconds; None: until no work is pending, at most `longest`."""
        ends = [seconds(event.at) + seconds(event.lasts or 0) for event in spec.events]
        ends += [_last_arrival(arrival, scenario.traces.get(arrival.name, [])) for arrival in spec.arrivals]
        ends += [change.time for change in scenario.changes]
        self.longest = max(ends, default=0.0) + _MAX_TAIL_SECONDS
        length = self.longest if self.duration is None else self.duration
        # A run without a duration may last only seconds.
        minimum = 0.0 if self.duration is None else _MINUTE
        interval = max(minimum, length / _SAMPLES) if spec.sample is None else seconds(spec.sample)
        self.sample = max(interval, 0.001)
        """Seconds between samples."""
        self._notes = [*scenario.notes, *_late_notes(scenario, length)]

    def simulation(self, **settings: Any) -> Simulation:
        """Return a simulation at time zero; raises ObjectsError."""
        simulation = build(self._scenario, **settings)
        simulation.notes += self._notes
        return simulation


def _last_arrival(arrival: Arrival, rows: list[traces.Row]) -> float:
    """Return the time of the last arrival."""
    if arrival.until is not None:
        return seconds(arrival.until)
    times = [*map(seconds, arrival.times or ()), *map(traces.arrival_seconds, rows)]
    if arrival.poisson is not None and arrival.count is not None:
        times.append(seconds(arrival.poisson.every) * (arrival.count + _DEVIATIONS * math.sqrt(arrival.count)))
    return seconds(arrival.begin) + max(times, default=0.0)


def _late_notes(scenario: Scenario, end: float) -> Iterator[str]:
    """Yield notes on events and arrivals after the end of the run."""
    spec = scenario.spec
    begins = {f"spec.events[{index}].at": seconds(event.at) for index, event in enumerate(spec.events)}
    for index, arrival in enumerate(spec.arrivals):
        times = [
            *map(seconds, arrival.times or ()),
            *map(traces.arrival_seconds, scenario.traces.get(arrival.name, [])),
        ]
        begins[f"spec.arrivals[{index}]"] = seconds(arrival.begin) + min(times, default=0.0)
    for path, begin in begins.items():
        if begin > end:
            yield scenario.place.at(path).describe(
                f"does not happen: it is due at {format_duration(begin)}, but the run ends at {format_duration(end)}"
            )
