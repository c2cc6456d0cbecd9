"""Dry runs in what a simulation has kept: the cluster as it was in the end, with the configuration of then."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubestow.cli import main
from kubestow.insight.page.api import Api
from kubestow.insight.page.pages import Site
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator.page_files import read
from web.looking import API, Reader, ask, served
from web.test_view import PACKING

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
    """Two nodes with three small pods between them, and one that is too big for what is left."""
    return simulated(tmp_path_factory.mktemp("tried"))


def simulated(folder: Path, *options: str) -> Path:
    (folder / "s.yaml").write_text(SCENARIO)
    ran = CliRunner().invoke(main, ["simulate", str(folder / "s.yaml"), "--out", str(folder / "out"), *options])
    assert ran.exit_code == 0, ran.output
    return folder / "out"


def post(folder: Path, path: str, body: str) -> tuple[int, Any]:
    """What a POST is answered."""

    async def send(reader: Reader) -> tuple[int, Any]:
        answer = await reader.get(API + path, "POST", body)
        return answer.status, answer.tree

    found: tuple[int, Any] = served(Site(Api([read(folder)])), send)
    return found


def test_what_would_help_a_pod_that_waits_in_the_end(folder: Path) -> None:
    """Found by the same engine as in a live scheduler."""
    about, found = ask(Site(Api([read(folder)])), "", "/explain/default/big-0")
    assert about["can"] == {"explain": True, "try": True, "compare": True}
    assert found["decision"]["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert "request of cpu lowered from 3600m to 3500m" in {one["change"] for one in found["wouldFitIf"]}


def test_a_pod_is_tried_in_the_cluster_of_the_end(folder: Path) -> None:
    """It goes where there is room, beside the pods that are there."""
    status, tree = post(folder, "/try", POD)
    assert status == 200
    (item,) = tree["items"]
    assert item["decision"]["chosen"] in {"node-0", "node-1"}
    assert item["decision"]["nodeCount"] == 2
    assert item["matrix"]["plugins"]


def test_another_configuration_is_compared(folder: Path) -> None:
    """Pods that wait, and those that were placed."""
    status, tree = post(folder, "/compare", PACKING)
    assert (status, tree["pods"]) == (200, 4)


def test_a_plugin_that_is_missing_is_named(tmp_path: Path) -> None:
    """With it, pods can be tried."""
    (tmp_path / "fussy.py").write_text(PLUGIN)
    (tmp_path / "c.yaml").write_text(WITH_PLUGIN)
    out = simulated(tmp_path, "--config", str(tmp_path / "c.yaml"), "--plugin", str(tmp_path / "fussy.py"))
    run = read(out)
    assert run.bench is None
    assert "Fussy" in run.cannot_try
    assert read(out, PluginCollection([str(tmp_path / "fussy.py")])).bench is not None
