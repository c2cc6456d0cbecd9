"""The commands at a live cluster: headroom is reported, and a recording survives a killed recorder."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kubestow.api.files import ObjectsError
from kubestow.cli import main
from kubestow.simulator.recording.files import entries
from support.apiserver.fixtures import plane
from support.apiserver.running import Running
from support.simulator.objects import pod

PODS = "/api/v1/namespaces/default/pods"

__all__ = ["plane"]
"""Fixtures."""

pytestmark = pytest.mark.control_plane(controllers=True, kubelets=True, nodes=3)


def test_capacity_of_a_live_cluster(plane: Running, tmp_path: Path) -> None:
    """Headroom and capacity, with the kubeconfig of a user with read access."""
    kubeconfig = str(plane.control_plane.kubeconfig_path)
    ran = CliRunner().invoke(main, ["capacity", "--kubeconfig", kubeconfig])
    assert ran.exit_code == 0, ran.output
    assert [line.split()[0] for line in ran.output.splitlines()[:5]] == ["NODE", "*", "node-0", "node-1", "node-2"]
    (tmp_path / "p.yaml").write_bytes(b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":'
                                      b'[{"name":"c","image":"i","resources":{"requests":{"cpu":"3"}}}]}}')  # fmt: skip
    ran = CliRunner().invoke(main, ["capacity", "--kubeconfig", kubeconfig, "--podspec", str(tmp_path / "p.yaml")])
    assert ran.output.startswith("6 more pods fit: p\n")


def test_a_context_of_the_kubeconfig_is_chosen(plane: Running, tmp_path: Path) -> None:
    """Accepted by commands that read a live cluster; an unknown context is an error, and so is one with files."""
    tree = yaml.safe_load(plane.control_plane.kubeconfig_path.read_text())
    here = tree.pop("current-context")
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(tree))
    asked = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--context"]
    assert CliRunner().invoke(main, ["capacity", *asked, here]).output.startswith("NODE ")
    for command in (["capacity"], ["record", str(tmp_path / "r.gz")]):
        ran = CliRunner().invoke(main, [*command, *asked, "there"])
        assert (ran.exit_code, "there is no context 'there'" in ran.stderr) == (1, True), ran.stderr
    ran = CliRunner().invoke(main, ["capacity", "--context", here, "--cluster", str(tmp_path / "c.yaml")])
    assert "--context applies to a live cluster, --cluster to files; give one of them" in ran.stderr


def test_claims_are_created_from_templates_of_a_live_cluster(plane: Running, tmp_path: Path) -> None:
    """Slices, classes and templates are read from the cluster."""
    client, group = plane.client(), "/apis/resource.k8s.io/v1"
    client.create(f"{group}/deviceclasses", {"metadata": {"name": "c"}, "spec": {}})
    offered = {
        "driver": "d.example.com",
        "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}, {"name": "d1"}],
    }
    client.create(f"{group}/resourceslices", {"metadata": {"name": "s"}, "spec": offered})
    wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    templates = f"{group}/namespaces/default/resourceclaimtemplates"
    client.create(templates, {"metadata": {"name": "t"}, "spec": {"spec": wanted}})
    claims = [{"name": "x", "resourceClaimTemplateName": "t"}]
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(pod("p", "100m", resourceClaims=claims)))
    kubeconfig = str(plane.control_plane.kubeconfig_path)
    ran = CliRunner().invoke(main, ["capacity", "--kubeconfig", kubeconfig, "--podspec", str(tmp_path / "p.yaml")])
    assert ran.output.startswith("2 more pods fit: p\n"), ran.output


def test_a_killed_recorder_leaves_a_valid_file(plane: Running, tmp_path: Path) -> None:
    """SIGKILL: everything up to the last second is in the file, and the next recorder continues it."""
    file, client = tmp_path / "r.gz", plane.client()
    for number in range(2):
        with _recorder(plane, file) as recorder:
            client.create(PODS, pod(f"p{number}"))
            _wait_for(f"p{number}", file)
            os.kill(recorder.pid, signal.SIGKILL)
            recorder.wait()
    assert _pods(file) == {"p0", "p1"}
    assert [entry.op for entry in entries(file)].count("start") == 2


def test_a_recorder_that_cannot_read_the_cluster_fails(plane: Running, tmp_path: Path) -> None:
    """The server is down or forbids access: the recorder fails at once, without a file, instead of waiting for ever."""
    kubeconfig = tmp_path / "kubeconfig"
    good = plane.control_plane.kubeconfig_path.read_text()
    for server, problem in (("127.0.0.1:1", "cannot connect to 127.0.0.1:1"), ("", "Unauthorized")):
        tree = yaml.safe_load(good)
        if server:
            tree["clusters"][0]["cluster"]["server"] = f"https://{server}"
        tree["users"][0]["user"] = {"token": "nobody"}
        kubeconfig.write_text(yaml.safe_dump(tree))
        ran = CliRunner().invoke(main, ["record", str(tmp_path / "r.gz"), "--kubeconfig", str(kubeconfig)])
        assert ran.exit_code == 1
        assert ran.stderr.startswith(f"Error: {tree['clusters'][0]['cluster']['server']}: ")
        assert problem in ran.stderr
        assert not (tmp_path / "r.gz").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk is full here")
def test_a_recorder_that_cannot_write_names_the_file(plane: Running) -> None:
    """The error of a full disk does not name the file itself."""
    kubeconfig = str(plane.control_plane.kubeconfig_path)
    ran = CliRunner().invoke(main, ["record", "/dev/full", "--kubeconfig", kubeconfig])
    assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (1, "Error: /dev/full: No space left on device")


def _recorder(plane: Running, file: Path) -> "subprocess.Popen[bytes]":
    kubeconfig = str(plane.control_plane.kubeconfig_path)
    command = [sys.executable, "-m", "kubestow", "record", str(file), "--kubeconfig", kubeconfig]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def _pods(file: Path) -> set[str]:
    """Return the recorded pods; empty while the first member is being written."""
    try:
        return {one.object["metadata"]["name"] for one in entries(file) if one.object.get("kind") == "Pod"}
    except (FileNotFoundError, ObjectsError):
        return set()


def _wait_for(pod_name: str, file: Path) -> None:
    until = time.monotonic() + 300
    while pod_name not in _pods(file):
        assert time.monotonic() < until, f"{pod_name} was not recorded"
        time.sleep(0.1)
