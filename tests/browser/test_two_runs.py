"""Results of two simulations side by side, as `kubestow view` shows them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser.tabs import Browser, expect, go, tab
from support.insight.simulated import PACKING, SCENARIO
from support.project_scripts import load_script

pytestmark = pytest.mark.browser

KUBESTOW = (sys.executable, "-m", "kubestow")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Return the address of a page with two runs of a scenario, the second with a configuration that packs."""
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "c.yaml").write_text(PACKING)
    for name, options in (("spread", []), ("packed", ["--config", "c.yaml"])):
        command = [*KUBESTOW, "simulate", "s.yaml", "--out", name, *options]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    view = subprocess.Popen([*KUBESTOW, "view", "spread", "packed"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert view.stdout is not None
    yield next(filter(None, map(load_script("page_opening").address_in, view.stdout)))
    view.terminate()
    view.communicate()


def test_two_runs_are_compared_and_shown(browser: Browser, address: str) -> None:
    """Moved pods have reasons; each run can be shown at any moment, and dry runs are possible at its end.

    Times are without a date, as they are all near the end.
    """
    with tab(browser, address) as page:
        expect(page.get_by_role("banner").get_by_role("status")).to_have_text("Recorded")
        go(page, "#/decisions")
        time = page.get_by_role("row").nth(1).get_by_role("gridcell").first
        expect(time).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
        go(page, "#/compare")
        expect(page.locator(".group").first).to_contain_text("NodeResourcesFit")
        page.get_by_label("Run").select_option(index=1)
        go(page, "#/time?run=1")
        expect(page.get_by_role("main")).to_contain_text("Pods per second")
        slider = page.get_by_role("slider")
        expect(slider).to_be_enabled()
        slider.focus()
        page.keyboard.press("Home")
        expect(page.locator(".banner.past")).to_contain_text("To the end")
        go(page, "#/try?run=1")
        page.get_by_role("button", name="Try").click()
        expect(page.get_by_role("region", name="default/example")).to_contain_text("would run on node-")
