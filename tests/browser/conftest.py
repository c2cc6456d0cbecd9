"""One browser and one busy cluster for the tests of a module.

Not longer: while Playwright's own event loop exists, tests of asyncio in the same process would find one running.
Playwright is imported where it is used: modules whose tests need it are skipped where it is missing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.cli.up_running import Up
from support.project_scripts import load_script

if TYPE_CHECKING:
    from support.browser.tabs import Browser, Page

NODES = """
nodes:
- {name: "web-{}", count: 24, cpu: 8, memory: 32Gi, zones: [eu-a, eu-b, eu-c], labels: {pool: web, disk: ssd}}
- {name: "batch-{}", count: 9, cpu: 32, memory: 64Gi, zones: [eu-a, eu-b, eu-c], labels: {pool: batch, disk: hdd},
   taints: [{key: dedicated, value: batch, effect: NoSchedule}]}
"""


opening = load_script("page_opening")
OBJECTS = (
    opening.deployment("shop", 60, "cpu: 500m, memory: 500Mi")
    + opening.deployment("report", 9, "cpu: 9", "nodeSelector: {pool: batch}, tolerations: [{operator: Exists}], ")
    + opening.deployment("indexer", 4, "cpu: 12", "nodeSelector: {disk: ssd}, ")
    + "\napiVersion: v1\nkind: Pod\nmetadata: {name: held}\n"
    + "spec: {schedulingGates: [{name: example.com/quota}], containers: [{name: c, image: nginx}]}\n"
)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Return a running Chromium."""
    with opening.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Run `kubestow up` with two pools, running pods, unschedulable pods, and a gated one."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "nodes.yaml").write_text(NODES)
    (folder / "objects.yaml").write_text(OBJECTS)
    up = Up(folder, "--nodes-file", str(folder / "nodes.yaml"), "-f", str(folder / "objects.yaml"))
    try:
        up.pods_when("Running", 69)
        yield up
    finally:
        up.stop()


@pytest.fixture
def page(browser: "Browser", cluster: Up) -> "Iterator[Page]":
    """Open the page of the cluster, signed in."""
    from support.browser.tabs import address_of, tab

    with tab(browser, address_of(cluster)) as opened:
        yield opened


@pytest.fixture
def kubeconfig(cluster: Up) -> Path:
    """Return the kubeconfig of the cluster."""
    return cluster.kubeconfig
