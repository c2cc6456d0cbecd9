"""A run with the same seed makes the same decisions; randomness comes only from the seed."""

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from kubestow.api.pod import Pod
from kubestow.testing import SchedulerHarness, make_node, make_pod

Start = Callable[..., SchedulerHarness]


def played(start: Start, seed: int) -> bytes:
    """Return bindings, events and final statuses of a run with many pods, as bytes."""
    script = random.Random("the same script every time")
    harness = start(seed=seed, latency=0.05, delay=0.02)
    for number in range(20):
        harness.cluster.add(make_node(f"n{number}", cpu="4", zone=f"z{number % 3}"))
    for number in range(120):
        harness.cluster.add(
            make_pod(f"p{number}", cpu=f"{script.randrange(1, 20)}00m", priority=script.randrange(3), grace_seconds=5)
        )
        if script.random() < 0.2:
            harness.run_for(script.random())
        if script.random() < 0.1:
            harness.cluster.faults.fail("bind", script.choice(["Conflict", "Timeout"]))
        if script.random() < 0.1:
            victim = script.choice(harness.cluster.all(Pod))
            harness.cluster.delete(victim)
    harness.run_for(300.0)
    pods = [(pod.key, pod.spec.nodeName, pod.status) for pod in harness.cluster.all(Pod)]
    return msgspec.json.encode([harness.cluster.bindings, list(harness.events), pods])


def test_the_same_seed_gives_the_same_run(start: Start) -> None:
    """The results are equal byte for byte."""
    assert played(start, seed=7) == played(start, seed=7)


def test_another_seed_chooses_otherwise(start: Start) -> None:
    """Equally good nodes are chosen at random, so the seed matters."""
    assert played(start, seed=7) != played(start, seed=8)


_PLAYED_AGAIN = """
import hashlib
from kubestow.testing import SchedulerHarness
from scenarios.test_repeatability import played
print(hashlib.sha256(played(SchedulerHarness, seed=7)).hexdigest())
"""


def test_the_same_seed_gives_the_same_run_in_another_process(start: Start) -> None:
    """Sets of strings have another order there; no decision may depend on it."""
    elsewhere = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PLAYED_AGAIN],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert elsewhere.strip() == hashlib.sha256(played(start, seed=7)).hexdigest()
