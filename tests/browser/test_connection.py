"""Access to the page, and the page while the scheduler is unreachable."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubestow.apiserver import Options
from support.apiserver.running import TOKEN, Running
from support.browser.tabs import Browser, address_of, expect, go, tab
from support.cli.up_running import Up
from support.free_ports import free_port
from support.integration.cluster import node

pytestmark = pytest.mark.browser


def test_the_page_continues_after_a_restart(browser: Browser, tmp_path: Path) -> None:
    """It reports the lost connection, keeps its data, and reconnects and shows new data by itself."""
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


def test_without_a_token_the_page_shows_how_to_sign_in(browser: Browser, cluster: Up) -> None:
    """It shows nothing else; a wrong token is rejected, and the right one is accepted."""
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


@contextmanager
def scheduler(kubeconfig: Path, folder: Path) -> Iterator[str]:
    """Run `kubestow scheduler --ui` in a process; yield the address of its page."""
    port, log = str(free_port()), folder / "log"
    command = [sys.executable, "-m", "kubestow", "scheduler", "--ui", "--leader-elect=false"]
    command += [f"--{what}kubeconfig={kubeconfig}" for what in ("", "authentication-", "authorization-")]
    command += ["--secure-port", port, "--bind-address", "127.0.0.1", "--cert-dir", str(folder)]
    with log.open("w") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT)
    try:
        while process.poll() is None and "Serving securely" not in log.read_text():
            pass
        assert process.poll() is None, log.read_text()
        yield f"https://127.0.0.1:{port}/ui/"
    finally:
        process.terminate()
        process.wait()


def test_a_scheduler_in_a_cluster_has_the_page_on_its_secure_port(
    browser: Browser, cluster: Up, tmp_path: Path
) -> None:
    """A token of the API server is accepted; without one, only the sign-in is shown."""
    with scheduler(cluster.kubeconfig, tmp_path) as address, tab(browser, address) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to Kubestow")
        page.get_by_label("Token").fill(cluster.issue_token("default"))
        page.keyboard.press("Enter")
        expect(page.locator(".tile").first).to_have_text("Nodes33")


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Running]:
    """Run a control plane with RBAC: Eve has no role, Jane has the role that the page describes."""
    (tmp_path / "tokens.csv").write_text("t-eve,eve,1\nt-jane,jane,2\n")
    running = Running(
        Options(token=TOKEN, token_file=tmp_path / "tokens.csv", controllers=False, kubelets=False, rbac=True)
    )
    admin, name, group = running.client(), "scheduler-page", "rbac.authorization.k8s.io"
    admin.create("/api/v1/nodes", node("n1"))
    rule = {"verbs": ["get", "post"], "nonResourceURLs": ["/ui/api/*"]}
    admin.create(f"/apis/{group}/v1/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
    }
    admin.create(f"/apis/{group}/v1/clusterrolebindings", binding)
    yield running
    running.stop()


def test_roles_control_access(browser: Browser, guarded: Running, tmp_path: Path) -> None:
    """A user without a role only sees the scheduler's message, and what an administrator can do."""
    with scheduler(guarded.control_plane.kubeconfig_path, tmp_path) as address, tab(browser, address) as page:
        page.get_by_label("Token").fill("t-eve")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Access denied")
        expect(page.get_by_role("alert")).to_contain_text('User "eve" cannot get path "/ui/api/v1')
        expect(page.get_by_role("main")).to_contain_text("kubectl create clusterrole")
        expect(page.get_by_role("navigation")).to_have_count(0)
        page.get_by_label("Token").fill("t-jane")
        page.keyboard.press("Enter")
        expect(page.locator(".tile").first).to_have_text("Nodes1")
        expect(page.get_by_role("banner").get_by_role("status")).to_have_text("Live")
