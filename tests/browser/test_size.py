"""Large clusters, and names that look like markup."""

from typing import Any

import pytest

from support.browser.tabs import Browser, expect, go, modified
from support.cli.up_running import Up

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "x" * 253,
    "\u202egnp.exe",
    "\u05d0\u05d1\u05d2",
    "%2e%2e/?&#\"'",
]
NODES, PODS = 5_000, 10_000
IN_SIGHT = 80
"""More rows than fit on a screen."""


def grown(body: dict[str, Any]) -> None:
    """Replace the cluster by 5,000 nodes that are copies of the existing ones, in the order of an API server."""
    was = len(body["names"])
    for value in list(body.values()) + list(body["allocatable"].values()) + list(body["requested"].values()):
        if isinstance(value, list) and len(value) == was:
            value[:] = [value[place % was] for place in range(NODES)]
    for holder in [body["taints"], *body["labels"].values()]:
        holder["of"] = [holder["of"][place % was] for place in range(NODES)]
    body["names"] = sorted(f"node-{place}" for place in range(NODES))


def crowded(body: dict[str, Any]) -> None:
    """Replace the queue by 10,000 copies of the first unschedulable pod."""
    uid, pod, state = (body["columns"].index(name) for name in ("uid", "pod", "state"))
    row = next(row for row in body["rows"] if row[state] == "unschedulable")
    body["rows"] = []
    for number in range(PODS):
        row = list(row)
        row[uid], row[pod] = f"uid-{number}", f"shop/pod-{number:05}"
        body["rows"].append(row)
    body["counts"]["unschedulable"] = PODS


def test_5000_nodes_fit_on_one_screen(browser: Browser, cluster: Up) -> None:
    """Each has a visible cell without scrolling, in natural order of names."""
    with modified(browser, cluster, cluster=grown) as page:
        go(page, "#/cluster?group=none")
        expect(page.locator(".tile").first).to_have_text("Nodes5,000")
        canvas = page.locator(".heatmap canvas")
        box, map_box = canvas.bounding_box(), page.locator(".heatmap").bounding_box()
        assert box is not None
        assert map_box is not None
        assert box["height"] <= map_box["height"]
        assert map_box["y"] + map_box["height"] <= 800
        canvas.focus()
        page.keyboard.press("End")
        expect(page.locator(".tip")).to_contain_text("node-4999")
        go(page, "#/cluster?show=table&sort=-name")
        expect(page.get_by_role("grid").get_by_role("row").nth(1)).to_contain_text("node-4999")


def test_10000_pending_pods_scroll(browser: Browser, cluster: Up) -> None:
    """Only visible rows are in the document, and they are reused; End goes to the last row, and a filter finds one."""
    with modified(browser, cluster, queue=crowded) as page:
        go(page, "#/queue?by=pods&sort=pod")
        table = page.get_by_role("grid")
        expect(table).to_have_attribute("aria-rowcount", "10001")
        assert table.get_by_role("row").count() < IN_SIGHT
        table.focus()
        page.keyboard.press("End")
        expect(page.get_by_text("pod-09999")).to_be_visible()
        assert table.get_by_role("row").count() < IN_SIGHT
        page.mouse.move(700, 500)
        page.mouse.wheel(0, -36 * 5_000)
        expect(page.get_by_text("pod-04990")).to_be_visible()
        page.evaluate("document.querySelectorAll('.lines .line').forEach((row) => { row.kept = true })")
        page.mouse.wheel(0, 36 * 1_000)
        expect(page.get_by_text("pod-05990")).to_be_visible()
        assert page.evaluate("[...document.querySelectorAll('.lines .line')].every((row) => row.kept)")
        page.get_by_label("Filter the queue").fill("pod-07777")
        expect(table.get_by_role("row")).to_have_count(2)


def test_names_are_data(browser: Browser, cluster: Up) -> None:
    """Names of objects and messages of plugins are shown literally."""

    def rename_nodes(body: dict[str, Any]) -> None:
        body["names"][: len(HOSTILE)] = HOSTILE
        body["labels"]["pool"]["values"][1:] = HOSTILE[:2]

    def rename_pods(body: dict[str, Any]) -> None:
        body["rows"] = [[f"uid-{number}", f"shop/{name}", *body["rows"][0][2:]] for number, name in enumerate(HOSTILE)]
        body["reasons"] = [HOSTILE[1]] * len(body["reasons"])

    def rename_found(body: dict[str, Any]) -> None:
        body["nodes"], body["plugins"] = HOSTILE[:2], HOSTILE[:1]
        body["pods"] = [{"pod": f"shop/{name}", "state": "placed", "node": name} for name in HOSTILE]

    with modified(browser, cluster, cluster=rename_nodes, queue=rename_pods, search=rename_found) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        for place in ("#/cluster?group=pool", "#/cluster?show=table&colour=label:pool", "#/queue?by=pods"):
            go(page, place)
            expect(page.locator(".heatmap, .table").first).to_be_visible()
        rows = page.get_by_role("grid").get_by_role("row")
        for name in HOSTILE:
            expect(rows.filter(has_text=f"shop/{name}")).to_have_count(1)
        link = rows.filter(has_text="alert(1)</script>").get_by_role("link")
        link.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"shop/{HOSTILE[0]}")
        page.get_by_role("combobox", name="Find").fill("x")
        expect(page.get_by_role("option").first).to_contain_text(HOSTILE[0])
        assert page.locator("main script, main img, .found img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
