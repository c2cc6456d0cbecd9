"""docs/reference/glossary.md: every file that it names is there, and defines the names that it says."""

import re

import pytest

from support.repository import ROOT

ROWS = re.findall(
    r"^\| (.*?) \| .* \| `(\S+\.py)` \|$", (ROOT / "docs/reference/glossary.md").read_text(), re.MULTILINE
)


@pytest.mark.parametrize(("ours", "where"), ROWS)
def test_names_live_where_it_says(ours: str, where: str) -> None:
    """Each name in backquotes is a class, function or constant of the file."""
    text = (ROOT / "src" / "kubestow" / where).read_text()
    for name in re.findall(r"`(\w+)`", ours):
        assert re.search(rf"\b(?:class|def) {name}\b|^{name}\b", text, re.MULTILINE), name


def test_it_is_read() -> None:
    """Every row of the page has a path, and so is looked at above."""
    lines = (ROOT / "docs/reference/glossary.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| our word")]
    assert len(rows) == len(ROWS) > 45
