"""A scenario becomes a simulation that is ready to run."""

from functools import partial
from typing import Any

from kubestow.apiserver.kubelets import description
from kubestow.apiserver.kubelets.scripts import Pace
from kubestow.objects import ObjectsError
from kubestow.simulator.contents import ObjectError
from kubestow.simulator.scenario import happenings
from kubestow.simulator.scenario.arrivals import Stream
from kubestow.simulator.scenario.autoscaling import Autoscaler
from kubestow.simulator.scenario.reading import Scenario, seconds
from kubestow.simulator.settings import Latencies
from kubestow.simulator.simulation import Simulation

_LONGEST_TAIL = 3600.0
_MINUTE, _SAMPLES = 60.0, 1440
"""How often is looked if the scenario does not say, and how many times at most."""


def build(scenario: Scenario, *, seed: int | None = None, **settings: Any) -> Simulation:
    """A simulation at time zero; `settings` are fields of Settings. Raises ObjectsError for objects it cannot take."""
    spec = scenario.spec
    pods, latencies = spec.pods, spec.latencies
    seed = spec.seed if seed is None else seed
    simulation = Simulation(
        seed=seed,
        pace=Pace(seconds(pods.start), seconds(pods.run), seconds(pods.stop)),
        latencies=Latencies(seconds(latencies.request), seconds(latencies.watch)),
        **settings,
    )
    nodes = [{"apiVersion": "v1", "kind": "Node", **one} for group in spec.nodes for one in description.expand(group)]
    try:
        simulation.add(*nodes, *scenario.objects)
        for arrival in spec.arrivals:
            rows = scenario.traces.get(arrival.name, [])
            Stream(arrival, rows, seed, seconds(pods.run), simulation).plan(simulation)
        for group in spec.nodeGroups:
            Autoscaler(group).start(simulation)
    except ObjectError as error:
        simulation.close()
        place = scenario.places.get(id(error.object))
        raise ObjectsError([f"{place}: {error}" if place else str(error)]) from None
    for index, event in enumerate(spec.events):
        happenings.plan(event, index, seed, simulation)
    for change in scenario.changes:
        simulation.at(change.time, partial(happenings.change, change.op, change.object))
    return simulation


class Prepared:
    """A scenario that can be run, as often as one likes."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        spec = scenario.spec
        self.duration = None if spec.duration is None else seconds(spec.duration)
        ends = [seconds(event.at) + seconds(event.lasts or 0) for event in spec.events]
        ends += [seconds(one) for arrival in spec.arrivals for one in (arrival.until or 0, *(arrival.times or ()))]
        ends += [change.time for change in scenario.changes]
        ends += [float(row["at"]) for rows in scenario.traces.values() for row in rows[-1:]]
        self.longest = max(ends, default=0.0) + _LONGEST_TAIL
        length = self.longest if self.duration is None else self.duration
        often = max(_MINUTE, length / _SAMPLES) if spec.sample is None else seconds(spec.sample)
        self.sample = max(often, 0.001)

    def simulation(self, **settings: Any) -> Simulation:
        """At time zero; raises ObjectsError."""
        return build(self._scenario, **settings)
