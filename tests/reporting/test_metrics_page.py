"""The reference page of metrics."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_reference_page_is_current() -> None:
    """docs/reference/metrics.md is what its script writes."""
    spec = importlib.util.spec_from_file_location("metrics_page", ROOT / "scripts/metrics_page.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert (ROOT / "docs/reference/metrics.md").read_text() == script.page()
