"""Pods with scheduling gates stay out of the way until the last gate is gone."""

from collections.abc import Callable

from msgspec.structs import replace

from kubestow.api.pod import PodSchedulingGate
from kubestow.testing import SchedulerHarness, make_node, make_pod

Start = Callable[..., SchedulerHarness]


def set_gates(harness: SchedulerHarness, name: str, *gates: str) -> None:
    pod = harness.cluster.pod(name)
    harness.cluster.update(
        replace(pod, spec=replace(pod.spec, schedulingGates=tuple(PodSchedulingGate(gate) for gate in gates)))
    )


def test_a_gated_pod_is_not_tried(start: Start) -> None:
    """Whatever happens, and however long it takes, nothing is said about it."""
    harness = start()
    harness.cluster.add(make_pod("p1", gates=["quota", "license"]))
    harness.cluster.add(make_node("n1"))
    harness.run_for(1000.0)
    harness.cluster.add(make_node("n2"))
    harness.run_until_idle()
    assert harness.place_of("p1") == "gated"
    assert harness.attempts.about("p1") == []
    assert list(harness.events) == []


def test_the_last_gate_lets_it_in(start: Start) -> None:
    """Removing one of two gates changes nothing; removing the other one does, at once."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1", gates=["quota", "license"]))
    harness.run_until_idle()
    set_gates(harness, "p1", "license")
    harness.run_until_idle()
    assert harness.place_of("p1") == "gated"
    set_gates(harness, "p1")
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
    assert harness.time == 0.0


def test_thousands_of_gated_pods_cost_others_nothing(start: Start) -> None:
    """They are never looked at while other pods come and go."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    for number in range(2000):
        harness.cluster.add(make_pod(f"gated{number}", gates=["later"]))
    harness.run_until_idle()
    for number in range(20):
        harness.cluster.add(make_pod(f"p{number}"))
    harness.run_until_idle()
    harness.cluster.delete(harness.cluster.pod("p3"), 0)
    harness.run_until_idle()
    assert harness.core.queue.lengths() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 2000}
    assert len(harness.attempts.decisions) == 20


def test_a_gated_pod_can_be_deleted(start: Start) -> None:
    """And one of the same name that comes after it is a pod of its own."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1", gates=["quota"]))
    harness.run_until_idle()
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.cluster.add(make_pod("p1"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
