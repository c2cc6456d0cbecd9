"""Benchmark of decision records: CPU per pod with and without them, and the cost of deriving details.

Two schedulers in one process, one with records and one without, take turns. Each turn schedules two batches, and the
second one counts: during the first, the processor's caches still hold the data of the other scheduler.
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
"""Pods per batch: few, so that other work on the machine disturbs both equally, but only whole gangs."""
_PODS = 30_000
"""Approximate number of pods for each scheduler."""
_FEWER_PODS = {"antiaffinity": 4_000, "dra": 16_000}
"""The same for workloads whose nodes or devices do not suffice for that many."""
_CHANGES = 10_000
"""Age of the older decision, in changes of the cluster."""
_READS = 5


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    for name in _WORKLOADS if full else ("basic",):
        # A process of its own, so that the memory of one workload does not affect another.
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            without, more = process.submit(compare, name, _WORKLOADS[name]).result()
        yield Row(f"{name}: CPU per pod without records", without, MILLIS)
        yield Row(f"{name}: CPU per pod with records", without * more, MILLIS, f"{100 * (more - 1):+.1f} %")
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        newest, oldest = process.submit(_details).result()
    yield Row("details of the newest decision: CPU", newest, MILLIS)
    yield Row(f"details of a decision {_CHANGES:,} changes back: CPU", oldest, MILLIS)


def compare(name: str, at_once: int) -> tuple[float, float]:
    """Return the milliseconds of CPU per pod without records, and the factor by which records increase it."""
    return uvloop.run(_compare(name, at_once))


async def _compare(name: str, at_once: int) -> tuple[float, float]:
    turns = _FEWER_PODS.get(name, _PODS) // (2 * at_once)
    worlds = [World(name, NODES, 2 * turns * at_once, record_bytes=limit) for limit in (0, DEFAULT_BYTES)]
    settle_memory()
    pairs: list[tuple[float, float]] = []
    for turn in range(turns):
        taken = [0.0, 0.0]
        # Take turns at being first.
        for index in (0, 1) if turn % 2 else (1, 0):
            world = worlds[index]
            for start in (2 * turn * at_once, (2 * turn + 1) * at_once):
                began = time.process_time()
                await world.schedule(world.waiting[start : start + at_once], at_once)
                taken[index] = 1000 * (time.process_time() - began) / at_once
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
