"""A scenario or a recording from beginning to end: somebody is told how far it is, results are written to a folder."""

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kubestow.simulator import report
from kubestow.simulator.decision_lines import NODES, RECORD_BYTES, DecisionLines
from kubestow.simulator.measuring import Measures, Sample
from kubestow.simulator.results import as_csv, as_json, as_parquet, made, results, whole, write_atomically
from kubestow.simulator.simulation import Simulation
from kubestow.telemetry.memory import GC_THRESHOLDS, keep_freed_memory

Progress = Callable[[float, float, int], None]
"""Told how many seconds have been simulated, of how many, and how many pods were bound."""
Watching = Callable[[Simulation], AbstractContextManager[None]]
_TURNS = 200
_TICK = 1e-6
"""Seconds that are as good as none."""
DECISIONS = "decisions.jsonl"


class Source(Protocol):
    """What is run."""

    @property
    def duration(self) -> float | None:
        """In seconds; None: until nothing happens by itself."""

    @property
    def longest(self) -> float:
        """How long it may run where no duration is given."""

    @property
    def sample(self) -> float:
        """Seconds between samples."""

    def simulation(self, **settings: Any) -> Simulation:
        """At time zero; raises ObjectsError."""


@dataclass
class Run:
    """A run that is over."""

    results: dict[str, Any]
    measures: Measures
    plugin_seconds: dict[str, float]
    """How long plugins took on this machine, if they were timed."""


def run(
    source: Source,
    out: Path | None = None,
    progress: Progress | None = None,
    name: str = "",
    decision_nodes: int = NODES,
    watching: Watching | None = None,
    **settings: Any,
) -> Run:
    """Simulate; Ctrl-C ends it early, with what there is until then. Raises ObjectsError, OSError.

    `watching` goes along with a run whose results are kept.
    """
    if out is None:
        with source.simulation(**settings) as simulation, _seldom_collecting():
            return _run(source, simulation, progress)
    with source.simulation(**settings, record_bytes=RECORD_BYTES) as simulation, _seldom_collecting():
        assert simulation.decisions is not None
        with made(out):
            with whole(out / DECISIONS) as file, nullcontext() if watching is None else watching(simulation):
                decisions = DecisionLines(simulation.decisions, file.write, decision_nodes, simulation.pod)
                done = _run(source, simulation, progress)
                decisions.finish()
            write(done, out, name)
    return done


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """What is there at the start stays to the end: the collector would look through it in vain, again and again."""
    before = gc.get_threshold()
    keep_freed_memory()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _run(source: Source, simulation: Simulation, progress: Progress | None) -> Run:
    measures = Measures(simulation, source.sample)
    end = source.duration
    try:
        complete = True
        is_over = _let_pass(simulation, measures, source.longest if end is None else end, progress, settles=end is None)
        if end is None and not is_over:
            simulation.notes.append("Not all had come to its end an hour after the last event; set spec.duration.")
    except KeyboardInterrupt:
        complete = False
    measures.take_sample()
    measures.count_open_waits()
    return Run(results(simulation, measures, complete=complete), measures, _plugin_seconds(simulation))


def _let_pass(
    simulation: Simulation, measures: Measures, end: float, progress: Progress | None, *, settles: bool
) -> bool:
    """Whether it is over because nothing more happens by itself."""
    turn = max(end / _TURNS, 1.0)
    last_plan = end - 3600.0

    def is_over() -> bool:
        return settles and simulation.time > last_plan and simulation.is_over

    while end - simulation.time > _TICK:
        if simulation.run_until(is_over, min(turn, end - simulation.time)) and settles:
            return True
        if progress is not None:
            progress(simulation.time, end, measures.counts["bound"])
    return False


def _plugin_seconds(simulation: Simulation) -> dict[str, float]:
    """Seconds spent in each plugin, in the cycles that were timed."""
    spent: dict[str, float] = {}
    if not simulation.settings.timed:
        return spent
    for (_point, plugin, _status), seen in simulation.metrics.plugin_execution_seconds.read().items():
        spent[plugin] = spent.get(plugin, 0.0) + seen.total
    return spent


def write(done: Run, out: Path, name: str) -> None:
    """The files of a run, each complete or not there."""
    samples = done.measures.samples
    write_atomically(out / "results.json", as_json(done.results))
    write_atomically(out / "samples.csv", as_csv(Sample._fields, samples))
    parquet = as_parquet(samples)
    if parquet is not None:
        write_atomically(out / "samples.parquet", parquet)
    write_atomically(out / "report.html", report.html(done.results, done.measures, done.plugin_seconds, name).encode())
