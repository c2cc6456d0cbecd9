"""Misbehaving extenders over HTTP, as seen by pods of a live scheduler: each error is reported at its pod.

Pods are named after the extender's behaviour. Time is virtual.
"""

import logging
from typing import Any

import pytest

from kubestow.config.configuration import Extender
from kubestow.config.durations import Duration
from kubestow.scheduler.extenders import client as extender_client
from support.client.scripted import Answer, Request, serving
from support.client.virtualtime import run
from support.integration.cluster import eventually, node, pod, running_cluster, running_scheduler, settings

ANSWERS: dict[str, Any] = {
    "silent": {},
    "null": None,
    "error": {"Error": "no licence server"},
    "stranger": {"NodeNames": ["n1", "n9"]},
    "wrong-type": {"NodeNames": {"n1": True}},
    "bad-json": b'{"NodeNames": ["n1"',
    "empty": b"",
    "huge": b" " * 2000,
}
URL = "http://X/licences"
LIMIT = 1000
UNREADABLE = f'Post "{URL}/filter": the answer cannot be decoded: '
LEFT_OUT = f'0/1 nodes are available: 1 node(s) removed without a reason by extender "{URL}". '
WORDS = {
    "silent": LEFT_OUT,
    "null": LEFT_OUT,
    "error": f'no licence server (extender "{URL}")',
    "stranger": f'extender "{URL}" claims a filtered node "n9" which is not found in the input node list',
    "wrong-type": f"{UNREADABLE}Expected `array | null`, got `object`",
    "bad-json": f"{UNREADABLE}Input data was truncated",
    "empty": f"{UNREADABLE}it is empty",
    "huge": f'Post "{URL}/filter": the answer is larger than {LIMIT} bytes',
    "status-500": f"failed filter with extender at URL {URL}/filter, code 500",
    "redirect": f"failed filter with extender at URL {URL}/filter, code 307: it redirects to http://elsewhere.example/",
    "hanging": f'Post "{URL}/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
    "reset": f'Post "{URL}/filter": the server closed the connection before an answer came',
}


async def lie(request: Request, answer: Answer) -> None:
    name = request.json["Pod"]["metadata"]["name"]
    if name in ANSWERS:
        body = ANSWERS[name]
        answer.reply(200, b"null" if body is None else body)
    elif name == "status-500":
        answer.reply(500, b"boom")
    elif name == "redirect":
        answer.reply(307, Location="http://elsewhere.example/")
    elif name == "hanging":
        await answer.client_left()
    elif name == "reset":
        answer.drop()
    else:
        answer.reply(200, {"NodeNames": request.json["NodeNames"]})


def test_each_error_is_reported_at_its_pod_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Condition, event and log have the same message; later pods are bound."""
    caplog.set_level(logging.INFO, "kubestow")
    monkeypatch.setattr(extender_client, "MAX_ANSWER_BYTES", LIMIT)

    async def main() -> None:
        async with running_cluster() as cluster, serving(lie) as server:
            url = f"http://127.0.0.1:{server.port}/licences"
            fields: Any = {"filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": Duration.parse("3s")}
            await cluster.add(node("n1"), *map(pod, WORDS), pod("fine"))
            async with running_scheduler(cluster, settings(extenders=(Extender(urlPrefix=url, **fields),))):

                async def notes() -> dict[str, str]:
                    events = await cluster.events("FailedScheduling")
                    return {event["regarding"]["name"]: event["note"].replace(url, URL) for event in events}

                async def all_reported() -> bool:
                    conditions = [one for one in (await cluster.pods()).values() if one["status"].get("conditions")]
                    return len(await notes()) == len(WORDS) == len(conditions) - 1

                await eventually(lambda: cluster.all_bound("fine"))
                await eventually(all_reported)
                pods, messages = await cluster.pods(), await notes()
            for name, words in WORDS.items():
                assert messages[name].startswith(words)
                [condition] = pods[name]["status"]["conditions"]
                assert condition["message"].replace(url, URL) == messages[name]
                if condition["reason"] == "SchedulerError":
                    escaped = words.replace(URL, url).replace('"', '\\"')
                    assert any(escaped in line and f'pod="default/{name}"' in line for line in caplog.messages)

    run(main())
