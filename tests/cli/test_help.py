"""Help, as one asks for it with other programs."""

import subprocess
import sys

import pytest


def answer(*arguments: str) -> tuple[int, str]:
    run = subprocess.run([sys.executable, "-m", "kubestow", *arguments], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


@pytest.mark.parametrize("command", ["", "explain", "scheduler", "config", "config validate", "plugin new"])
def test_short_and_long_ask_for_the_same(command: str) -> None:
    """Of the program itself, of commands, and of those below them."""
    code, output = answer(*command.split(), "--help")
    assert (code, output.splitlines()[0].startswith(f"Usage: kubestow {command}".rstrip())) == (0, True)
    assert answer(*command.split(), "-h") == (code, output)
