"""What reaches a terminal: no control characters of objects, in any command."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from rich.text import Text

from kubestow.cli import main
from kubestow.cli.nonblocking_output import NonBlockingOutput
from kubestow.cli.terminal import console, guarded_output, printable, style, trusted

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\r\x08\x7f"
HARMLESS = r"a\u001b]0;title\u0007\u001b[2J\u009b31m\u202eb\u000d\u0008\u007f"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
OWN = re.compile("\x1b\\[[0-9;]*[mK]|\r\n")
"""Styles, and the line ends of a terminal."""


def test_control_characters_are_escaped() -> None:
    """Newlines and tabs stay, and so does other text in any language."""
    assert printable(f"é漢🙂\t{HOSTILE}\n") == f"é漢🙂\t{HARMLESS}\n"


def test_json_keeps_its_meaning() -> None:
    """The escapes are those of JSON."""
    assert json.loads(printable(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


def test_trusted_sequences_are_kept() -> None:
    """But not what they surround, and no imitation."""
    cleared = trusted("\x1b[K")
    assert printable(f"{cleared}\x1b[K") == "\x1b[K\\u001b[K"
    assert printable(style("\x07", bold=True)) == "\x1b[1m\\u0007\x1b[0m"
    assert printable("\x000123456789abcdef\x1b[K\x00") == r"\u00000123456789abcdef\u001b[K\u0000"


def test_output_is_guarded_in_all_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """print, click.echo, lines, and consoles of rich, which keep their own styles."""
    out, errors = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", errors)
    with guarded_output():
        print(HOSTILE)
        sys.stdout.writelines([HOSTILE, "\n"])
        click.echo(style(HOSTILE, bold=True), color=True)
        console().print(Text(HOSTILE))
        click.echo(HOSTILE, err=True, color=True)
    *plain, of_rich = out.getvalue().splitlines()
    assert plain == [HARMLESS, HARMLESS, f"\x1b[1m{HARMLESS}\x1b[0m"]
    assert not UNSAFE.search(of_rich)
    assert errors.getvalue() == f"{HARMLESS}\n"
    assert (sys.stdout, sys.stderr) == (out, errors)


def test_bytes_are_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as lines of the decision log, and text for an output whose encoding click replaces."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    with guarded_output():
        sys.stdout.buffer.write(f"é{HOSTILE}\n".encode())
        sys.stdout.buffer.flush()
        click.echo(f"é{HOSTILE}", color=True)
    assert raw.getvalue().decode().splitlines() == [f"é{HARMLESS}"] * 2


def test_an_output_that_is_closed_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is for a process that was started without one."""
    monkeypatch.setattr(sys, "stdout", None)
    with guarded_output():
        assert sys.stdout is None


def test_lines_of_up_are_guarded(tmp_path: Path) -> None:
    """They do not pass standard output's own buffer."""
    with (tmp_path / "out").open("wb") as file:
        output = NonBlockingOutput(file.fileno())
        output.write(HOSTILE)
        output.flush()
    assert (tmp_path / "out").read_text() == f"{HARMLESS}\n"


def _node(name: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}}
    taint = {"key": HOSTILE, "value": HOSTILE, "effect": "NoSchedule"}
    meta = {"name": name, "uid": name, "labels": {"topology.kubernetes.io/zone": HOSTILE, HOSTILE: HOSTILE}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": [taint]}, "status": status}


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": HOSTILE, "uid": name, "labels": {HOSTILE: HOSTILE}}
    containers = [{"name": HOSTILE, "resources": {"requests": {"cpu": "100m", HOSTILE: "1"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files that have control characters wherever there is text."""
    cluster = [_node(f"{HOSTILE}-1"), _node("plain"), _pod(f"{HOSTILE}-bound", nodeName=f"{HOSTILE}-1"), _pod(HOSTILE)]
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    events = [{"at": HOSTILE}, {HOSTILE: HOSTILE}]
    files = {
        "cluster.json": {"apiVersion": "v1", "kind": "List", "items": cluster},
        "pod.json": _pod(HOSTILE),
        "plain-pod.json": _pod("plain") | {"metadata": {"name": "plain", "uid": "u"}},
        "config.json": {**head, HOSTILE: 1, "profiles": [{"schedulerName": HOSTILE, "percentageOfNodesToScore": 999}]},
        "scenario.json": {"apiVersion": "kubestow.dev/v1", "kind": "Scenario", "spec": {"events": events}},
        "admin.json": {"clusters": [{"name": HOSTILE}], "contexts": [], "current-context": HOSTILE},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "plugin.py").write_text(f"raise OSError({HOSTILE!r})")
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMANDS = {
    "explain": ("explain", f"{HOSTILE}/{HOSTILE}", "--cluster", "cluster.json"),
    "explain-file": ("explain", "-f", "plain-pod.json", "--cluster", "cluster.json", "-o", "wide"),
    "explain-json": ("explain", "-f", "plain-pod.json", "--cluster", "cluster.json", "-o", "json"),
    "explain-yaml": ("explain", "-f", "plain-pod.json", "--cluster", "cluster.json", "-o", "yaml"),
    "capacity": ("capacity", "--cluster", "cluster.json", "--pods"),
    "capacity-podspec": ("capacity", "--cluster", "cluster.json", "--podspec", "pod.json", "--verbose"),
    "capacity-fits": ("capacity", "--cluster", "cluster.json", "--podspec", "plain-pod.json", "-o", "json"),
    "simulate": ("simulate", "scenario.json"),
    "simulate-cluster": ("simulate", "cluster.json"),
    "compare": ("compare", "scenario.json", "--config", "config.json", "--config", "default"),
    "sweep": ("sweep", "scenario.json", "--vary", f"config.{HOSTILE}=1", "--out", "out"),
    "replay": ("replay", HOSTILE),
    "view": ("view", HOSTILE),
    "config": ("config", "validate", "config.json"),
    "doctor": ("doctor", "--kubeconfig", "admin.json", "--config", "config.json"),
    "up": ("up", "--port", "0", "-f", "cluster.json", "--config", "config.json"),
    "apiserver": ("apiserver", "--port", "0", "--nodes-file", "cluster.json"),
    "record": ("record", "new.jsonl", "--kubeconfig", "admin.json"),
    "plugin": ("plugin", "check", "plugin.py"),
    "scheduler": ("scheduler", "--config", "config.json"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_command_passes_control_characters_of_files(arguments: tuple[str, ...]) -> None:
    """In its result, its errors and its warnings, even where nothing strips colours."""
    done = CliRunner().invoke(main, arguments, color=True)
    assert "title" in done.output or done.exit_code == 0, done.output
    assert not UNSAFE.search(OWN.sub("", done.output)), done.output


@pytest.fixture
def on_terminal() -> Callable[..., str]:
    """Runs a command on a terminal; returns what is shown."""

    def run(*arguments: str) -> str:
        mine, its = pty.openpty()
        command = [sys.executable, "-m", "kubestow", *arguments]
        subprocess.run(command, stdout=its, stderr=its, check=False)
        os.close(its)
        shown = os.read(mine, 100_000).decode()
        os.close(mine)
        return shown

    return run


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["explain", "doctor", "scheduler"])
def test_terminals_get_styles_alone(name: str, on_terminal: Callable[..., str]) -> None:
    """Objects cannot set the title of its window."""
    shown = on_terminal(*COMMANDS[name])
    assert "title" in shown
    assert not UNSAFE.search(OWN.sub("", shown)), repr(shown)
