"""docs/reference/benchmarks.md: `make bench` writes one table for each section."""

from typing import Any

import pytest

from support.project_scripts import load_script
from support.repository import ROOT

PAGE = ROOT / "docs/reference/benchmarks.md"
EMPTY = "# Page\n<!-- bench:one -->\n<!-- end -->\nText\n<!-- bench:two -->\nas before\n<!-- end -->\n"
FILLED = """\
# Page
<!-- bench:one -->
`scripts/bench one --full`, Python:

|  | CPU | rate | note |
| --- | --- | --- | --- |
| pods | 1.5 ms | 2,000 /s | aim: 1 ms |
| nodes | 3 ms |  |  |
<!-- end -->
Text
<!-- bench:two -->
as before
<!-- end -->
"""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scripts import each other."""
    monkeypatch.syspath_prepend(ROOT / "scripts")


@pytest.fixture
def tables(scripts: None) -> Any:
    return load_script("bench_tables")


def test_the_page_has_a_table_for_every_section(tables: Any) -> None:
    """In the order in which they are measured, or any other."""
    assert sorted(tables.sections(PAGE.read_text())) == sorted(load_script("bench_run").SECTIONS)


def test_writing_figures_changes_their_tables_only(tables: Any) -> None:
    """Writing the same figures again changes nothing."""
    row = load_script("bench_rows").Row
    rows = [row("pods: CPU", 1.5, "ms", "aim: 1 ms"), row("pods: rate", 2000, "/s"), row("nodes: CPU", 3, "ms")]
    found = {"one": {each.what: each for each in rows}}
    assert tables.fill(EMPTY, found, "Python", " --full") == FILLED
    assert tables.fill(FILLED, found, "Python", " --full") == FILLED


def test_every_table_has_figures(tables: Any) -> None:
    """No section of the page waits to be measured."""
    text = PAGE.read_text()
    assert [section for section in tables.sections(text) if f"`scripts/bench {section}" not in text] == []
