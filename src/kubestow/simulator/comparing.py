"""Two schedulers on the same scenario or recording, with several seeds: what moved, why, and what it did to the rest.

Until the first decision that differs both runs are the same, so for that one the scores of both, on the same cluster,
say why. Later ones follow from it. Figures are means over the seeds with a 95 % interval of their difference.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple

from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.outcome import Failed, Placed
from kubestow.model.pod import Pod
from kubestow.simulator.measuring import Measures
from kubestow.simulator.results import results
from kubestow.simulator.simulation import Simulation

Make = Callable[[int], tuple[Simulation, float]]
"""Makes the simulation of a seed, and says how long to run it."""
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % point of Student's t for 1, 2, ... degrees of freedom."""

FIGURES: dict[str, Callable[[dict[str, Any]], float]] = {
    "pods bound": lambda tree: tree["pods"]["bound"],
    "pods pending at the end": lambda tree: tree["pods"]["pending"],
    "mean wait, s": lambda tree: tree["waits"]["mean"],
    "95 % of waits within, s": lambda tree: tree["waits"]["p95"],
    "evicted by preemption": lambda tree: tree["pods"]["victims"],
    "attempts": lambda tree: tree["pods"]["attempts"],
    "CPU requested, mean share": lambda tree: tree["utilisation"]["cpu"]["mean"],
    "fragmentation, mean": lambda tree: tree["utilisation"]["fragmentation"]["mean"],
}


class Figure(NamedTuple):
    """One figure under both."""

    name: str
    a: float
    b: float
    difference: float
    margin: float | None
    """Half of the 95 % interval of the difference; None for a single seed."""


class Moved(NamedTuple):
    """A pod that went elsewhere; an empty node: nowhere."""

    pod: str
    a: str
    b: str


class Scores(NamedTuple):
    """What the plugins said of the two nodes, weighted, under one configuration."""

    chosen: str
    totals: dict[str, int]
    plugins: dict[str, dict[str, int]]
    """By node."""
    message: str = ""


@dataclass
class Comparison:
    """What came of it."""

    seeds: list[int]
    figures: list[Figure] = field(default_factory=list)
    moved: dict[int, list[Moved]] = field(default_factory=dict)
    """By seed."""
    pods: dict[int, int] = field(default_factory=dict)
    """How many pods were decided about, by seed."""
    first: dict[int, tuple[Moved, Scores, Scores]] = field(default_factory=dict)
    """The first decision that differs, by seed, and both explanations."""


class _Run:
    """One run: the first node of every pod, in the order of decisions."""

    def __init__(self, make: Make, seed: int, explain_at: int | None = None, nodes: tuple[str, ...] = ()) -> None:
        self.decisions: list[tuple[str, str]] = []
        """Pod and node of each decision."""
        self.scores: Scores | None = None
        self._explain_at = explain_at
        self._nodes = nodes
        simulation, seconds = make(seed)
        with simulation:
            self._simulation = simulation
            simulation.on_decision.append(self._decided)
            measures = Measures(simulation)
            if explain_at is None:
                simulation.run_for(seconds)
            else:
                simulation.run_until(lambda: self.scores is not None, seconds)
            measures.take_sample()
            self.results = results(simulation, measures)

    def _decided(self, pod: Pod, outcome: Placed | Failed) -> None:
        if len(self.decisions) == self._explain_at:
            self.scores = self._explained(pod, outcome)
        self.decisions.append((pod.key, outcome.node if isinstance(outcome, Placed) else ""))

    def _explained(self, pod: Pod, outcome: Placed | Failed) -> Scores:
        if isinstance(outcome, Failed):
            return Scores("", {}, {}, outcome.message)
        core = self._simulation.core
        # As it was before the pod had its place.
        core.cluster.forget(outcome.pod.uid)
        try:
            evaluation = Evaluation(
                core.profiles[pod.spec.schedulerName], core.cluster, core.queue.nominator, PodInfo(pod)
            )
            totals: dict[str, int] = {}
            plugins: dict[str, dict[str, int]] = {}
            rows = evaluation.filter() if evaluation.pre_filter() else None
            if rows is not None and len(rows):
                added = evaluation.score(rows)
                for position, row in enumerate(rows):
                    name = core.cluster.nodes.names[int(row)]
                    if name in self._nodes:
                        totals[name] = int(added[position])
                        plugins[name] = {one.plugin: int(one.weighted[position]) for one in evaluation.scores}
        finally:
            core.cluster.assume(outcome.pod, outcome.node)
        return Scores(outcome.node, totals, plugins)


def compare(make_a: Make, make_b: Make, seeds: list[int]) -> Comparison:
    """Run both with every seed."""
    found = Comparison(seeds)
    trees: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for seed in seeds:
        a, b = _Run(make_a, seed), _Run(make_b, seed)
        trees.append((a.results, b.results))
        placed_a, placed_b = _places(a.decisions), _places(b.decisions)
        pods = list(dict.fromkeys([*placed_a, *placed_b]))
        found.pods[seed] = len(pods)
        found.moved[seed] = [
            Moved(pod, placed_a.get(pod, ""), placed_b.get(pod, ""))
            for pod in pods
            if placed_a.get(pod, "") != placed_b.get(pod, "")
        ]
        index = next(
            (i for i, (one, two) in enumerate(zip(a.decisions, b.decisions, strict=False)) if one != two), None
        )
        if index is not None and a.decisions[index][0] == b.decisions[index][0]:
            moved = Moved(a.decisions[index][0], a.decisions[index][1], b.decisions[index][1])
            why = [_Run(make, seed, index, (moved.a, moved.b)).scores for make in (make_a, make_b)]
            if why[0] is not None and why[1] is not None:
                found.first[seed] = (moved, why[0], why[1])
    found.figures = [_figure(name, read, trees) for name, read in FIGURES.items()]
    return found


def _places(decisions: list[tuple[str, str]]) -> dict[str, str]:
    """Where each pod went first; nowhere, if it never went anywhere."""
    found: dict[str, str] = {}
    for pod, node in decisions:
        if not found.get(pod):
            found[pod] = node
    return found


def _figure(name: str, read: Callable[[dict[str, Any]], float], trees: list[tuple[Any, Any]]) -> Figure:
    a, b = [float(read(one)) for one, _ in trees], [float(read(two)) for _, two in trees]
    differences = [two - one for one, two in zip(a, b, strict=True)]
    margin = None
    if len(differences) > 1:
        student = _STUDENT[len(differences) - 2] if len(differences) - 2 < len(_STUDENT) else 1.96
        margin = student * stdev(differences) / math.sqrt(len(differences))
    return Figure(name, fmean(a), fmean(b), fmean(differences), margin)
