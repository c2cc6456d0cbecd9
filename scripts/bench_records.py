"""What records of decisions add to a pod: two schedulers in one process, with them and without, have pods in turn.

Each has pods twice before it is the other's turn, and the second time counts: at the first, the caches of the processor
still hold what the other one needs.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median

import uvloop

from bench_rows import MILLIS, Row
from bench_scheduling import NODES, World, settle_memory
from kubestow.decisions.recorder import DEFAULT_BYTES

_WORKLOADS = {
    "basic": 250,
    "node-affinity": 250,
    "mixed-size": 250,
    "spread": 250,
    "affinity": 250,
    "gang": 1_016,
    "gang-topology": 1_016,
}
"""How many pods come at a time: so few that whatever else runs on the machine disturbs both alike, but whole gangs."""
_PODS = 30_000
"""How many each has, about."""


def rows(full: bool) -> Iterator[Row]:
    """The section's measurements."""
    for name in _WORKLOADS if full else ("basic",):
        # In a process of its own, so that one workload's memory is not another's.
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            without, more = process.submit(compare, name, _WORKLOADS[name]).result()
        yield Row(f"{name}, without records: CPU a pod", without, MILLIS)
        yield Row(f"{name}, with records: CPU a pod", without * more, MILLIS, f"{100 * (more - 1):+.1f} %")


def compare(name: str, at_once: int) -> tuple[float, float]:
    """Milliseconds of CPU a pod without records, and how many times as much it is with them."""
    return uvloop.run(_compare(name, at_once))


async def _compare(name: str, at_once: int) -> tuple[float, float]:
    turns = _PODS // (2 * at_once)
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
