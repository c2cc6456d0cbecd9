"""Benchmark of simulations: hundreds of thousands of pods that arrive and end on many nodes; and placement alone."""

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from bench_rows import MEGABYTES, MILLIS, Row, peak_memory
from bench_scheduling import measure
from kubestow.apiserver.kubelets.description import Group
from kubestow.simulator import running
from kubestow.simulator.in_memory.harness import SchedulerHarness
from kubestow.simulator.scenario.building import Prepared
from kubestow.simulator.scenario.format import Arrival, Distribution, Poisson, Spec
from kubestow.simulator.scenario.reading import Scenario
from kubestow.telemetry.memory import GC_THRESHOLDS, keep_freed_memory
from workloads import WORKLOADS

NODES, PODS, DAY = 5_000, 100_000, 86_400
_POD = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}


def day(pods: int) -> dict[str, Any]:
    """Simulate the arrival of pods at a rate of 100,000 per day, each running for an hour on average."""
    seconds = DAY * pods / PODS
    arrival = Arrival(
        name="p",
        pod={"spec": _POD},
        poisson=Poisson(every=DAY / PODS),
        until=seconds,
        run=Distribution(exponential="1h"),
    )
    nodes = [Group(count=NODES, name="node-{}", zones=["a", "b", "c"])]
    spec = Spec(duration=seconds, nodes=nodes, arrivals=[arrival])
    started = time.process_time()
    done = running.run(Prepared(Scenario(spec)))
    cpu = time.process_time() - started
    return {"seconds": cpu, "bound": done.results["pods"]["bound"], "rss_mb": peak_memory("self")}


def placement(pods: int) -> float:
    """Return the CPU milliseconds per pod of the workload `basic`, without virtual time and control plane."""
    workload = WORKLOADS["basic"]
    coming = workload.pods(pods, NODES)
    with SchedulerHarness() as harness:
        for node in workload.nodes(NODES):
            harness.cluster.add(node)
        harness.run_until_idle()
        keep_freed_memory()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.collect()
        gc.freeze()
        started = time.process_time()
        for pod in coming:
            harness.cluster.add(pod)
        harness.run_until_idle()
        return 1000 * (time.process_time() - started) / pods


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of a part of a day or, with `full`, a whole day; and of placement alone."""
    for pods in (5_000, PODS) if full else (5_000,):
        found = _in_process(day, pods)
        name = f"{pods:,} pods arriving and ending on {NODES:,} nodes"
        note = f"{found['seconds']:.1f} s of CPU with the nodes; {found['bound']:,} bound"
        yield Row(f"{name}: CPU per pod", 1000 * found["seconds"] / pods, MILLIS, note)
        yield Row(f"{name}: memory", found["rss_mb"], MEGABYTES)
    alone, placed = _in_process(measure, "basic", NODES, 5_000)["cpu_ms_per_pod"], _in_process(placement, 5_000)
    yield Row(
        "placement alone: CPU per pod", placed, MILLIS, f"{alone / placed:.0%} of the speed of the workload basic"
    )


def _in_process(function: Any, *args: Any) -> Any:
    """Measure in a process of its own, so that the memory of one run does not affect another."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(function, *args).result()
