"""When a pod that could not be scheduled is retried."""

from kubestow.config import Features
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.testing import make_node, make_pod
from support.scenarios.moody import Moody
from support.scenarios.start import Start


def test_errors_are_retried_with_growing_pauses(start: Start) -> None:
    """The pauses are 1, 2, 4, 8 and then always 10 seconds, each rounded up to the end of its second."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.faults.fail("bind", "TooManyRequests", times=6)
    harness.cluster.add(make_pod("p1"))
    harness.run_until_idle()
    times = [call.time for call in harness.cluster.calls if call.call == "bind"]
    assert times == [0.0, 2.0, 5.0, 10.0, 19.0, 30.0, 41.0]
    assert harness.cluster.node_of("p1") == "n1"


def test_a_rejected_pod_is_tried_early_if_no_other_pod_is_active(start: Start) -> None:
    """After an event, a rejected pod does not wait for the end of its backoff while the scheduler idles."""
    harness = start(plugins=[Moody])
    for number in range(3):
        harness.cluster.add(make_node(f"n{number}"))
        harness.cluster.add(make_pod(f"p{number}"))
    harness.run_until_idle()
    assert harness.time == 0.0
    assert harness.core.queue.lengths()["unschedulable"] == 3
    Moody.refuses = False
    harness.cluster.add(make_node("n3"))
    harness.run_until_idle()
    assert harness.time == 0.0
    assert len(harness.bindings) == 3


def test_without_that_feature_a_rejected_pod_waits_for_the_end_of_its_backoff(start: Start) -> None:
    """The backoff doubles with every rejection: one second, then two."""
    harness = start(plugins=[Moody], features=Features(scheduler_pop_from_backoff_q=False))
    harness.cluster.add(make_pod("p1"))
    harness.cluster.add(make_node("n1"))
    harness.run_until_idle()
    for pause in (1.0, 2.0):
        before = harness.time
        harness.cluster.add(make_node(f"another after {pause}"))
        harness.run_until(lambda: not harness.cluster.is_busy)
        assert harness.place_of("p1") == "backoff"
        harness.run_until_idle()
        assert round(harness.time - before, 3) == pause
    assert len(harness.attempts.about("p1")) == 3


def test_a_pod_without_events_is_retried_after_five_minutes(start: Start) -> None:
    """No event happens that the plugin is registered for; the pod is flushed nevertheless."""
    harness = start(plugins=[Moody])
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1"))
    harness.run_for(299.0)
    assert harness.place_of("p1") == "unschedulable"
    Moody.refuses = False
    harness.run_for(2.0)
    assert harness.cluster.node_of("p1") == "n1"
    assert [type(outcome) for outcome in harness.attempts.about("p1")] == [Failed, Placed]


def test_higher_priority_goes_first(start: Start) -> None:
    """Waiting pods are placed by priority, then by age."""
    harness = start()
    for name, priority in (("old", 0), ("new", 0), ("high", 10), ("low", -5)):
        harness.cluster.add(make_pod(name, priority=priority))
    harness.cluster.add(make_node("n1"))
    harness.run_until_idle()
    assert list(harness.bindings) == ["default/high", "default/old", "default/new", "default/low"]


def test_a_cluster_without_nodes_is_an_error_to_be_retried(start: Start) -> None:
    """No plugin rejected the pod, so it is retried after its backoff without an event."""
    harness = start()
    harness.cluster.add(make_pod("p1"))
    harness.run_for(1.0)
    assert harness.place_of("p1") == "errorBackoff"
    assert harness.events.notes("FailedScheduling") == ["no nodes available to schedule pods"]
    harness.cluster.add(make_node("n1"))
    harness.run_until_idle()
    assert harness.time == 2.0
    assert harness.cluster.node_of("p1") == "n1"
