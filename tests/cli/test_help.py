"""Help, as one asks for it with other programs."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from kubestow.cli import main


def answer(*arguments: str) -> tuple[int, str]:
    run = subprocess.run([sys.executable, "-m", "kubestow", *arguments], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


@pytest.mark.parametrize("command", ["", "explain", "scheduler", "config", "config validate", "plugin new"])
def test_short_and_long_ask_for_the_same(command: str) -> None:
    """Of the program itself, of commands, and of those below them."""
    code, output = answer(*command.split(), "--help")
    assert (code, output.splitlines()[0].startswith(f"Usage: kubestow {command}".rstrip())) == (0, True)
    assert answer(*command.split(), "-h") == (code, output)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["upp"], "No such command 'upp'. Did you mean 'up'?"),
        (["config", "valdate"], "No such command 'valdate'. Did you mean 'validate' or 'translate'?"),
        (["plugin", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["xyz"], "No such command 'xyz'."),
    ],
)
def test_similar_commands_are_suggested(arguments: list[str], error: str) -> None:
    """For a command that does not exist, also below another one."""
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, f"Error: {error}")
