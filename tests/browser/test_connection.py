"""Who may look, and what is shown while the scheduler is away."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from browser.conftest import address_of
from browser.looking import Browser, expect, go, tab
from cli.up_running import Up

pytestmark = pytest.mark.browser


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_the_page_goes_on_after_a_restart(browser: Browser, tmp_path: Path) -> None:
    """It says that the scheduler is away, keeps what it showed, and is live again with what is new, untouched."""
    port = str(free_port())
    arguments = ("--nodes", "3", "--data-dir", str(tmp_path / "data"), "--page-port", port)
    up = Up(tmp_path, *arguments)
    with tab(browser, address_of(up)) as page:
        nodes = page.locator(".tile").first
        expect(nodes).to_have_text("Nodes3")
        expect(page.get_by_role("banner").get_by_role("status")).to_have_text("Live")
        up.stop(signal.SIGTERM)
        expect(page.locator(".banner.lost")).to_contain_text("does not answer")
        expect(nodes).to_have_text("Nodes3")
        again = Up(tmp_path, *arguments)
        again.create_pod("newcomer", cpu="64")
        expect(page.get_by_role("banner").get_by_role("status")).to_have_text("Live")
        expect(page.locator(".banner.lost")).to_have_count(0)
        go(page, "#/queue")
        expect(page.get_by_role("main")).to_contain_text("default/newcomer")
        again.stop()


def test_without_a_token_the_page_shows_how_to_get_in(browser: Browser, cluster: Up) -> None:
    """And nothing else; a token that is wrong is said to be, and the right one opens."""
    address, _, token = address_of(cluster).partition("#token=")
    with tab(browser, address) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to Kubestow")
        expect(page.get_by_role("main")).to_contain_text("kubectl create token")
        expect(page.get_by_role("navigation")).to_have_count(0)
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        expect(page.locator(".tile").first).to_have_text("Nodes33")


def test_a_token_that_may_not_read_is_told_so(browser: Browser, cluster: Up) -> None:
    """In the words of the scheduler, with what an administrator can do; and nothing else is shown."""
    said = 'forbidden: User "eve" cannot get path "/ui/api/v1"'
    refusal = {"kind": "Status", "status": "Failure", "message": said, "reason": "Forbidden", "code": 403}
    with tab(browser, "about:blank") as page:
        page.route("**/ui/api/v1**", lambda route: route.fulfill(status=403, json=refusal))
        page.goto(address_of(cluster))
        expect(page.get_by_role("heading", level=1)).to_have_text("This token may not look")
        expect(page.get_by_role("alert")).to_have_text(said)
        expect(page.get_by_role("main")).to_contain_text("kubectl create clusterrole")
        expect(page.get_by_role("navigation")).to_have_count(0)


def test_a_scheduler_in_a_cluster_has_the_page_on_its_secure_port(
    browser: Browser, cluster: Up, tmp_path: Path
) -> None:
    """For those whom the API server knows: a token from it opens, and without one there is only the way in."""
    port, kubeconfig, log = str(free_port()), str(cluster.kubeconfig), tmp_path / "log"
    command = (
        sys.executable,
        "-m",
        "kubestow",
        "scheduler",
        "--ui",
        "--leader-elect=false",
        "--kubeconfig",
        kubeconfig,
    )
    reviews = ("--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig)
    with log.open("w") as written:
        scheduler = subprocess.Popen(
            [*command, *reviews, "--secure-port", port, "--bind-address", "127.0.0.1", "--cert-dir", str(tmp_path)],
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:
        while scheduler.poll() is None and "Serving securely" not in log.read_text():
            pass
        assert scheduler.poll() is None, log.read_text()
        with tab(browser, f"https://127.0.0.1:{port}/ui/") as page:
            expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to Kubestow")
            page.get_by_label("Token").fill(cluster.issue_token("default"))
            page.keyboard.press("Enter")
            expect(page.locator(".tile").first).to_have_text("Nodes33")
    finally:
        scheduler.terminate()
        scheduler.wait()
