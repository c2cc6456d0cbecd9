"""Bad input: refused in words, never a crash, a hang or a heap of memory."""

from pathlib import Path

import pytest

from fuzzing.running import CORPUS, attempt, run
from fuzzing.targets import TARGETS

INPUTS = 150


@pytest.mark.parametrize("target", TARGETS)
def test_good_input_is_taken(target: str) -> None:
    """What the others are made of is fine as it is."""
    for seed in TARGETS[target].seeds:
        assert attempt(target, seed) is None


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_input(target: str) -> None:
    """Some of what `make chaos` tries in large numbers."""
    assert [find.trace for find in run(target, 1, INPUTS)] == []


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*")), ids=lambda file: f"{file.parent.name}-{file.name}")
def test_what_was_found_once_stays_mended(file: Path) -> None:
    """Inputs that broke a target some day."""
    assert attempt(file.parent.name.replace("-", " "), file.read_bytes()) is None
