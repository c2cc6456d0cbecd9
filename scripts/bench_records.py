"""What decision records cost: CPU for each pod with and without them, and what it costs to derive details.

Two schedulers in one process, one with records and one without, get pods in turn. Each gets pods twice before it is the
other's turn, and the second time counts: at the first, the caches of the processor still hold what the other one needs.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

import uvloop

from bench_rows import MILLIS, Row
from bench_scheduling import NODES, World, settle_memory
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.recorder import DEFAULT_BYTES

_WORKLOADS = {
    "basic": 250,
    "node-affinity": 250,
    "mixed-size": 250,
    "spread": 250,
    "affinity": 250,
    "antiaffinity": 250,
    "dra": 250,
    "gang": 1_016,
    "gang-topology": 1_016,
}
"""How many pods come at a time: so few that other work on the machine disturbs both alike, but whole gangs."""
_PODS = 30_000
"""About how many pods each scheduler gets."""
_FEWER_PODS = {"antiaffinity": 4_000, "dra": 16_000}
"""The same of workloads whose nodes or devices do not suffice for that many."""
_CHANGES = 10_000
"""How far back the older decision is, in changes of the cluster."""
_READS = 5


def rows(full: bool) -> Iterator[Row]:
    """The section's measurements."""
    for name in _WORKLOADS if full else ("basic",):
        # In a process of its own, so that one workload's memory is not another's.
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            without, more = process.submit(compare, name, _WORKLOADS[name]).result()
        yield Row(f"{name}: CPU per pod without records", without, MILLIS)
        yield Row(f"{name}: CPU per pod with records", without * more, MILLIS, f"{100 * (more - 1):+.1f} %")
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        newest, oldest = process.submit(_details).result()
    yield Row("details of the newest decision: CPU", newest, MILLIS)
    yield Row(f"details of a decision {_CHANGES:,} changes back: CPU", oldest, MILLIS)


def compare(name: str, at_once: int) -> tuple[float, float]:
    """Return the milliseconds of CPU for each pod without records, and by which factor it is more with them."""
    return uvloop.run(_compare(name, at_once))


async def _compare(name: str, at_once: int) -> tuple[float, float]:
    turns = _FEWER_PODS.get(name, _PODS) // (2 * at_once)
    worlds = [World(name, NODES, 2 * turns * at_once, record_bytes=room) for room in (0, DEFAULT_BYTES)]
    settle_memory()
    pairs: list[tuple[float, float]] = []
    for turn in range(turns):
        taken = [0.0, 0.0]
        # Each is the first in turn.
        for which in (0, 1) if turn % 2 else (1, 0):
            world = worlds[which]
            for start in (2 * turn * at_once, (2 * turn + 1) * at_once):
                began = time.process_time()
                await world.schedule(world.waiting[start : start + at_once], at_once)
                taken[which] = 1000 * (time.process_time() - began) / at_once
        pairs.append((taken[0], taken[1]))
    return median(without for without, _ in pairs), median(with_records / without for without, with_records in pairs)


def _details() -> tuple[float, float]:
    """Return the milliseconds of CPU to derive the details of the newest decision, and of one many changes back."""
    return uvloop.run(_derive())


async def _derive() -> tuple[float, float]:
    world = World("basic", NODES, _CHANGES, record_bytes=DEFAULT_BYTES)
    await world.schedule(world.waiting, _CHANGES)
    archive = world.archive
    assert archive is not None
    revision = archive.recorder.history.revision
    newest = next(iter(archive))
    older = next(one for one in archive if one.searched is not None and one.searched.revision <= revision - _CHANGES)

    def seconds(record: Record) -> float:
        began = time.process_time()
        decision = archive.decision(record)
        taken = time.process_time() - began
        assert isinstance(decision.nodes, dict)
        assert decision.nodes
        return taken

    return tuple(1000 * median(seconds(record) for _ in range(_READS)) for record in (newest, older))  # type: ignore[return-value]
