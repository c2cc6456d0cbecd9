"""The reference page of metrics."""

from support.project_scripts import load_script


def test_the_reference_page_is_current() -> None:
    """docs/reference/metrics.md equals the output of its script."""
    script = load_script("metrics_page")
    assert script.PAGE.read_text() == script.page()
