"""Comparison of two schedulers on one scenario or recording, over several seeds: which pods moved, why, and the effect.

Each run is a folder as written by `kubestow simulate --out`, by this version of the program or another one. Up to the
first decision that differs, both runs are identical; later decisions may differ because of it. So every pod that moved
is explained by the verdicts and scores of both schedulers on both nodes at the time of its decision, and pods are
grouped by that reason. Figures are means over the seeds, with a 95 % interval of the difference.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import msgspec

from kubestow.insight.decisions import schema
from kubestow.insight.decisions.moved import FIGURES, MovedPod, Scores, pair_pods, reason_for_move, scores
from kubestow.simulator import results
from kubestow.simulator.running import DECISIONS

RunSeed = Callable[[int, Path], None]
"""Runs a simulation with a seed, and writes its results to a folder."""
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % point of Student's t for 1, 2, ... degrees of freedom."""

NODES = 20
"""Number of nodes in each decision: both nodes of a pod that moved should be included on both sides."""


class CompareError(ValueError):
    """The results of one side cannot be read."""


class Figure(NamedTuple):
    """A figure of both sides."""

    name: str
    a: float
    b: float
    difference: float
    margin: float | None
    """Half of the 95 % interval of the difference; None for a single seed."""


class Cause(NamedTuple):
    """Pods that moved for the same reason, with an explanation of the first one."""

    why: str
    pods: int
    """Number of pods, over all seeds."""
    seed: int
    first: MovedPod
    a: Scores
    b: Scores


@dataclass
class Comparison:
    """The result of a comparison."""

    seeds: list[int]
    versions: tuple[str, str] = ("", "")
    """Program versions of A and B."""
    figures: list[Figure] = field(default_factory=list)
    moved: dict[int, list[MovedPod]] = field(default_factory=dict)
    """By seed, in the order of A's decisions."""
    pods: dict[int, int] = field(default_factory=dict)
    """Number of pods with a decision, by seed."""
    causes: list[Cause] = field(default_factory=list)
    """Over all seeds, most frequent first."""
    notes: list[str] = field(default_factory=list)
    """Notes of all runs."""


class _Line(msgspec.Struct):
    """The fields of a decision that are needed to find it."""

    version: int
    pod: str
    id: int
    chosen: str | None
    owner: str = ""


class _Run:
    """The results that one run wrote."""

    def __init__(self, folder: Path) -> None:
        """Read a results folder; raises CompareError, OSError."""
        self.results = msgspec.json.decode((folder / "results.json").read_bytes())
        if not self.results.get("complete"):
            raise KeyboardInterrupt
        self._path = folder / DECISIONS
        self.places: dict[str, str] = {}
        """The first node of each pod, in the order of decisions; "" if it never got one."""
        self.owners: dict[str, str] = {}
        """The owner of each pod, in the order of first attempts."""
        self._offsets: dict[str, int] = {}
        """Byte offset of the decision in the file."""
        decoder, offset = msgspec.json.Decoder(_Line), 0
        found: list[tuple[_Line, int]] = []
        with self._path.open("rb") as file:
            for text in file:
                found.append((decoder.decode(text), offset))
                offset += len(text)
        if {one.version for one, _ in found} - {schema.VERSION} or self.results["version"] != results.VERSION:
            wanted = f"results of version {results.VERSION} and decisions of version {schema.VERSION} are"
            raise CompareError(f"{folder}: only {wanted} understood; compare with a version that is closer")
        for line, offset in sorted(found, key=lambda one: one[0].id):
            self.owners[line.pod] = self.owners.get(line.pod) or line.owner
            if not self.places.get(line.pod):
                self.places[line.pod], self._offsets[line.pod] = line.chosen or "", offset

    def decision(self, pod: str) -> schema.Decision | None:
        """Return the decision that placed a pod, else its last failed one; None if there is none."""
        if pod not in self._offsets:
            return None
        with self._path.open("rb") as file:
            file.seek(self._offsets[pod])
            return msgspec.json.decode(file.readline(), type=schema.Decision)


def compare(
    run_a: RunSeed, run_b: RunSeed, seeds: list[int], folder: Path, on_progress: Callable[[int, int], None]
) -> Comparison:
    """Run both sides with every seed, into subfolders of `folder`; raises CompareError, OSError."""
    found, trees = Comparison(seeds), []
    causes: dict[str, Cause] = {}
    for number, seed in enumerate(seeds):
        runs = []
        for index, (name, run) in enumerate((("a", run_a), ("b", run_b)), 1):
            run_folder = folder / f"seed-{seed}" / name
            run(seed, run_folder)
            runs.append(_Run(run_folder))
            on_progress(2 * number + index, 2 * len(seeds))
        a, b = runs
        found.versions = (a.results["kubestow"], b.results["kubestow"])
        trees.append((a.results, b.results))
        # Other versions of the program may not write notes.
        notes = (note for run in runs for note in run.results.get("notes", ()))
        found.notes = list(dict.fromkeys([*found.notes, *notes]))
        pods = pair_pods(a.owners, b.owners)
        found.pods[seed] = len(pods)
        found.moved[seed] = [
            _explain(one, two, a, b, seed, causes)
            for one, two in pods
            if a.places.get(one, "") != b.places.get(two, "")
        ]
    found.causes = sorted(causes.values(), key=lambda cause: -cause.pods)
    found.figures = [_figure(name, read, trees) for name, read in FIGURES.items()]
    return found


def _explain(under_a: str, under_b: str, a: _Run, b: _Run, seed: int, causes: dict[str, Cause]) -> MovedPod:
    """Explain why a pod moved, given its names under A and B, and count it in `causes`."""
    one, two = a.decision(under_a), b.decision(under_b)
    places = a.places.get(under_a, ""), b.places.get(under_b, "")
    other = under_b if under_a and under_b != under_a else ""
    moved = MovedPod(under_a or under_b, *places, reason_for_move(one, two).text, other)
    cause = causes.get(moved.why)
    if cause is None:
        nodes = (moved.a, moved.b)
        cause = Cause(moved.why, 0, seed, moved, scores(one, nodes), scores(two, nodes))
    causes[moved.why] = cause._replace(pods=cause.pods + 1)
    return moved


def _figure(name: str, read: Callable[[dict[str, Any]], float], trees: list[tuple[Any, Any]]) -> Figure:
    a, b = [float(read(one)) for one, _ in trees], [float(read(two)) for _, two in trees]
    differences = [two - one for one, two in zip(a, b, strict=True)]
    margin = None
    if len(differences) > 1:
        student = _STUDENT[len(differences) - 2] if len(differences) - 2 < len(_STUDENT) else 1.96
        margin = student * stdev(differences) / math.sqrt(len(differences))
    return Figure(name, fmean(a), fmean(b), fmean(differences), margin)
