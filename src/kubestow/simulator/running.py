"""Runs a scenario or a recording to its end, reports progress, and writes the results to a folder."""

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubestow.simulator import report
from kubestow.simulator.decision_lines import NODES, RECORD_BYTES, DecisionLines
from kubestow.simulator.measuring import Measures, Sample
from kubestow.simulator.recording.replaying import Replay
from kubestow.simulator.results import as_csv, as_json, as_parquet, atomic_file, new_folder, results, write_atomically
from kubestow.simulator.scenario.building import Prepared
from kubestow.simulator.simulation import Simulation
from kubestow.telemetry.memory import GC_THRESHOLDS, keep_freed_memory

Progress = Callable[[float, float, int], None]
"""Callback for progress: `(simulated seconds, total seconds, pods bound)`."""
Watching = Callable[[Simulation], AbstractContextManager[None]]
_PROGRESS_STEPS = 200
_TICK = 1e-6
"""Tolerance in seconds for the end of a run."""
DECISIONS = "decisions.jsonl"
Source = Prepared | Replay


@dataclass
class Run:
    """A finished run."""

    results: dict[str, Any]
    measures: Measures
    plugin_seconds: dict[str, float]
    """Seconds spent in each plugin on this machine, if measured."""


def run(
    source: Source,
    out: Path | None = None,
    progress: Progress | None = None,
    name: str = "",
    decision_nodes: int = NODES,
    watching: Watching | None = None,
    **settings: Any,
) -> Run:
    """Run a simulation; Ctrl-C ends it early with partial results. Raises ObjectsError, OSError.

    `name` is the title of the report if the source has no name. `watching` is entered during a run whose results are
    written to a folder.
    """
    if out is None:
        with source.simulation(**settings) as simulation, _rare_collections():
            return _run(source, simulation, progress)
    with source.simulation(**settings, record_bytes=RECORD_BYTES) as simulation, _rare_collections():
        assert simulation.decisions is not None
        with new_folder(out):
            with atomic_file(out / DECISIONS) as file, nullcontext() if watching is None else watching(simulation):
                decisions = DecisionLines(simulation.decisions, file.write, decision_nodes, simulation.pod)
                done = _run(source, simulation, progress)
                decisions.finish()
            write(done, out, source.name or name)
    return done


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage rarely: the initial objects live to the end, and each collection would scan them in vain."""
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
        is_over = _advance(simulation, measures, source.longest if end is None else end, progress, settles=end is None)
        if end is None and not is_over:
            simulation.notes.append("The simulation had not settled an hour after the last event; set spec.duration.")
    except KeyboardInterrupt:
        complete = False
    measures.take_sample()
    measures.count_open_waits()
    plugin_seconds = simulation.metrics.plugin_seconds() if simulation.settings.timed else {}
    return Run(results(simulation, measures, complete=complete), measures, plugin_seconds)


def _advance(
    simulation: Simulation, measures: Measures, end: float, progress: Progress | None, *, settles: bool
) -> bool:
    """Let time pass; return True if it ended because no work is pending."""
    step = max(end / _PROGRESS_STEPS, 1.0)
    last_plan = end - 3600.0

    def is_over() -> bool:
        return settles and simulation.time > last_plan and simulation.is_over

    while end - simulation.time > _TICK:
        if simulation.run_until(is_over, min(step, end - simulation.time)) and settles:
            return True
        if progress is not None:
            progress(simulation.time, end, measures.counts["bound"])
    return False


def write(done: Run, out: Path, name: str) -> None:
    """Write the files of a run, each of them atomically."""
    samples = done.measures.samples
    write_atomically(out / "results.json", as_json(done.results))
    write_atomically(out / "samples.csv", as_csv(Sample._fields, samples))
    parquet = as_parquet(samples)
    if parquet is not None:
        write_atomically(out / "samples.parquet", parquet)
    write_atomically(out / "report.html", report.html(done.results, done.measures, done.plugin_seconds, name).encode())
