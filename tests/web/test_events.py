"""The stream: what is new, once for all readers, and what one has missed who was away."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from integration.cluster import eventually
from kubestow.insight.page.events import MOST_READERS
from kubestow.insight.page.local import HOST
from kubestow.testing import SchedulerHarness, make_node, make_pod
from web.looking import API, TOKEN, Looking, Reader, served


@pytest.fixture
def world() -> Iterator[SchedulerHarness]:
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1", cpu="2"))
        world.run_until_idle()
        yield world


@pytest.fixture
def looking(world: SchedulerHarness) -> Looking:
    looking = Looking(world)
    looking.look()
    return looking


class Listener:
    """One connection to the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def head(self) -> str:
        return (await self._reader.readuntil(b"\r\n\r\n")).decode()

    async def message(self) -> tuple[str, Any]:
        """Kind and data of the next one."""
        size = int(await self._reader.readline(), 16)
        text = (await self._reader.readexactly(size + 2)).decode()
        fields = dict(line.partition(": ")[::2] for line in text.strip().splitlines())
        tree = json.loads(fields["data"])
        assert int(fields["id"]) == tree["moment"]
        return fields["event"], tree

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


class Door:
    """Where listeners come in."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.inside: list[Listener] = []

    async def open(self, since: int | None = None) -> Listener:
        reader, writer = await asyncio.open_connection(HOST, self._port)
        query = "" if since is None else f"?since={since}"
        writer.write(f"GET {API}/events{query} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        listener = Listener(reader, writer)
        self.inside.append(listener)
        return listener


def listening(looking: Looking, do: Callable[[Door], Awaitable[Any]]) -> Any:
    async def read(reader: Reader) -> Any:
        door = Door(reader.port)
        try:
            return await do(door)
        finally:
            for listener in door.inside:
                await listener.close()

    return served(looking.site(), read)


def test_what_is_new_is_told_to_all_readers(world: SchedulerHarness, looking: Looking) -> None:
    """The positions that changed with their values, the rows of the queue, and the figures."""

    async def do(door: Door) -> list[tuple[str, Any]]:
        listeners = [await door.open() for _ in range(2)]
        heads = [await listener.head() for listener in listeners]
        assert all("text/event-stream" in head and "Content-Security-Policy" in head for head in heads)
        assert [(await listener.message())[0] for listener in listeners] == ["reset", "reset"]
        looking.look_after(world, make_pod("small", cpu="1"), make_pod("big", cpu="9"))
        return [await listener.message() for listener in listeners]

    first, second = listening(looking, do)
    assert first == second
    kind, tree = first
    assert (kind, tree["layout"]) == ("change", 1)
    assert tree["usage"]["at"] == [0]
    assert (tree["usage"]["pods"], tree["usage"]["requested"]["cpu"]) == ([1], [1000])
    (row,) = tree["queue"]["rows"]
    assert row[1:3] == ["default/big", "unschedulable"]
    assert (tree["figures"]["bound"], tree["figures"]["attempts"]) == (1, 2)


def test_who_was_away_is_told_what_it_missed(world: SchedulerHarness, looking: Looking) -> None:
    """In one message, that has what is so now; with nothing missed, there is none."""
    known = looking.history.now.last.number
    looking.look_after(world, make_pod("one", cpu="1"), make_pod("big", cpu="9"))
    looking.look_after(world, make_pod("two", cpu="500m"))

    async def do(door: Door) -> Any:
        listener = await door.open(known)
        await listener.head()
        found = await listener.message()
        current = await door.open(looking.history.now.last.number)
        await current.head()
        looking.look_after(world, make_pod("three", cpu="100m"))
        following = await current.message()
        return found, following

    (kind, missed), (_, following) = listening(looking, do)
    assert (kind, missed["moment"]) == ("change", known + 2)
    assert missed["usage"] == {
        "at": [0],
        "pods": [2],
        "requested": {"cpu": [1500], "memory": [0], "ephemeral-storage": [0]},
    }
    assert [row[1] for row in missed["queue"]["rows"]] == ["default/big"]
    assert following["moment"] == known + 3


def test_a_pod_that_came_and_went_has_left(world: SchedulerHarness, looking: Looking) -> None:
    """Whoever knew it is told so."""
    looking.look_after(world, make_pod("big", cpu="9"))
    known = looking.history.now.last.number
    (uid,) = looking.history.now.waiting
    world.cluster.delete(world.cluster.pod("big"))
    looking.look_after(world)

    async def do(door: Door) -> Any:
        listener = await door.open(known)
        await listener.head()
        return await listener.message()

    _, missed = listening(looking, do)
    assert missed["queue"]["left"] == [uid]


def test_a_changed_node_needs_the_cluster_to_be_read_again(world: SchedulerHarness, looking: Looking) -> None:
    """The layout is another one, and there are no positions that would mean something else."""

    async def do(door: Door) -> Any:
        listener = await door.open(looking.history.now.last.number)
        await listener.head()
        looking.look_after(world, make_node("n2"))
        return await listener.message()

    _, tree = listening(looking, do)
    assert tree["layout"] == 2
    assert "usage" not in tree


@pytest.mark.parametrize("since", [1, 999_999_999])
def test_a_reader_from_another_time_begins_anew(looking: Looking, since: int) -> None:
    """It knows a scheduler that was started before this one."""

    async def do(door: Door) -> Any:
        listener = await door.open(since)
        await listener.head()
        return await listener.message()

    kind, about = listening(looking, do)
    assert (kind, about["live"], about["moment"]) == ("reset", True, looking.history.now.last.number)


def test_so_many_may_listen(looking: Looking) -> None:
    """One more is refused, until another has gone."""

    async def do(door: Door) -> list[str]:
        listeners = [await door.open() for _ in range(MOST_READERS)]
        for listener in listeners:
            await listener.head()
        refused = await (await door.open()).head()
        await listeners[0].close()
        await eventually(lambda: len(looking.events) < MOST_READERS)
        last = await door.open()
        return [refused, await last.head()]

    refused, accepted = listening(looking, do)
    assert refused.startswith("HTTP/1.1 429")
    assert accepted.startswith("HTTP/1.1 200")
