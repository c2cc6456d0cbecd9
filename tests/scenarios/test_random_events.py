"""After any events in any order: no pod is lost or in two places, and every column is correct."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.api.priority import pod_is_terminal
from support.scenarios import consistency
from support.scenarios.random_events import Chaos

EVENTS = 20_000
RUNS = 8


def run(rng: random.Random, events: int, check_every: int) -> Chaos:
    chaos = Chaos(rng)
    try:
        for number in range(events):
            chaos.step()
            if number % check_every == 0:
                consistency.check(chaos.harness)
        settle(chaos)
    finally:
        chaos.harness.close()
    return chaos


def settle(chaos: Chaos) -> None:
    """Let all operations end; afterwards, remaining pods wait for a reason, and bound pods are counted."""
    chaos.calm_down()
    chaos.harness.run_until_idle()
    consistency.check_settled(chaos.harness)
    for pod in chaos.harness.cluster.all(Pod):
        if pod.metadata.deletionTimestamp is None and not pod.spec.nodeName and not pod_is_terminal(pod):
            place = chaos.harness.place_of(pod.metadata.name)
            ours = pod.spec.schedulerName == "default-scheduler"
            assert place in (("unschedulable", "gated") if ours else ("",)), f"{pod.key} is in {place!r}"


@pytest.mark.parametrize("seed", range(RUNS))
def test_twenty_thousand_events(seed: int) -> None:
    """Several long runs are checked at intervals."""
    chaos = run(random.Random(seed), EVENTS // RUNS, check_every=5)
    assert len(chaos.harness.cluster.bindings) > 50
    assert len(chaos.harness.attempts.decisions) > len(chaos.harness.cluster.bindings)


@settings(max_examples=25, deadline=None)
@given(rng=st.randoms(use_true_random=False), events=st.integers(1, 40))
def test_short_runs(rng: random.Random, events: int) -> None:
    """Many short runs are checked after every event; a failure shrinks to few and simple events."""
    run(rng, events, check_every=1)
