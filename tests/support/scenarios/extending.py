"""Fake extenders for scenarios: the test defines their answers and delays; no network is used."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kubestow.scheduler.extenders.extender import Answer, Call, ExtenderError
from kubestow.testing import FakeCluster

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class ReceivedCall(NamedTuple):
    time: float
    path: str
    """The last part of the extender's URL, and the verb."""
    body: dict[str, Any]

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes that were sent."""
        if self.body.get("NodeNames") is not None:
            return list(self.body["NodeNames"])
        return [node["metadata"]["name"] for node in self.body["Nodes"]["items"]]


Reply = Callable[[ReceivedCall], Any]


class FakeExtenders:
    """Answers calls; by default, all nodes pass and have no score."""

    def __init__(self, **extenders: str) -> None:
        """Extenders by name, each with its fields of the configuration besides the URL."""
        listed = ", ".join(f"{{urlPrefix: 'http://x/{name}', {fields}}}" for name, fields in extenders.items())
        self.configuration = f"{HEAD}extenders: [{listed}]\n"
        self.calls: list[ReceivedCall] = []
        self.replies: dict[str, Reply] = {}
        self.delays: dict[str, float] = {}

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        return await asyncio.gather(*map(self._one, calls))

    async def _one(self, call: Call) -> Answer:
        path = call.url.removeprefix("http://x/")
        received = ReceivedCall(asyncio.get_running_loop().time(), path, json.loads(b"".join(call.body)))
        self.calls.append(received)
        await asyncio.sleep(self.delays.get(path, 0.0))
        reply = self.replies[path](received) if path in self.replies else _lets_pass(received)
        if asyncio.iscoroutine(reply):
            reply = await reply
        if isinstance(reply, ExtenderError | bytes):
            return reply
        return json.dumps(reply).encode()

    @property
    def paths(self) -> list[str]:
        return [received.path for received in self.calls]


def _lets_pass(received: ReceivedCall) -> Any:
    if received.path.endswith("/filter"):
        return {"NodeNames": received.body["NodeNames"], "Nodes": received.body["Nodes"]}
    if received.path.endswith("/prioritize"):
        return []
    return {"NodeNameToMetaVictims": received.body["NodeNameToMetaVictims"]}


def only(*names: str, failed: dict[str, str] | None = None, lost: dict[str, str] | None = None) -> Reply:
    """Return a reply that lets some of the sent nodes pass."""

    def reply(received: ReceivedCall) -> Any:
        kept = [name for name in received.nodes if name in names]
        result: dict[str, Any] = {"FailedNodes": failed or {}, "FailedAndUnresolvableNodes": lost or {}}
        if received.body["NodeNames"] is not None:
            return result | {"NodeNames": kept}
        return result | {"Nodes": {"items": [{"metadata": {"name": name}} for name in kept]}}

    return reply


def binds_in(cluster: FakeCluster) -> Reply:
    """Return a reply that binds the pod."""

    async def bind(received: ReceivedCall) -> Any:
        await cluster.bind(cluster.pod(received.body["PodName"]), received.body["Node"])
        return {"Error": ""}

    return bind
