"""A scenario becomes a simulation that is ready to run."""

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
from kubestow.simulator.results import span
from kubestow.simulator.scenario import happenings, traces
from kubestow.simulator.scenario.arrivals import Stream
from kubestow.simulator.scenario.autoscaling import Autoscaler
from kubestow.simulator.scenario.format import Arrival, seconds
from kubestow.simulator.scenario.reading import Scenario
from kubestow.simulator.scenario.references import missing
from kubestow.simulator.settings import Latencies
from kubestow.simulator.simulation import Simulation

_LONGEST_TAIL = 3600.0
_MINUTE, _SAMPLES = 60.0, 1440
"""How often is looked where there is a duration and the scenario does not say, and how many times at most."""
_DEVIATIONS = 6.0
"""What takes longer than the mean by so many standard deviations is not to be expected in a lifetime."""


def build(scenario: Scenario, *, seed: int | None = None, **settings: Any) -> Simulation:
    """A simulation at time zero; `settings` are fields of Settings. Raises ObjectsError for objects it cannot take."""
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
    """When an object was created: nothing must be younger than the time at which a simulation begins."""
    text = obj.get("metadata", {}).get("creationTimestamp")
    try:
        return math.ceil(parse_time(text)) if isinstance(text, str) else 0
    except ValueError:
        # The API server will say what is wrong with it.
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
        told = [place.at(f"nodes[{index}]").told(str(error)) for index, node in nodes if node is error.object]
        given = zip(scenario.objects, scenario.places, strict=False)
        told += [f"{where}: {error}" for obj, where in given if obj is error.object]
        raise ObjectsError(told or [str(error)]) from None
    for index, arrival in enumerate(spec.arrivals):
        there, rows = place.at(f"arrivals[{index}]"), scenario.traces.get(arrival.name, [])
        Stream(arrival, there, rows, seed, seconds(spec.pods.run), simulation).plan(simulation)
    for index, group in enumerate(spec.nodeGroups):
        Autoscaler(group, place.at(f"nodeGroups[{index}]")).start(simulation)
    for index, event in enumerate(spec.events):
        happenings.plan(event, place.at(f"events[{index}]"), f"{seed}/events/{index}", simulation)
    for change in scenario.changes:
        simulation.at(change.time, partial(happenings.change, change))


class Prepared:
    """A scenario that can be run, as often as one likes."""

    def __init__(self, scenario: Scenario) -> None:
        """Raises ObjectsError for events about what cannot be there."""
        problems = [scenario.place.at(path).told(message) for path, message in missing(scenario)]
        if problems:
            raise ObjectsError(problems)
        self._scenario = scenario
        spec = scenario.spec
        self.duration = None if spec.duration is None else seconds(spec.duration)
        ends = [seconds(event.at) + seconds(event.lasts or 0) for event in spec.events]
        ends += [_last(arrival, scenario.traces.get(arrival.name, [])) for arrival in spec.arrivals]
        ends += [change.time for change in scenario.changes]
        self.longest = max(ends, default=0.0) + _LONGEST_TAIL
        length = self.longest if self.duration is None else self.duration
        # Who gives no duration may have a run of seconds.
        least = 0.0 if self.duration is None else _MINUTE
        often = max(least, length / _SAMPLES) if spec.sample is None else seconds(spec.sample)
        self.sample = max(often, 0.001)
        self._notes = [*scenario.notes, *_too_late(scenario, length)]

    def simulation(self, **settings: Any) -> Simulation:
        """At time zero; raises ObjectsError."""
        simulation = build(self._scenario, **settings)
        simulation.notes += self._notes
        return simulation


def _last(arrival: Arrival, rows: list[traces.Row]) -> float:
    """By when all of it has come."""
    if arrival.until is not None:
        return seconds(arrival.until)
    times = [*map(seconds, arrival.times or ()), *map(traces.at, rows)]
    if arrival.poisson is not None and arrival.count is not None:
        times.append(seconds(arrival.poisson.every) * (arrival.count + _DEVIATIONS * math.sqrt(arrival.count)))
    return seconds(arrival.begin) + max(times, default=0.0)


def _too_late(scenario: Scenario, end: float) -> Iterator[str]:
    """Notes on what does not happen, for the run is over before."""
    spec = scenario.spec
    begins = {f"spec.events[{index}].at": seconds(event.at) for index, event in enumerate(spec.events)}
    for index, arrival in enumerate(spec.arrivals):
        times = [*map(seconds, arrival.times or ()), *map(traces.at, scenario.traces.get(arrival.name, []))]
        begins[f"spec.arrivals[{index}]"] = seconds(arrival.begin) + min(times, default=0.0)
    for path, begin in begins.items():
        if begin > end:
            yield scenario.place.at(path).told(
                f"does not happen: it is due at {span(begin)}, and the run ends at {span(end)}"
            )
