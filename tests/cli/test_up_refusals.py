"""What `kubestow up` cannot start with: a line each that names the culprit, exit code 1, nothing left running."""

import socket
from pathlib import Path

from support.cli.up_running import fails

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: x%s}]}\n"


def test_a_port_in_use_is_named() -> None:
    """The program that already listens keeps the port; the message says how to choose another."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = f"port {port} on 127.0.0.1 is in use; stop what listens there, or choose another with --port"
        assert fails("--port", str(port)) == [f"Error: {said}, 0 for any that is free"]


def test_every_problem_of_a_configuration_is_reported(tmp_path: Path) -> None:
    """File and field are named."""
    path = tmp_path / "scheduler.yaml"
    path.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1\n")
    (line,) = fails("--port", "0", "--config", str(path))
    assert line.startswith(f"Error: {path}: parallelism: ")


def test_a_manifest_that_the_server_rejects_is_reported(tmp_path: Path) -> None:
    """File, document, object and the server's own words; all that are refused, not only the first."""
    path = tmp_path / "pods.yaml"
    path.write_text("---\n".join((POD % ("good", ""), POD % ("odd", ", colour: red"), POD % ("Bad_Name", ""))))
    first, second = fails("--port", "0", "--nodes", "1", "-f", str(path))
    assert first.startswith(f"Error: {path}: line 6: Pod default/odd: ")
    assert "spec.containers[0].colour" in first
    assert second.startswith(f"Error: {path}: line 11: Pod default/Bad_Name: ")


def test_a_file_that_is_not_there_is_named() -> None:
    """Nothing is started for a manifest or a configuration that cannot be read."""
    assert fails("-f", "/nowhere/pods.yaml") == ["Error: /nowhere/pods.yaml: cannot be read: No such file or directory"]
    assert fails("--config", "/nowhere/s.yaml") == ["Error: /nowhere/s.yaml: cannot be read: No such file or directory"]
    (line,) = fails("--policy-config-file", "/nowhere/p.json")
    assert line == "Error: /nowhere/p.json: cannot be read: No such file or directory"


def test_folders_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    """For the data and for the kubeconfig."""
    file = tmp_path / "file"
    file.touch()
    (line,) = fails("--port", "0", "--data-dir", str(file / "data"))
    assert line == f"Error: cannot use data folder {file / 'data'}: Not a directory"
    (line,) = fails("--port", "0", "--kubeconfig", str(file / "kubeconfig"))
    assert line == f"Error: cannot use {file}: File exists"


def test_a_damaged_data_file_is_reported(tmp_path: Path) -> None:
    """What is affected, and what to do; --repair is for data folders only."""
    (tmp_path / "objects.mark").write_bytes(b"x")
    first, *affected = fails("--port", "0", "--data-dir", str(tmp_path))
    assert first.startswith(
        f"Error: {tmp_path}/objects.db is damaged; nothing was changed. Start with --repair to keep"
    )
    assert affected == ["  objects.mark is not valid", "  the header of the file is not valid"]
    (line,) = fails("--port", "0", "--repair")
    assert line == "Error: --repair needs --data-dir: without it there is nothing to repair"


def test_an_invalid_nodes_file_is_reported(tmp_path: Path) -> None:
    """File, entry and field."""
    path = tmp_path / "nodes.yaml"
    path.write_text("nodes:\n  - cpus: 4\n")
    (line,) = fails("--port", "0", "--nodes-file", str(path))
    assert line.startswith(f"Error: {path}: line 1: nodes[0]: ")
    assert "cpus" in line
