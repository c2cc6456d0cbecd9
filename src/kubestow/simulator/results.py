"""The results of a run as one tree, for results.json, the summary, comparisons and the report.

The tree contains nothing that depends on the machine, so the same inputs, seed and version produce the same bytes.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from operator import mul
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kubestow import __version__
from kubestow.simulator.measuring import Measures, Sample
from kubestow.simulator.simulation import Simulation

VERSION = 1
_COUNTS = ("created", "bound", "succeeded", "failed", "deleted", "attempts", "preemptions", "victims")
_LISTED = 20


def results(simulation: Simulation, measures: Measures, *, complete: bool = True) -> dict[str, Any]:
    """Return the tree; `complete` is False for an interrupted run."""
    waiting = simulation.pending_pods()
    no_node = [] if any(one.nodes for one in measures.samples) else ["The cluster never had a node."]
    return {
        "version": VERSION,
        "kubestow": __version__,
        "seed": simulation.settings.seed,
        "seconds": round(simulation.time, 3),
        "complete": complete,
        "pods": {name: measures.counts[name] for name in _COUNTS} | {"pending": len(waiting)},
        "waits": measures.waits().summary(),
        "waitsByPriority": {str(key): one.summary() for key, one in measures.waits_by_priority().items()},
        "waitsByReason": {key: one.summary() for key, one in measures.waits_by_reason().items()},
        "utilisation": _utilisation(measures.samples),
        "pluginEvaluations": _evaluations(simulation),
        "pending": [{"pod": pod.key, "message": _message(pod)} for pod in waiting[:_LISTED]],
        "notes": simulation.notes + no_node,
    }


def _evaluations(simulation: Simulation) -> dict[str, int]:
    """Return how many nodes each plugin filtered and scored; results shared by pods count once."""
    found: dict[str, int] = {}
    for (_point, plugin, _profile), count in simulation.metrics.plugin_evaluations.read().items():
        found[plugin] = found.get(plugin, 0) + int(count)
    return dict(sorted(found.items()))


def _message(pod: Any) -> str:
    return next((one.message for one in pod.status.conditions if one.type == "PodScheduled"), "")


def _utilisation(samples: list[Sample]) -> dict[str, Any]:
    """Return the mean over time, the maximum and the final value of each figure."""
    if not samples:
        return {}
    durations = [after.time - one.time for one, after in pairwise(samples)]
    durations = [*durations, 0.0] if sum(durations) else [1.0] * len(samples)
    shares = {
        "cpu": [one.cpu_requested / one.cpu_allocatable if one.cpu_allocatable else 0.0 for one in samples],
        "memory": [one.memory_requested / one.memory_allocatable if one.memory_allocatable else 0.0 for one in samples],
        "fragmentation": [one.fragmentation for one in samples],
        "nodes": [float(one.nodes) for one in samples],
        "pending": [float(one.pending) for one in samples],
    }
    return {
        name: {
            "mean": round(sum(map(mul, values, durations)) / sum(durations), 4),
            "max": round(max(values), 4),
            "end": round(values[-1], 4),
        }
        for name, values in shares.items()
    }


def summary(tree: dict[str, Any]) -> list[str]:
    """Return a short summary as lines of text."""
    pods, waits, usage = tree["pods"], tree["waits"], tree["utilisation"]
    ends = "" if tree["complete"] else ", then interrupted"
    fates = ", ".join(f"{pods[name]} {name}" for name in ("created", "bound", "succeeded", "failed", "deleted"))
    longest = f"95 % within {format_duration(waits['p95'])}, longest {format_duration(waits['max'])}"
    lines = [
        f"Simulated {format_duration(tree['seconds'])}{ends} (seed {tree['seed']}).",
        f"Pods: {fates}, {pods['pending']} pending; {pods['victims']} evicted by preemption.",
        f"Wait for a node: median {format_duration(waits['p50'])}, {longest}.",
    ]
    if usage:
        lines.append(
            f"Requested on average: {format_share(usage['cpu']['mean'])} of CPU, "
            f"{format_share(usage['memory']['mean'])} of memory, on {usage['nodes']['mean']:.4g} nodes; "
            f"fragmentation {format_share(usage['fragmentation']['mean'])}."
        )
    lines += [f"  {one['pod']}: {one['message'] or 'not attempted yet'}" for one in tree["pending"][:5]]
    if pods["pending"] > 5:
        lines.append(f"  ... and {pods['pending'] - 5} more pending")
    lines += [f"Note: {note}" for note in tree["notes"]]
    return lines


def format_share(share: float) -> str:
    """Return a share as a percentage, rounded down as on the page, so that 100 % is full."""
    return f"{'<1' if 0 < share < 0.01 else math.floor(share * 100 + 1e-9)} %"


def format_duration(seconds: float) -> str:
    """Return a duration for people, such as `90 s` or `1.5 h`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 3600:
        return f"{seconds / 60:.3g} min"
    return f"{seconds / 3600:.3g} h" if seconds < 172_800 else f"{seconds / 86_400:.3g} days"


def as_json(tree: Any) -> bytes:
    """Return indented JSON."""
    return msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"


def as_csv(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> bytes:
    """Return a CSV file: a line of names, then the rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(samples: list[Sample]) -> bytes | None:
    """Return the samples as Parquet; None if pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return None
    table = pa.table({name: [getattr(one, name) for one in samples] for name in Sample._fields})
    output = pa.BufferOutputStream()
    pq.write_table(table, output)
    return bytes(output.getvalue())


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Create a folder and its parents; if the body fails, remove those that are still empty."""
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for one in new:
                one.rmdir()
        raise


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears only once it is complete."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        # Errors while writing do not name the file.
        error.filename = error.filename or str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with atomic_file(path) as file:
        file.write(content)
