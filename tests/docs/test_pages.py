"""The documentation: its Python examples run, its links lead somewhere."""

import doctest
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubestow.cli import main
from support.docs.pages import PAGES, TESTED_APART, File, blocks, commands, name_of, steps
from support.repository import ROOT

CONFIGURATIONS = [
    (page, text)
    for page in PAGES
    for language, text in blocks(page)
    if language == "yaml" and "kind: KubeSchedulerConfiguration" in text and not text.startswith("# bad.yaml")
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
    """Every configuration shown can be validated and completed with the documented commands."""
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)
    plugins = {name for typed in commands(page) for name in re.findall(r"--plugin[ =](\S+)", typed.command)}
    given = [
        f"--plugin={tmp_path / step.name}" for step in steps(page) if isinstance(step, File) and step.name in plugins
    ]
    for step in steps(page):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text)
    for command in ("validate", "complete"):
        result = CliRunner().invoke(main, ["config", command, *given, str(path)])
        assert result.exit_code == 0, result.output


def test_the_index_has_every_page() -> None:
    """docs/README.md links to all pages, except those of plugins and ADRs, which have lists of their own."""
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.glob("**/*.md")}
    listed = {
        page for page in pages if page.startswith(("adr/", "reference/plugins/")) and not page.endswith("README.md")
    }
    links = set(re.findall(r"\]\(([^)]+)\)", (docs / "README.md").read_text()))
    assert pages - listed - {"README.md"} - links == set()


def test_the_list_of_adrs_is_complete() -> None:
    """docs/adr/README.md has the number, title and status of every ADR."""
    folder = ROOT / "docs" / "adr"
    rows = []
    for page in sorted(folder.glob("0*.md")):
        title, _, status, *_ = page.read_text().splitlines()
        number, _, decision = title.removeprefix("# ").partition(". ")
        assert page.name.startswith(f"{int(number):04}-")
        rows.append(f"| [{number}]({page.name}) | {decision} | {status.removeprefix('Status: ')} |")
    lines = (folder / "README.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("| [")] == rows


def test_the_table_of_packages_has_the_order_of_the_import_contract() -> None:
    """Every package is described, and each row may import only rows below it."""
    page = (ROOT / "docs/explanation/architecture.md").read_text()
    described = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["kubestow"])
    order = [name for layer in layers for name in layer.split(" : ") if not name.startswith("__")]
    assert described == order


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_into_pages_name_a_title(page: Path) -> None:
    """What comes after # in a link is a title of the page it leads to."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    assert [(to, title) for to, title in links if title not in _anchors(page.parent / to if to else page)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in TESTED_APART], ids=name_of)
def test_python_blocks_are_run(page: Path) -> None:
    """A block of Python is a session, a file that the page has its reader save, or an example that has a test."""
    examples = "\n".join(file.read_text() for file in ROOT.glob("examples/*.py"))
    saved = {step.text for step in steps(page) if isinstance(step, File)}
    blocks_of_python = [text for language, text in blocks(page) if language in ("python", "pycon")]
    assert [
        text for text in blocks_of_python if ">>> " not in text and text not in saved and text.strip() not in examples
    ] == []
