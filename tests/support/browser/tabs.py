"""Opens the page in a tab of a real Chromium."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.cli.up_running import Up
from support.project_scripts import load_script
from support.repository import ROOT

try:
    from playwright.sync_api import Browser, Page, expect
except ImportError:
    pytest.skip("Playwright is missing; make browser gets it", allow_module_level=True)

__all__ = ["AXE", "Browser", "Page", "expect", "go", "modified", "tab"]

if shutil.which("chromium") is None:
    pytest.skip("Chromium is missing; make browser gets it", allow_module_level=True)

AXE = ROOT / ".tools/axe/axe.min.js"
# Long enough for a busy machine; tests only wait until a condition is met.
PATIENCE = 300_000
expect.set_options(timeout=PATIENCE)

_EXPECTED = ("Failed to load resource", "net::ERR_")
"""Messages that Chromium logs for error responses and unreachable servers."""


@contextmanager
def tab(browser: Browser, address: str, **settings: Any) -> Iterator[Page]:
    """Open the page; fails if it logs an error or raises, including violations of its security policy."""
    settings = {"viewport": {"width": 1280, "height": 800}, "ignore_https_errors": True, **settings}
    context = browser.new_context(**settings)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda message: (
            errors.append(message.text)
            if message.type == "error" and not any(known in message.text for known in _EXPECTED)
            else None
        ),
    )
    page.goto(address)
    yield page
    context.close()
    assert errors == []


def go(page: Page, place: str) -> None:
    """Open a view like a link."""
    page.evaluate("place => { location.hash = place }", place)


opening = load_script("page_opening")


def address_of(cluster: Up) -> str:
    """Return the address of the page, with the token."""
    found: str | None = opening.address_in("\n".join(cluster.lines))
    assert found is not None, cluster.lines
    return found


def _changing(change: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a handler that modifies the true response."""

    def answer(route: Any) -> None:
        body = route.fetch().json()
        change(body)
        route.fulfill(json=body)

    return answer


@contextmanager
def modified(browser: Browser, up: Up, **answers: Any) -> Iterator[Page]:
    """Open the page with modified responses: for each path, a function that changes the true response."""
    with tab(browser, "about:blank") as page:
        for path, change in answers.items():
            page.route(f"**/ui/api/v1/{path}*", _changing(change))
        page.goto(address_of(up))
        yield page
        page.unroute_all(behavior="ignoreErrors")
