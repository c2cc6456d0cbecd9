"""Benchmark of a whole scheduler on one workload: queue, cycle, assume, binding. The API server responds at once.

All objects are decoded before the clock starts; the measurement begins when pods enter the queue and ends when the
scheduler has received the last binding.
"""

import asyncio
import gc
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import uvloop
from msgspec.structs import replace

from bench_rows import MILLIS, RATE, Row, peak_memory
from kubestow import config
from kubestow.api.codec import decode
from kubestow.api.devices import ResourceClaim
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.pod_groups import Condition, PodGroup, PodGroupStatus
from kubestow.client.writes import merged
from kubestow.clock import SystemClock
from kubestow.config.configuration import Plugin
from kubestow.insight.decisions.recording import build_recorded
from kubestow.scheduler.assembly import Core, Outside
from kubestow.scheduler.binding.binder import Attempt
from kubestow.scheduler.cycle.outcome import Outcome
from kubestow.scheduler.framework.detached import ListRecorder, NoApi
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.intake import Intake
from kubestow.scheduler.observer import Observer
from kubestow.telemetry.memory import GC_THRESHOLDS, keep_freed_memory
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from workloads import WORKLOADS, Workload

NODES = 5_000
PODS = 5_000
PREEMPTORS = 1_000
_CHURN_EVERY = 50
_STALLED_SECONDS = 30.0


class InstantApi(NoApi):
    """Executes every write at once, and delivers the change to the scheduler at once."""

    def __init__(self) -> None:
        self.bound = 0
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, ResourceClaim] = {}
        self.intake: Intake
        self.wanted = 0
        self.finished = asyncio.Event()
        self._version = 0

    def add(self, pod: Pod) -> None:
        self.pods[pod.metadata.uid] = pod
        self.intake.added(pod)

    def _update(self, old: Pod, new: Pod) -> None:
        self._version += 1
        new = replace(new, metadata=replace(new.metadata, resourceVersion=str(self._version)))
        self.pods[new.metadata.uid] = new
        self.intake.updated(old, new)

    async def bind(self, pod: Pod, node: str) -> None:
        old = self.pods[pod.metadata.uid]
        self._update(old, replace(old, spec=replace(old.spec, nodeName=node)))
        self.bound += 1
        if self.bound == self.wanted:
            self.finished.set()

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
    ) -> None:
        old = self.pods.get(pod.metadata.uid)
        if old is None:
            return
        status = old.status
        if condition is not None:
            status = replace(status, conditions=(condition,))
        if nominated_node is not None:
            status = replace(status, nominatedNodeName=nominated_node)
        self._update(old, replace(old, status=status))

    async def delete_pod(self, pod: Pod) -> None:
        old = self.pods.pop(pod.metadata.uid, None)
        if old is not None:
            self.intake.deleted(old)

    async def update_resource_claim(self, claim: ResourceClaim, changes: dict[str, Any]) -> ResourceClaim:
        self._version += 1
        meta = claim.metadata
        versioned = {**changes.get("metadata", {}), "resourceVersion": str(self._version + 1)}
        new = merged(claim.source, "ResourceClaim", "resource.k8s.io/v1", {**changes, "metadata": versioned})
        updated = decode(ResourceClaim, new)
        old = self.claims.get(meta.uid, claim)
        self.claims[meta.uid] = updated
        self.intake.updated(old, updated)
        return updated

    update_resource_claim_status = update_resource_claim

    async def patch_pod_group_status(self, group: PodGroup, condition: Condition) -> None:
        self.intake.updated(group, replace(group, status=PodGroupStatus(conditions=(condition,))))

    async def patch_object(self, obj: Any, changes: dict[str, Any], subresource: str) -> Any:
        del changes, subresource
        return obj


class Churn:
    """At regular numbers of bindings, removes or restores a node, and deletes a bound pod."""

    def __init__(self, workload: Workload, nodes: int, api: InstantApi) -> None:
        self._nodes = workload.nodes(min(nodes, 100))
        self._api = api
        self._removed: list[Any] = []

    async def run(self) -> None:
        seen = 0
        while True:
            await asyncio.sleep(0)
            if self._api.bound - seen >= _CHURN_EVERY:
                seen = self._api.bound
                await self._turn()

    async def _turn(self) -> None:
        if self._removed:
            self._api.intake.added(self._removed.pop())
        else:
            self._removed.append(self._nodes[self._api.bound % len(self._nodes)])
            self._api.intake.deleted(self._removed[-1])
        await self._api.delete_pod(next(pod for pod in self._api.pods.values() if pod.spec.nodeName))


def measure(
    name: str | Workload,
    nodes: int = NODES,
    pods: int = PODS,
    seed: int = 0,
    plugin: type | None = None,
    record_bytes: int = 0,
) -> dict[str, Any]:
    """Run a workload, with an additional plugin if given; return the figures of the pods that were scheduled.

    Without a name, a workload is not one of the tables. With `record_bytes`, decisions are recorded.
    """
    return uvloop.run(_measure(name, nodes, pods, seed, plugin, record_bytes))


def _configuration_with(plugin: Any, features: config.Features) -> tuple[config.SchedulerConfiguration, Registry]:
    """Return the default configuration and the registry, both with the plugin added."""
    configuration, registry = config.default(features), in_tree_registry()
    if plugin is not None:
        registry.register(plugin.name, plugin)
        (profile,) = configuration.profiles
        multi = profile.plugins.multiPoint
        others = [one for one in multi.enabled if one.name != "PrioritySort" or not hasattr(plugin, "sort_key")]
        multi = replace(multi, enabled=(*others, Plugin(plugin.name)))
        profile = replace(profile, plugins=replace(profile.plugins, multiPoint=multi))
        configuration = replace(configuration, profiles=(profile,))
    return configuration, registry


class _CycleTimes(Observer):
    """Records the seconds of each cycle."""

    def __init__(self, times: list[float]) -> None:
        self._times = times

    def on_decision(self, attempt: Attempt, outcome: Outcome, seconds: float) -> None:
        del attempt, outcome
        self._times.append(seconds)


class World:
    """A scheduler with the nodes of a workload, and the pods to schedule."""

    def __init__(
        self,
        name: str | Workload,
        nodes: int,
        pods: int,
        seed: int = 0,
        plugin: type | None = None,
        record_bytes: int = 0,
        *,
        timed: bool = False,
    ) -> None:
        """With `timed`, the seconds of each cycle are added to `times`."""
        self.workload = WORKLOADS[name] if isinstance(name, str) else name
        self.api, self.times = InstantApi(), list[float]()
        clock, metrics = SystemClock(), SchedulerMetrics()
        outside = Outside(
            clock=clock,
            stopwatch=time.perf_counter,
            rng=random.Random(seed),
            api=self.api,  # type: ignore[arg-type]  # its other writes raise
            recorder=ListRecorder(),
            metrics=metrics,
            observer=_CycleTimes(self.times) if timed else Observer(),
        )
        features = config.Features.parse(self.workload.feature_gates)
        configuration, registry = _configuration_with(plugin, features)
        self.core, self.archive = build_recorded(configuration, features, registry, outside, record_bytes)
        self.api.intake = self.core.intake
        for node in self.workload.nodes(nodes):
            self.core.intake.added(node)
        for other in self.workload.others(nodes, pods):
            self.core.intake.added(other)
        for pod in self.workload.running(nodes):
            self.api.add(pod)
        self.waiting = self.workload.beside(pods) + self.workload.pods(pods, nodes)

    async def schedule(self, pods: Sequence[Pod], wanted: int) -> None:
        """Add pods, and wait until `wanted` of them are bound."""
        self.api.wanted = self.api.bound + wanted
        self.api.finished.clear()
        for pod in pods:
            self.api.add(pod)
        await run_to_completion(self.core, self.api)


def settle_memory() -> None:
    """Configure memory like a scheduler process; existing objects are excluded from garbage collection."""
    keep_freed_memory()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.collect()
    gc.freeze()


async def _measure(
    name: str | Workload, nodes: int, pods: int, seed: int, plugin: type | None, record_bytes: int
) -> dict[str, Any]:
    world = World(name, nodes, pods, seed, plugin, record_bytes, timed=not record_bytes)
    api = world.api
    settle_memory()
    started, cpu_started = time.perf_counter(), time.process_time()
    churn = asyncio.ensure_future(Churn(world.workload, nodes, api).run()) if world.workload.churn else None
    await world.schedule(world.waiting, pods)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
    if churn is not None:
        churn.cancel()
    times = world.times or [record.seconds for record in world.archive or ()]
    return {
        "nodes": nodes,
        "pods": pods,
        "scheduled": api.bound,
        "pods_per_s": round(api.bound / seconds, 1),
        "cpu_ms_per_pod": round(1000 * cpu / max(api.bound, 1), 4),
        "p99_cycle_ms": round(1000 * sorted(times)[int(0.99 * (len(times) - 1))], 3),
        "rss_mb": round(peak_memory("self")),
    }


async def run_to_completion(core: Core, api: InstantApi) -> None:
    """Run until all pods are bound, or no pod was bound for a long time."""
    running = asyncio.ensure_future(core.scheduler.run())
    bound = -1
    while not api.finished.is_set() and api.bound > bound:
        bound = api.bound
        try:
            async with asyncio.timeout(_STALLED_SECONDS):
                await api.finished.wait()
        except TimeoutError:
            continue
    await core.scheduler.binder.drain()
    running.cancel()


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of every workload and, with `full`, of increasing numbers of nodes and pods."""
    for name in WORKLOADS:
        yield from _rows(name, NODES, PREEMPTORS if name == "preemption" else PODS)
    if not full:
        return
    memory: dict[tuple[int, int], float] = {}
    for nodes, pods in ((1_000, 10_000), (5_000, 10_000), (20_000, 10_000), (5_000, 1_000), (5_000, 100_000)):
        found = _measure_in_process("basic", nodes, pods)
        memory[nodes, pods] = found["rss_mb"]
        note = f"{found['pods_per_s']:,.0f} pods/s, p99 of cycles {found['p99_cycle_ms']} ms, {found['rss_mb']} MB"
        yield Row(f"basic, {nodes:,} nodes, {pods:,} pods: CPU per pod", found["cpu_ms_per_pod"], MILLIS, note)
    per_node = (memory[20_000, 10_000] - memory[1_000, 10_000]) / 19_000 * 1024
    per_pod = (memory[5_000, 100_000] - memory[5_000, 1_000]) / 99_000 * 1024
    yield Row("a node: memory", per_node, "KB")
    yield Row("a pod: memory", per_pod, "KB", "with the API server's copy, which is in the same process")


def _rows(name: str, nodes: int, pods: int) -> Iterator[Row]:
    found = _measure_in_process(name, nodes, pods)
    note = WORKLOADS[name].text
    if found["scheduled"] < pods:
        note += f"; {found['scheduled']} of {pods} scheduled"
    yield Row(f"{name}: CPU per pod", found["cpu_ms_per_pod"], MILLIS, note)
    yield Row(f"{name}: pods", found["pods_per_s"], RATE)
    yield Row(f"{name}: p99 of cycles", found["p99_cycle_ms"], MILLIS)


def _measure_in_process(name: str, nodes: int, pods: int) -> dict[str, Any]:
    """Measure in a process of its own, so that the memory of one workload does not affect another."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(measure, name, nodes, pods).result()
