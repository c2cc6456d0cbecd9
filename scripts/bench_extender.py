"""Benchmark of a scheduler with an extender that filters and prioritizes: the CPU time of the scheduler's process.

The extender runs in a process of its own (this file, run with `--serve`), passes every node and scores them all,
differently each time. Every node is evaluated for every pod. The API server responds at once, as in the section
`scheduling`.
"""

import asyncio
import contextlib
import gc
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

import httptools
import msgspec
import uvloop

from bench_rows import MILLIS, Row
from bench_scheduling import InstantApi, run_to_completion
from kubestow import config
from kubestow.api.codec import decode
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.clock import SystemClock
from kubestow.scheduler.assembly import Outside, build_core
from kubestow.scheduler.extenders.client import ExtenderClient
from kubestow.scheduler.extenders.whole_kinds import whole_kinds
from kubestow.scheduler.framework.detached import ListRecorder
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.telemetry.memory import GC_THRESHOLDS, keep_freed_memory
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

NODES, PODS = 1_000, 500
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 100\n"


def node(number: int) -> bytes:
    """Return a node of about 1 KB, as an API server stores it before a kubelet updates it."""
    name = f"n{number:05d}"
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    empty = "machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion"
    tree = {
        "metadata": {
            "name": name,
            "uid": f"f51094c5-e33a-438d-ac6a-{number:012d}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-11-15T06:54:37Z",
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{number % 5}"},
        },
        "spec": {"providerID": f"cloud:///{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": None}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(empty.split(), "") | {"operatingSystem": "linux", "architecture": "amd64"},
        },
    }
    return msgspec.json.encode(tree)


def pod(number: int) -> bytes:
    resources = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}", "resourceVersion": str(number + 1)}
    container = {"name": "main", "image": "app", "resources": resources, "imagePullPolicy": "Always"}
    spec = {"containers": [container], "schedulerName": "default-scheduler", "priority": 0}
    return msgspec.json.encode({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})


# The extender


class _Args(msgspec.Struct):
    Nodes: msgspec.Raw
    NodeNames: msgspec.Raw


class _Names(msgspec.Struct):
    items: list[Any]


class Peer(asyncio.Protocol):
    """Passes all nodes, and scores them from 0 to 10."""

    requests = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)
        self._pieces: list[bytes] = []
        self._url = b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url, self._pieces = url, []

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        args = msgspec.json.decode(b"".join(self._pieces), type=_Args)
        if self._url.endswith(b"/filter"):
            body = msgspec.json.encode({"Nodes": args.Nodes, "NodeNames": args.NodeNames, "Error": ""})
        else:
            names = msgspec.json.decode(args.NodeNames)
            if names is None:
                names = [item["metadata"]["name"] for item in msgspec.json.decode(args.Nodes, type=_Names).items]
            Peer.requests += 1
            body = msgspec.json.encode([{"Host": name, "Score": i % 11} for i, name in enumerate(names, Peer.requests)])
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Peer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


@contextlib.contextmanager
def extender() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()


# The scheduler


async def _measure(fields: str, nodes: int, pods: int) -> dict[str, Any]:
    # As in a scheduler's process.
    keep_freed_memory()
    gc.set_threshold(*GC_THRESHOLDS)
    configuration = config.load(HEAD + fields)
    api, clock = InstantApi(), SystemClock()
    client = ExtenderClient(configuration.extenders, clock, "kubestow/bench", lambda: True)
    rng, metrics = random.Random(0), SchedulerMetrics()
    outside = Outside(
        clock=clock,
        stopwatch=time.perf_counter,
        rng=rng,
        api=api,  # type: ignore[arg-type]  # its other writes raise
        recorder=ListRecorder(),
        metrics=metrics,
        ask=client.ask,
    )
    core = build_core(configuration, config.Features(), in_tree_registry(), outside)
    api.intake, api.wanted = core.intake, pods
    kinds = whole_kinds(configuration.extenders)
    for number in range(nodes):
        core.intake.added(decode(kinds.get(Node, Node), node(number)))
    waiting: list[Pod] = [decode(kinds.get(Pod, Pod), pod(number)) for number in range(pods)]
    started, cpu_started = time.perf_counter(), time.process_time()
    for each in waiting:
        api.add(each)
    await run_to_completion(core, api)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
    client.close()
    return {"scheduled": api.bound, "pods_per_s": api.bound / seconds, "cpu_ms_per_pod": 1000 * cpu / api.bound}


def measure(how: str, nodes: int = NODES, pods: int = PODS) -> dict[str, Any]:
    """Measure one of the variants that `rows` names."""
    with extender() as url:
        fields = f"extenders: [{{urlPrefix: '{url}', filterVerb: filter, prioritizeVerb: prioritize, weight: 1"
        ways = {
            "no extender": "",
            "names of nodes": f"{fields}, nodeCacheCapable: true}}]",
            "whole nodes": f"{fields}}}]",
        }
        return uvloop.run(_measure(ways[how], nodes, pods))


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    for nodes in (NODES, 5_000) if full else (NODES,):
        for how in ("no extender", "names of nodes", "whole nodes"):
            found = measure(how, nodes)
            note = f"{found['pods_per_s']:,.0f} pods/s" + ("" if found["scheduled"] == PODS else "; not all scheduled")
            yield Row(f"{how}, {nodes:,} nodes: CPU per pod", found["cpu_ms_per_pod"], MILLIS, note)


if __name__ == "__main__":
    uvloop.run(serve())
