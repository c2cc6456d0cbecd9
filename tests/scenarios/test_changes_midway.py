"""Pods and nodes that are deleted or changed at every stage of a pod's binding."""

import pytest
from msgspec.structs import replace

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios import consistency, stages
from support.scenarios.start import Start


def being_bound(start: Start, moment: float, delay: float = 0.0) -> SchedulerHarness:
    """Start a scheduler with a pod that takes all capacity, and another one that needs the same capacity."""
    harness = start(plugins=[stages.Slow], delay=delay)
    stages.slow_bindings(harness)
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.run_for(0.1)
    harness.cluster.add(make_pod("next", cpu="1"))
    harness.run_for(moment - 0.1)
    consistency.check(harness)
    return harness


@pytest.mark.parametrize("stage", stages.STAGES)
@pytest.mark.parametrize("delay", [0.0, 0.5])
def test_a_pod_is_deleted_while_it_is_being_bound(start: Start, stage: str, delay: float) -> None:
    """Its reservations are released, it is not bound, and the pod that waited for the capacity gets it."""
    harness = being_bound(start, stages.STAGES[stage], delay)
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.run_until_idle()
    assert harness.bindings == {"default/next": "n1"}
    assert harness.cluster.get(Pod, "default/p1") is None
    assert "unreserve p1" in stages.Slow.calls


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_is_deleted_and_another_takes_its_name(start: Start, stage: str) -> None:
    """The new pod is independent of the old one; exactly one of the two pods gets the capacity."""
    harness = being_bound(start, stages.STAGES[stage])
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.run_until_idle()
    assert len(harness.cluster.bindings) == 1
    assert harness.core.queue.lengths()["unschedulable"] == 1


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_is_changed_while_it_is_being_bound(start: Start, stage: str) -> None:
    """New labels do not stop the binding, and are known once it is bound."""
    harness = being_bound(start, stages.STAGES[stage])
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, metadata=replace(pod.metadata, labels={"new": "yes"})))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
    placed = harness.core.cluster.pod(pod.metadata.uid)
    assert placed is not None
    assert placed.labels == {"new": "yes"}
    assert len(harness.attempts.about("p1")) == 1


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_is_bound_by_another_scheduler(start: Start, stage: str) -> None:
    """It is on the node chosen by the other one; the assumed capacity is free."""
    harness = being_bound(start, stages.STAGES[stage])
    harness.cluster.add(make_node("n2", cpu="1", unschedulable=True))
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, spec=replace(pod.spec, nodeName="n2")))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n2"
    assert harness.bindings == {"default/next": "n1"}


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_ends_before_it_is_bound(start: Start, stage: str) -> None:
    """A pod that was set to Failed uses no capacity any more."""
    harness = being_bound(start, stages.STAGES[stage])
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, status=replace(pod.status, phase="Failed")))
    harness.run_for(1.0)
    consistency.check_places(harness)


@pytest.mark.parametrize("stage", stages.STAGES)
@pytest.mark.parametrize("comes_back", [False, True])
def test_a_node_is_deleted_while_a_pod_is_being_bound(start: Start, stage: str, comes_back: bool) -> None:
    """The binding continues, since the API server accepts it; nothing is lost, and a new node is counted correctly."""
    harness = being_bound(start, stages.STAGES[stage])
    harness.cluster.delete(harness.cluster.node("n1"))
    if comes_back:
        harness.cluster.add(make_node("n1", cpu="2"))
    harness.run_for(60.0)
    consistency.check(harness)
    assert harness.cluster.node_of("p1") == "n1"
    if comes_back:
        assert harness.cluster.node_of("next") == "n1"
    else:
        assert harness.place_of("next") == "unschedulable"
        assert harness.cluster.all(Node) == []


def waiting_somewhere(start: Start, place: str) -> SchedulerHarness:
    """Start a scheduler with a pod that waits in a certain part of the queue."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu="1"))
    if place == "errorBackoff":
        harness.cluster.faults.fail("bind", "Conflict")
    gates = ["later"] if place == "gated" else []
    harness.cluster.add(make_pod("p1", cpu="1" if place == "errorBackoff" else "2", gates=gates))
    if place != "active":
        harness.run_for(0.5)
        assert harness.place_of("p1") == place
    return harness


@pytest.mark.parametrize("place", ["active", "errorBackoff", "unschedulable", "gated"])
def test_a_waiting_pod_is_deleted(start: Start, place: str) -> None:
    """It is removed from every place."""
    harness = waiting_somewhere(start, place)
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.run_until_idle()
    assert harness.places() == {}
    assert harness.bindings == {}


@pytest.mark.parametrize("place", ["active", "errorBackoff", "unschedulable", "gated"])
def test_a_waiting_pod_becomes_smaller(start: Start, place: str) -> None:
    """Scaled down to the node's capacity, and without its gate, it is placed: its new version counts."""
    harness = waiting_somewhere(start, place)
    harness.cluster.update(make_pod("p1", cpu="500m"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
    assert int(harness.core.cluster.nodes.requested[0, 0]) == 500


@pytest.mark.parametrize("place", ["active", "errorBackoff", "unschedulable", "gated"])
def test_a_waiting_pod_is_bound_by_another_scheduler(start: Start, place: str) -> None:
    """It leaves the queue."""
    harness = waiting_somewhere(start, place)
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, spec=replace(pod.spec, nodeName="n1", schedulingGates=())))
    harness.run_until_idle()
    assert harness.places() == {}
    assert harness.bindings == {}
    assert harness.core.cluster.pod_count == 1


def test_a_terminating_pod_is_not_scheduled(start: Start) -> None:
    """It gets an event, and leaves the queue for good."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    pod = make_pod("p1")
    harness.cluster.add(replace(pod, metadata=replace(pod.metadata, deletionTimestamp="2026-01-01T00:00:00Z")))
    harness.run_for(1.0)
    assert [event.note for event in harness.events.about("p1")] == ["skip schedule deleting pod: default/p1"]
    assert harness.bindings == {}


def test_a_pod_that_succeeds_frees_its_capacity_once(start: Start) -> None:
    """The later deletion of the object has no effect."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu="1"))
    pod = harness.cluster.add(make_pod("done", cpu="1", node="n1"))
    harness.cluster.add(make_pod("next", cpu="1"))
    harness.cluster.add(make_pod("third", cpu="1"))
    harness.run_until_idle()
    harness.cluster.update(replace(pod, status=replace(pod.status, phase="Succeeded")))
    harness.run_until_idle()
    assert harness.cluster.node_of("next") == "n1"
    attempts = len(harness.attempts.about("third"))
    harness.cluster.delete(harness.cluster.pod("done"))
    harness.run_until_idle()
    assert len(harness.attempts.about("third")) == attempts
