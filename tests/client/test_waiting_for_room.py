"""Requests that wait because as many as may be are under way."""

import asyncio

import pytest

from client.scripted import Answer, Request, client_of, opened, serving
from client.virtualtime import run
from kubestow.api.failures import TimedOutError
from kubestow.client.api import ApiClient
from kubestow.client.pool import Pool


async def slow(request: Request, answer: Answer) -> None:
    await asyncio.sleep(1)
    answer.reply(200, request.path.encode())


async def hang(request: Request, answer: Answer) -> None:
    if request.path == "/hang":
        await answer.client_left()
    else:
        await slow(request, answer)


def test_low_priority_requests_let_others_go_first() -> None:
    """Where there is room for one at a time, they get no turn for ten seconds, then one in eight."""

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
    """Its turn goes to the next, and not before there is room."""

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


def test_a_request_that_waited_and_is_cancelled_under_way_frees_its_room() -> None:
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


def test_a_request_that_waited_may_still_be_answered_too_late() -> None:
    """What is left of its time counts from when it was sent; whoever is behind it goes on."""

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


def test_a_request_whose_turn_comes_in_the_moment_it_is_cancelled_passes_it_on() -> None:
    """Nobody left a connection for it, so it was to open one."""

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
