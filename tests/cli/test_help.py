"""Help, as one asks for it with other programs."""

import pytest
from click.testing import CliRunner

from kubestow.cli import main


@pytest.mark.parametrize("command", ["", "explain", "scheduler", "config", "config validate", "plugin new"])
def test_short_and_long_ask_for_the_same(command: str) -> None:
    """Of the program itself, of commands, and of those below them."""
    short, long = (CliRunner().invoke(main, [*command.split(), option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.output) == (0, long.output)
    assert short.output.startswith(f"Usage: main {command}".rstrip())
