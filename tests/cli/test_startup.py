"""Starting the command: help and version are quick, because nothing else is loaded."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import click
import pytest
from click.testing import CliRunner

from kubestow import __version__, cli

BEFORE_THE_FIRST_LIST = {
    *("api", "cli", "client", "clock", "config", "rng", "telemetry"),
    # Plugins that a configuration names may need the rest.
    *("plugin", "scheduler", "scheduler.cluster", "scheduler.extenders", "scheduler.framework"),
}
"""The packages of ours that are loaded by then."""
HEAVY = (
    "msgspec",
    "numpy",
    "yaml",
    "asyncio",
    "prometheus_client",
    "cryptography",
    "rich",
    "kubestow.apiserver.controlplane",
)


def loaded_by(*arguments: str) -> list[str]:
    """Which heavy libraries a command loads."""
    program = f"""
import sys
from kubestow.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    assert end.code == 0
print("loaded:", *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_and_version_load_nothing_heavy(option: str) -> None:
    """Neither needs any library but click."""
    assert loaded_by(option) == []


@pytest.mark.parametrize("arguments", [("scheduler", "--help"), ("up", "--help"), ("config", "default")])
def test_help_does_not_import_arrays(arguments: tuple[str, ...]) -> None:
    """Help, and the default configuration, need neither the framework nor an event loop."""
    assert not {"numpy", "asyncio", "cryptography"} & set(loaded_by(*arguments))


def test_explaining_from_files_needs_no_control_plane(tmp_path: Path) -> None:
    """The rules for pods are the control plane's, which is not loaded for that, nor what makes its certificates."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    (tmp_path / "cluster.json").write_text(json.dumps(node))
    (tmp_path / "pod.json").write_text(json.dumps({**pod, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
    loaded = loaded_by("explain", "-f", str(tmp_path / "pod.json"), "--cluster", str(tmp_path / "cluster.json"))
    assert not {"cryptography", "kubestow.apiserver.controlplane"} & set(loaded)


def test_the_api_server_is_asked_before_the_scheduler_is_loaded() -> None:
    """What is loaded before the first list is what flags, a configuration and the connection need."""
    program = """
import sys
import kubestow.cli.scheduler.watches
from kubestow.cli import main

def prepare(*_):
    print("loaded:", *sorted(sys.modules))
    raise SystemExit(0)

kubestow.cli.scheduler.watches.prepare_watches = prepare
main(["scheduler", "--master=http://127.0.0.1:1", "--leader-elect=false"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    loaded = next(line for line in done.stdout.splitlines() if line.startswith("loaded:")).split()[1:]
    parts = (name.split(".")[1:] for name in loaded if name.startswith("kubestow."))
    assert {".".join(part[:2]) if part[0] == "scheduler" else part[0] for part in parts} == BEFORE_THE_FIRST_LIST
    assert not {"cryptography", "email", "rich"} & set(loaded)
    # For plugins of others, client certificates, lists in flags, and other ways to log in.
    rare = {"csv", "dataclasses", "hashlib", "numpy.typing", "tempfile"}
    assert not {*rare, "kubestow.client.execplugin", "kubestow.client.oidc"} & set(loaded)


def test_pods_are_scheduled_before_certificates_are_thought_of() -> None:
    """What serves pages, and makes a certificate for them, is not loaded with the scheduler."""
    program = "import sys, kubestow.cli.scheduler.running\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert not {
        "dataclasses",
        "hashlib",
        "kubestow.scheduler.extenders.protocol",
        "kubestow.scheduler.framework.args",
    } & set(loaded)
    # Who compares what is known with the API server, when asked to.
    kept = ("kubestow.server.http", "kubestow.server.http.listening", "kubestow.server.inspection")
    assert [name for name in loaded if name.startswith(("cryptography", "kubestow.server.")) and name not in kept] == []


def test_plugins_load_what_few_pods_need_when_one_does() -> None:
    """A scheduler with the default plugins is made without what finds devices, preempts pods, or places groups."""
    program = """
import random, sys, time
from unittest.mock import Mock

import kubestow.cli.scheduler.running
from kubestow import config
from kubestow.config import Features
from kubestow.telemetry.metrics.catalogue import Metrics
from kubestow.clock import SystemClock
from kubestow.scheduler.assembly import Outside, build_core
from kubestow.scheduler.in_tree import in_tree_registry

features = Features()
metrics = Metrics(features).scheduler
outside = Outside(
    clock=SystemClock(), stopwatch=time.perf_counter, rng=random.Random(), api=Mock(), recorder=Mock(), metrics=metrics
)
core = build_core(config.default(features), features, in_tree_registry(), outside)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "kubestow.scheduler.plugins.dynamic_resources.plugin" in loaded
    assert not {"kubestow.scheduler.plugins.dynamic_resources.search", "kubestow.api.cel"} & loaded
    assert not {"kubestow.scheduler.plugins.default_preemption.search", "kubestow.scheduler.cycle.pod_group"} & loaded


def test_the_module_is_the_command() -> None:
    """`python -m kubestow` works like `kubestow`."""
    done = subprocess.run([sys.executable, "-m", "kubestow", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"kubestow, version {__version__}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [("--help",), ("doctor", "--kubeconfig=/no/such/file"), ("config", "default")])
def test_a_full_disk_is_reported(arguments: tuple[str, ...]) -> None:
    """In a line, for every writer."""
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "kubestow", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: cannot write: No space left on device\n")


def test_without_a_command_it_says_what_it_can_do() -> None:
    """The bare command prints its help and succeeds."""
    done = CliRunner().invoke(cli.main, [])
    assert done.exit_code == 0
    assert "config  " in done.output


def test_an_unknown_command_is_reported() -> None:
    """A mistyped command is an error of usage."""
    done = CliRunner().invoke(cli.main, ["nope"])
    assert done.exit_code == 2
    assert "No such command 'nope'" in done.output


def test_only_commands_that_exist_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry whose module is not installed is neither listed nor found."""
    monkeypatch.setitem(cli._SUBCOMMANDS, "ghost", cli._Entry("kubestow.cli.ghost", "Haunts."))
    assert "ghost" not in CliRunner().invoke(cli.main, ["--help"]).output
    assert CliRunner().invoke(cli.main, ["ghost"]).exit_code == 2


def test_a_command_is_found_without_looking_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for a module takes as long as loading a small one."""
    seek = Mock(wraps=importlib.util.find_spec)
    monkeypatch.setattr(importlib.util, "find_spec", seek)
    assert cli.main.get_command(click.Context(cli.main), "config") is not None
    seek.assert_called_once_with("kubestow.cli.config")


def test_every_listed_command_loads() -> None:
    """Each listed module has a `command` with help."""
    for name in cli.main.list_commands(click.Context(cli.main)):
        done = CliRunner().invoke(cli.main, [name, "--help"])
        assert done.exit_code == 0, done.output
        assert f"Usage: main {name} " in done.output


@pytest.mark.parametrize("name", ["SIGHUP", "SIGUSR2"])
def test_signals_do_not_end_a_scheduler_that_is_loaded(name: str) -> None:
    """Nor is anything else of the process changed once it is over."""
    program = f"""
import importlib, os, signal
from kubestow.cli import main

load = importlib.import_module
before = signal.getsignal(signal.{name})

def signalled(module):
    os.kill(os.getpid(), signal.{name})
    return load(module)

importlib.import_module = signalled
try:
    main(["scheduler", "--version"])
except SystemExit as end:
    assert end.code == 0
assert signal.getsignal(signal.{name}) is before
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
