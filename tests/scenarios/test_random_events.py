"""After any events in any order: no pod is lost or in two places, and every column is correct."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.scenarios.random_events import run_events

EVENTS = 20_000
RUNS = 8


@pytest.mark.parametrize("seed", range(RUNS))
def test_twenty_thousand_events(seed: int) -> None:
    """Several long runs are checked at intervals."""
    chaos = run_events(random.Random(seed), EVENTS // RUNS, check_every=5)
    assert len(chaos.harness.cluster.bindings) > 50
    assert len(chaos.harness.attempts.decisions) > len(chaos.harness.cluster.bindings)


@settings(max_examples=25, deadline=None)
@given(rng=st.randoms(use_true_random=False), events=st.integers(1, 40))
def test_short_runs(rng: random.Random, events: int) -> None:
    """Many short runs are checked after every event; a failure shrinks to few and simple events."""
    run_events(rng, events, check_every=1)
