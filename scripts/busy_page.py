#!/usr/bin/env python3
"""Measures the page of a scheduler that places 1,000 pods a second, in Chromium: `scripts/busy_page.py [VIEW...]`.

A scheduler on a cluster that is made up, in real time, in a process of its own: 5,000 nodes, 10,000 pods that fit
nowhere, and pods that come, are placed, and go after twenty seconds. With no page, and with each view open: the CPU
that process takes, how much of it for the page (looking for what is new, keeping it, sending it, answering), and how
long the browser kept its user waiting for a frame. `make browser` gets what is needed; it takes two minutes.
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
from kubestow.cli.scheduler.page import Looking, live_run
from kubestow.insight.explain.world import Setup
from kubestow.insight.page.api import Api
from kubestow.insight.page.local import LocalServer
from kubestow.insight.page.pages import Site
from kubestow.insight.page.watching import Watch, Watched
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
    """Seconds of CPU that are spent for the page."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._begin = 0.0

    def __enter__(self) -> None:
        self._begin = time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.spent += time.thread_time() - self._begin


METER = Meter()


class MeteredLooking(Looking):
    """Looks for what has changed, keeps it, and sends it."""

    def look(self) -> float:
        with METER:
            return super().look()


class MeteredApi(Api):
    """Answers what a page asks."""

    def answer(self, request: Request) -> Answer:
        with METER:
            return super().answer(request)


async def serve(figures: Path) -> None:
    """The scheduler and its page, until it is ended; tells the CPU of all, and of the page, to a file."""
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
        looking = MeteredLooking(Watch(Watched(world.core, world.metrics, archive.recorder, world.clock)), run.history)
        print(await LocalServer(Site(MeteredApi([run], looking.events))).start(0), flush=True)
        task = asyncio.create_task(looking.run())
        begin, made = loop.time(), 0
        while not task.done():
            due = int((loop.time() - begin) * RATE)
            for number in range(made, due):
                world.cluster.add(make_pod(f"pod-{number}", cpu="100m", memory="100Mi"))
                if number >= LIFE * RATE:
                    world.cluster.delete(world.cluster.pod(f"pod-{number - LIFE * RATE}"))
            made = due
            _tell(figures)
            await asyncio.sleep(0.005)


def _tell(figures: Path) -> None:
    figures.write_text(json.dumps([time.monotonic(), time.process_time(), METER.spent]))


def placed(address: str) -> float:
    """Pods per second, as the page has it."""
    place, _, token = address.partition("#token=")
    connection = http.client.HTTPConnection(place.split("/")[2])
    connection.request("GET", "/ui/api/v1/times", headers={"Authorization": f"Bearer {token}"})
    times = json.load(connection.getresponse())
    return float(sum(times["bound"][1:]) / (times["time"][-1] - times["time"][0]))


def share(figures: Path, during: Callable[[], T]) -> tuple[float, float, T]:
    """How much of a core is spent meanwhile: by the scheduler with its page, and for the page."""
    before = json.loads(figures.read_text())
    done = during()
    passed, cpu, page = (new - old for new, old in zip(json.loads(figures.read_text()), before, strict=True))
    return cpu / passed, page / passed, done


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
        print(f"{placed(address):,.0f} pods a second")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        uvloop.run(serve(Path(sys.argv[2])))
    else:
        main()
