"""docs/how-to/migrate-from-policy.md: its Policy, its commands and its tables."""

import re
from pathlib import Path

from click.testing import CliRunner

from kubestow import config
from kubestow.cli import main
from kubestow.config import policy
from kubestow.config.policy.tables import DEPRECATED_NAMES, NO_PRIORITY, PREDICATES, PRIORITIES
from support.repository import ROOT

PAGE = (ROOT / "docs/how-to/migrate-from-policy.md").read_text()
(POLICY,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_policy_is_translated_as_shown(tmp_path: Path) -> None:
    """The comments are those on the page, and what is written is valid and does the same."""
    path, target = tmp_path / "policy.json", tmp_path / "scheduler.yaml"
    path.write_text(POLICY)
    target.write_text(CliRunner().invoke(main, ["config", "translate", str(path)]).stdout)
    lines = target.read_text().splitlines()
    assert [line for line in lines if line.startswith("# ")] == re.findall(r"^# kube-scheduler .*", PAGE, re.MULTILINE)
    assert config.load(target.read_text()) == policy.load(POLICY)
    assert CliRunner().invoke(main, ["config", "validate", str(target)]).exit_code == 0


def test_the_commands_take_these_flags(tmp_path: Path) -> None:
    """Both commands that run a scheduler know the flags that the page gives them."""
    path, target = tmp_path / "policy.json", tmp_path / "written.yaml"
    path.write_text(POLICY)
    for command in ("scheduler", "up"):
        known = CliRunner().invoke(main, [command, "--help"]).output
        for line in re.findall(rf"^\$ kubestow {command} (.*)", PAGE, re.MULTILINE):
            assert all(flag in known for flag in re.findall(r"--[\w-]+", line))
    flags = ["--policy-config-file", str(path), "--write-config-to", str(target)]
    assert CliRunner().invoke(main, ["scheduler", *flags]).exit_code == 0
    assert config.load(target.read_text()) == policy.load(POLICY)


def test_the_tables_are_complete() -> None:
    """Every predicate and priority is there, with the plugins that it becomes."""
    rows = re.findall(r"^\| (.*`\w+`.*) \| (.*) \|$", PAGE, re.MULTILINE)
    documented = {
        name: set(re.findall(r"\w+", plugins)) for names, plugins in rows for name in re.findall(r"`(\w+)`", names)
    }
    plugins_of = {**PREDICATES, **{name: (plugin,) for name, plugin in PRIORITIES.items() if name != plugin}}
    for name, plugins in plugins_of.items():
        assert set(plugins) <= documented[name], name
    for other, name in DEPRECATED_NAMES.items():
        assert documented[other] == documented[name]
    assert NO_PRIORITY in documented
