"""The limits in docs/reference/serving.md."""

import re
from dataclasses import asdict

from kubestow.server.http.limits import Limits
from kubestow.server.serving import LIMITS
from support.repository import ROOT

PAGE = (ROOT / "docs/reference/serving.md").read_text()
UNITS = {"KiB": 1024, "MiB": 1024**2, "KiB/s": 1024}


def _number(text: str, unit: str) -> float:
    return float(text.replace(",", "")) * UNITS.get(unit, 1)


def test_the_page_has_every_limit() -> None:
    """Each field with its default."""
    rows = re.findall(r"^\|.*\| `(\w+)` \| ([\d,]+) ?([\w/]*)", PAGE, re.MULTILINE)
    assert {field: _number(text, unit) for field, text, unit in rows} == asdict(Limits())


def test_the_page_has_the_limits_of_the_scheduler() -> None:
    """Three limits, and the interval of the sweep."""
    assert asdict(LIMITS) == asdict(Limits()) | {"connections": 1000, "body": 64 * 1024, "unsent": 1024 * 1024}
    assert "three limits that are lower: 1,000 connections, bodies of 64 KiB, and 1 MiB of a stream untaken" in PAGE
    assert f"every {LIMITS.sweep_seconds:g} seconds" in PAGE
