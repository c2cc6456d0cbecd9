"""A group of pods that does not fit: the evaluated placements, their reasons, and suggestions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browser.tabs import Browser, address_of, expect, go, tab
from support.cli.up_running import Up

pytestmark = pytest.mark.browser

RACKS = """
nodes:
- {count: 3, name: "a-{}", cpu: 8, labels: {example.com/rack: a}}
- {count: 2, name: "b-{}", cpu: 8, labels: {example.com/rack: b}}
"""
TRAIN = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train}
spec:
  schedulingPolicy: {gang: {minCount: 4}}
  schedulingConstraints: {topology: [{key: example.com/rack}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 4
  completions: 4
  template:
    spec:
      restartPolicy: Never
      schedulingGroup: {podGroupName: train}
      containers: [{name: worker, image: trainer, resources: {requests: {cpu: 6}}}]
"""
FEATURES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"


@pytest.fixture
def racks(tmp_path: Path) -> Iterator[Up]:
    """Run a cluster with racks of three and two nodes, and a job that needs four nodes of one rack."""
    (tmp_path / "nodes.yaml").write_text(RACKS)
    (tmp_path / "train.yaml").write_text(TRAIN)
    files = ("--nodes-file", str(tmp_path / "nodes.yaml"), "-f", str(tmp_path / "train.yaml"))
    up = Up(tmp_path, *files, "--feature-gates", FEATURES)
    yield up
    up.stop()


def test_a_group_shows_its_placements(browser: Browser, racks: Up) -> None:
    """The view has racks a and b with their numbers of placed pods, and that a minCount of three would fit."""
    with tab(browser, address_of(racks)) as page:
        go(page, "#/groups")
        row = page.get_by_role("row").filter(has_text="default/train")
        expect(row).to_contain_text("4 pods pending")
        row.get_by_role("link").click()
        main = page.get_by_role("main")
        expect(main).to_contain_text("Evaluated placements")
        expect(page.locator(".placements")).to_contain_text("3 of 4 pods found a node")
        expect(page.locator(".placements")).to_contain_text("Insufficient cpu")
        expect(page.locator(".fits")).to_contain_text("minCount")
