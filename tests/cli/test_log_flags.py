"""The flags about logs of `kubestow up` and `kubestow apiserver`."""

import click
import pytest
from click.testing import CliRunner

from kubestow.cli.support import log_flags
from kubestow.telemetry.log_setup import LogOptions
from kubestow.telemetry.logs import WARNINGS_ONLY, ModuleLevel


@click.command
@click.option("--port", default=1)
@log_flags
def command(port: int, logs: LogOptions) -> None:
    """Keep what arrives."""
    RECEIVED.append((port, logs))


RECEIVED: list[tuple[int, LogOptions]] = []


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([], LogOptions(verbosity=WARNINGS_ONLY)),
        (["-v", "0"], LogOptions()),
        (["-v4", "--vmodule=reflector=5"], LogOptions(verbosity=4, modules=(ModuleLevel("reflector", 5),))),
        (["--v=2", "--logging-format=json"], LogOptions("json", 2)),
    ],
)
def test_what_flags_come_to(given: list[str], options: LogOptions) -> None:
    """Without -v nothing is logged at level info; the other flags of the command take effect."""
    assert CliRunner().invoke(command, given).output == ""
    assert RECEIVED.pop() == (1, options)


def test_a_bad_pattern_is_named() -> None:
    """A pattern without a level is an error that names the flag."""
    result = CliRunner().invoke(command, ["--vmodule=reflector"])
    assert result.exit_code == 2
    assert "--vmodule: 'reflector' is not PATTERN=LEVEL, such as" in result.output
