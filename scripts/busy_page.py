#!/usr/bin/env python3
"""Measure the page of a scheduler that places 1,000 pods per second, in Chromium: `scripts/busy_page.py [VIEW...]`.

A process of its own runs a scheduler on a fake cluster in real time: 5,000 nodes, 10,000 unschedulable pods, and pods
that are placed and deleted after twenty seconds. Without a page, and with each view open, it measures the CPU time of
that process, the share of the page (recording moments, sending them, responding), and the browser's time per frame.
`make browser` installs the requirements; a run takes two minutes.
"""

import asyncio
import gc
import http.client
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import uvloop

from kubestow import config
from kubestow.cli.scheduler.page import PagePoller, live_run
from kubestow.insight.explain.world import Setup
from kubestow.insight.page.api import Api
from kubestow.insight.page.local import LocalServer
from kubestow.insight.page.pages import Site
from kubestow.insight.page.watching import Watch, WatchedScheduler
from kubestow.server.http.messages import Request
from kubestow.server.pages import Answer
from kubestow.telemetry.memory import GC_THRESHOLDS
from kubestow.testing import SchedulerHarness, make_node, make_pod
from page_opening import chromium, opened

T = TypeVar("T")
NODES, RATE, LIFE, PENDING = 5_000, 1_000, 20, 10_000
VIEWS = {
    "cluster": "#/cluster",
    "node": "#/cluster?node=node-7",
    "queue": "#/queue",
    "decisions": "#/decisions",
    "time": "#/time",
}
SECONDS = 6.0
SETTLED = 3.0
FRAMES = """(milliseconds) => new Promise((done) => {
    const tasks = [], gaps = [], begin = performance.now();
    const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)));
    observer.observe({ type: "longtask" });
    let last = begin;
    const frame = (now) => {
        gaps.push(now - last);
        last = now;
        if (now - begin < milliseconds) return requestAnimationFrame(frame);
        gaps.sort((one, other) => one - other);
        const longest = Math.max(0, ...tasks) | 0;
        done(`a frame every ${gaps[gaps.length >> 1] | 0} ms, 99 % within ${gaps[(gaps.length * 0.99) | 0] | 0}, `
            + `the longest ${gaps.at(-1) | 0}; ${tasks.length} tasks above 50 ms, the longest ${longest}`);
    };
    requestAnimationFrame(frame);
})"""


class Meter:
    """CPU seconds spent on the page."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._begin = 0.0

    def __enter__(self) -> None:
        self._begin = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.spent += time.thread_time() - self._begin


METER = Meter()


class MeteredPoller(PagePoller):
    """Records and sends changes, and measures the CPU time of both."""

    def poll(self) -> float:
        with METER:
            return super().poll()


class MeteredApi(Api):
    """Responds to requests, and measures the CPU time."""

    def answer(self, request: Request) -> Answer:
        with METER:
            return super().answer(request)


async def serve(figures: Path) -> None:
    """Run the scheduler and its page until terminated; write the CPU time of both to a file."""
    gc.set_threshold(*GC_THRESHOLDS)
    features, loop = config.Features(), asyncio.get_running_loop()
    async with SchedulerHarness(loop=loop, record_bytes=1 << 26) as world:
        archive = world.decisions
        assert archive is not None
        for number in range(NODES):
            labels = {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": f"zone-{number % 3}"}
            world.cluster.add(make_node(f"node-{number}", cpu="64", memory="256Gi", labels=labels))
        for number in range(PENDING):
            world.cluster.add(make_pod(f"big-{number}", cpu="1", node_selector={"disk": "none"}))
        await world.until_idle()
        setup = Setup(config.default(features), features)
        run = live_run("busy", world.core, archive, world.clock, lambda: setup)
        poller = MeteredPoller(
            Watch(WatchedScheduler(world.core, world.metrics, archive.recorder, world.clock)), run.history
        )
        print(await LocalServer(Site(MeteredApi([run], poller.events))).start(0), flush=True)
        task = asyncio.create_task(poller.run())
        begin, created = loop.time(), 0
        while not task.done():
            due = int((loop.time() - begin) * RATE)
            for number in range(created, due):
                world.cluster.add(make_pod(f"pod-{number}", cpu="100m", memory="100Mi"))
                if number >= LIFE * RATE:
                    world.cluster.delete(world.cluster.pod(f"pod-{number - LIFE * RATE}"))
            created = due
            _write_figures(figures)
            await asyncio.sleep(0.005)


def _write_figures(figures: Path) -> None:
    figures.write_text(json.dumps([time.monotonic(), time.process_time(), METER.spent]))


def pod_rate(address: str) -> float:
    """Return the pods per second, as shown on the page."""
    place, _, token = address.partition("#token=")
    connection = http.client.HTTPConnection(place.split("/")[2])
    connection.request("GET", "/ui/api/v1/times", headers={"Authorization": f"Bearer {token}"})
    times = json.load(connection.getresponse())
    return float(sum(times["bound"][1:]) / (times["time"][-1] - times["time"][0]))


def share(figures: Path, call: Callable[[], T]) -> tuple[float, float, T]:
    """Return the CPU shares of the process and of the page during a call, and the call's result."""
    before = json.loads(figures.read_text())
    result = call()
    passed, cpu, page = (new - old for new, old in zip(json.loads(figures.read_text()), before, strict=True))
    return cpu / passed, page / passed, result


def main() -> None:
    names = sys.argv[1:] or list(VIEWS)
    with (
        tempfile.NamedTemporaryFile() as file,
        opened(__file__, "serve", file.name) as (address, _),
        chromium() as browser,
    ):
        figures = Path(file.name)
        time.sleep(LIFE)
        for name in names:
            cpu, spent, _ = share(figures, lambda: time.sleep(SECONDS))
            print(f"no page: {spent:.2%} of a core for the page, {cpu:.1%} in all")
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.locator(".tile").first.wait_for()
            page.evaluate("place => { location.hash = place }", VIEWS[name])
            time.sleep(SETTLED)
            cpu, spent, frames = share(figures, partial(page.evaluate, FRAMES, SECONDS * 1000))
            page.close()
            print(f"{name}: {spent:.2%} of a core for the page, {cpu:.1%} in all; {frames}", flush=True)
        print(f"{pod_rate(address):,.0f} pods a second")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        uvloop.run(serve(Path(sys.argv[2])))
    else:
        main()
