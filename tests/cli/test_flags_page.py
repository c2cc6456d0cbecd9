"""docs/reference/flags.md."""

from support.project_scripts import load_script


def test_the_page_is_current() -> None:
    """It says what the table of flags says; run scripts/flags_page.py to write it anew."""
    script = load_script("flags_page")
    assert script.PAGE.read_text() == script.page()
