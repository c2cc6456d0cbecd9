"""The shipped plugins are entry points of the package: every command finds them when a configuration names them."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubestow.cli import main
from kubestow.plugin.loading import PluginCollection
from support.cli.up_running import Up
from support.integration.custom_definitions import QUOTAS, definition
from support.polling import until
from support.repository import ROOT

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {enabled: [{name: CapacityScheduling}]}
      postFilter: {disabled: [{name: DefaultPreemption}]}
"""
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8, memory: 8Gi, pods: 10}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: default}
spec: {min: {cpu: 1}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 2}}}]}
"""
REJECTED = "total ElasticQuota used is more than min"


@pytest.fixture(autouse=True)
def entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Provide the entry points as an installation of this version does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = project["entry-points"]["kubestow.plugins"]
    info = tmp_path / "packages" / "kubestow-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kubestow\nVersion: 0\n")
    lines = (f"{name} = {value}\n" for name, value in found.items())
    (info / "entry_points.txt").write_text("[kubestow.plugins]\n" + "".join(lines))
    monkeypatch.syspath_prepend(str(info.parent))
    return found


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *command: str) -> str:
    for name, text in (("scheduler.yaml", CONFIGURATION), ("cluster.yaml", CLUSTER), ("pod.yaml", POD)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return CliRunner().invoke(main, list(command)).output


def test_every_entry_point_is_a_plugin_of_its_name(entry_points: dict[str, str]) -> None:
    plugins = PluginCollection()
    assert all(plugins[name] for name in entry_points)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("simulate", "cluster.yaml", "pod.yaml", "--config", "scheduler.yaml"), REJECTED),
        (("explain", "-f", "pod.yaml", "--cluster", "cluster.yaml", "--config", "scheduler.yaml"), REJECTED),
        (("capacity", "--podspec", "pod.yaml", "--cluster", "cluster.yaml", "--config", "scheduler.yaml"), REJECTED),
        (
            ("compare", "cluster.yaml", "pod.yaml", "--config", "default", "--config", "scheduler.yaml"),
            "CapacityScheduling",
        ),
        (("config", "validate", "scheduler.yaml"), ""),
    ],
)
def test_commands_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], text: str
) -> None:
    output = run(tmp_path, monkeypatch, *command)
    assert text in output
    assert "does not exist" not in output
    assert "Ignored" not in output


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        ("CapacityScheduling", "{limit: 1}", "args.limit: is not a known field; the plugin has no arguments"),
        ("TargetLoadPacking", "{targetUtilization: 0}", "targetUtilization: Invalid value: 0"),
        ("LowRiskOverCommitment", "{riskLimitWeights: {cpu: 7}}", "riskLimitWeights[cpu]: Invalid value"),
        ("NodeResourceTopologyMatch", "{scoringStrategy: {type: Any}}", "scoringStrategy.type: Invalid value"),
    ],
)
def test_a_configuration_with_wrong_arguments_is_invalid(tmp_path: Path, plugin: str, args: str, problem: str) -> None:
    """It is before a scheduler is started with it."""
    text = CONFIGURATION.replace("CapacityScheduling", plugin) + f"    pluginConfig: [{{name: {plugin}, args: {args}}}]"
    (tmp_path / "scheduler.yaml").write_text(text)
    result = CliRunner().invoke(main, ["config", "validate", str(tmp_path / "scheduler.yaml")])
    assert result.exit_code == 1
    assert problem in result.output


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """A cluster with the objects and their definition in files."""
    (tmp_path / "scheduler.yaml").write_text(CONFIGURATION)
    (tmp_path / "crds.json").write_text(json.dumps(definition("scheduling.x-k8s.io", "ElasticQuota")))
    (tmp_path / "objects.yaml").write_text(f"{CLUSTER}---{POD}")
    manifests = ("-f", str(tmp_path / "crds.json"), "-f", str(tmp_path / "objects.yaml"))
    options = ("--plugin", "kubestow.contrib.capacity", "--config", str(tmp_path / "scheduler.yaml"))
    started = Up(tmp_path, *manifests, *options)
    yield started
    code, _, errors = started.stop()
    assert (code, errors) == (0, "")


def test_a_local_cluster_has_definitions_before_its_scheduler_starts(up: Up) -> None:
    """Objects that come later are seen as well."""

    def message() -> str:
        conditions = up.get("/api/v1/namespaces/default/pods/p")["status"].get("conditions", [])
        return next((one["message"] for one in conditions if one["type"] == "PodScheduled"), "")

    until(message)
    assert REJECTED in message()
    quota = {"metadata": {"name": "more"}, "spec": {"min": {"cpu": 2}}}
    up.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
    up.create(QUOTAS.replace("default", "other"), quota)
    up.pods_when("Running", 1)


def test_explain_finds_plugins_of_the_running_scheduler(up: Up, tmp_path: Path) -> None:
    """Their kinds are read as well, without --config."""
    (tmp_path / "other.yaml").write_text(POD.replace("name: p", "name: other"))
    command = ["explain", "-f", str(tmp_path / "other.yaml"), "--kubeconfig", str(up.kubeconfig)]
    assert REJECTED in CliRunner().invoke(main, command).output
