#!/usr/bin/env python3
"""Measure the page in Chromium with 5,000 nodes and 10,000 unschedulable pods: `scripts/large_page.py [TIMES]`.

`kubestow up` serves them. A new tab is opened for each run; times are in milliseconds since then. `make browser`
installs the requirements; a run takes a minute.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from page_opening import chromium, deployment, opened

NODES, PODS = 5_000, 10_000
FIRST = """() => new Promise((done) => {
    const seen = {};
    const look = () => {
        if (document.querySelector("main.view")) seen.words ??= performance.now();
        const map = document.querySelector(".heatmap canvas");
        const drawn = map?.width > 300 && map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
        if (!drawn || !drawn.some((value) => value)) return requestAnimationFrame(look);
        const [paint] = performance.getEntriesByName("first-contentful-paint");
        done(`name ${paint.startTime | 0}, frame ${seen.words | 0}, map ${performance.now() | 0}`);
    };
    look();
})"""
SCROLL = """async () => {
    const table = document.querySelector(".table"), frames = [];
    for (let turn = 0, last = performance.now(); turn < 100; turn += 1) {
        table.scrollTop = (turn * 3001) % (table.scrollHeight - table.clientHeight);
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - last);
        last += frames.at(-1);
    }
    frames.sort((one, other) => one - other);
    return `${table.ariaRowCount - 1} rows, a frame ${frames[50] | 0}, one of twenty ${frames[95] | 0}`;
}"""


def measured(browser: Browser, address: str) -> str:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address, wait_until="commit")
    first = page.evaluate(FIRST)
    page.evaluate("location.hash = '#/queue?sort=pod'")
    page.get_by_role("grid").wait_for()
    scroll = page.evaluate(SCROLL)
    page.close()
    return f"{first}; {scroll}"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        objects = Path(scratch, "objects.yaml")
        objects.write_text(deployment("large", PODS, "cpu: 640"))
        command = ("-m", "kubestow", "up", "--port", "0", "--nodes", str(NODES), "-f", objects)
        with opened(*command, "--kubeconfig", f"{scratch}/kubeconfig") as (address, _), chromium() as browser:
            page = browser.new_page()
            page.goto(address)
            page.evaluate("location.hash = '#/queue'")
            page.get_by_role("button", name=f"Unschedulable {PODS:,}").wait_for(timeout=120_000)
            page.close()
            for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
                print(measured(browser, address), flush=True)


if __name__ == "__main__":
    main()
