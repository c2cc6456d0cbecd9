"""The documentation: its Python examples run, its links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.pages import PAGES, ROOT, File, blocks, name_of, steps
from kubestow.cli import main

CONFIGURATIONS = [
    (page, text)
    for page in PAGES
    for language, text in blocks(page)
    if language == "yaml" and "kind: KubeSchedulerConfiguration" in text
]
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text()]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    """Every Python example answers what the page says."""
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried
    assert not failed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that exists."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize(
    ("page", "text"), CONFIGURATIONS, ids=lambda value: value.name if isinstance(value, Path) else ""
)
def test_configurations_are_valid(page: Path, text: str, tmp_path: Path) -> None:
    """Every configuration shown can be validated and completed as the pages tell to."""
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)
    plugins = [tmp_path / step.name for step in steps(page) if isinstance(step, File) and step.name.endswith(".py")]
    given = [f"--plugin={plugin}" for plugin in plugins if not plugin.name.startswith("test_")]
    for step in steps(page):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text)
    for command in ("validate", "complete"):
        result = CliRunner().invoke(main, ["config", command, *given, str(path)])
        assert result.exit_code == 0, result.output
