"""Invalid input is rejected with an error, and never causes a crash, a hang or huge allocations."""

from pathlib import Path

import pytest

from support.fuzzing.running import CORPUS, attempt, fuzz
from support.fuzzing.targets import TARGETS

INPUTS = 150


@pytest.mark.parametrize("target", TARGETS)
def test_valid_input_is_accepted(target: str) -> None:
    """The valid inputs, from which others are derived, are accepted."""
    for seed in TARGETS[target].seeds:
        assert attempt(target, seed) is None


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_input(target: str) -> None:
    """A sample of what `make chaos` tries in large numbers."""
    assert [find.trace for find in fuzz(target, 1, INPUTS)] == []


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*")), ids=lambda file: f"{file.parent.name}-{file.name}")
def test_former_finds_stay_fixed(file: Path) -> None:
    """Inputs that broke a target in the past."""
    assert attempt(file.parent.name.replace("-", " "), file.read_bytes()) is None
