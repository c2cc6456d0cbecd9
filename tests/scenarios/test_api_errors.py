"""The API server rejects calls, fails, or is unavailable: no pod is lost, and none is bound twice."""

import pytest

from kubestow.api.pod import Pod
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.moody import Moody
from support.scenarios.start import Start

PROBLEMS = ["Conflict", "NotFound", "Forbidden", "Timeout", "InternalError", "TooManyRequests", "ConnectionLost"]
CALLS = ["bind", "patch_pod_status", "delete_pod"]


def crowded(start: Start, **options: float) -> SchedulerHarness:
    """Start a scheduler that makes every call: for pods to bind, pods that do not fit, and one that must preempt."""
    harness = start(**options)
    for number in range(2):
        harness.cluster.add(make_node(f"n{number}", cpu="2"))
    for number in range(4):
        harness.cluster.add(make_pod(f"low{number}", cpu="1", priority=0, grace_seconds=5))
    harness.cluster.add(make_pod("huge", cpu="64", priority=50))
    return harness


def add_important(harness: SchedulerHarness) -> None:
    for number in range(2):
        harness.cluster.add(make_pod(f"high{number}", cpu="1", priority=100))


@pytest.mark.parametrize("takes_effect", [False, True], ids=["refused", "done-all-the-same"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_call_that_fails_once(start: Start, problem: str, call: str, takes_effect: bool) -> None:
    """Every kind of failure is tested for every kind of call, whether or not the server carried out the call."""
    harness = crowded(start, delay=0.01)
    harness.cluster.faults.fail(call, problem, takes_effect=takes_effect)
    harness.run_until_idle()
    add_important(harness)
    harness.run_until_idle()
    assert all(harness.cluster.node_of(f"high{number}") for number in range(2))
    assert harness.place_of("huge") == "unschedulable"
    assert len([pod for pod in harness.cluster.all(Pod) if pod.spec.nodeName]) == 4


@pytest.mark.parametrize("skip", range(12))
def test_the_nth_call_is_not_answered(start: Start, skip: int) -> None:
    """Any call of a whole run may be lost."""
    harness = crowded(start, latency=0.1, delay=0.2)
    harness.cluster.faults.fail("*", "Timeout", skip=skip)
    harness.run_until_idle()
    add_important(harness)
    harness.run_until_idle()
    assert all(harness.cluster.node_of(f"high{number}") for number in range(2))


@pytest.mark.parametrize("after", [0.0, 0.05, 0.15, 0.25, 1.0])
def test_the_server_is_unavailable_for_a_minute(start: Start, after: float) -> None:
    """Calls fail and no changes are received; when the server is back, the run ends as usual."""
    harness = crowded(start, latency=0.1, delay=0.1)
    harness.run_for(after)
    harness.cluster.go_away_for(60.0)
    harness.run_for(30.0)
    add_important(harness)
    harness.run_until_idle()
    assert all(harness.cluster.node_of(f"high{number}") for number in range(2))
    assert harness.cluster.conditions("huge")["PodScheduled"].reason == "Unschedulable"


def test_a_binding_that_fails_once(start: Start) -> None:
    """The pod is requeued, its capacity is free for others meanwhile, and the next attempt succeeds."""
    harness = start()
    harness.cluster.add(make_node("n1", cpu="1"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.cluster.faults.fail("bind", "Conflict")
    harness.run_for(1.0)
    assert harness.place_of("p1") == "errorBackoff"
    assert harness.core.cluster.pod_count == 0
    condition = harness.cluster.conditions("p1")["PodScheduled"]
    assert (condition.status, condition.reason) == ("False", "SchedulerError")
    assert condition.message == 'running Bind plugin "DefaultBinder": Conflict was asked for'
    harness.run_until_idle()
    assert harness.cluster.node_of("p1") == "n1"
    assert [type(outcome) for outcome in harness.attempts.about("p1")] == [Placed, Placed]
    assert [event.reason for event in harness.events.about("p1")] == ["FailedScheduling", "Scheduled"]


def test_a_binding_that_was_carried_out_but_not_answered(start: Start) -> None:
    """The bound pod is received before the call fails: it keeps its node, is not retried, and causes no event."""
    harness = start()
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_node("n2"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.cluster.add(make_pod("huge", cpu="64"))
    harness.cluster.faults.fail("bind", "Timeout", takes_effect=True)
    harness.run_until_idle()
    assert len(harness.cluster.bindings) == 1
    assert len(harness.attempts.about("p1")) == 1
    assert len(harness.attempts.about("huge")) == 1
    assert harness.core.cluster.node_name_of(harness.cluster.pod("p1").metadata.uid) == harness.cluster.node_of("p1")


def test_a_binding_that_was_carried_out_is_received_late(start: Start) -> None:
    """The call fails first, so the pod is placed again; the second binding is rejected, and the first one counts."""
    harness = start(delay=20.0)
    for number in range(5):
        harness.cluster.add(make_node(f"n{number}"))
    harness.cluster.add(make_pod("p1", cpu="1"))
    harness.cluster.faults.fail("bind", "ConnectionLost", takes_effect=True)
    harness.run_until_idle()
    assert len(harness.cluster.bindings) == 1
    assert len(harness.attempts.about("p1")) > 1
    assert harness.core.cluster.node_name_of(harness.cluster.pod("p1").metadata.uid) == harness.cluster.node_of("p1")


def test_status_writes_are_merged_and_logged_when_lost(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """While the server is busy only the newest condition waits; a rejected write is logged."""
    harness = start(plugins=[Moody])
    harness.cluster.add(make_node("n1"))
    harness.cluster.faults.fail("patch_pod_status", "Forbidden")
    harness.cluster.add(make_pod("p1"))
    harness.run_until_idle()
    assert "PodScheduled" not in harness.cluster.conditions("p1")
    assert 'call="pod_status_patch" pod="default/p1"' in caplog.text
    assert isinstance(harness.attempts.about("p1")[-1], Failed)

    harness.cluster.slow["patch_pod_status"] = 5.0
    before = len(harness.cluster.calls)
    for number in range(2, 6):
        harness.cluster.add(make_node(f"n{number}"))
        harness.run_for(0.5)
    harness.run_until_idle()
    patches = [call for call in harness.cluster.calls[before:] if call.call == "patch_pod_status"]
    assert len(patches) == 2
    assert harness.cluster.conditions("p1")["PodScheduled"].message.startswith("0/5 nodes")
