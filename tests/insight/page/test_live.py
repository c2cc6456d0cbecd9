"""The page of a live scheduler: how often it makes moments, failures, and the effect of a reload."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from kubestow.cli.scheduler import page as live
from kubestow.cli.scheduler.options import DecisionOptions
from kubestow.cli.scheduler.page import LONGEST_SECONDS, MOST_SHARE, SHORTEST_SECONDS, LivePage
from kubestow.insight.page.pages import Site
from kubestow.server.http.messages import Request, Response
from support.client.virtualtime import run
from support.integration.cluster import eventually, node, pod, running_cluster, running_scheduler

API = "/ui/api/v1"


def read(site: Site, path: str) -> Any:
    """Return the response of the API to a GET."""
    answer = site.answer(Request("GET", (API + path).encode(), {}, b""))
    assert isinstance(answer, Response)
    return json.loads(answer.body)


@asynccontextmanager
async def page() -> AsyncIterator[LivePage]:
    """Run the page of a scheduler with a node and two pods, one of which is too large."""
    async with running_cluster() as cluster:
        await cluster.add(node("n1"), pod("p"), pod("big", "99"))
        async with running_scheduler(cluster, decisions=DecisionOptions(1 << 24)) as instance:
            await eventually(lambda: cluster.all_bound("p"))
            assert instance.live.decisions is not None
            yield LivePage(instance.live, instance.live.decisions, "a test")


def during(do: Callable[[LivePage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with page() as found:
            await do(found)

    run(main())


def test_the_page_has_the_state_of_the_scheduler() -> None:
    """From the first moment on, it has nodes, pods, the queue, and the reasons of pending pods."""

    async def do(page: LivePage) -> None:
        async with page as site:
            await eventually(lambda: read(site, "")["moment"] > 0)
            assert read(site, "/cluster")["pods"] == [1]
            (row,) = read(site, "/queue")["rows"]
            assert row[1:3] == ["default/big", "unschedulable"]
            history = read(site, f"/queue/{row[0]}")["history"]
            assert [move["queue"] for move in history] == ["active", "unschedulable"]
            assert read(site, "/configuration")["profiles"][0]["name"] == "default-scheduler"
            assert read(site, "")["live"] is True

    during(do)


def test_slow_moments_are_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making moments takes a limited share of the time, even with readers."""
    now, passes = 0.0, 0.0

    def passing() -> float:
        nonlocal now
        now += passes
        return now

    async def do(page: LivePage) -> None:
        nonlocal passes
        monkeypatch.setattr("kubestow.cli.scheduler.page.time.thread_time", passing)
        assert page.poller.poll() == live.SECONDS
        reader: Any = object()
        page.poller.events._readers.add(reader)
        assert page.poller.poll() == SHORTEST_SECONDS
        passes = 0.1
        assert page.poller.poll() == pytest.approx(0.1 / MOST_SHARE)
        page.poller.events._readers.clear()
        assert page.poller.poll() == LONGEST_SECONDS
        monkeypatch.undo()

    during(do)


def test_a_new_reader_gets_a_moment_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for the long interval that applies without readers."""
    looks = 0

    def look() -> float:
        nonlocal looks
        looks += 1
        return LONGEST_SECONDS

    async def do(page: LivePage) -> None:
        monkeypatch.setattr(page.poller, "poll", look)
        async with page:
            await asyncio.sleep(LONGEST_SECONDS / 2)
            assert looks == 1
            page.poller.events.follow(None, b"{}")(Mock())
            await asyncio.sleep(1.0)
            assert looks == 2

    during(do)


def test_a_failed_moment_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler continues, and the page continues a little later."""
    failures = 0

    async def do(page: LivePage) -> None:
        nonlocal failures
        look = page.poller.watch.next_moment

        def fail() -> None:
            nonlocal failures
            failures += 1
            monkeypatch.setattr(page.poller.watch, "next_moment", look)
            raise RuntimeError("something unforeseen")

        monkeypatch.setattr(page.poller.watch, "next_moment", fail)
        async with page as site:
            await asyncio.sleep(1.0)
            assert read(site, "/queue")["rows"] == []
            await eventually(lambda: len(read(site, "/queue")["rows"]) == 1)

    during(do)
    assert failures == 1
