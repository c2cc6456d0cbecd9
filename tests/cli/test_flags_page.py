"""docs/reference/flags.md."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    """It says what the table of flags says; run scripts/flags_page.py to write it anew."""
    spec = importlib.util.spec_from_file_location("flags_page", ROOT / "scripts/flags_page.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text() == script.page()
