"""Requests that wait for a slot."""

import asyncio

import pytest

from kubestow.api.failures import TimedOutError
from kubestow.client.api import ApiClient
from kubestow.client.pool import Pool
from support.client.scripted import Answer, Request, client_of, opened, serving
from support.client.virtualtime import run


async def slow(request: Request, answer: Answer) -> None:
    await asyncio.sleep(1)
    answer.reply(200, request.path.encode())


async def hang(request: Request, answer: Answer) -> None:
    if request.path == "/hang":
        await answer.client_left()
    else:
        await slow(request, answer)


def test_low_priority_requests_are_sent_last() -> None:
    """With one slot, they get none for ten seconds, then every eighth."""

    async def main() -> None:
        async with serving(slow) as server:
            with opened(server, most_requests=1) as channel:
                client, low_priority = client_of(channel), ApiClient(channel, user_agent="test/1", low_priority=True)
                first = asyncio.create_task(client.request("GET", "/first"))
                await asyncio.sleep(0.1)
                events = [asyncio.create_task(low_priority.request("GET", f"/event{n}")) for n in range(3)]
                await asyncio.sleep(0.1)
                pods = [asyncio.create_task(client.request("GET", f"/pod{n}")) for n in range(17)]
                answers = await asyncio.gather(first, *events, *pods)
                assert [answer.body for answer in answers] == [
                    path.encode()
                    for path in ("/first", *(f"/event{n}" for n in range(3)), *(f"/pod{n}" for n in range(17)))
                ]
            order = [request.path[1:] for request in server.requests]
            assert order == [
                *("first", *(f"pod{n}" for n in range(15)), "event0"),
                *("pod15", "pod16", "event1", "event2"),
            ]
            assert server.connections == 1

    run(main())


def test_a_request_that_is_cancelled_while_it_waits_is_never_sent() -> None:
    """The next request is sent instead, and not before there is a slot."""

    async def main() -> None:
        async with serving(slow) as server:
            with opened(server, most_requests=1) as channel:
                client = client_of(channel)
                tasks = [asyncio.create_task(client.request("GET", f"/{n}")) for n in range(3)]
                await asyncio.sleep(0.1)
                tasks[1].cancel()
                assert (await tasks[2]).body == b"/2"
            assert [request.path for request in server.requests] == ["/0", "/2"]
            assert server.connections == 1

    run(main())


def test_a_request_that_waited_and_is_cancelled_in_progress_frees_its_slot() -> None:
    """Its connection is closed; the next request gets another one."""

    async def main() -> None:
        async with serving(hang) as server:
            with opened(server, most_requests=1) as channel:
                client = client_of(channel)
                tasks = [asyncio.create_task(client.request("GET", path)) for path in ("/a", "/hang", "/b", "/c")]
                await tasks[0]
                await asyncio.sleep(0.1)
                tasks[1].cancel()
                assert [(await task).body for task in tasks[2:]] == [b"/b", b"/c"]
            assert server.connections == 2

    run(main())


def test_a_request_that_waited_can_time_out_after_it_was_sent() -> None:
    """Its deadline also applies after it was sent; the request behind it continues."""

    async def main() -> None:
        async with serving(hang) as server:
            with opened(server, most_requests=1) as channel:
                client = client_of(channel)
                before = asyncio.create_task(client.request("GET", "/a"))
                late = asyncio.create_task(client.request("GET", "/hang", seconds=5))
                after = asyncio.create_task(client.request("GET", "/b"))
                await before
                with pytest.raises(TimedOutError, match="did not answer"):
                    await late
                assert (await after).body == b"/b"

    run(main())


def test_a_request_cancelled_when_it_gets_its_slot_passes_it_on() -> None:
    """There was no connection for it, so it had to open one."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with serving(slow) as server:
            with opened(server, most_requests=1) as channel:
                pool: Pool = channel.pool
                client = client_of(channel)
                first = asyncio.create_task(client.request("GET", "/a"))
                await asyncio.sleep(0.1)
                second = asyncio.create_task(client.request("GET", "/b"))
                third = asyncio.create_task(client.request("GET", "/c"))
                await asyncio.sleep(0.1)
                first.cancel()  # closes its connection, so the second has to open one
                loop.call_soon(second.cancel)
                assert (await third).body == b"/c"
                pool.close_idle()
            assert [request.path for request in server.requests] == ["/a", "/c"]

    run(main())
