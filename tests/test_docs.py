"""The documentation: its Python examples run, its links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubestow.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
CONFIGURATIONS = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    if "kind: KubeSchedulerConfiguration" in block
]
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text()]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    """Every Python example answers what the page says."""
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried
    assert not failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
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
    for command in ("validate", "complete"):
        result = CliRunner().invoke(main, ["config", command, str(path)])
        assert result.exit_code == 0, result.output
