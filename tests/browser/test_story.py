"""A pending pod, from kubectl create to the change that lets it run; and use without a mouse."""

import subprocess
from pathlib import Path

import pytest

from support.apiserver.kubectl import PROBLEM
from support.browser.tabs import Page, expect, go

pytestmark = pytest.mark.browser

BIG = """
apiVersion: v1
kind: Pod
metadata: {name: big}
spec:
  nodeSelector: {pool: batch}
  containers:
  - {name: big, image: nginx, resources: {requests: {cpu: 2}}}
"""


URGENT = """
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
  containers:
  - {name: urgent, image: nginx, resources: {requests: {cpu: 30}}}
"""


def kubectl(kubeconfig: Path, *arguments: str, text: str | None = None) -> None:
    """Run kubectl in the cluster."""
    subprocess.run(["kubectl", "--kubeconfig", kubeconfig, *arguments], input=text, text=True, check=True)


@pytest.mark.kubectl
@pytest.mark.skipif(PROBLEM is not None, reason=PROBLEM or "")
def test_a_pending_pod_is_explained_and_fixed(page: Page, kubeconfig: Path) -> None:
    """The pod appears by itself; the page suggests changes; after one of them, the pod is shown as scheduled."""
    go(page, "#/queue?filter=big")
    expect(page.get_by_role("main")).to_contain_text("No matching pods")
    kubectl(kubeconfig, "create", "-f", "-", text=BIG)
    row = page.get_by_role("row").filter(has_text="default/big")
    expect(row).to_contain_text("Unschedulable")
    row.get_by_role("link").click()
    expect(page.get_by_role("main")).to_contain_text("0/33 nodes are available")
    fits = page.locator(".fits")
    expect(fits).to_contain_text("toleration of dedicated=batch:NoSchedule added")
    expect(fits).to_contain_text("opens 9 nodes")
    kubectl(kubeconfig, "taint", "nodes", "batch-4", "dedicated-")
    expect(page.get_by_role("main")).to_contain_text("on batch-4")
    expect(page.locator(".fits")).to_have_count(0)
    expect(page.get_by_role("group", name="Attempts").get_by_role("button")).to_have_count(2)


@pytest.mark.kubectl
@pytest.mark.skipif(PROBLEM is not None, reason=PROBLEM or "")
def test_preemption_shows_candidates_and_victims(page: Page, kubeconfig: Path) -> None:
    """The first attempt still shows them after the pod has its node."""
    kubectl(kubeconfig, "create", "-f", "-", text=URGENT)
    go(page, "#/decisions")
    page.get_by_role("row").filter(has_text="default/urgent").first.get_by_role("link").first.click()
    attempts = page.get_by_role("group", name="Attempts").get_by_role("button")
    attempts.first.click()
    main = page.get_by_role("main")
    expect(main).to_contain_text("Nominated node: batch-")
    expect(main).to_contain_text("default/report-")
    expect(page.get_by_role("region", name="Candidates").get_by_role("row")).to_have_count(10)


def test_everything_works_without_a_mouse(page: Page) -> None:
    """Skip to the view, move on the map, open and close a node; then open the queue and one of its rows."""
    expect(page.locator(".heatmap canvas")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to the view")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    for _ in range(5):
        page.keyboard.press("Tab")
    expect(page.locator(".heatmap canvas")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip")).to_be_visible()
    expect(page.locator(".heatmap [aria-live]")).to_contain_text("cpu requested")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("grid", name="Pods in the queue").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_contain_text("default/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keys")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
