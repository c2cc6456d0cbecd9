"""Objects of files, which no API server has validated, with names, labels and messages that look like markup."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support.browser.tabs import Browser, Page, expect, go, tab
from support.insight.simulated import PACKING
from support.project_scripts import load_script

pytestmark = pytest.mark.browser

KUBESTOW = (sys.executable, "-m", "kubestow")
IMAGE, SCRIPT = "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>"
FILE, FOLDER = "<img src=x onerror=alert(3)>.yaml", "<img src=x onerror=alert(4)>"


def node(number: int) -> dict[str, Any]:
    taint = {"key": IMAGE, "value": SCRIPT, "effect": "NoSchedule"}
    labels = {IMAGE: SCRIPT, "topology.kubernetes.io/zone": SCRIPT}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"{IMAGE}{number}", "uid": f"n{number}", "labels": labels, "annotations": labels},
        "spec": {"taints": [taint] if number == 0 else []},
        "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10", IMAGE: "3"}},
    }


def pod(name: str, cpu: int, **spec: Any) -> dict[str, Any]:
    container = {"name": IMAGE, "image": SCRIPT, "resources": {"requests": {"cpu": cpu, IMAGE: 1}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {IMAGE: SCRIPT}},
        "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


ITEMS = [
    *(node(number) for number in range(3)),
    *(pod(f"{IMAGE}p{number}", 1) for number in range(3)),
    pod(f"{SCRIPT}big", 1, nodeSelector={IMAGE: "other"}),
    pod(f"{SCRIPT}gated", 1, schedulingGates=[{"name": IMAGE}]),
    pod(f"{SCRIPT}first", 4, priority=1000),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the results of two simulations of the objects."""
    (tmp_path / FILE).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": ITEMS}))
    (tmp_path / "c.yaml").write_text(PACKING)
    for name, options in ((FOLDER, []), ("b", ["--config", "c.yaml"])):
        command = [*KUBESTOW, "simulate", FILE, "--out", name, *options]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """Return the address of the page of both simulations."""
    view = subprocess.Popen([*KUBESTOW, "view", FOLDER, "b"], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert view.stdout is not None
    yield next(filter(None, map(load_script("page_opening").address_in, view.stdout)))
    view.terminate()
    view.communicate()


def no_markup(page: Page) -> None:
    """Fail if a text became an element."""
    assert page.locator("img[src=x], body script").count() == 0


def test_every_view_shows_them_as_text(browser: Browser, address: str) -> None:
    """No view executes a script or creates an element; `tab` fails on errors and on violations of the policy."""
    bigs = f"#/pod/default/{quote(SCRIPT + 'big', safe='')}"
    views = {
        "#/cluster?show=table": IMAGE,
        f"#/cluster?show=map&group={quote(IMAGE)}&colour=label:{quote(IMAGE)}": SCRIPT,
        "#/cluster?show=map&colour=taints": f"{IMAGE}={SCRIPT}:NoSchedule",
        f"#/cluster?node={quote(IMAGE + '0')}": "Recent rejections",
        "#/queue?by=pods": SCRIPT,
        f"#/queue?follow={quote(SCRIPT + 'gated')}": f"waiting for scheduling gates: [{IMAGE}]",
        "#/decisions": f"default/{IMAGE}p1",
        bigs: "untolerated taint",
        f"{bigs}?why=0": "node(s) didn't match Pod's node affinity/selector",
        f"#/pod/default/{quote(IMAGE + 'p0', safe='')}": "NodeResourcesFit",
        "#/groups": "No pod groups",
        f"#/groups/default/{quote(IMAGE, safe='')}": f"no pod group default/{IMAGE}",
        "#/compare": FOLDER,
        f"#/configuration?plugin={quote(IMAGE)}": "NodeResourcesFit",
        f"#/{quote(IMAGE, safe='')}": "This view does not exist",
    }
    with tab(browser, address) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        for place, text in views.items():
            go(page, place)
            expect(page.get_by_role("main")).to_contain_text(text)
            no_markup(page)
        page.get_by_role("combobox", name="Find").fill("img")
        expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text(IMAGE)
        go(page, "#/cluster?show=map")
        page.locator(".heatmap canvas").focus()
        page.keyboard.press("Home")
        expect(page.locator(".tip")).to_contain_text(IMAGE)
        no_markup(page)


def test_the_report_shows_them_as_text(browser: Browser, folder: Path) -> None:
    """The report of a simulation executes no script, even if the text of an object were not escaped."""
    report = folder / FOLDER / "report.html"
    with tab(browser, report.as_uri()) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        expect(page.locator("body")).to_contain_text(f"default/{SCRIPT}big")
        no_markup(page)
    broken = folder / "broken.html"
    broken.write_text(report.read_text().replace("<h1>", "<script>document.title = 'executed'</script><h1>"))
    page = browser.new_page()
    page.goto(broken.as_uri())
    assert page.title() != "executed"
    page.close()
