"""Several resources at once: their sync is tracked separately."""

import asyncio
import contextlib

import pytest

from kubestow.api.failures import TimedOutError
from kubestow.client.informers import Informers
from kubestow.client.resources import NODES, PODS
from kubestow.telemetry.metrics.client import ClientMetrics
from support.client.doubles import Noted, middle, node, pod
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.virtualtime import run


def test_sync_is_tracked_per_resource() -> None:
    """While nodes are forbidden they are listed as unsynced; once they are received, all is synced."""
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
                pods = informers.watch(PODS)
                informers.watch(NODES)
                assert informers.unsynced() == ["pods", "nodes"]
                task = asyncio.create_task(informers.run(lambda _: noted))
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


def test_the_last_resource_is_delivered_last() -> None:
    """The last resource is requested with the others, but its handler is called only when all others are synced."""
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
                pods = informers.watch(PODS, last=True)
                informers.watch(NODES)
                task = asyncio.create_task(informers.run(lambda _: noted))
                await asyncio.sleep(3)
                assert sorted(asked) == ["/api/v1/nodes", "/api/v1/pods"]
                assert list(pods.objects) == ["default/p"]
                assert (noted.seen, informers.unsynced()) == ([], ["pods", "nodes"])
                await informers.wait_synced(60)
                assert noted.seen == ["+n@1", "synced", "+p@2", "synced"]
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    run(main())


def test_handlers_can_subscribe_late() -> None:
    """Watches can start before there are handlers, which are then called for existing objects and further changes."""

    async def script(request: Request, answer: Answer) -> None:
        answer.begin_stream()
        answer.event("ADDED", node("first", 1))
        answer.bookmark("2", ends_initial=True)
        answer.event("MODIFIED", node("first", 3))
        answer.event("ADDED", node("second", 4))
        answer.event("DELETED", node("second", 5))
        await asyncio.sleep(10)
        answer.event("ADDED", node("third", 6))

    async def main() -> None:
        async with serving(script) as server:
            with opened(server) as channel:
                informers = Informers(client_of(channel), middle)
                noted = Noted()
                informers.watch(NODES)
                informers.start()
                await asyncio.sleep(5)
                assert informers.unsynced() == ["nodes"]
                task = asyncio.create_task(informers.run(lambda _: noted))
                await informers.wait_synced(1)
                assert noted.seen == ["+first@3", "synced"]
                await asyncio.sleep(10)
                assert noted.seen == ["+first@3", "synced", "+third@6"]
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    run(main())


def test_resources_are_added_and_removed_while_running() -> None:
    """A resource that is added is listed at once; the objects of one that is removed are gone for its handler."""

    async def script(request: Request, answer: Answer) -> None:
        answer.begin_stream()
        answer.event("ADDED", node("n", 1) if request.path == "/api/v1/nodes" else pod("p", 2))
        answer.bookmark("3", ends_initial=True)

    async def main() -> None:
        async with serving(script) as server:
            with opened(server) as channel:
                metrics = ClientMetrics()
                informers = Informers(client_of(channel), middle, metrics)
                noted = Noted()
                informers.watch(PODS)
                task = asyncio.create_task(informers.run(lambda _: noted))
                await informers.wait_synced(5)
                nodes = informers.watch(NODES)
                await informers.wait_synced(5)
                assert noted.seen == ["+p@2", "synced", "+n@1", "synced"]
                watched = metrics.informer_version.read().items()
                assert [(key[2], version) for key, version in watched] == [("pods", 3), ("nodes", 3)]
                informers.unwatch(nodes)
                assert [resource for _, _, resource, _ in metrics.informer_version.read()] == ["pods"]
                assert noted.seen[4:] == ["-n@1"]
                assert informers.unsynced() == []
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    run(main())


def test_a_failing_watch_that_was_added_later_ends_all() -> None:
    """As one that was there from the start does: the process restarts."""

    async def script(request: Request, answer: Answer) -> None:
        answer.begin_stream()
        answer.bookmark("3", ends_initial=True)

    async def main() -> None:
        async with serving(script) as server:
            with opened(server) as channel:
                informers = Informers(client_of(channel), middle)
                task = asyncio.create_task(informers.run(lambda _: Noted()))
                informers.watch(PODS)
                await informers.wait_synced(5)
                informers._spawn("fails", _fails(), "fails")
                with pytest.raises(ZeroDivisionError):
                    await task

    async def _fails() -> None:
        raise ZeroDivisionError

    run(main())
