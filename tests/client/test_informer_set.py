"""Several resources at once: their sync is tracked one by one."""

import asyncio
import contextlib

import pytest

from client.doubles import Noted, middle, node, pod
from client.scripted import Answer, Request, client_of, opened, serving
from client.virtualtime import run
from kubestow.client.informers import Informers
from kubestow.client.resources import NODES, PODS
from kubestow.model.failures import TimedOutError


def test_sync_is_tracked_per_resource() -> None:
    """While nodes are forbidden they are named as missing; when they come, all is synced."""
    allowed = asyncio.Event()

    async def script(request: Request, answer: Answer) -> None:
        if request.path == "/api/v1/nodes" and not allowed.is_set():
            answer.error(403, "Forbidden")
            return
        answer.begin_stream()
        answer.event("ADDED", node("n", 1) if request.path == "/api/v1/nodes" else pod("p", 2))
        answer.bookmark("3", ends_initial=True)

    async def main() -> None:
        async with serving(script) as server:
            with opened(server) as channel:
                informers = Informers(client_of(channel), middle)
                noted = Noted()
                pods = informers.watch(PODS, noted)
                informers.watch(NODES, noted)
                assert informers.unsynced() == ["pods", "nodes"]
                task = asyncio.create_task(informers.run())
                with pytest.raises(TimedOutError, match=r"not synced after 5 s: nodes"):
                    await informers.wait_synced(5)
                allowed.set()
                await informers.wait_synced(60)
                assert informers.unsynced() == []
                assert sorted(noted.seen) == ["+n@1", "+p@2", "synced", "synced"]
                assert pods.objects["default/p"].metadata.uid == "uid-p"
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    run(main())


def test_what_comes_last_waits_for_the_others() -> None:
    """A resource that is to come last is not even asked for before all others are synced."""
    asked: list[str] = []

    async def script(request: Request, answer: Answer) -> None:
        asked.append(request.path)
        if request.path == "/api/v1/nodes":
            await asyncio.sleep(5)
        answer.begin_stream()
        answer.event("ADDED", node("n", 1) if request.path == "/api/v1/nodes" else pod("p", 2))
        answer.bookmark("3", ends_initial=True)

    async def main() -> None:
        async with serving(script) as server:
            with opened(server) as channel:
                informers = Informers(client_of(channel), middle)
                noted = Noted()
                informers.watch(PODS, noted, last=True)
                informers.watch(NODES, noted)
                task = asyncio.create_task(informers.run())
                await asyncio.sleep(3)
                assert asked == ["/api/v1/nodes"]
                await informers.wait_synced(60)
                assert asked == ["/api/v1/nodes", "/api/v1/pods"]
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    run(main())
