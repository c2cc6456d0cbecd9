"""docs/reference/plugin-api.md lists what there is."""

import msgspec

from kubestow.scheduler.framework.contract import CONTRACT
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import POINTS
from support.repository import ROOT

PAGE = (ROOT / "docs/reference/plugin-api.md").read_text()


def test_every_method_is_described() -> None:
    """With its parameters."""
    assert [method for method in CONTRACT if method != "hint" and f"{method}(" not in PAGE] == []


def test_every_extension_point_has_a_row() -> None:
    """Under the name that messages use."""
    assert [point for point in POINTS if f"\n| {point[0].upper()}{point[1:]} |" not in PAGE] == []


def test_every_part_of_the_handle_is_described() -> None:
    """All that a plugin is given."""
    described = PAGE.partition("## The handle")[2].partition("## ")[0]
    names = [field.name for field in msgspec.structs.fields(Handle) if not field.name.startswith("_")]
    assert [name for name in names if f"`{name}" not in described] == []
