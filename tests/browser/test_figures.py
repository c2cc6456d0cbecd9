"""The figures that the page computes, and how much room they take."""

import re
from typing import Any

import pytest

from kubestow.simulator.utilization import Utilization
from support.browser.tabs import Browser, Page, expect, go, modified
from support.cli.up_running import Up

pytestmark = pytest.mark.browser


def row_of(body: dict[str, Any], pod: str) -> list[Any]:
    """Return the first row of the queue whose pod has a name that starts with a text."""
    return next(row for row in body["rows"] if row[body["columns"].index("pod")].startswith(pod))


def test_a_pending_pod_has_waited_since_its_creation(browser: Browser, cluster: Up) -> None:
    """Not since its previous attempt, which is at most five minutes ago; each attempt has the time until then."""

    def created_earlier(body: dict[str, Any]) -> None:
        row = row_of(body, "default/indexer")
        row[body["columns"].index("created")] = body["time"] - 33 * 60

    numbers = []

    def attempted_again(body: dict[str, Any]) -> None:
        numbers.append(body["decision"]["id"])
        body["decision"]["time"] = "2026-01-31T12:33:00Z"
        body["decision"]["queue"] |= {"firstAttempt": "2026-01-31T12:02:00Z", "waited": 300.0}

    with modified(browser, cluster, queue=created_earlier, **{"decisions/default/": attempted_again}) as page:
        go(page, "#/queue?filter=indexer&sort=-age")
        page.get_by_role("row").nth(1).get_by_role("link").click()
        waited = page.locator("dt:text-is('Waited') + dd")
        expect(waited).to_have_text(re.compile("^33 min"))
        go(page, f"{page.evaluate('location.hash')}?id={numbers[0]}")
        expect(waited).to_have_text("31 min")


def test_shares_are_those_of_the_command(page: Page) -> None:
    """`kubestow capacity` rounds down, so that only a full node has 100 %; so does the page."""
    found = page.evaluate(
        "import('./lib/format.js').then(({percent}) => [...Array(1001).keys()].map((part) => percent(part / 1000)))"
    )
    command = [Utilization("n", 1000, 0, cpu_requests=part).cells()[0].split("(")[1] for part in range(1001)]
    assert found == [share.removesuffix(")") for share in command]
    assert found[:2] == ["0 %", "<1 %"]


def test_durations_are_rounded_once(page: Page) -> None:
    """A fraction of a second below a minute does not hide the minute."""
    given = [0.0004, 0.25, 59.4, 59.7, 119.7, 599.9, 3599.9, 5400, 86399.9, 180000]
    found = page.evaluate("given => import('./lib/format.js').then(({duration}) => given.map(duration))", given)
    assert found == ["400 µs", "250 ms", "59 s", "1 min", "2 min", "10 min", "1 h", "1 h 30 min", "1 d 0 h", "2 d 2 h"]


def test_a_measurement_without_neighbours_is_visible(browser: Browser, cluster: Up) -> None:
    """A chart has a dot for a moment that has a value if the moments before and after it have none."""

    def alone(body: dict[str, Any]) -> None:
        count = len(body["time"])
        values: list[float | None] = [None] * count
        values[count // 2] = 0.01
        body["cycle"] = {"p50": values, "p99": [None] * count}

    with modified(browser, cluster, times=alone) as page:
        go(page, "#/time")
        canvas = page.get_by_role("img", name="Scheduling cycle")
        expect(canvas).to_be_visible()
        page.wait_for_function(
            """canvas => {
                const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const blue = [0x2f, 0x55, 0xd4, 0xff];
                const like = (at) => blue.every((part, place) => Math.abs(data[at + place] - part) < 64);
                return Array.from({length: data.length / 4}, (_, pixel) => pixel * 4).some(like);
            }""",
            arg=canvas.element_handle(),
        )


def test_a_pending_pod_fits_on_one_screen(page: Page) -> None:
    """The reasons of nodes are numbers; a table has the nodes of one reason."""
    page.set_viewport_size({"width": 1440, "height": 900})
    go(page, "#/decisions?outcome=unschedulable")
    page.get_by_role("row").filter(has_text="indexer").first.get_by_role("link").click()
    expect(page.locator(".fits")).to_contain_text("request of cpu lowered")
    expect(page.get_by_role("list", name="Outcomes of nodes").get_by_role("button")).to_have_count(2)
    assert page.evaluate(
        "(({scrollHeight, clientHeight}) => scrollHeight <= clientHeight)(document.querySelector('main'))"
    )
    expect(page.get_by_role("grid")).to_be_hidden()
    page.get_by_role("button", name="untolerated taint").click()
    expect(page.get_by_role("grid").get_by_role("row").nth(1)).to_contain_text("batch-0")


def test_few_nodes_are_a_table(browser: Browser, cluster: Up) -> None:
    """The table names them; the map is one click away."""

    def shrunk(body: dict[str, Any]) -> None:
        was = len(body["names"])
        for value in [*body.values(), *body["allocatable"].values(), *body["requested"].values()]:
            if isinstance(value, list) and len(value) == was:
                del value[3:]

    with modified(browser, cluster, cluster=shrunk) as page:
        expect(page.get_by_role("grid", name="Nodes").get_by_role("row")).to_have_count(4)
        page.get_by_role("button", name="Map").click()
        expect(page.locator(".heatmap canvas")).to_be_visible()


def test_a_pod_that_fits_nowhere_does_not_fit_without_changes(browser: Browser, cluster: Up) -> None:
    """Without nodes, no change is tried, and none helps."""

    def without_nodes(body: dict[str, Any]) -> None:
        (item,) = body["items"]
        item["decision"] |= {"outcome": "unschedulable", "chosen": None}

    with modified(browser, cluster, **{"try": without_nodes}) as page:
        go(page, "#/try")
        page.get_by_role("button", name="Try", exact=True).click()
        expect(page.locator(".fits")).to_contain_text("No single change")


def test_many_attempts_fit_a_phone(browser: Browser, cluster: Up) -> None:
    """The buttons of the last twelve attempts are wrapped."""

    def repeated(body: dict[str, Any]) -> None:
        body["attempts"] = [body["attempts"][0] | {"id": number} for number in range(40)]

    with modified(browser, cluster, **{"decisions/default/": repeated}) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        go(page, "#/queue?filter=indexer")
        page.get_by_role("row").nth(1).get_by_role("link").click()
        expect(page.get_by_role("group", name="Attempts").get_by_role("button")).to_have_count(12)
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 390
