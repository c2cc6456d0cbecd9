"""Paths of the repository that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
"""Recorded cases and reference files beside the repository; tests that need them are skipped without it."""
