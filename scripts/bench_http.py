"""Benchmark of a scheduler process at the embedded control plane, over HTTPS.

The control plane runs in a process of its own and has all nodes and pods before the scheduler starts. The scheduler's
CPU time and memory are read from /proc: at the first binding or eviction, which ends its start-up, and at the end,
events included. The waiting time of pods, from first seen to bound, is read from its metrics.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench_apiserver import ADDED, Server, connect, request, spread
from bench_rows import MEGABYTES, MILLIS, RATE, Row, peak_memory
from kubestow.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.workloads import ReplicaSet
from kubestow.testing.builders import make_pod
from workloads import WORKLOADS, node_name

NODES, PODS = 1_000, 2_000
FULL_NODES, FULL_PODS = 5_000, 10_000
DEFAULT_WORKLOADS = ("basic", "mixed-size", "spread", "preemption")
HTTP_WORKLOADS = tuple(name for name in WORKLOADS if name != "churn")
_STALLED_SECONDS = 30.0
_IMPORTANT = "important"
_WAITED = "scheduler_pod_scheduling_sli_duration_seconds"
_BUCKET = re.compile(rf'^{_WAITED}_bucket{{.*le="([^"]+)".*}} (\S+)$', re.MULTILINE)
_PODS = "/api/v1/namespaces/default/pods"
_DEVICES = "/apis/resource.k8s.io/v1"
_PATHS: dict[type, str] = {
    ReplicaSet: "/apis/apps/v1/namespaces/default/replicasets",
    DeviceClass: f"{_DEVICES}/deviceclasses",
    ResourceSlice: f"{_DEVICES}/resourceslices",
    ResourceClaim: f"{_DEVICES}/namespaces/default/resourceclaims",
}


class Process:
    """A scheduler in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        config = folder / "scheduler.yaml"
        client = {"kubeconfig": str(folder / "kubeconfig"), "qps": 100_000, "burst": 100_000}
        kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        config.write_text(json.dumps({**kind, "clientConnection": client, "leaderElection": {"leaderElect": False}}))
        command = [sys.executable, "-c", "from kubestow.cli import main; main()", "scheduler", f"--config={config}"]
        command += [f"--secure-port={self.port}", "--bind-address=127.0.0.1"]
        command += ["--authorization-always-allow-paths=/metrics"]
        self._log = (folder / "scheduler.log").open("w+")
        # Installed programs run from bytecode, whatever the environment of this shell.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT, env=env)
        self._stat = Path(f"/proc/{self.process.pid}/stat")

    def cpu(self) -> float:
        """Return the CPU seconds used so far."""
        fields = self._stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> float:
        """Return the peak memory in MB."""
        return peak_memory(self.process.pid)

    def check(self) -> None:
        if self.process.poll() is not None:
            self._log.seek(0)
            raise SystemExit(f"the scheduler ended: {self._log.read()[-2000:]}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self._log.close()


class Watcher:
    """Counts pods as they are bound."""

    def __init__(self, port: int, wanted: int) -> None:
        self._port = port
        self._wanted = wanted
        self.bound = 0
        self.last = 0.0
        self.begun, self.finished = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        reader, writer = await connect(self._port)
        writer.write(request("GET", f"{_PODS}?limit=1"))
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
        version = json.loads(await reader.readexactly(size))["metadata"]["resourceVersion"]
        query = f"watch=1&resourceVersion={version}&fieldSelector=spec.nodeName!%3D"
        writer.write(request("GET", f"{_PODS}?{query}"))
        await reader.readuntil(b"\r\n\r\n")
        rest = b""
        while self.bound < self._wanted:
            data = await reader.read(2**20)
            if not data:
                raise SystemExit("the watch that counts bindings was cut off")
            # The first change of a pod with a node, a binding or an eviction, is caused by the scheduler.
            self.begun.set()
            data = rest + data
            new = data.count(ADDED)
            rest = data[-len(ADDED) + 1 :]
            if new:
                self.last = time.perf_counter()
                self.bound += new
        self.finished.set()
        writer.close()


def measure(name: str, nodes: int, pods: int, running: int = 0) -> dict[str, Any]:
    """Run a workload and return the figures of the scheduler's process."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            return uvloop.run(_measure(name, nodes, pods, running, server, Path(folder)))
        finally:
            server.stop()


async def _measure(name: str, nodes: int, pods: int, running: int, server: Server, folder: Path) -> dict[str, Any]:
    await _fill(name, nodes, pods, running, server)
    watcher = Watcher(server.port, pods)
    watching = asyncio.ensure_future(watcher.run())
    await asyncio.sleep(0.2)
    started, scheduler = time.perf_counter(), Process(folder)
    try:
        await _wait_for(watcher.begun, watcher, scheduler)
        begun, start_cpu, start_rss = time.perf_counter(), scheduler.cpu(), scheduler.rss()
        await _wait_for(watcher.finished, watcher, scheduler)
        cpu = await _settled_cpu(scheduler)
        waits = await _waiting_times(scheduler.port)
        rss = scheduler.rss()
    finally:
        watching.cancel()
        scheduler.stop()
    seconds, bound = max(watcher.last - begun, 0.0), max(watcher.bound, 1)
    return {
        "workload": name,
        "nodes": nodes,
        "pods": pods,
        "running": running,
        "scheduled": watcher.bound,
        "start_s": round(begun - started, 2),
        "start_cpu_s": round(start_cpu, 2),
        "start_rss_mb": round(start_rss),
        "seconds": round(seconds, 2),
        "pods_per_s": round(bound / seconds, 1) if seconds else 0,
        "cpu_ms_per_pod": round(1000 * (cpu - start_cpu) / bound, 4),
        "cpu_ms_per_pod_with_start": round(1000 * cpu / bound, 4),
        "p50_s": waits[0],
        "p99_s": waits[1],
        "rss_mb": round(rss),
    }


async def _fill(name: str, nodes: int, pods: int, running: int, server: Server) -> None:
    workload = WORKLOADS[name]
    priority = {"metadata": {"name": _IMPORTANT}, "value": 10}
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await spread(server.port, [request("POST", path, json.dumps(priority).encode())])
    await spread(server.port, [request("POST", "/api/v1/nodes", _json(node)) for node in workload.nodes(nodes)])
    others = workload.others(nodes, pods)
    await spread(server.port, [request("POST", _PATHS[type(other)], _json(other)) for other in others])
    more = [make_pod(f"running{i}", cpu="10m", memory="10Mi", node=node_name(i % nodes)) for i in range(running)]
    waiting = workload.beside(pods) + workload.pods(pods, nodes)
    await spread(server.port, [request("POST", _PODS, _json(pod)) for pod in workload.running(nodes) + more + waiting])


def _json(obj: Node | Pod | ReplicaSet | DeviceClass | ResourceSlice | ResourceClaim) -> bytes:
    """Return an object as sent by a client: the server sets UIDs, versions and priorities."""
    tree = msgspec.json.decode(msgspec.json.encode(obj))
    tree.pop("source", None)
    for field in ("uid", "resourceVersion"):
        tree["metadata"].pop(field, None)
    if tree["spec"].pop("priority", 0):
        tree["spec"]["priorityClassName"] = _IMPORTANT
    version = "resource.k8s.io/v1" if _PATHS.get(type(obj), "").startswith(_DEVICES) else "v1"
    if isinstance(obj, ReplicaSet):
        version = "apps/v1"
        labels = {"labels": tree["spec"]["selector"]["matchLabels"]}
        tree["spec"]["template"] = {"metadata": labels, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    return msgspec.json.encode({"apiVersion": version, "kind": type(obj).__name__, **tree})


async def _wait_for(event: asyncio.Event, watcher: Watcher, scheduler: Process) -> None:
    """Wait for an event, or until no pod was bound for a long time."""
    seen, since = watcher.bound, time.perf_counter()
    while not event.is_set():
        scheduler.check()
        try:
            async with asyncio.timeout(0.05):
                await event.wait()
        except TimeoutError:
            if watcher.bound > seen:
                seen, since = watcher.bound, time.perf_counter()
            elif time.perf_counter() - since > _STALLED_SECONDS:
                return


async def _settled_cpu(scheduler: Process) -> float:
    """Return the CPU time when the scheduler is idle: events are written after the bindings."""
    before = scheduler.cpu()
    while True:
        await asyncio.sleep(0.5)
        now = scheduler.cpu()
        if now - before < 0.05:
            return now
        before = now


async def _waiting_times(port: int) -> tuple[float | None, float | None]:
    """Return the median and the 99th percentile of the pods' waiting time, from the scheduler's histogram."""
    reader, writer = await connect(port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    page = (await reader.read(-1)).decode()
    writer.close()
    counts: dict[float, float] = {}
    for bound, count in _BUCKET.findall(page):
        counts[float(bound)] = counts.get(float(bound), 0.0) + float(count)
    return _quantile(counts, 0.5), _quantile(counts, 0.99)


def _quantile(counts: dict[float, float], share: float) -> float | None:
    """Return a quantile, assuming a uniform distribution within each bucket."""
    total = max(counts.values(), default=0.0)
    below, lower = 0.0, 0.0
    for bound, count in sorted(counts.items()):
        if total and count >= share * total:
            upper = lower if bound == float("inf") else bound
            return round(lower + (upper - lower) * (share * total - below) / max(count - below, 1.0), 3)
        below, lower = count, bound
    return None


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    nodes, pods = (FULL_NODES, FULL_PODS) if full else (NODES, PODS)
    for name in HTTP_WORKLOADS if full else DEFAULT_WORKLOADS:
        count = nodes // 2 if name == "preemption" else pods
        found = measure(name, nodes, count)
        label = f"{name}, {nodes:,} nodes, {count:,} pods"
        waited = f"pods waited {found['p50_s']} s, p99 {found['p99_s']} s"
        note = f"{found['cpu_ms_per_pod_with_start']} with start-up; {waited}"
        if found["scheduled"] < count:
            note += f"; {found['scheduled']} scheduled"
        yield Row(f"{label}: CPU per pod", found["cpu_ms_per_pod"], MILLIS, note)
        yield Row(f"{label}: bound", found["pods_per_s"], RATE)
        yield Row(f"{label}: memory", found["rss_mb"], MEGABYTES)
    if full:
        found = measure("basic", FULL_NODES, 1, 50_000)
        note = f"{found['start_s']} s until the first binding, {found['start_rss_mb']} MB"
        yield Row("start-up, 5,000 nodes, 50,000 running pods: CPU", 1000 * found["start_cpu_s"], MILLIS, note)
