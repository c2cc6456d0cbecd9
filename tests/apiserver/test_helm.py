"""helm installs, upgrades, rolls back and removes a chart; skipped where there is no helm."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kubestow.apiserver import Pace
from support.apiserver.running import Running

HELM = shutil.which("helm")
APPS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", labels: {app: "{{ .Release.Name }}"}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Release.Name }}"}}
    spec: {nodeName: node-0, containers: [{name: web, image: "web:{{ .Chart.AppVersion }}"}]}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {selector: {app: "{{ .Release.Name }}"}, ports: [{port: 80}]}
"""
HOOK = """
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-before"
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded}
spec: {template: {spec: {nodeName: node-0, restartPolicy: Never, containers: [{name: c, image: i, command: ["true"]}]}}}
"""

pytestmark = pytest.mark.skipif(HELM is None, reason="helm is not installed")


def test_a_chart_comes_and_goes(start: Callable[..., Running], tmp_path: Path) -> None:
    """A hook runs first; helm waits until pods are ready; the release is known by its history."""
    plane = start(controllers=True, kubelets=True, nodes=1, pace=Pace(start=0, run=0, stop=0))
    templates = tmp_path / "chart" / "templates"
    templates.mkdir(parents=True)
    (templates / "all.yaml").write_text(DEPLOYMENT, encoding="utf-8")
    (templates / "hook.yaml").write_text(HOOK, encoding="utf-8")
    (tmp_path / "chart" / "values.yaml").write_text("replicas: 2\n", encoding="utf-8")
    about = 'apiVersion: v2\nname: chart\nversion: 0.1.0\nappVersion: "1"\n'
    (tmp_path / "chart" / "Chart.yaml").write_text(about, encoding="utf-8")
    environment = {"KUBECONFIG": str(plane.control_plane.kubeconfig_path), "HOME": str(tmp_path)}

    def helm(*words: str) -> str:
        command = [str(HELM), *words]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    client = plane.client()
    assert "STATUS: deployed" in helm("install", "demo", "chart", "--wait", "--timeout", "60s")
    assert client.get(f"{APPS}/demo")["status"]["availableReplicas"] == 2
    helm("upgrade", "demo", "chart", "--set", "replicas=3", "--wait", "--timeout", "60s")
    assert client.get(f"{APPS}/demo")["status"]["availableReplicas"] == 3
    helm("rollback", "demo", "1", "--wait", "--timeout", "60s")
    assert client.get(f"{APPS}/demo")["spec"]["replicas"] == 2
    assert [line.split()[0] for line in helm("history", "demo").splitlines()[1:]] == ["1", "2", "3"]
    helm("uninstall", "demo", "--wait", "--timeout", "60s")
    assert client.call("GET", f"{APPS}/demo")[0] == 404
