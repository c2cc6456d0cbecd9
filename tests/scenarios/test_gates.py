"""Pods with scheduling gates are not scheduled until the last gate is removed."""

from msgspec.structs import replace

from kubestow.api.pod import PodSchedulingGate
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.start import Start


def set_gates(harness: SchedulerHarness, name: str, *gates: str) -> None:
    pod = harness.cluster.pod(name)
    harness.cluster.update(
        replace(pod, spec=replace(pod.spec, schedulingGates=tuple(PodSchedulingGate(gate) for gate in gates)))
    )


def test_a_gated_pod_is_not_tried(start: Start) -> None:
    """No event or timeout causes an attempt or a message."""
    harness = start()
    harness.cluster.add(make_pod("p1", gates=["quota", "license"]))
    harness.cluster.add(make_node("n1"))
    harness.run_for(1000.0)
    harness.cluster.add(make_node("n2"))
    harness.run_until_idle()
    assert harness.place_of("p1") == "gated"
    assert harness.attempts.about("p1") == []
    assert list(harness.events) == []


def test_removing_the_last_gate_activates_the_pod(start: Start) -> None:
    """Removing one of two gates changes nothing; removing the other one activates the pod at once."""
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
    """They are not visited while other pods are added and deleted."""
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
    """A later pod with the same name is a new pod."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1", gates=["quota"]))
    harness.run_until_idle()
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.cluster.add(make_pod("p1"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
