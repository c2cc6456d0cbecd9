"""The command `kubestow apiserver`: its output, and its errors at start."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import kubestow.apiserver
from kubestow.cli.apiserver import command
from kubestow.config.features import NOT_BUILT, SCHEDULING_GATES, Features

MAIN = "from kubestow.cli import main; main()"


def run_apiserver(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command until it exits."""
    command = [sys.executable, "-c", MAIN, "apiserver", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_it_prints_its_address_and_stops_cleanly(tmp_path: Path) -> None:
    """Two lines to copy; SIGTERM ends it without output."""
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
    """One line, with the port and the remedy."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run_apiserver("--port", str(port))
    assert result.returncode == 1
    expected = f"Error: port {port} on 127.0.0.1 is in use; stop what listens there, or choose another with --port"
    assert result.stderr.startswith(expected)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_an_unusable_option_is_named(arguments: list[str], message: str) -> None:
    """One line that names it, without a traceback."""
    result = run_apiserver("--port", "0", *arguments)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_help_names_the_effective_gates() -> None:
    """All that the control plane uses, and no others."""
    sources = Path(kubestow.apiserver.__path__[0]).rglob("*.py")
    read = {field for source in sources for field in re.findall(r"features\.([a-z_]+)", source.read_text())}
    gates = zip(SCHEDULING_GATES, Features.__struct_fields__, strict=False)
    counting = {gate.name for gate, field in gates if field in read} - NOT_BUILT
    # Not the printed text, where the longest name does not fit into a line.
    option = next(option for option in command.params if "--feature-gates" in option.opts)
    named = re.search(r"Features to turn on or off\. (.*?) have an effect\.", str(option.to_info_dict()["help"]))
    assert named is not None
    assert set(re.split(r",? and |, ", named[1])) == counting
