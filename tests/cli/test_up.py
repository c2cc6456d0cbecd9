"""`kubestow up`: a cluster in one process, from the first line to the last."""

import fcntl
import http.client
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from support.cli.up_running import COMMAND, Up
from support.free_ports import free_port
from support.polling import PATIENCE

WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: server, image: nginx, resources: {requests: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Starts clusters, and stops those that a test leaves running."""
    started: list[Up] = []

    def begin(*arguments: str) -> Up:
        started.append(Up(tmp_path, *arguments))
        return started[-1]

    yield begin
    for up in started:
        if up.process.poll() is None:
            up.stop()
        up.process.communicate()  # closes the pipes


@pytest.fixture
def workload(tmp_path: Path) -> str:
    path = tmp_path / "web.yaml"
    path.write_text(WORKLOAD)
    return str(path)


def test_pods_of_a_manifest_run(start: Callable[..., Up], workload: str) -> None:
    """What -f names is applied, scheduled and started; Ctrl-C then ends it with 0 and no complaint."""
    up = start("--nodes", "3", "-f", workload)
    assert up.lines[0].endswith(": 3 nodes, 2 objects applied")
    assert f"  export KUBECONFIG={up.kubeconfig}" in up.lines
    assert up.kubeconfig.stat().st_mode & 0o777 == 0o600
    pods = up.pods_when("Running", 3)
    assert sorted(pod["spec"]["nodeName"] for pod in pods.values()) == ["node-0", "node-1", "node-2"]

    code, out, errors = up.stop()
    assert (code, errors) == (0, "")
    assert out.splitlines()[-1] == "stopped"
    for name, pod in pods.items():
        assert f"pod shop/{name}: goes to {pod['spec']['nodeName']}, chosen from " in out


def test_a_pod_that_does_not_fit_is_reported(start: Callable[..., Up]) -> None:
    """Without a terminal, a line says why a pod waits; a pod made by hand is scheduled like any other."""
    up = start("--nodes", "1")
    up.create_pod("big", cpu="100")
    up.create_pod("small", cpu="1")
    assert list(up.pods_when("Running", 1)) == ["small"]
    code, out, _ = up.stop(signal.SIGTERM)
    assert code == 0
    assert "pod default/big: unschedulable: 0/1 nodes are available: 1 Insufficient cpu." in out


def test_ten_nodes_in_three_zones_by_default(start: Callable[..., Up]) -> None:
    """By default there are ten nodes in three zones."""
    nodes = start().get("/api/v1/nodes")["items"]
    assert len(nodes) == 10
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == {
        "zone-a",
        "zone-b",
        "zone-c",
    }


def test_a_data_folder_outlives_the_process(start: Callable[..., Up], workload: str, tmp_path: Path) -> None:
    """Started again, even after kill -9, there are the same pods on the same nodes, and no nodes are added."""
    folder = str(tmp_path / "data")
    first = start("--nodes", "2", "--data-dir", folder, "-f", workload)
    before = {name: pod["spec"]["nodeName"] for name, pod in first.pods_when("Running", 3).items()}
    first.process.kill()
    first.process.communicate()

    second = start("--data-dir", folder, "-f", workload)
    assert second.lines[0].endswith(": 2 nodes, 2 objects applied")
    after = {pod["metadata"]["name"]: pod for pod in second.get("/api/v1/pods")["items"]}
    assert {name: pod["spec"]["nodeName"] for name, pod in after.items()} == before
    second.create_pod("late")
    assert "late" in second.pods_when("Running", 4)
    assert second.stop()[0] == 0


def test_the_page_has_an_address(start: Callable[..., Up], tmp_path: Path) -> None:
    """It is shown at the start and answers; with a data folder the token is the same next time."""

    def page(up: Up) -> tuple[int, str]:
        address, token = next(line for line in up.lines if "/ui/" in line).split()[-1].split("#token=")
        return int(address.split(":")[2].partition("/")[0]), token

    def names(up: Up) -> list[str]:
        port, token = page(up)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/ui/api/v1/cluster", headers={"Authorization": f"Bearer {token}"})
        with closing(connection), connection.getresponse() as response:
            found: list[str] = json.load(response)["names"]
            return found

    folder = str(tmp_path / "data")
    port = free_port()
    first = start("--nodes", "2", "--data-dir", folder, "--page-port", str(port))
    assert names(first) == ["node-0", "node-1"]
    assert first.stop()[0] == 0
    second = start("--data-dir", folder, "--page-port", str(port))
    assert page(second) == page(first)
    assert page(second)[0] == port
    assert names(second) == ["node-0", "node-1"]


def test_it_ends_when_its_reader_leaves(start: Callable[..., Up]) -> None:
    """`kubestow up | head` ends with head, without a traceback."""
    up = start("--nodes", "1")
    assert up.process.stdout is not None
    up.process.stdout.close()
    up.create_pod("a")
    assert up.process.wait(timeout=PATIENCE) == 0
    assert up.process.stderr is not None
    assert up.process.stderr.read() == ""


def test_it_continues_while_its_output_is_not_read(start: Callable[..., Up]) -> None:
    """With a pipe that is full, pods are scheduled as ever, and a signal ends it as ever."""
    up = start("--nodes", "3")
    assert up.process.stdout is not None
    fcntl.fcntl(up.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    for number in range(80):
        up.create_pod(f"pod-{number}", cpu="5m")
    assert len(up.pods_when("Running", 80)) == 80
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(timeout=PATIENCE) == 0


def test_a_terminal_gets_a_screen_and_has_it_taken_away_again(tmp_path: Path) -> None:
    """At a terminal the screen shows nodes and queue; after Ctrl-C the terminal is as it was, with the first lines."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "--port", "0", "--nodes", "2", "--kubeconfig", str(tmp_path / "kubeconfig")]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    screen = b""
    while b"No pod has been scheduled yet." not in screen:
        screen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    # Reading fails when no process is left at the other end.
    with suppress(OSError):
        while True:
            screen += os.read(ours, 65536)
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0
    opened, closed = screen.index(b"\x1b[?1049h"), screen.index(b"\x1b[?1049l")
    assert screen.index(b"Kubestow is up") < opened < screen.index(b"node-1") < closed < screen.index(b"stopped")
    assert b"unschedulable" in screen[opened:closed]


def test_a_suspended_process_leaves_the_terminal_to_the_shell(tmp_path: Path) -> None:
    """Ctrl-Z takes the screen away and restores the modes of the terminal; the screen is drawn again after fg."""
    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    command = [*COMMAND, "--port", "0", "--nodes", "2", "--kubeconfig", str(tmp_path / "kubeconfig")]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)

    def read_until(text: bytes) -> bytes:
        read = b""
        while text not in read:
            read += os.read(ours, 65536)
        return read

    read_until(b"No pod has been scheduled yet.")
    assert termios.tcgetattr(ours) != modes
    process.send_signal(signal.SIGTSTP)
    read_until(b"\x1b[?1049l")
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    assert termios.tcgetattr(ours) == modes
    process.send_signal(signal.SIGCONT)
    assert b"\x1b[?1049h" in read_until(b"No pod has been scheduled yet.")
    process.send_signal(signal.SIGINT)
    with suppress(OSError):
        while os.read(ours, 65536):
            pass
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0


def test_a_background_job_writes_lines(workload: str, tmp_path: Path) -> None:
    """`kubestow up &` is not stopped by the terminal, which the shell uses."""
    ours, theirs = pty.openpty()
    up = [*COMMAND, "--port", "0", "--nodes", "2", "-f", workload, "--kubeconfig", str(tmp_path / "kubeconfig")]
    script = f"{shlex.join(up)} & trap 'kill -CONT $!; kill $!' TERM; wait; wait"
    process = subprocess.Popen(["setsid", "--ctty", "sh", "-mc", script], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        seen = b""
        while b"goes to" not in seen:
            assert select.select([ours], [], [], PATIENCE)[0], seen
            seen += os.read(ours, 65536)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        os.close(ours)
    assert b"\x1b[?1049h" not in seen


def test_a_legacy_policy_is_heeded(start: Callable[..., Up], workload: str, tmp_path: Path) -> None:
    """The scheduler applies it, and reports that it is legacy."""
    path = tmp_path / "policy.yaml"
    path.write_text("apiVersion: v1\nkind: Policy\npredicates: []\n")
    up = start("--nodes", "1", "-f", workload, "--policy-config-file", str(path))
    assert len(up.pods_when("Running", 3)) == 3
    assert "Policy is legacy" in up.stop()[2]


def test_a_reload_is_reported(start: Callable[..., Up], tmp_path: Path) -> None:
    """One line on standard error, also without -v."""
    path = tmp_path / "scheduler.yaml"
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    path.write_text(text)
    up = start("--config", str(path), "--nodes", "1")
    path.write_text(f"{text}percentageOfNodesToScore: 50\n")
    assert up.process.stderr is not None
    assert (
        '"Configuration reloaded" changed=[] fields=["percentageOfNodesToScore: 0 -> 50"]'
        in up.process.stderr.readline()
    )


def test_nodes_have_the_devices_asked_for(start: Callable[..., Up], tmp_path: Path) -> None:
    """A pod that asks for one as an extended resource runs with it."""
    path = tmp_path / "pod.yaml"
    container = "{name: c, image: x, resources: {limits: {example.com/gpu: 1}}}"
    path.write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{container}]}}\n")
    up = start("--nodes", "1", "--devices", "partitionable-gpus", "-f", str(path))
    (pod,) = up.pods_when("Running", 1).values()
    name = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    claim = up.get(f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}")
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"]) == ("gpu.kubestow.dev", "node-0")
