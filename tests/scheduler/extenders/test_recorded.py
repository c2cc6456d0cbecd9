"""Recorded calls of kube-scheduler v1.36 to its extenders, and the resulting decisions, replayed.

Four pods on three nodes: `a` and `b` find a node, `m` requests a resource that an extender manages and binds, and `vip`
preempts another pod.
"""

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.assembly import Outside, build_core
from kubestow.scheduler.cycle.outcome import Failed
from kubestow.scheduler.extenders.extender import Answer, Call
from kubestow.scheduler.extenders.whole_kinds import whole_kinds
from kubestow.scheduler.framework.detached import NoApi
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.simulator.in_memory.event_log import EventLog
from kubestow.simulator.in_memory.observers import DecisionLog
from kubestow.simulator.in_memory.virtual_loop import VirtualLoop
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from support.repository import SHARED

RECORDING = SHARED / "reference/extender.jsonl"

pytestmark = pytest.mark.skipif(not RECORDING.exists(), reason=f"there is no {RECORDING}")

VERBS = "filterVerb: filter, prioritizeVerb: prioritize, preemptVerb: preempt, weight: 1"
MANAGED = "managedResources: [{name: example.com/foo, ignoredByScheduler: true}]"
CONFIGURATION = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {{urlPrefix: 'http://127.0.0.1/full', {VERBS}}}
- {{urlPrefix: 'http://127.0.0.1/names', {VERBS}, nodeCacheCapable: true}}
- {{urlPrefix: 'http://127.0.0.1/managed', filterVerb: filter, bindVerb: bind, {MANAGED}}}
"""


class Replay(NoApi):
    """A scheduler whose extenders answer from the recording, and whose API server is simulated by the test."""

    def __init__(self, recording: list[dict[str, Any]]) -> None:
        self.remaining = list(recording)
        self.paths: list[str] = []
        self.bound: list[tuple[str, str]] = []
        self.deleted: list[str] = []
        self.loop = VirtualLoop()
        configuration = config.load(CONFIGURATION)
        self.kinds = whole_kinds(configuration.extenders)
        self.attempts = DecisionLog()
        api: Any = self
        outside = Outside(
            clock=self.loop.clock,
            stopwatch=self.loop.time,
            rng=random.Random(5),
            api=api,
            recorder=EventLog(self.loop.time),
            metrics=SchedulerMetrics(),
            ask=self.ask,
            observer=self.attempts,
        )
        self.core = build_core(configuration, config.Features(), in_tree_registry(), outside)
        self.known: dict[str, Any] = {}
        self._running = self.loop.create_task(self.core.scheduler.run())

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> Answer:
        path, body = call.url.removeprefix("http://127.0.0.1"), json.loads(b"".join(call.body))
        self.paths.append(path)
        for number, recorded in enumerate(self.remaining):
            if recorded["path"] == path and recorded["body"] == body:
                return json.dumps(self.remaining.pop(number)["response"]).encode()
        raise AssertionError(f"kube-scheduler did not call {path} {json.dumps(body)}")

    async def bind(self, pod: Pod, node: str) -> None:
        self.bound.append((pod.metadata.name, node))

    async def patch_pod_status(self, *_: Any, **__: Any) -> None:
        pass

    async def delete_pod(self, pod: Pod) -> None:
        self.deleted.append(pod.metadata.name)

    def receive(self, kind: type, manifest: dict[str, Any]) -> None:
        """Receive a new version of an object from the API server."""
        name = manifest["metadata"]["name"]
        new: Any = convert(self.kinds[kind], manifest)
        old = self.known.get(name)
        self.known[name] = new
        if old is None:
            self.core.intake.added(new)
        else:
            self.core.intake.updated(old, new)
        self.loop.run_for(0.1)

    def close(self) -> None:
        self._running.cancel()
        self.loop.run_for(0.1)
        self.loop.close()


def test_the_same_requests_and_the_same_outcome() -> None:
    """Every recorded request is made, no other one, and all decisions are the same."""
    recording = [json.loads(line) for line in RECORDING.read_text().splitlines()]
    pods: dict[str, list[dict[str, Any]]] = {}
    for recorded in recording:
        pod = recorded["body"].get("Pod")
        if pod is not None and pod not in pods.setdefault(pod["metadata"]["name"], []):
            pods[pod["metadata"]["name"]].append(pod)
    [preempted] = [each["body"]["NodeNameToVictims"] for each in recording if each["path"] == "/full/preempt"]
    replay = Replay(recording)
    try:
        for node in recording[0]["body"]["Nodes"]["items"]:
            replay.receive(Node, {"kind": "Node", "apiVersion": "v1", **node})
        for name, node in (("a", "n2"), ("b", "n1")):
            replay.receive(Pod, with_managed_fields(pods[name][0]))
            assert replay.bound[-1] == (name, node)
            replay.receive(Pod, preempted[node]["Pods"][0])
        replay.receive(Pod, pods["m"][0])
        assert "/managed/bind" in replay.paths
        assert len(replay.bound) == 2
        placed = pods["m"][0] | {"spec": pods["m"][0]["spec"] | {"nodeName": "n2"}}
        replay.receive(Pod, placed)

        replay.receive(Pod, pods["vip"][0])
        failed = replay.attempts.about("vip")[0]
        assert isinstance(failed, Failed)
        [condition] = pods["vip"][1]["status"]["conditions"]
        # The message of v1.37 also names the node.
        found = f"preemption: found a potential placement for pod on node {failed.nominated_node}, preempting 1 victims"
        assert failed.message == f"{condition['message']} {found}"
        assert failed.nominated_node == pods["vip"][1]["status"]["nominatedNodeName"] == "n1"
        assert replay.deleted == ["b"]
        replay.core.intake.deleted(replay.known["b"])
        replay.receive(Pod, pods["vip"][1])
        replay.loop.run_for(5.0)
        assert replay.bound[-1] == ("vip", "n1")
    finally:
        replay.close()
    assert replay.remaining == []
    assert sorted_calls(replay.paths) == sorted_calls([recorded["path"] for recorded in recording])


def with_managed_fields(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod as sent by an API server, with fields that kube-scheduler drops."""
    metadata = pod["metadata"] | {"managedFields": [{"manager": "kubectl"}]}
    return {"kind": "Pod", "apiVersion": "v1", **pod, "metadata": metadata}


def sorted_calls(paths: list[str]) -> list[str]:
    """Return the paths with the concurrent prioritize calls in a fixed order."""
    result: list[str] = []
    for path in paths:
        if path == "/full/prioritize" and result[-1] == "/names/prioritize":
            result.insert(-1, path)
        else:
            result.append(path)
    return result
