"""Two instances whose leader a real kube-apiserver chooses."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.integration.cluster import node, pod
from support.integration.real_control_plane import RealControlPlane, needs_version
from support.polling import PATIENCE, until

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
PODS = "/api/v1/namespaces/default/pods"
GATE = "--feature-gates=CoordinatedLeaderElection=true"

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def plane(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    needs_version(assets, 33, "coordination.k8s.io/v1beta1")
    served = "--runtime-config=coordination.k8s.io/v1beta1=true"
    running = RealControlPlane(assets, tmp_path_factory.mktemp("coordinated"), GATE, served)
    yield running
    running.close()


def test_the_server_chooses_and_chooses_again(plane: RealControlPlane, tmp_path: Path) -> None:
    """One of two leads and binds; when it stops gracefully, the server chooses the other."""
    kubeconfig = plane.kubeconfig("system:kube-scheduler")
    command = [sys.executable, "-m", "kubestow", "scheduler", f"--kubeconfig={kubeconfig}", GATE, "--secure-port=0"]
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    processes = []
    for log in logs:
        with log.open("wb") as file:
            processes.append(subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT))

    def output() -> str:
        return "".join(log.read_text()[-3000:] for log in logs)

    def lease() -> dict[str, Any]:
        leases: list[dict[str, Any]] = plane.get(LEASE.rpartition("/")[0])["items"]
        return next((item["spec"] for item in leases if item["metadata"]["name"] == "kube-scheduler"), {})

    def leader() -> int | None:
        acquired = ["Successfully acquired lease" in log.read_text() for log in logs]
        return acquired.index(True) if any(acquired) else None

    try:
        plane.create("/api/v1/nodes", node("n1"))
        plane.create(PODS, pod("first"))
        until(lambda: plane.get(f"{PODS}/first")["spec"].get("nodeName"), output)
        first = leader()
        assert first is not None
        assert lease()["strategy"] == "OldestEmulationVersion"
        holder = lease()["holderIdentity"]
        processes[first].terminate()
        assert processes[first].wait(PATIENCE) == 0
        plane.create(PODS, pod("second"))
        until(lambda: plane.get(f"{PODS}/second")["spec"].get("nodeName"), output)
        assert lease()["holderIdentity"] not in ("", holder)
    finally:
        for process in processes:
            process.kill()
            process.wait()
