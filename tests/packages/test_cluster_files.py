"""Manifests and chart are rendered like kubectl and Helm do, and accepted by the embedded and a real API server."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from kubestow import __version__, config
from support.apiserver.fixtures import plane
from support.apiserver.kubectl import PROBLEM
from support.apiserver.running import Running
from support.integration.real_control_plane import RealControlPlane, assets
from support.packages.helm import render
from support.polling import until
from support.repository import ROOT

__all__ = ["assets", "plane"]
"""Fixtures."""

CHART = ROOT / "deploy/helm/kubestow"
MANIFESTS = ROOT / "deploy/kubernetes"
NAMESPACE = "kube-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ConfigMap": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "NetworkPolicy": f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
    "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
}
with_kubectl = pytest.mark.skipif(PROBLEM is not None, reason=PROBLEM or "")


def _chart(**values: Any) -> dict[str, dict[str, Any]]:
    return {obj["kind"]: obj for obj in render(CHART, "kubestow", NAMESPACE, values)}


@pytest.fixture(scope="module")
def real(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    running = RealControlPlane(assets, tmp_path_factory.mktemp("files"))
    yield running
    running.close()


def test_the_chart_equals_the_manifests() -> None:
    """With default values the chart equals the plain files, except for labels and one more rule."""
    plain = [obj for file in MANIFESTS.glob("[rs]*.yaml") for obj in yaml.safe_load_all(file.read_text())]
    chart = _chart()
    assert {obj["kind"] for obj in plain} - {"Namespace"} <= chart.keys()
    for obj in plain:
        mine = chart[obj["kind"]]
        assert mine["metadata"]["name"] == obj["metadata"]["name"]
        if obj["kind"] == "Deployment":
            theirs, ours = (one["spec"]["template"]["spec"]["containers"][0] for one in (obj, mine))
            assert ours == {**theirs, "imagePullPolicy": "IfNotPresent"}
            assert ours["image"] == f"kubestow:{__version__}"
        elif obj["kind"] == "ConfigMap":
            assert config.load(mine["data"]["config.yaml"]) == config.load(obj["data"]["config.yaml"])
        elif obj["kind"] == "ClusterRole":
            assert mine["rules"][:-1] == obj["rules"]


def test_values_reach_the_objects() -> None:
    """Names, flags, nodes and configuration; a changed configuration restarts the instances."""
    whole = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3"
    chart = _chart(
        configuration=whole,
        leaseName="mine",
        extraArgs=["--feature-gates=GenericWorkload=true"],
        nodeSelector={"role": "control"},
        tolerations=[{"operator": "Exists"}],
        image={"repository": "here/kubestow", "tag": "7", "pullPolicy": "Always"},
    )
    spec = chart["Deployment"]["spec"]["template"]["spec"]
    assert config.load(chart["ConfigMap"]["data"]["config.yaml"]).parallelism == 3
    assert spec["nodeSelector"] == {"role": "control"}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    container = spec["containers"][0]
    assert container["args"][-1] == "--feature-gates=GenericWorkload=true"
    assert container["image"] == "here/kubestow:7"
    assert chart["ClusterRole"]["rules"][-1]["resourceNames"] == ["mine"]
    mark = chart["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert mark != _chart()["Deployment"]["spec"]["template"]["metadata"]["annotations"]


@pytest.mark.skipif(which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize("values", [{}, {"configuration": "a: 1\nb: [2]", "extraArgs": ["--v=2"], "leaseName": "l"}])
def test_helm_renders_the_same(values: dict[str, Any], tmp_path: Path) -> None:
    """helm renders the chart like the renderer of these tests; and helm's own checks pass."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))

    def helm(*words: str) -> str:
        command = ["helm", *words, f"--values={file}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    helm("lint", "--strict", str(CHART))
    rendered = list(yaml.safe_load_all(helm("template", "kubestow", str(CHART), f"--namespace={NAMESPACE}")))
    assert {obj["kind"]: obj for obj in rendered} == _chart(**values)


@pytest.mark.control_plane(controllers=True)
def test_the_embedded_server_accepts_the_chart(plane: Running) -> None:
    """Every object is accepted, and the controllers create the two pods."""
    client = plane.client()
    for kind, obj in _chart().items():
        client.create(PATHS[kind], obj)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    until(lambda: len(client.get(pods)["items"]) == 2)
    for kind, obj in _chart().items():
        assert client.call("DELETE", f"{PATHS[kind]}/{obj['metadata']['name']}")[0] == 200
    client.close()


@pytest.mark.control_plane(controllers=True)
@with_kubectl
@pytest.mark.kubectl
def test_the_embedded_server_accepts_the_kustomization(plane: Running) -> None:
    """As kubectl renders and applies it."""
    command = ["kubectl", f"--kubeconfig={plane.control_plane.kubeconfig_path}", "apply", "-k", str(MANIFESTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "deployment.apps/kubestow created" in done.stdout


@with_kubectl
@pytest.mark.kubectl
def test_a_custom_kustomization_changes_namespace_and_image(tmp_path: Path) -> None:
    """Another namespace and another image; nothing remains in the default place."""
    shutil.copytree(MANIFESTS, tmp_path / "base")
    image = {"name": "kubestow", "newName": "registry.example.com/kubestow", "newTag": "1.37.0"}
    own = {"resources": ["base"], "namespace": "elsewhere", "images": [image]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own))
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, check=True)
    objects = {obj["kind"]: obj for obj in yaml.safe_load_all(done.stdout)}
    assert {obj["metadata"].get("namespace", "elsewhere") for obj in objects.values()} == {"elsewhere"}
    assert objects["ClusterRoleBinding"]["subjects"][0]["namespace"] == "elsewhere"
    assert not objects.keys() & {"Role", "RoleBinding"}, "what is bound in kube-system would be bound elsewhere"
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example.com/kubestow:1.37.0"


@pytest.mark.real
def test_a_real_server_accepts_the_chart(real: RealControlPlane) -> None:
    """Every object is accepted; unknown fields would be rejected."""
    for kind, obj in _chart().items():
        real.create(f"{PATHS[kind]}?fieldValidation=Strict", obj)
        real.delete(f"{PATHS[kind]}/{obj['metadata']['name']}")


@with_kubectl
@pytest.mark.kubectl
@pytest.mark.real
def test_a_real_server_accepts_the_kustomization(real: RealControlPlane) -> None:
    """As kubectl renders and applies it, with strict validation."""
    command = [
        "kubectl",
        f"--kubeconfig={real.kubeconfig('admin')}",
        "apply",
        "--validate=strict",
        "-k",
        str(MANIFESTS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "deployment.apps/kubestow created" in done.stdout
