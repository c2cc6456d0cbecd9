#!/usr/bin/env python3
"""Take pictures of every view of the page, light and dark and on a phone: `scripts/screenshots.py FOLDER`.

They show a cluster with three pools in three zones that fills up, with unschedulable pods, a gated pod and a
preemption. `make browser` installs the requirements.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page

from page_opening import chromium, deployment, opened

NODES = """
nodes:
- {name: "web-{}", count: 90, cpu: 8, memory: 32Gi, zones: [eu-1a, eu-1b, eu-1c], labels: {pool: web, disk: ssd}}
- {name: "batch-{}", count: 36, cpu: 32, memory: 64Gi, zones: [eu-1a, eu-1b, eu-1c], labels: {pool: batch, disk: hdd},
   taints: [{key: dedicated, value: batch, effect: NoSchedule}]}
- {name: "gpu-{}", count: 18, cpu: 16, memory: 128Gi, zones: [eu-1a, eu-1b, eu-1c], labels: {pool: gpu},
   resources: {nvidia.com/gpu: 8}}
"""
TOLERANT = "tolerations: [{operator: Exists}], nodeSelector: {pool: batch}, "
WAVES = [
    [("shop", 180, "cpu: 1500m, memory: 3Gi", ""), ("train", 40, "cpu: 2, memory: 14Gi, nvidia.com/gpu: 2", "")],
    [("report", 50, "cpu: 13, memory: 18Gi", TOLERANT), ("cart", 120, "cpu: 400m, memory: 700Mi", "")],
    [("indexer", 12, "cpu: 12, memory: 8Gi", "nodeSelector: {disk: ssd}, "), ("search", 60, "cpu: 2, memory: 5Gi", "")],
]
REST = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: urgent}
spec:
  priorityClassName: urgent
  nodeSelector: {pool: batch}
  tolerations: [{operator: Exists}]
  containers: [{name: c, image: nginx, resources: {requests: {cpu: 20, memory: 30Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: held}
spec: {schedulingGates: [{name: example.com/quota}], containers: [{name: c, image: nginx}]}
"""
PACKED = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
PAUSE = 1.5
"""Seconds for a view to draw itself."""
PATIENCE = 120_000
"""Timeout in milliseconds, for busy machines."""


def views(page: Page) -> dict[str, str]:
    """Return the location of each picture, by its name."""

    def pod(part: str, outcome: str) -> str:
        page.evaluate(f"location.hash = '#/decisions?outcome={outcome}'")
        link = page.locator(f".table a[href*='/pod/default/{part}']").first
        return str(link.get_attribute("href"))

    return {
        "cluster": "#/cluster",
        "cluster-pools": "#/cluster?colour=memory&group=pool",
        "node": "#/cluster?node=web-7",
        "queue": "#/queue",
        "decisions": "#/decisions",
        "pending": pod("indexer", "unschedulable"),
        "placed": pod("search", "scheduled"),
        "preemption": "#/pod/default/urgent",
        "time": "#/time",
        "compare": "#/compare",
        "try": "#/try",
        "groups": "#/groups",
        "configuration": "#/configuration",
    }


def prepare(page: Page, name: str) -> None:
    """Interact with a view before its picture is taken."""
    if name == "preemption":
        page.get_by_role("group", name="Attempts").get_by_role("button").first.click()
    if name == "compare":
        page.locator("textarea").fill(PACKED)
    if name in ("compare", "try"):
        page.locator("button.primary").click()
        page.locator("main [aria-live] .panel").first.wait_for()
        page.locator("main [aria-live]").first.evaluate("element => element.scrollIntoView()")
        page.mouse.move(0, 0)


def take(folder: Path, address: str) -> None:
    """Take a picture of every view in both themes, and on a phone."""
    settings: dict[str, tuple[Literal["light", "dark"], int, int]] = {
        "light": ("light", 1280, 800),
        "dark": ("dark", 1280, 800),
        "phone": ("light", 390, 780),
    }
    with chromium() as browser:
        for setting, (scheme, width, height) in settings.items():
            page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
            page.set_default_timeout(PATIENCE)
            page.goto(address)
            page.locator(".tile").first.wait_for()
            for name, place in views(page).items():
                page.evaluate("place => { location.hash = place }", place)
                prepare(page, name)
                page.wait_for_timeout(PAUSE * 1000)
                page.screenshot(path=folder / f"{name}-{setting}.png")
        page = browser.new_page()
        page.goto(address.partition("#")[0])
        page.wait_for_timeout(PAUSE * 1000)
        page.screenshot(path=folder / "sign-in.png")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        nodes, kubeconfig = Path(scratch, "nodes.yaml"), Path(scratch, "kubeconfig")
        nodes.write_text(NODES)
        command = ("-m", "kubestow", "up", "--port", "0", "--nodes-file", nodes, "--kubeconfig", kubeconfig)
        with opened(*command) as (address, _):
            for wave in [*("".join(deployment(*entry) for entry in wave) for wave in WAVES), REST]:
                subprocess.run(
                    ["kubectl", "--kubeconfig", kubeconfig, "create", "-f", "-"], input=wave, text=True, check=True
                )
                time.sleep(8)
            take(folder, address)
    print(f"pictures are in {folder}")


if __name__ == "__main__":
    main()
