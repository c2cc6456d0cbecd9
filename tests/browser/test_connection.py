"""Who may look, and what is shown while the scheduler is away."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apiserver.running import TOKEN, Running
from browser.conftest import address_of
from browser.looking import Browser, expect, go, tab
from cli.up_running import Up
from free_ports import free_port
from integration.cluster import node
from kubestow.apiserver import Options

pytestmark = pytest.mark.browser


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


@contextmanager
def scheduler(kubeconfig: Path, folder: Path) -> Iterator[str]:
    """`kubestow scheduler --ui` in a process of its own; yields where its page is."""
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
    """For those whom the API server knows: a token from it opens, and without one there is only the way in."""
    with scheduler(cluster.kubeconfig, tmp_path) as address, tab(browser, address) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to Kubestow")
        page.get_by_label("Token").fill(cluster.issue_token("default"))
        page.keyboard.press("Enter")
        expect(page.locator(".tile").first).to_have_text("Nodes33")


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Running]:
    """A control plane that goes by roles: Eve has none, Jane has the one that the page tells of."""
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


def test_roles_decide_who_may_look(browser: Browser, guarded: Running, tmp_path: Path) -> None:
    """Who has none is told so in the scheduler's words, with what an administrator can do, and sees nothing else."""
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
