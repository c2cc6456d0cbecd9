"""The how-tos with kube-scheduler itself at a real API server: replacing it, going back, running beside it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.integration.cluster import node, pod
from support.integration.real_control_plane import RealControlPlane
from support.polling import PATIENCE, until
from support.repository import ROOT

pytestmark = pytest.mark.real

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
QUICK = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms")
KUBESTOW = (sys.executable, "-m", "kubestow", "scheduler")
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def kube_scheduler(assets: Path) -> tuple[str, ...]:
    for folder in (Path(os.environ.get("KUBERNETES_PROGRAMS") or assets), assets):
        if (folder / "kube-scheduler").exists():
            return (str(folder / "kube-scheduler"),)
    pytest.skip("no kube-scheduler beside kube-apiserver; KUBERNETES_PROGRAMS names a folder that has it")


@pytest.fixture
def plane(assets: Path, tmp_path: Path) -> Iterator[RealControlPlane]:
    running = RealControlPlane(assets, tmp_path)
    running.create("/api/v1/nodes", node("n1"))
    yield running
    running.close()


@pytest.fixture
def start(plane: RealControlPlane, tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(program: tuple[str, ...], *flags: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"scheduler{len(started)}.log").open("wb") as log:
            command = [*program, "--secure-port=0", *flags]
            started.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def _bound(plane: RealControlPlane, name: str, **spec: Any) -> None:
    plane.create(PODS, pod(name, **spec))
    until(lambda: plane.get(f"{PODS}/{name}")["spec"].get("nodeName"))


def test_it_takes_over_and_gives_back(plane: RealControlPlane, start: Start, kube_scheduler: tuple[str, ...]) -> None:
    """Both with the same flags and lease: when one is stopped, the other takes over, and both exit with 0."""
    flags = (f"--kubeconfig={plane.kubeconfig('system:kube-scheduler')}", *QUICK)
    old = start(kube_scheduler, *flags)
    _bound(plane, "by-kube-scheduler")
    new = start(KUBESTOW, *flags)
    old.terminate()
    assert old.wait(PATIENCE) == 0
    _bound(plane, "by-kubestow")
    old = start(kube_scheduler, *flags)
    new.terminate()
    assert new.wait(PATIENCE) == 0
    _bound(plane, "by-kube-scheduler-again")
    reported = {event["reportingController"] for event in plane.get(EVENTS)["items"] if event["reason"] == "Scheduled"}
    assert reported == {"default-scheduler"}


def test_it_runs_beside(plane: RealControlPlane, start: Start, kube_scheduler: tuple[str, ...], tmp_path: Path) -> None:
    """With the configuration of deploy/: each schedules the pods that name it, under a lease of its own."""
    kubeconfig = plane.kubeconfig("admin")
    start(kube_scheduler, f"--kubeconfig={kubeconfig}")
    manifests = yaml.safe_load_all((ROOT / "deploy/kubernetes/scheduler.yaml").read_text())
    shown = next(obj for obj in manifests if obj["kind"] == "ConfigMap")["data"]["config.yaml"]
    content = yaml.safe_load(shown) | {"clientConnection": {"kubeconfig": str(kubeconfig)}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    start(KUBESTOW, f"--config={tmp_path / 'config.yaml'}")
    _bound(plane, "theirs")
    _bound(plane, "ours", schedulerName="kubestow")
    reported = {
        event["regarding"]["name"]: event["reportingController"]
        for event in until(lambda: [e for e in plane.get(EVENTS)["items"] if e["reason"] == "Scheduled"][1:] and
                           plane.get(EVENTS)["items"])
        if event["reason"] == "Scheduled"
    }  # fmt: skip
    assert reported == {"theirs": "default-scheduler", "ours": "kubestow"}
    leases = plane.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")["items"]
    assert {"kube-scheduler", "kubestow"} <= {lease["metadata"]["name"] for lease in leases}


WANTED = re.compile(
    r'FLAG: --(?:v|leader-elect|kube-api-qps)=|"?(?:Attempting|Successfully|Unable to schedule|Requested) '
)


def _message(line: str) -> Any:
    """Return the message of a line, without time and source."""
    if not line.startswith("{"):
        return line.partition("] ")[2]
    return {name: value for name, value in json.loads(line).items() if name not in ("ts", "caller")}


@pytest.mark.parametrize("form", ["text", "json"])
def test_logs_have_the_same_messages(
    plane: RealControlPlane, start: Start, kube_scheduler: tuple[str, ...], tmp_path: Path, form: str
) -> None:
    """As read by log parsers: flags, the lease, results of pods; in text with values in the same order."""
    flags = (f"--kubeconfig={plane.kubeconfig('admin')}", "--v=2", f"--logging-format={form}", *QUICK)
    logs = []
    for number, program in enumerate((kube_scheduler, KUBESTOW)):
        scheduler = start(program, *flags)
        _bound(plane, "fits")
        plane.create(PODS, pod("large", cpu="1000"))
        until(lambda: plane.get(f"{PODS}/large").get("status", {}).get("conditions"))
        scheduler.terminate()
        scheduler.wait(PATIENCE)
        for name in ("fits", "large"):
            plane.delete(f"{PODS}/{name}")
        messages = [_message(line) for line in (tmp_path / f"scheduler{number}.log").read_text().splitlines()]
        logs.append([one for one in messages if WANTED.match(one["msg"] if form == "json" else one)])
    assert len(logs[0]) == 8
    assert logs[0] == logs[1]
