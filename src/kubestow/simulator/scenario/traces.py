"""Traces: CSV files with one arrival per row."""

import csv
from pathlib import Path

from kubestow.api import quantity
from kubestow.api.files.sources import describe_error
from kubestow.apiserver.rules.names import dns_subdomain
from kubestow.simulator.scenario.format import Span, seconds

Row = dict[str, str]
COLUMNS = ("at", "run", "cpu", "memory", "name")


def read(path: Path) -> tuple[list[Row], list[str]]:
    """Return the rows of a file, and its unknown columns; raises ValueError with file, line and column."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows: list[Row] = list(csv.DictReader(file, restkey="more columns than its first line", restval=""))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {describe_error(error)}") from None
    except csv.Error as error:
        raise ValueError(f"{path}: is not CSV: {error}") from None
    if not rows or "at" not in rows[0]:
        raise ValueError(f"{path}: needs rows with a column `at`; other columns are {', '.join(COLUMNS[1:])}")
    named: dict[str, int] = {}
    for number, row in enumerate(rows, start=2):
        for column in COLUMNS:
            try:
                _check(row, column)
            except ValueError as error:
                raise ValueError(f"{path}: line {number}: {column}: {error}") from None
        before = named.setdefault(row.get("name") or str(number), number)
        if before != number:
            raise ValueError(f"{path}: line {number}: name: {row['name']!r} is already used in line {before}")
    return rows, [column for column in dict.fromkeys(one for row in rows for one in row) if column not in COLUMNS]


def _check(row: Row, column: str) -> None:
    """Raise ValueError if the value of a column is invalid."""
    text = row.get(column) or ""
    if column in ("at", "run"):
        if text or column == "at":
            parse_duration(text)
    elif text and column == "name":
        for wrong in dns_subdomain(text):
            raise ValueError(f"{text!r}: {wrong}")
    elif text and quantity.nano(text) < 0:
        raise ValueError("must not be negative")


def parse_duration(text: str) -> float:
    """Return the seconds of a duration in a row; raises ValueError."""
    given: Span = text
    try:
        given = float(text)
    except ValueError:
        pass
    return seconds(given)


def arrival_seconds(row: Row) -> float:
    """Return the time of a row in seconds."""
    return parse_duration(row["at"])
