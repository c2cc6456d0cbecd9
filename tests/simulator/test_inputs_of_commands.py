"""What `kubestow simulate`, `replay`, `sweep` and `compare` run, and with which configuration."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubestow.cli import main

SCENARIO = """apiVersion: kubestow.dev/v1
kind: Scenario
spec:
  duration: 10m
  nodes: [{count: 2, cpu: 4, memory: 16Gi}]
"""
PACKING = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a scenario and a configuration."""
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "c.yaml").write_text(PACKING)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("command", "more"), [("simulate", ()), ("sweep", ("--vary", "config.parallelism=8", "--workers", "1"))]
)
@pytest.mark.parametrize("inputs", [("s.yaml", "--config", "c.yaml"), ("c.yaml", "--on", "s.yaml")])
def test_one_configuration_is_given_in_either_form(
    command: str, more: tuple[str, ...], inputs: tuple[str, ...], folder: Path
) -> None:
    """An invalid one is reported, so that it is the one that is used."""
    done = run(command, *inputs, "--out", "out", *more)
    assert done.exit_code == 0, done.output
    (folder / "c.yaml").write_text(f"{PACKING}parallelism: 0\n")
    done = run(command, *inputs, "--out", "new", *more)
    assert (done.exit_code, done.output) == (1, "Error: c.yaml: parallelism: must be greater than 0, not 0\n")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "inputs",
    [
        ("s.yaml", "--config", "default", "--config", "c.yaml"),
        ("default", "c.yaml", "--on", "s.yaml"),
        ("c.yaml", "--config", "default", "--on", "s.yaml"),
        ("--config", "default", "--config", "c.yaml", "--on", "s.yaml"),
    ],
)
def test_two_configurations_are_given_in_either_form(inputs: tuple[str, ...]) -> None:
    """The first one is A."""
    done = run("compare", *inputs, "--seeds", "1")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("A: default\nB: c.yaml\n")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("simulate",), "Missing argument 'SCENARIO...'."),
        (("replay",), "Missing argument 'RECORDING'."),
        (("replay", "a", "b"), "the command takes one recording, not 2"),
        (("compare", "default", "c.yaml"), "--config A --config B, and SCENARIO|RECORDING...; not 0 configurations"),
        (("compare", "s.yaml", "--config", "c.yaml"), "SCENARIO|RECORDING...; not 1 configurations"),
        (("simulate", "a", "b", "--on", "s.yaml"), "one configuration at most: --config, and SCENARIO...; not 2"),
    ],
)
def test_missing_and_surplus_inputs_are_named(arguments: tuple[str, ...], error: str) -> None:
    """As errors of usage."""
    done = run(*arguments)
    assert done.exit_code == 2
    assert error in done.output


@pytest.mark.usefixtures("folder")
def test_the_default_configuration_has_a_name() -> None:
    """In all commands."""
    assert run("simulate", "s.yaml", "--config", "default").exit_code == 0
