"""Scripted answers to lists and watches, and an informer that gets them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from kubestow.client.informer import Informer
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.resources import PODS, Resource
from kubestow.telemetry.metrics.client import ClientMetrics
from support.client.doubles import Noted, middle
from support.client.scripted import Answer, Request, Script, ScriptedServer, client_of, opened, serving

Step = Callable[[Request, Answer], Awaitable[None]]


class Steps:
    """Answers the first request by the first step, and so on; then does not respond."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)

    async def __call__(self, request: Request, answer: Answer) -> None:
        if self._steps:
            await self._steps.pop(0)(request, answer)
        else:
            await answer.client_left()


@contextlib.asynccontextmanager
async def reflecting(
    script: Script, resource: Resource[Any] = PODS, metrics: ClientMetrics | None = None
) -> AsyncIterator[tuple[ScriptedServer, Noted, Informer[Any]]]:
    async with serving(script) as server:
        with opened(server) as channel:
            noted = Noted()
            informer = Informer(resource, noted)
            task = asyncio.create_task(Reflector(client_of(channel), informer, middle, Refusals(), metrics).run())
            try:
                yield server, noted, informer
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task


async def until(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    """Wait (in virtual time) until a condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 what is awaited belongs to the code under test
            await asyncio.sleep(0.2)


def initial(*objects: dict[str, Any], version: str) -> Step:
    """Return a watch-list that sends these objects and then stays open."""

    async def step(request: Request, answer: Answer) -> None:
        assert request.query["sendInitialEvents"] == "true"
        answer.begin_stream()
        for obj in objects:
            answer.event("ADDED", obj)
        answer.bookmark(version, ends_initial=True)

    return step


def then(first: Step, *actions: Callable[[Answer], None]) -> Step:
    """Return the first step followed by more actions on the same stream."""

    async def step(request: Request, answer: Answer) -> None:
        await first(request, answer)
        for action in actions:
            await asyncio.sleep(0.01)
            action(answer)

    return step


def watch(*actions: Callable[[Answer], None]) -> Step:
    """Return a plain watch that performs actions one after the other."""

    async def step(request: Request, answer: Answer) -> None:
        assert request.query["watch"] == "true"
        assert "sendInitialEvents" not in request.query
        answer.begin_stream()
        for action in actions:
            await asyncio.sleep(0.01)
            action(answer)

    return step


def refuse(code: int, reason: str = "", message: str = "", **headers: str) -> Step:
    async def step(request: Request, answer: Answer) -> None:
        answer.error(code, reason, message, **headers)

    return step


def page(version: str, *objects: dict[str, Any], token: str = "") -> Step:
    async def step(request: Request, answer: Answer) -> None:
        assert "watch" not in request.query
        answer.reply(200, {"metadata": {"resourceVersion": version, "continue": token}, "items": list(objects)})

    return step


def event(kind: str, obj: dict[str, Any]) -> Callable[[Answer], None]:
    return lambda answer: answer.event(kind, obj)


def drop(answer: Answer) -> None:
    answer.drop()


def gone(answer: Answer) -> None:
    answer.event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
