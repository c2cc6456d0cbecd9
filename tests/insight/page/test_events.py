"""The stream of events: one message for all readers, and the missed changes for a reader that reconnects."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kubestow.insight.page.events import MOST_READERS
from kubestow.insight.page.local import HOST
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.page_harness import API, TOKEN, PageHarness, Reader, served
from support.integration.cluster import eventually


@pytest.fixture
def world() -> Iterator[SchedulerHarness]:
    with SchedulerHarness(record_bytes=1 << 24) as world:
        world.cluster.add(make_node("n1", cpu="2"))
        world.run_until_idle()
        yield world


@pytest.fixture
def page(world: SchedulerHarness) -> PageHarness:
    page = PageHarness(world)
    page.make_moment()
    return page


class Listener:
    """A connection to the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def head(self) -> str:
        return (await self._reader.readuntil(b"\r\n\r\n")).decode()

    async def message(self) -> tuple[str, Any]:
        """Return the kind and the data of the next event."""
        size = int(await self._reader.readline(), 16)
        text = (await self._reader.readexactly(size + 2)).decode()
        fields = dict(line.partition(": ")[::2] for line in text.strip().splitlines())
        tree = json.loads(fields["data"])
        assert int(fields["id"]) == tree["moment"]
        return fields["event"], tree

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


class Streams:
    """Opens connections to the stream."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.inside: list[Listener] = []

    async def open(self, since: int | None = None) -> Listener:
        reader, writer = await asyncio.open_connection(HOST, self._port)
        query = "" if since is None else f"?since={since}"
        writer.write(
            f"GET {API}/events{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        listener = Listener(reader, writer)
        self.inside.append(listener)
        return listener


def listening(page: PageHarness, do: Callable[[Streams], Awaitable[Any]]) -> Any:
    async def read(reader: Reader) -> Any:
        streams = Streams(reader.port)
        try:
            return await do(streams)
        finally:
            for listener in streams.inside:
                await listener.close()

    return served(page.site(), read)


def test_changes_are_sent_to_all_readers(world: SchedulerHarness, page: PageHarness) -> None:
    """An event has the changed positions with their values, the rows of the queue, and the figures."""

    async def do(streams: Streams) -> list[tuple[str, Any]]:
        listeners = [await streams.open() for _ in range(2)]
        heads = [await listener.head() for listener in listeners]
        assert all("text/event-stream" in head and "Content-Security-Policy" in head for head in heads)
        assert [(await listener.message())[0] for listener in listeners] == ["reset", "reset"]
        page.add_objects(world, make_pod("small", cpu="1"), make_pod("big", cpu="9"))
        return [await listener.message() for listener in listeners]

    first, second = listening(page, do)
    assert first == second
    kind, tree = first
    assert (kind, tree["layout"]) == ("change", 1)
    assert tree["usage"]["at"] == [0]
    assert (tree["usage"]["pods"], tree["usage"]["requested"]["cpu"]) == ([1], [1000])
    (row,) = tree["queue"]["rows"]
    assert row[1:3] == ["default/big", "unschedulable"]
    assert (tree["figures"]["bound"], tree["figures"]["attempts"]) == (1, 2)


def test_a_reader_that_reconnects_gets_the_missed_changes(world: SchedulerHarness, page: PageHarness) -> None:
    """They are in one event with the current values; there is no event if nothing was missed."""
    known = page.history.now.last.number
    page.add_objects(world, make_pod("one", cpu="1"), make_pod("big", cpu="9"))
    page.add_objects(world, make_pod("two", cpu="500m"))

    async def do(streams: Streams) -> Any:
        listener = await streams.open(known)
        await listener.head()
        found = await listener.message()
        current = await streams.open(page.history.now.last.number)
        await current.head()
        page.add_objects(world, make_pod("three", cpu="100m"))
        following = await current.message()
        return found, following

    (kind, missed), (_, following) = listening(page, do)
    assert (kind, missed["moment"]) == ("change", known + 2)
    assert missed["usage"] == {
        "at": [0],
        "pods": [2],
        "requested": {"cpu": [1500], "memory": [0], "ephemeral-storage": [0]},
    }
    assert [row[1] for row in missed["queue"]["rows"]] == ["default/big"]
    assert following["moment"] == known + 3


def test_a_pod_that_was_added_and_deleted_has_left(world: SchedulerHarness, page: PageHarness) -> None:
    """Readers that know the pod are notified."""
    page.add_objects(world, make_pod("big", cpu="9"))
    known = page.history.now.last.number
    (uid,) = page.history.now.waiting
    world.cluster.delete(world.cluster.pod("big"))
    page.add_objects(world)

    async def do(streams: Streams) -> Any:
        listener = await streams.open(known)
        await listener.head()
        return await listener.message()

    _, missed = listening(page, do)
    assert missed["queue"]["left"] == [uid]


def test_a_changed_node_changes_the_layout(world: SchedulerHarness, page: PageHarness) -> None:
    """Events with a new layout have no positions, because these would refer to other nodes."""

    async def do(streams: Streams) -> Any:
        listener = await streams.open(page.history.now.last.number)
        await listener.head()
        page.add_objects(world, make_node("n2"))
        return await listener.message()

    _, tree = listening(page, do)
    assert tree["layout"] == 2
    assert "usage" not in tree


@pytest.mark.parametrize("since", [1, 999_999_999])
def test_a_reader_of_another_scheduler_is_reset(page: PageHarness, since: int) -> None:
    """It knows the moments of an earlier scheduler."""

    async def do(streams: Streams) -> Any:
        listener = await streams.open(since)
        await listener.head()
        return await listener.message()

    kind, about = listening(page, do)
    assert (kind, about["live"], about["moment"]) == ("reset", True, page.history.now.last.number)


def test_the_number_of_readers_is_limited(page: PageHarness) -> None:
    """A further reader is rejected until another one disconnects."""

    async def do(streams: Streams) -> list[str]:
        listeners = [await streams.open() for _ in range(MOST_READERS)]
        for listener in listeners:
            await listener.head()
        rejected = await (await streams.open()).head()
        await listeners[0].close()
        await eventually(lambda: len(page.events) < MOST_READERS)
        last = await streams.open()
        return [rejected, await last.head()]

    rejected, accepted = listening(page, do)
    assert rejected.startswith("HTTP/1.1 429")
    assert accepted.startswith("HTTP/1.1 200")
