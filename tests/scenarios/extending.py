"""Extenders for scenarios: the test says what each answers and how long that takes; nothing goes over a network."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kubestow.scheduler.extenders.extender import Answer, Call, ExtenderError
from kubestow.testing import FakeCluster

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Asked(NamedTuple):
    time: float
    path: str
    """The last part of the extender's URL, and the verb."""
    body: dict[str, Any]

    @property
    def nodes(self) -> list[str]:
        """The nodes it is about."""
        if self.body.get("NodeNames") is not None:
            return list(self.body["NodeNames"])
        return [node["metadata"]["name"] for node in self.body["Nodes"]["items"]]


Reply = Callable[[Asked], Any]


class FakeExtenders:
    """Answers calls; what is not scripted lets all pass and scores nothing."""

    def __init__(self, **extenders: str) -> None:
        """Names, with the fields of the configuration beside the URL."""
        listed = ", ".join(f"{{urlPrefix: 'http://x/{name}', {fields}}}" for name, fields in extenders.items())
        self.configuration = f"{HEAD}extenders: [{listed}]\n"
        self.asked: list[Asked] = []
        self.replies: dict[str, Reply] = {}
        self.delays: dict[str, float] = {}

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        return await asyncio.gather(*map(self._one, calls))

    async def _one(self, call: Call) -> Answer:
        path = call.url.removeprefix("http://x/")
        asked = Asked(asyncio.get_running_loop().time(), path, json.loads(b"".join(call.body)))
        self.asked.append(asked)
        await asyncio.sleep(self.delays.get(path, 0.0))
        reply = self.replies[path](asked) if path in self.replies else _lets_pass(asked)
        if asyncio.iscoroutine(reply):
            reply = await reply
        if isinstance(reply, ExtenderError | bytes):
            return reply
        return json.dumps(reply).encode()

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


def _lets_pass(asked: Asked) -> Any:
    if asked.path.endswith("/filter"):
        return {"NodeNames": asked.body["NodeNames"], "Nodes": asked.body["Nodes"]}
    if asked.path.endswith("/prioritize"):
        return []
    return {"NodeNameToMetaVictims": asked.body["NodeNameToMetaVictims"]}


def only(*names: str, failed: dict[str, str] | None = None, lost: dict[str, str] | None = None) -> Reply:
    """Lets some of the nodes pass that it is asked about."""

    def reply(asked: Asked) -> Any:
        kept = [name for name in asked.nodes if name in names]
        result: dict[str, Any] = {"FailedNodes": failed or {}, "FailedAndUnresolvableNodes": lost or {}}
        if asked.body["NodeNames"] is not None:
            return result | {"NodeNames": kept}
        return result | {"Nodes": {"items": [{"metadata": {"name": name}} for name in kept]}}

    return reply


def binds_in(cluster: FakeCluster) -> Reply:
    """Binds as it is told."""

    async def bind(asked: Asked) -> Any:
        await cluster.bind(cluster.pod(asked.body["PodName"]), asked.body["Node"])
        return {"Error": ""}

    return bind
