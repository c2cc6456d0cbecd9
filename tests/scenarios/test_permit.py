"""Permit: a plugin that delays pods until their whole gang is placed, and the result of waiting in vain."""

from typing import Any

from kubestow.scheduler.cluster.events import Registration
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Rejection, Wait, unschedulable
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.start import Start


class Gang:
    """Delays the pods of a gang until all of them have a node; one that fails rejects all others."""

    name = "Gang"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._handle = handle

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait | None:
        gang = pod.labels.get("gang")
        if gang is None:
            return None
        waiting = [other for other in self._handle.waiting_pods if other.pod.labels.get("gang") == gang]
        if len(waiting) + 1 < int(pod.labels["size"]):
            return Wait(30.0)
        for other in waiting:
            other.allow(self.name)
        return None

    def reserve(self, state: Any, pod: PodInfo, node: str) -> None:
        return None

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
        for other in self._handle.waiting_pods:
            if other.pod.labels.get("gang") == pod.labels.get("gang"):
                other.reject(self.name, "another pod of the gang failed")


class Refusing:
    """Permits no pod, and has no events."""

    name = "Refusing"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def requeue_on(self) -> list[Registration]:
        return []

    def permit(self, state: Any, pod: PodInfo, node: str) -> Rejection:
        return unschedulable("the office is closed")


class Parking(Refusing):
    """Holds every pod, and has no events."""

    name = "Parking"

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait:  # type: ignore[override]
        return Wait(30.0)


def add_gang(harness: SchedulerHarness, size: int, present: range) -> None:
    for number in present:
        harness.cluster.add(make_pod(f"g{number}", cpu="1", labels={"gang": "g", "size": str(size)}))


def test_a_gang_is_bound_together(start: Start) -> None:
    """The first pods wait on their nodes; the last one allows all of them."""
    harness = start(plugins=[Gang])
    harness.cluster.add(make_node("n1", cpu="3"))
    add_gang(harness, 3, range(2))
    harness.run_for(10.0)
    assert [harness.place_of(f"g{n}") for n in range(2)] == ["waiting", "waiting"]
    assert harness.bindings == {}
    assert harness.cluster.pod("g0").status.nominatedNodeName == "n1"
    add_gang(harness, 3, range(2, 3))
    harness.run_until_idle()
    assert sorted(harness.bindings) == ["default/g0", "default/g1", "default/g2"]
    assert harness.time == 10.0


def test_an_incomplete_gang_releases_its_nodes(start: Start) -> None:
    """After thirty seconds all waits end; others use the capacity; the pods wait for an event."""
    harness = start(plugins=[Gang])
    harness.cluster.add(make_node("n1", cpu="2"))
    add_gang(harness, 3, range(2))
    harness.run_for(1.0)
    harness.cluster.add(make_pod("other", cpu="1"))
    harness.run_for(28.0)
    assert harness.place_of("other") == "unschedulable"
    harness.run_for(2.0)
    assert harness.cluster.node_of("other") == "n1"
    condition = harness.cluster.conditions("g0")["PodScheduled"]
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    waited = "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Gang."
    assert waited in [event.note for event in harness.events.about("g0")]
    assert harness.cluster.pod("g0").status.nominatedNodeName == ""


def test_waiting_pods_can_be_rejected_by_their_plugin(start: Start) -> None:
    """A pod of the gang is deleted while it waits: its Unreserve rejects the others at once."""
    harness = start(plugins=[Gang])
    harness.cluster.add(make_node("n1", cpu="2"))
    add_gang(harness, 3, range(2))
    harness.run_for(5.0)
    harness.cluster.delete(harness.cluster.pod("g1"))
    harness.run_for(0.5)
    notes = [event.note for event in harness.events.about("g0")]
    assert notes == ["0/1 nodes are available: 1 another pod of the gang failed."]
    assert harness.bindings == {}


def test_a_rejection_undoes_the_placement(start: Start) -> None:
    """The pod is unschedulable with the plugin's message, and uses no capacity."""
    harness = start(plugins=[Refusing])
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.run_until_idle()
    assert harness.place_of("p1") == "unschedulable"
    assert harness.events.notes("FailedScheduling") == ["0/1 nodes are available: 1 the office is closed."]
    assert harness.core.cluster.pod_count == 0


class Hesitating:
    """Makes every pod wait for a second, in vain; has no events."""

    name = "Hesitating"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def requeue_on(self) -> list[Registration]:
        return []

    def permit(self, state: Any, pod: PodInfo, node: str) -> Wait:
        return Wait(1.0)


def test_an_announced_node_is_withdrawn_even_while_it_is_being_announced(start: Start) -> None:
    """The wait ends before the nomination is written; the last write clears it."""
    harness = start(plugins=[Hesitating])
    harness.cluster.slow["patch_pod_status"] = 5.0
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1"))
    harness.run_for(7.0)
    assert harness.cluster.pod("p1").status.nominatedNodeName == "n1"
    harness.run_until_idle()
    assert harness.cluster.pod("p1").status.nominatedNodeName == ""
    assert harness.cluster.conditions("p1")["PodScheduled"].reason == "Unschedulable"
    assert harness.time == 10.0


def test_a_pod_that_is_rejected_while_it_waits_keeps_no_nomination(start: Start) -> None:
    """Although the node was announced, and the scheduler has not received its own announcement yet."""
    harness = start(plugins=[Parking], delay=1.0)
    harness.cluster.add(make_node("n1", cpu="3"))
    harness.cluster.add(make_pod("p"))
    harness.run_for(1.5)
    assert harness.cluster.pod("p").status.nominatedNodeName == "n1"
    for waiting in harness.core.waiting_pods:
        waiting.reject("Parking", "given up")
    harness.run_for(3.0)
    assert harness.place_of("p") == "unschedulable"
    assert harness.cluster.pod("p").status.nominatedNodeName == ""
    assert not harness.core.queue.nominator.nodes
