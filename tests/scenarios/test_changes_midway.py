"""Pods and nodes that are deleted or changed at every stage of a pod's way to its node."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.testing import SchedulerHarness, make_node, make_pod
from scenarios import consistency, stages

Start = Callable[..., SchedulerHarness]


def on_its_way(start: Start, moment: float, delay: float = 0.0) -> SchedulerHarness:
    """A pod that takes all the room there is, and another one that wants the same room."""
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
def test_a_pod_is_deleted_on_its_way(start: Start, stage: str, delay: float) -> None:
    """What it took is given back, it is not bound, and whoever waited for the room gets it."""
    harness = on_its_way(start, stages.STAGES[stage], delay)
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.run_until_idle()
    assert harness.bindings == {"default/next": "n1"}
    assert harness.cluster.get(Pod, "default/p1") is None
    assert "unreserve p1" in stages.Slow.calls


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_is_deleted_and_another_takes_its_name(start: Start, stage: str) -> None:
    """The new pod has nothing to do with the old one; just one of the two that want the room gets it."""
    harness = on_its_way(start, stages.STAGES[stage])
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.run_until_idle()
    assert len(harness.cluster.bindings) == 1
    assert harness.core.queue.lengths()["unschedulable"] == 1


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_is_changed_on_its_way(start: Start, stage: str) -> None:
    """New labels do not stop it, and are known once it is bound."""
    harness = on_its_way(start, stages.STAGES[stage])
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, metadata=replace(pod.metadata, labels={"new": "yes"})))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
    placed = harness.core.cluster.pod(pod.metadata.uid)
    assert placed is not None
    assert placed.labels == {"new": "yes"}
    assert len(harness.attempts.about("p1")) == 1


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_is_bound_by_somebody_else(start: Start, stage: str) -> None:
    """It is where the other one put it; the place that was kept for it is free."""
    harness = on_its_way(start, stages.STAGES[stage])
    harness.cluster.add(make_node("n2", cpu="1", unschedulable=True))
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, spec=replace(pod.spec, nodeName="n2")))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n2"
    assert harness.bindings == {"default/next": "n1"}


@pytest.mark.parametrize("stage", stages.STAGES)
def test_a_pod_is_over_before_it_began(start: Start, stage: str) -> None:
    """A pod that is failed by somebody takes no room any more."""
    harness = on_its_way(start, stages.STAGES[stage])
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, status=replace(pod.status, phase="Failed")))
    harness.run_for(1.0)
    consistency.check_places(harness)


@pytest.mark.parametrize("stage", stages.STAGES)
@pytest.mark.parametrize("comes_back", [False, True])
def test_a_node_is_deleted_on_the_pods_way(start: Start, stage: str, comes_back: bool) -> None:
    """The binding goes on, as the API server does not mind; nothing is lost, and a new node is counted right."""
    harness = on_its_way(start, stages.STAGES[stage])
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
    """A pod that waits in a certain part of the queue."""
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
    """It is gone from wherever it waited."""
    harness = waiting_somewhere(start, place)
    harness.cluster.delete(harness.cluster.pod("p1"))
    harness.run_until_idle()
    assert harness.places() == {}
    assert harness.bindings == {}


@pytest.mark.parametrize("place", ["active", "errorBackoff", "unschedulable", "gated"])
def test_a_waiting_pod_becomes_smaller(start: Start, place: str) -> None:
    """Scaled down to what the node can hold, without its gate, it is placed: its new version is what counts."""
    harness = waiting_somewhere(start, place)
    harness.cluster.update(make_pod("p1", cpu="500m"))
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
    assert int(harness.core.cluster.nodes.requested[0, 0]) == 500


@pytest.mark.parametrize("place", ["active", "errorBackoff", "unschedulable", "gated"])
def test_a_waiting_pod_is_bound_by_somebody_else(start: Start, place: str) -> None:
    """It leaves the queue."""
    harness = waiting_somewhere(start, place)
    pod = harness.cluster.pod("p1")
    harness.cluster.update(replace(pod, spec=replace(pod.spec, nodeName="n1", schedulingGates=())))
    harness.run_until_idle()
    assert harness.places() == {}
    assert harness.bindings == {}
    assert harness.core.cluster.pod_count == 1


def test_a_deleting_pod_is_not_scheduled(start: Start) -> None:
    """It says so, and leaves the queue for good."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    pod = make_pod("p1")
    harness.cluster.add(replace(pod, metadata=replace(pod.metadata, deletionTimestamp="2026-01-01T00:00:00Z")))
    harness.run_for(1.0)
    assert [event.note for event in harness.events.about("p1")] == ["skip schedule deleting pod: default/p1"]
    assert harness.bindings == {}


def test_a_pod_that_ran_to_its_end_frees_its_room_once(start: Start) -> None:
    """When it succeeds; that its object is deleted later is no news."""
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
