"""The command `kubestow apiserver`: what it prints, and what it says when it cannot start."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import kubestow.apiserver
from kubestow.config.features import SCHEDULING_GATES, Features

MAIN = "from kubestow.cli import main; main()"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    command = [sys.executable, "-c", MAIN, "apiserver", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_it_tells_where_it_is_and_stops_cleanly(tmp_path: Path) -> None:
    """Two lines to copy; SIGTERM ends it without a word."""
    config = tmp_path / "config"
    command = [sys.executable, "-c", MAIN, "apiserver", "--port", "0", "--nodes", "2", "--kubeconfig", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on https://127.0.0.1:")
    assert process.stdout.readline() == f"export KUBECONFIG={config}\n"
    assert config.exists()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_port_in_use_is_explained() -> None:
    """One line, with the port and what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("--port", str(port))
    assert result.returncode == 1
    expected = f"Error: port {port} on 127.0.0.1 is in use; stop what listens there, or choose another with --port"
    assert result.stderr.startswith(expected)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data-dir", "/proc/nope"], "cannot use data folder /proc/nope"),
        (["--nodes-file", "/nowhere/nodes.yaml"], "nodes file /nowhere/nodes.yaml cannot be read: No such file"),
        (["--devices", "gpu"], "--devices: gpu: cannot be read: No such file or directory; expected a number, gpus or"),
        (["--token-file", "/nowhere/tokens"], "cannot read token file /nowhere/tokens: No such file"),
        (["--kubeconfig", "/proc/nope/config"], "cannot use /proc/nope"),
        (["--bind-address", "203.0.113.1"], "cannot listen on 203.0.113.1:0"),
        (["--nodes", "-1"], "Invalid value for '--nodes'"),
        (["--controllers", "*,-jobs"], "--controllers: 'jobs' is not in the list of known controllers"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: list[str], said: str) -> None:
    """One line that names it, no traceback."""
    result = run("--port", "0", *arguments)
    assert result.returncode != 0
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_help_names_the_gates_that_make_a_difference() -> None:
    """All that the control plane looks at, and no others."""
    sources = Path(kubestow.apiserver.__path__[0]).rglob("*.py")
    read = {field for source in sources for field in re.findall(r"features\.([a-z_]+)", source.read_text())}
    gates = zip(SCHEDULING_GATES, Features.__struct_fields__, strict=True)
    counting = {gate.name for gate, field in gates if field in read}
    told = " ".join(run("--help").stdout.split())
    named = re.search(r"Features to turn on or off\. (.*?) make a difference\.", told)
    assert named is not None
    assert set(re.split(r",? and |, ", named[1])) == counting
