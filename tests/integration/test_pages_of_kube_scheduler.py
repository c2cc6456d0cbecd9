"""The pages of kube-scheduler and ours, side by side at the same real API server."""

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.free_ports import free_port
from support.integration.cluster import node, pod
from support.integration.real_control_plane import RealControlPlane, needs_version, token_of
from support.polling import PATIENCE, until

pytestmark = pytest.mark.real

PODS = "/api/v1/namespaces/default/pods"
REQUESTS = {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {"memory": "2Gi", "ephemeral-storage": "1Gi"}}


class Pages:
    """The pages that a scheduler serves to the administrator."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str, accept: str = "*/*") -> tuple[int, str]:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=context, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token_of('admin')}", "Accept": accept})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def structured(self, kind: str) -> dict[str, Any]:
        accept = f"application/json;v=v1beta1;g=config.k8s.io;as={kind}"
        found: dict[str, Any] = json.loads(self.get(f"/{kind.lower()}", accept)[1])
        return found


@pytest.fixture(scope="module")
def both(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pages, Pages]]:
    """kube-scheduler's pages and ours, without pods to schedule."""
    program = Path(os.environ.get("KUBERNETES_PROGRAMS") or assets) / "kube-scheduler"
    if not program.exists():
        pytest.skip("no kube-scheduler beside kube-apiserver; KUBERNETES_PROGRAMS names a folder that has it")
    needs_version(program.parent, 37, "configuration and pages that are compared", program.name)
    folder = tmp_path_factory.mktemp("pages")
    plane = RealControlPlane(assets, folder)
    plane.create("/api/v1/nodes", node("n1"))
    manifest = pod("p", nodeName="n1", initContainers=[{"name": "i", "image": "x", "resources": REQUESTS}])
    plane.create(PODS, manifest)
    kubeconfig = plane.kubeconfig("admin")
    processes, pages = [], []
    for command in ([str(program)], [sys.executable, "-m", "kubestow", "scheduler"]):
        port = free_port()
        access = [f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")]
        flags = [*access, f"--secure-port={port}", "--bind-address=127.0.0.1", "--leader-elect=false"]
        with (folder / f"{port}.log").open("wb") as log:
            processes.append(subprocess.Popen([*command, *flags], stdout=log, stderr=subprocess.STDOUT))
        pages.append(Pages(port))
    until(lambda: all(page.get("/readyz")[0] == 200 for page in pages))
    yield pages[0], pages[1]
    for process in processes:
        process.kill()
        process.wait()
    plane.close()


@pytest.mark.parametrize(
    "path", ["/healthz", "/livez", "/readyz", "/healthz?verbose", "/livez?verbose", "/readyz?verbose"]
)
def test_health_has_the_same_text(both: tuple[Pages, Pages], path: str) -> None:
    """With each check by name."""
    theirs, ours = both
    assert ours.get(path) == theirs.get(path)


def test_resource_metrics_are_identical(both: tuple[Pages, Pages]) -> None:
    """Every sample of /metrics/resources."""
    samples = [re.findall(r"^kube_pod.*$", page.get("/metrics/resources")[1], re.MULTILINE) for page in both]
    assert samples[0] == samples[1]
    assert len(samples[0]) > 3


def test_the_configuration_is_the_same(both: tuple[Pages, Pages]) -> None:
    """As completed by kube-scheduler, except for empty fields."""
    theirs, ours = (json.loads(page.get("/configz")[1])["componentconfig"] for page in both)

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: plain(inner) for key, inner in value.items()}
            return {key: inner for key, inner in kept.items() if inner not in (None, "", [], {}, 0)}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    assert plain(ours) == plain(theirs)


def test_flags_and_status_have_the_same_form(both: tuple[Pages, Pages]) -> None:
    """Every flag of kube-scheduler with the same value, except for the port; the same fields."""
    theirs, ours = (page.structured("Flagz") for page in both)
    mine, other = ours.pop("flags"), theirs.pop("flags")
    assert ours == theirs
    for name in ("secure-port", "help", "tls-cert-file", "tls-private-key-file"):
        other.pop(name, None)
    assert {name: mine.get(name) for name in other} == other
    theirs, ours = (page.structured("Statusz") for page in both)
    assert ours.keys() == theirs.keys()
    assert set(theirs["paths"]) <= set(ours["paths"])
    assert ours["emulationVersion"] == theirs["emulationVersion"]


def test_results_of_health_checks(both: tuple[Pages, Pages]) -> None:
    """The same series at /metrics/slis, except for failures while one of them was not ready yet."""
    series = []
    for page in both:
        for path in ("/healthz", "/livez", "/readyz"):
            page.get(path)
        found = re.findall(r"^(\w+(?:\{.*\})?) ", page.get("/metrics/slis")[1], re.MULTILINE)
        series.append({one for one in found if 'status="error"' not in one})
    assert series[0] == series[1]
