"""Starting the command: help and version are quick, because nothing else is loaded."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from kubestow import __version__, cli

HEAVY = ("msgspec", "numpy", "yaml", "asyncio", "prometheus_client", "cryptography", "rich")


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
def test_no_array_is_needed_to_tell_how_to_use_it(arguments: tuple[str, ...]) -> None:
    """Help, and the default configuration, need neither the framework nor an event loop."""
    assert not {"numpy", "asyncio", "cryptography"} & set(loaded_by(*arguments))


def test_the_module_is_the_command() -> None:
    """`python -m kubestow` works like `kubestow`."""
    done = subprocess.run([sys.executable, "-m", "kubestow", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"kubestow, version {__version__}\n"


def test_without_a_command_it_says_what_it_can_do() -> None:
    """The bare command prints its help and succeeds."""
    done = CliRunner().invoke(cli.main, [])
    assert done.exit_code == 0
    assert "config  " in done.output


def test_an_unknown_command_is_told() -> None:
    """A mistyped command is an error of usage."""
    done = CliRunner().invoke(cli.main, ["nope"])
    assert done.exit_code == 2
    assert "No such command 'nope'" in done.output


def test_only_commands_that_exist_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry whose module is not installed is neither listed nor found."""
    monkeypatch.setitem(cli._SUBCOMMANDS, "ghost", cli._Entry("kubestow.cli.ghost", "Haunts."))
    assert "ghost" not in CliRunner().invoke(cli.main, ["--help"]).output
    assert CliRunner().invoke(cli.main, ["ghost"]).exit_code == 2


def test_every_listed_command_loads() -> None:
    """Each listed module has a `command` that can tell about itself."""
    for name in cli.main.list_commands(click.Context(cli.main)):
        done = CliRunner().invoke(cli.main, [name, "--help"])
        assert done.exit_code == 0, done.output
        assert f"Usage: main {name} " in done.output
