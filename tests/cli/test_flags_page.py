"""docs/reference/flags.md."""

from support.project_scripts import load_script


def test_the_page_is_current() -> None:
    """It has the contents of the table of flags; run scripts/flags_page.py to write it again."""
    script = load_script("flags_page")
    assert script.PAGE.read_text() == script.page()
