"""Writes the tables of docs/reference/benchmarks.md, one for each section, for `make bench`.

`<!-- bench:SECTION -->` begins a table and `<!-- end -->` ends it; everything else on the page is written by hand.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench_rows import Row

PAGE = Path(__file__).parents[1] / "docs/reference/benchmarks.md"
_TABLE = re.compile(r"(<!-- bench:(\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def sections(page: str) -> list[str]:
    """Return the names of the sections that have a table in the page, in order."""
    return [section for _, section in _TABLE.findall(page)]


def fill(page: str, found: Mapping[str, Mapping[str, Row]], environment: str, options: str = "") -> str:
    """Return the page with new tables of the sections in `found`; the tables of other sections are unchanged.

    `environment` and `options` (of `scripts/bench`) are shown above each new table.
    """

    def filled(match: re.Match[str]) -> str:
        begin, section = match.groups()
        if section not in found:
            return match[0]
        return f"{begin}`scripts/bench {section}{options}`, {environment}:\n\n{table(found[section].values())}"

    return _TABLE.sub(filled, page)


def table(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table: a line for each subject, a column for each measure and one for notes."""
    results: dict[str, dict[str, str]] = {}
    notes: dict[str, dict[str, None]] = {}
    for row in rows:
        results.setdefault(row.subject, {})[row.measure] = row.result
        notes.setdefault(row.subject, {})[row.note] = None
    measures = list(dict.fromkeys(measure for line in results.values() for measure in line))
    lines = [["", *measures, "note"], ["---"] * (len(measures) + 2)]
    for subject, line in results.items():
        cells = (line.get(measure, "") for measure in measures)
        lines.append([subject, *cells, "; ".join(filter(None, notes[subject]))])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
