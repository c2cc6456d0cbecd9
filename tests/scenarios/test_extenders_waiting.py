"""While a cycle waits for an extender everything else continues, except for changes of the cluster state."""

from itertools import pairwise

from kubestow.scheduler.cycle.outcome import Placed
from kubestow.scheduler.extenders.extender import ExtenderError
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.extending import FakeExtenders
from support.scenarios.start import Start

NAMES = "filterVerb: filter, prioritizeVerb: prioritize, weight: 1, nodeCacheCapable: true"


def waiting(start: Start, seconds: float = 3.0, **options: float) -> tuple[SchedulerHarness, FakeExtenders]:
    """Start a scheduler with two nodes, and an extender that is slow for the pod `slow`."""
    extenders = FakeExtenders(a=NAMES)
    harness = start(extenders.configuration, ask=extenders.ask, **options)
    harness.cluster.add(make_node("n1", cpu="2"))
    harness.cluster.add(make_node("n2", cpu="2"))
    harness.run_until_idle()
    extenders.delays["a/filter"] = seconds
    return harness, extenders


def test_a_cycle_sees_one_state_of_the_cluster(start: Start) -> None:
    """A node that is added, removed or changed during the call is seen by the next cycle."""
    harness, extenders = waiting(start)
    harness.cluster.add(make_pod("p"))
    harness.run_for(1.0)
    harness.cluster.add(make_node("n3", cpu="100"))
    harness.cluster.delete(harness.cluster.node("n1"))
    harness.run_for(1.0)
    assert [call.verb for call in harness.core.scheduler.calls] == ["filter"]
    assert set(harness.core.cluster.nodes.row_of) == {"n1", "n2"}
    harness.run_until(lambda: bool(harness.attempts.about("p")))
    assert set(extenders.calls[1].nodes) == {"n1", "n2"}
    assert set(harness.core.cluster.nodes.row_of) >= {"n2", "n3"}
    extenders.delays.clear()
    harness.cluster.add(make_pod("q"))
    harness.run_until_idle()
    assert set(extenders.calls[2].nodes) == {"n2", "n3"}


def test_bindings_continue_and_are_applied_after_the_cycle(start: Start) -> None:
    """A binding that fails meanwhile releases its capacity after the cycle."""
    harness, extenders = waiting(start, latency=1.0)
    extenders.delays.clear()
    harness.cluster.faults.fail("bind", "Conflict", times=1)
    harness.cluster.add(make_pod("first", cpu="2"))
    harness.run_until(lambda: bool(harness.attempts.about("first")))
    extenders.delays["a/filter"] = 3.0
    harness.cluster.add(make_pod("second", cpu="2"))
    harness.run_for(2.0)
    assert harness.core.cluster.assumed_count == 1
    harness.run_until(lambda: bool(harness.attempts.about("second")))
    outcome = harness.attempts.about("second")[0]
    taken = harness.attempts.about("first")[0]
    assert isinstance(outcome, Placed)
    assert isinstance(taken, Placed)
    assert outcome.node != taken.node
    extenders.delays.clear()
    harness.run_until_idle()
    assert harness.cluster.node_of("first") == taken.node


def test_a_pod_that_is_deleted_meanwhile_uses_no_capacity(start: Start) -> None:
    """That is so whether it would have been placed or not."""
    for fails in (False, True):
        harness, extenders = waiting(start)
        if fails:
            extenders.replies["a/filter"] = lambda _: ExtenderError("dead")
        pod = harness.cluster.add(make_pod("p", cpu="2"))
        harness.run_for(1.0)
        harness.cluster.delete(pod)
        harness.run_until_idle()
        assert harness.core.cluster.assumed_count == 0
        assert harness.places() == {}


def test_pods_are_scheduled_one_after_the_other_with_slow_extenders(start: Start) -> None:
    """No pod is lost or sent twice."""
    harness, extenders = waiting(start, seconds=1.0)
    for number in range(20):
        harness.cluster.add(make_pod(f"p{number}", cpu="100m"))
    harness.run_until_idle()
    assert len(harness.bindings) == 20
    assert extenders.paths.count("a/filter") == 20
    times = [call.time for call in extenders.calls if call.path == "a/filter"]
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))


def test_stopping_during_a_call(start: Start) -> None:
    """Deferred changes are applied when the scheduler is stopped."""
    harness, _ = waiting(start)
    harness.cluster.add(make_pod("p"))
    harness.run_for(1.0)
    harness.cluster.add(make_node("n3"))
    harness._running.cancel()
    harness.run_for(0.1)
    assert "n3" in harness.core.cluster.nodes.row_of
