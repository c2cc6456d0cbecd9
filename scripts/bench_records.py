"""What records of decisions add to a pod: the same workload with them and without, in turn, the best run of each."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from bench_rows import MILLIS, Row
from bench_scheduling import NODES, PODS, measure
from kubestow.decisions.recorder import DEFAULT_BYTES

_WORKLOADS = ("basic", "mixed-size", "affinity")
_RUNS = 5


def rows(full: bool) -> Iterator[Row]:
    """The section's measurements."""
    for name in _WORKLOADS if full else _WORKLOADS[:1]:
        best = {0: float("inf"), DEFAULT_BYTES: float("inf")}
        for _ in range(_RUNS):
            for room in best:
                # In a process of its own, so that one run's memory is not another's.
                with ProcessPoolExecutor(1, get_context("spawn")) as process:
                    found = process.submit(measure, name, NODES, PODS, record_bytes=room).result()
                best[room] = min(best[room], found["cpu_ms_per_pod"])
        without, with_records = best.values()
        yield Row(f"{name}, without records: CPU a pod", without, MILLIS)
        share = 100 * (with_records / without - 1)
        yield Row(f"{name}, with records: CPU a pod", with_records, MILLIS, f"{share:+.1f} %")
