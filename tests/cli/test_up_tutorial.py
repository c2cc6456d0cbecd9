"""The tutorial about the first cluster: everything in it that is typed into kubectl answers what the page says."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.up_running import Up

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-cluster.md"

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]


class Typed(NamedTuple):
    """A command of the page and the answer it promises."""

    command: str
    answer: list[str]


def typed(page: str) -> Iterator[Typed]:
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *answer = part.splitlines()
            if command.startswith("kubectl "):
                yield Typed(command, answer)


def shape(lines: list[str]) -> list[str]:
    """What does not differ from run to run: no names that are made up, nodes, ages, addresses, order, columns."""
    text = "\n".join(" ".join(line.split()) for line in lines)
    for pattern in (r"web-[a-z0-9]+-[a-z0-9]{5}\b", r"\bnode-\d", r"\b(\d+m)?\d+s\b", r"\b10\.[\d.]+"):
        text = re.sub(pattern, "*", text)
    return sorted(text.splitlines())


def test_the_tutorial_is_true(tmp_path: Path) -> None:
    """Command by command, in the order of the page."""
    page = PAGE.read_text()
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", page, re.DOTALL):
        (tmp_path / name).write_text(content)
    up = Up(tmp_path)
    try:
        environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig)}
        commands = list(typed(page))
        assert len(commands) > 15
        for command, answer in commands:
            done = subprocess.run(
                ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"
            said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("Warning: ")]
            assert shape(said) == shape(answer), command
    finally:
        up.stop()
