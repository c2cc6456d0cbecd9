"""A run with many pods that a seed determines."""

import random

import msgspec

from kubestow.api.pod import Pod
from kubestow.testing import make_node, make_pod
from support.scenarios.start import Start


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
