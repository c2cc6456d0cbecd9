"""`kubestow explain` decides as the cluster's scheduler does: with the configuration and the gates that it serves."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubestow import config
from support.cli.explain_files import node, pod, run_explain
from support.cli.up_running import Up
from support.polling import until

GATE = "TaintTolerationComparisonOperators"
NODES = """
nodes:
- {name: plain, cpu: 4}
- {name: tainted, cpu: 16, taints: [{key: level, value: "7", effect: NoSchedule}]}
"""
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
- schedulerName: second
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 9}]}}
"""
HOMEMADE = """
class Homemade:
    name = "Homemade"

    def __init__(self, args, handle): ...

    def filter(self, state, pod, node):
        return "not today"
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster whose scheduler takes no notice of taints, has a second profile, and a gate on."""
    folder = tmp_path_factory.mktemp("up")
    (folder / "nodes.yaml").write_text(NODES)
    (folder / "config.yaml").write_text(CONFIGURATION)
    files = ("--nodes-file", str(folder / "nodes.yaml"), "--config", str(folder / "config.yaml"))
    started = Up(folder, *files, "--feature-gates", f"{GATE}=true")
    started.create_pod("big", "8")
    started.create_pod("huge", "20")
    started.pods_when("Running", 1)
    until(lambda: started.get("/api/v1/namespaces/default/pods/huge")["status"].get("conditions"))
    yield started
    started.stop()


def explain(kubeconfig: Path | str, *arguments: str) -> dict[str, Any]:
    done = run_explain(*arguments, "-o", "json", "--kubeconfig", str(kubeconfig))
    assert done.exit_code == 0, done.output
    decision: dict[str, Any] = json.loads(done.output)
    return decision


def test_a_dry_run_decides_as_the_running_scheduler(up: Up, tmp_path: Path) -> None:
    """A plugin that is off there is off here; what the command line says wins."""
    assert up.get("/api/v1/namespaces/default/pods/big")["spec"]["nodeName"] == "tainted"
    manifest, default = tmp_path / "pod.json", tmp_path / "default.yaml"
    manifest.write_text(json.dumps(pod("trial", "8")))
    default.write_text(config.dump(config.default()))
    decision = explain(up.kubeconfig, "-f", str(manifest))
    assert (decision["chosen"], decision.get("notes")) == ("tainted", None)
    decision = explain(up.kubeconfig, "-f", str(manifest), "--config", str(default))
    assert (decision["outcome"], decision.get("notes")) == ("unschedulable", None)
    assert decision["nodes"]["tainted"]["rejected"]["plugin"] == "TaintToleration"


def test_what_would_help_is_tried_as_the_running_scheduler_would(up: Up) -> None:
    """The record is the scheduler's, and what would help fits it."""
    decision = explain(up.kubeconfig, "huge")
    assert (decision["source"], decision["outcome"], decision.get("notes")) == ("scheduler", "unschedulable", None)
    (lowered,) = (one for one in decision["wouldFitIf"] if one["side"] == "pod")
    assert (lowered["change"], lowered["nodes"]) == ("request of cpu lowered from 20 to 8", ["tainted"])
    assert "rejected" not in explain(up.kubeconfig, "big", "--against", "tainted")["against"]


def test_every_profile_of_the_running_scheduler_is_known(up: Up, tmp_path: Path) -> None:
    """With its weights."""
    manifest = tmp_path / "pod.json"
    manifest.write_text(json.dumps(pod("trial", schedulerName="second")))
    decision = explain(up.kubeconfig, "-f", str(manifest))
    assert (decision["chosen"], decision["weights"]) == ("plain", {"NodeResourcesFit": 9})


def test_gates_are_those_of_the_running_scheduler(up: Up, tmp_path: Path) -> None:
    """Unless the command line has others."""
    manifest = tmp_path / "pod.json"
    toleration = {"key": "level", "operator": "Gt", "value": "5", "effect": "NoSchedule"}
    manifest.write_text(json.dumps(pod("trial", "8", schedulerName="second", tolerations=[toleration])))
    decision = explain(up.kubeconfig, "-f", str(manifest))
    assert (decision["chosen"], decision.get("notes")) == ("tainted", None)
    decision = explain(up.kubeconfig, "-f", str(manifest), "--feature-gates", f"{GATE}=false")
    assert decision["outcome"] == "unschedulable"


class _Cluster(http.server.BaseHTTPRequestHandler):
    """An API server with one node, and a scheduler's pages beside it."""

    pages: dict[str, Any] = {}
    asked: list[str] = []

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        page = self.pages.get(path)
        if path == "/api/v1/nodes":
            page = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [node("a")]}
        elif path == "/api/v1/namespaces/default/pods/web":
            page = pod("web")
        elif page is None:
            message = f"jane cannot get {path}"
            page = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}
        data = page.encode() if isinstance(page, str) else json.dumps(page).encode()
        self.send_response(403 if page and "reason" in page else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class Fake:
    """The cluster, and a kubeconfig that names its scheduler."""

    def __init__(self, folder: Path, port: int) -> None:
        url = f"http://127.0.0.1:{port}"
        scheduler = {"name": "kubestow.dev/scheduler", "extension": {"server": url}}
        cluster = {"name": "c", "cluster": {"server": url, "extensions": [scheduler]}}
        context = {"name": "c", "context": {"cluster": "c"}}
        written = {"clusters": [cluster], "contexts": [context], "current-context": "c"}
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(written))
        self.manifest = folder / "pod.json"
        self.manifest.write_text(json.dumps(pod("web")))

    def tried(self, *arguments: str) -> tuple[str, list[str]]:
        """The outcome of a pod that is tried, and the notes about the scheduler."""
        decision = explain(self.kubeconfig, "-f", str(self.manifest), *arguments)
        return decision["outcome"], [note for note in decision["notes"] if "listed" not in note]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    monkeypatch.setattr(_Cluster, "pages", {})
    monkeypatch.setattr(_Cluster, "asked", [])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Cluster) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Fake(tmp_path, server.server_port)
        server.shutdown()
        thread.join()


def shown(**changes: Any) -> dict[str, Any]:
    return {"componentconfig": yaml.safe_load(config.dump(config.default())) | changes}


def test_a_scheduler_that_may_not_be_asked(fake: Fake, tmp_path: Path) -> None:
    """The defaults are taken, and it is said what names others; those who name all ask nothing."""
    outcome, (note,) = fake.tried()
    assert outcome == "scheduled"
    assert note == (
        "the scheduler's configuration and feature gates could not be read (jane cannot get /configz; jane cannot get "
        "/metrics); the default ones are used; --config and --feature-gates name others."
    )
    _, (note,) = fake.tried("--feature-gates", f"{GATE}=true")
    assert note == (
        "the scheduler's configuration could not be read (jane cannot get /configz); the default one is used; "
        "--config names another."
    )
    path = tmp_path / "config.yaml"
    path.write_text(config.dump(config.default()))
    _, (note,) = fake.tried("--config", str(path))
    assert note == (
        "the scheduler's feature gates could not be read (jane cannot get /metrics); the default ones are used; "
        "--feature-gates names others."
    )
    _Cluster.asked.clear()
    assert fake.tried("--config", str(path), "--feature-gates", f"{GATE}=true") == ("scheduled", [])
    assert not {"/configz", "/metrics"} & set(_Cluster.asked)


def test_gates_that_metrics_do_not_contain(fake: Fake) -> None:
    """They may be disabled there."""
    _Cluster.pages.update({"/configz": shown(), "/metrics": "up 1\n"})
    _, (note,) = fake.tried()
    assert note.startswith("the scheduler's feature gates could not be read (its metrics do not report them); ")


def test_a_scheduler_that_is_none(fake: Fake) -> None:
    """What answers there is something else."""
    _Cluster.pages.update({"/configz": "<html>Log in</html>", "/metrics": "<html>Log in</html>"})
    _, (note,) = fake.tried()
    assert "feature gates could not be read (/configz has no scheduler configuration: " in note


def test_plugins_that_are_not_here(fake: Fake, tmp_path: Path) -> None:
    """The scheduler's configuration cannot be used without them; with --plugin it is."""
    profile = {"schedulerName": "default-scheduler", "plugins": {"filter": {"enabled": [{"name": "Homemade"}]}}}
    metrics = f'kubernetes_feature_enabled{{name="{GATE}",stage="ALPHA"}} 1\n'
    _Cluster.pages.update({"/configz": shown(profiles=[profile]), "/metrics": metrics})
    outcome, (note,) = fake.tried()
    assert outcome == "scheduled"
    assert note == (
        "the scheduler's configuration is not used: the plugin Homemade is not installed; the default one is used; "
        "--plugin adds custom plugins, --config names another configuration."
    )
    (tmp_path / "homemade.py").write_text(HOMEMADE)
    assert fake.tried("--plugin", str(tmp_path / "homemade.py")) == ("unschedulable", [])


def test_a_pod_that_a_missing_plugin_rejects_is_not_said_to_fit(tmp_path: Path) -> None:
    """It fits only with the configuration that is used instead."""
    (tmp_path / "homemade.py").write_text(HOMEMADE)
    enabled = "profiles: [{plugins: {multiPoint: {enabled: [{name: Homemade}]}}}]"
    (tmp_path / "config.yaml").write_text(f"{CONFIGURATION.partition('profiles')[0]}{enabled}")
    started = Up(tmp_path, "--plugin", str(tmp_path / "homemade.py"), "--config", str(tmp_path / "config.yaml"))
    try:
        started.create_pod("web")
        until(lambda: started.get("/api/v1/namespaces/default/pods/web")["status"].get("conditions"))
        decision = explain(started.kubeconfig, "web")
        assert decision["nodes"]["node-0"]["rejected"]["plugin"] == "Homemade"
        (note,) = decision["notes"]
        assert "the plugin Homemade is not installed" in note
    finally:
        started.stop()


def test_a_configuration_that_is_not_known_here(fake: Fake) -> None:
    """Of a scheduler of another version, for example."""
    metrics = f'kubernetes_feature_enabled{{name="{GATE}",stage="ALPHA"}} 1\n'
    _Cluster.pages.update({"/configz": shown(parallelism=-1), "/metrics": metrics})
    _, (note,) = fake.tried()
    assert note.startswith("the scheduler's configuration is not used (parallelism: ")
    assert note.endswith("); the default one is used; --config names another.")


def test_a_scheduler_that_does_not_answer_is_asked_once(fake: Fake) -> None:
    """Nothing more is known of it then."""
    written = json.loads(fake.kubeconfig.read_text())
    written["clusters"][0]["cluster"]["extensions"][0]["extension"]["server"] = "https://127.0.0.1:1"
    fake.kubeconfig.write_text(json.dumps(written))
    notes = explain(fake.kubeconfig, "web")["notes"]
    assert notes[0].startswith("the scheduler at https://127.0.0.1:1 does not answer: cannot connect to 127.0.0.1:1: ")
    assert notes[1] == (
        "the scheduler's configuration and feature gates are unknown; the default ones are used; --config and "
        "--feature-gates name others."
    )
    _, (note,) = fake.tried()
    assert note.startswith("the scheduler's configuration and feature gates could not be read (cannot connect to ")


def test_a_scheduler_without_pod_groups(fake: Fake) -> None:
    """Pods of a group are tried together nevertheless, and it is said that they would not be."""
    groups = [{"metadata": {"name": "g", "namespace": "default"}, "spec": {"schedulingPolicy": {"basic": {}}}}]
    listed = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": groups}
    metrics = 'kubernetes_feature_enabled{name="GenericWorkload",stage="ALPHA"} 0\n'
    pages = {"/configz": shown(), "/metrics": metrics, "/apis/scheduling.k8s.io/v1beta1/podgroups": listed}
    _Cluster.pages.update(pages)
    fake.manifest.write_text(json.dumps(pod("web", schedulingGroup={"podGroupName": "g"})))
    outcome, (note,) = fake.tried()
    assert outcome == "scheduled"
    assert note.startswith("the scheduler's gate GenericWorkload is off: ")
