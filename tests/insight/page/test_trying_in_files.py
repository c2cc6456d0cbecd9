"""Dry runs in the results of a simulation: the cluster at its end, with the configuration at that time."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubestow.cli import main
from kubestow.insight.page.api import Api
from kubestow.insight.page.pages import Site
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator.page_files import read
from support.insight.page_harness import API, Reader, ask, served
from support.insight.simulated import PACKING

SCENARIO = """apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  duration: 2m
  nodes:
  - {count: 2, name: "node-{}", cpu: 4, memory: 32Gi}
  arrivals:
  - name: small
    pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}}
    times: [10, 11, 12]
  - name: big
    pod: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3600m}}}]}}
    times: [20]
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: tried}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}
"""
PLUGIN = """class Fussy:
    name = "Fussy"

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, node):
        return None
"""
WITH_PLUGIN = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {filter: {enabled: [{name: Fussy}]}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results with two nodes, three small pods, and a pod that is too large."""
    return simulated(tmp_path_factory.mktemp("tried"))


def simulated(folder: Path, *options: str) -> Path:
    (folder / "s.yaml").write_text(SCENARIO)
    ran = CliRunner().invoke(main, ["simulate", str(folder / "s.yaml"), "--out", str(folder / "out"), *options])
    assert ran.exit_code == 0, ran.output
    return folder / "out"


def post(folder: Path, path: str, body: str) -> tuple[int, Any]:
    """Return the response to a POST."""

    async def send(reader: Reader) -> tuple[int, Any]:
        answer = await reader.get(API + path, "POST", body)
        return answer.status, answer.tree

    found: tuple[int, Any] = served(Site(Api([read(folder)])), send)
    return found


def test_changes_that_would_help_a_pending_pod(folder: Path) -> None:
    """They are found by the same engine as in a live scheduler."""
    about, found = ask(Site(Api([read(folder)])), "", "/explain/default/big-0")
    assert about["can"] == {"explain": True, "try": True, "compare": True}
    assert found["decision"]["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert "request of cpu lowered from 3600m to 3500m" in {one["change"] for one in found["wouldFitIf"]}


def test_a_dry_run_in_the_cluster_at_the_end(folder: Path) -> None:
    """The pod gets a node with enough capacity beside the existing pods."""
    status, tree = post(folder, "/try", POD)
    assert status == 200
    (item,) = tree["items"]
    assert item["decision"]["chosen"] in {"node-0", "node-1"}
    assert item["decision"]["nodeCount"] == 2
    assert item["matrix"]["plugins"]


def test_another_configuration_is_compared(folder: Path) -> None:
    """Pending and scheduled pods are compared."""
    status, tree = post(folder, "/compare", PACKING)
    assert (status, tree["pods"]) == (200, 4)


def test_a_missing_plugin_is_named(tmp_path: Path) -> None:
    """With the plugin, dry runs are possible."""
    (tmp_path / "fussy.py").write_text(PLUGIN)
    (tmp_path / "c.yaml").write_text(WITH_PLUGIN)
    out = simulated(tmp_path, "--config", str(tmp_path / "c.yaml"), "--plugin", str(tmp_path / "fussy.py"))
    run = read(out)
    assert run.bench is None
    assert "Fussy" in run.no_dry_runs_reason
    assert read(out, PluginCollection([str(tmp_path / "fussy.py")])).bench is not None
