"""Messages for users: events and conditions, as in kube-scheduler."""

from msgspec.structs import replace

from kubestow.testing import RecordedEvent, make_node, make_pod
from support.scenarios.start import Start


def test_a_pod_that_is_scheduled(start: Start) -> None:
    """One event names the node; the API server itself sets the condition."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1"))
    harness.run_until_idle()
    (event,) = harness.events
    assert event == RecordedEvent(
        "default/p1", "Normal", "Scheduled", "Binding", "Successfully assigned default/p1 to n1", 0.0
    )
    assert harness.cluster.conditions("p1")["PodScheduled"].status == "True"
    assert [call.call for call in harness.cluster.calls] == ["bind"]


def test_a_pod_that_does_not_fit(start: Start) -> None:
    """Event and condition count the nodes by reason, and have the result of preemption."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_node("n2", cpu="1"))
    harness.cluster.add(make_node("n3", taints=["busy:NoSchedule"]))
    harness.cluster.add(make_node("n4", unschedulable=True))
    harness.cluster.add(make_pod("p1", cpu="2"))
    harness.run_until_idle()
    (event,) = harness.events
    assert (event.kind, event.reason, event.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert event.note.startswith(
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu."
    )
    assert event.note.endswith("preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.")
    condition = harness.cluster.conditions("p1")["PodScheduled"]
    assert (condition.status, condition.reason, condition.message) == ("False", "Unschedulable", event.note)
    assert condition.lastTransitionTime == "2026-01-01T00:00:00Z"


def test_a_condition_is_written_when_it_changes(start: Start) -> None:
    """A second attempt with the same outcome records an event, and writes nothing; the transition time stays."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("p1", cpu="2"))
    harness.run_for(310.0)
    assert len(harness.attempts.about("p1")) == 2
    assert len(harness.events) == 2
    assert [call.call for call in harness.cluster.calls] == ["patch_pod_status"]
    harness.cluster.add(make_node("n2", cpu="3", taints=["busy:NoSchedule"]))
    harness.run_until_idle()
    condition = harness.cluster.conditions("p1")["PodScheduled"]
    assert condition.message.startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)"
    )
    assert condition.lastTransitionTime == "2026-01-01T00:00:00Z"


def test_a_long_message_is_truncated_in_the_event_only(start: Start) -> None:
    """The note of an event is limited; the condition has the whole message."""
    harness = start()
    for number in range(60):
        name = f"a-resource-with-a-rather-long-name-{number:02}"
        harness.cluster.add(make_node(f"n{number}", resources={f"example.com/{name}": 1}))
    wanted = {f"example.com/a-resource-with-a-rather-long-name-{number:02}": 2 for number in range(60)}
    harness.cluster.add(make_pod("p1", resources=wanted))
    harness.run_until_idle()
    (event,) = harness.events
    assert len(event.note.encode()) == 1024
    assert event.note.endswith(" ...")
    assert len(harness.cluster.conditions("p1")["PodScheduled"].message) > 1024


def test_nominations_are_set_and_cleared(start: Start) -> None:
    """A pod whose nominated node is not feasible any more loses the nomination when it fails again."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("low", cpu="1", priority=0, node="n1", grace_seconds=60))
    harness.cluster.add(make_pod("high", cpu="1", priority=10))
    harness.run_for(1.0)
    assert harness.cluster.pod("high").status.nominatedNodeName == "n1"
    node = harness.cluster.node("n1")
    harness.cluster.update(replace(node, spec=replace(node.spec, unschedulable=True)))
    harness.run_until_idle()
    assert harness.cluster.pod("high").status.nominatedNodeName == ""
    assert len(harness.core.queue.nominator) == 0
    assert harness.place_of("high") == "unschedulable"


def test_a_nomination_by_another_component_is_tried_first(start: Start) -> None:
    """An autoscaler may have provided a node: it is chosen if it is feasible, whatever the scores."""
    harness = start()
    for number in range(5):
        harness.cluster.add(make_node(f"n{number}", cpu=str(4 + number)))
    harness.cluster.add(make_pod("p1", cpu="1", status={"nominatedNodeName": "n0"}))
    harness.run_until_idle()
    assert harness.bindings == {"default/p1": "n0"}
