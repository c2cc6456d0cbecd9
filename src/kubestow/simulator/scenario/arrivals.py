"""Streams of objects that arrive over time: at given times, at random, or as listed in a trace."""

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kubestow.apiserver.errors import ApiError
from kubestow.simulator.bulk import Template
from kubestow.simulator.results import format_duration
from kubestow.simulator.scenario import traces
from kubestow.simulator.scenario.format import Arrival, Distribution, Object, Span, seconds
from kubestow.simulator.scenario.places import Place
from kubestow.simulator.scenario.traces import Row
from kubestow.simulator.simulation import Simulation

Sampler = Callable[[random.Random], float]


def sampler(run: Span | Distribution | None, default: float) -> Sampler:
    """Return a function that draws the run time of a pod, in seconds."""
    if not isinstance(run, Distribution):
        fixed = default if run is None else seconds(run)
        return lambda _rng: fixed
    if run.exponential is not None:
        rate = 1.0 / max(seconds(run.exponential), 1e-9)
        return lambda rng: round(rng.expovariate(rate), 3)
    if run.uniform is not None:
        low, high = seconds(run.uniform.low), seconds(run.uniform.high)
        return lambda rng: round(rng.uniform(low, high), 3)
    if run.lognormal is not None:
        median, sigma = seconds(run.lognormal.median), run.lognormal.sigma
        return lambda rng: round(median * rng.lognormvariate(0.0, sigma), 3)
    choices = [seconds(one) for one in run.choice or [default]]
    return lambda rng: rng.choice(choices)


class Stream:
    """One entry of `arrivals`; a recurring action."""

    def __init__(
        self, arrival: Arrival, place: Place, rows: list[Row], seed: int, default_run: float, simulation: Simulation
    ) -> None:
        """Raises ObjectsError for a pod that the API server would reject."""
        self._arrival = arrival
        self._place = place.at("object" if arrival.pod is None else "pod")
        self._rows = sorted(rows, key=traces.arrival_seconds)
        self._times = sorted(seconds(one) for one in arrival.times or ())
        self._rng = random.Random(f"{seed}/arrivals/{arrival.name}")
        self._run_time = sampler(arrival.run, default_run)
        self._number = 0
        self._begin = self._at = seconds(arrival.begin)
        self._until = float("inf") if arrival.until is None else seconds(arrival.until)
        self._rate = 0.0 if arrival.poisson is None else 1.0 / seconds(arrival.poisson.every)
        self._templates: dict[tuple[str, str], Template] = {}
        self._is_noted = False
        if arrival.pod is not None:
            with self._place.report_errors(), self._skipping_over_quota():
                simulation.ensure_namespace(arrival.namespace)
                self._template(simulation, {})

    def __deepcopy__(self, memo: dict[int, Any]) -> "Stream":
        """Copy the stream with its own state; its inputs are shared."""
        other = copy.copy(self)
        vars(other).update(_rng=copy.copy(self._rng), _templates=dict(self._templates))
        memo[id(self)] = other
        return other

    def plan(self, simulation: Simulation) -> None:
        """Plan the next arrival, if there is one."""
        arrival, number = self._arrival, self._number
        if arrival.count is not None and number >= arrival.count:
            return
        if arrival.poisson is not None:
            self._at += self._rng.expovariate(self._rate)
        elif number < len(self._rows):
            self._at = self._begin + traces.arrival_seconds(self._rows[number])
        elif number < len(self._times):
            self._at = self._begin + self._times[number]
        else:
            return
        if self._at < self._until:
            simulation.at(self._at, self)

    def __call__(self, simulation: Simulation) -> None:
        row: Row = self._rows[self._number] if self._rows else {}
        name = row.get("name") or f"{self._arrival.name}-{self._number}"
        self._number += 1
        try:
            if self._arrival.pod is not None:
                run = traces.parse_duration(row["run"]) if row.get("run") else self._run_time(self._rng)
                simulation.bulk.create(self._template(simulation, row), name, run)
            else:
                obj = self._arrival.object or {}
                metadata = {**obj.get("metadata", {}), "name": name, "namespace": self._arrival.namespace}
                simulation.add({**obj, "metadata": metadata})
        except Exception:
            # Enter the contexts only after an error: there are many arrivals, and most succeed.
            with self._place.report_errors(), self._skipping_over_quota(simulation):
                raise
        self.plan(simulation)

    @contextmanager
    def _skipping_over_quota(self, simulation: Simulation | None = None) -> Iterator[None]:
        """Skip pods that a quota rejects, and note the first one in the simulation."""
        try:
            yield
        except ApiError as error:
            if "quota: " not in error.message:
                raise
            if simulation is not None and not self._is_noted:
                self._is_noted = True
                simulation.notes.append(
                    self._place.describe(f"from {format_duration(simulation.time)} on, {error.message}")
                )

    def _template(self, simulation: Simulation, row: Row) -> Template:
        size = (row.get("cpu") or "", row.get("memory") or "")
        if size not in self._templates:
            pod = _with_requests(self._arrival.pod or {}, dict(zip(("cpu", "memory"), size, strict=True)))
            namespace, name = self._arrival.namespace, self._arrival.name
            self._templates[size] = Template(simulation.plane, simulation.settings.pace, pod, namespace, name)
        return self._templates[size]


def _with_requests(pod: Object, amounts: dict[str, str]) -> Object:
    pod = copy.deepcopy(pod)
    spec = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Never")
    containers = spec.setdefault("containers", [{"name": "main", "image": "simulated"}])
    requests = {key: value for key, value in amounts.items() if value}
    if requests and containers:
        resources = containers[0]["resources"] = containers[0].get("resources") or {}
        resources["requests"] = {**(resources.get("requests") or {}), **requests}
    return pod
