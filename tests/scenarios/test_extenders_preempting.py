"""Preemption with extenders: they may drop candidates and choose other victims."""

from typing import Any

import pytest

from kubestow.scheduler.cycle.outcome import Failed
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.extending import FakeExtenders, ReceivedCall, only
from support.scenarios.start import Start

UIDS = "preemptVerb: preempt, nodeCacheCapable: true"


NO_VICTIM = 'expected at least one victim pod on node "n1" (extender "http://x/a")'


def full(start: Start, extenders: FakeExtenders) -> SchedulerHarness:
    """Start a scheduler with three nodes of two CPUs, each with two pods of low priority."""
    harness = start(extenders.configuration, ask=extenders.ask)
    for number in (1, 2, 3):
        harness.cluster.add(make_node(f"n{number}", cpu="2"))
        for which in "ab":
            pod = make_pod(f"low{number}{which}", cpu="1", priority=0, node=f"n{number}", grace_seconds=0)
            harness.cluster.add(pod)
    harness.run_until_idle()
    return harness


def uid(harness: SchedulerHarness, name: str) -> str:
    return harness.cluster.pod(name).metadata.uid


def victims(harness: SchedulerHarness, **by_node: str) -> dict[str, Any]:
    meta = {
        node: {"Pods": [{"UID": uid(harness, name)} for name in names.split()], "NumPDBViolations": 0}
        for node, names in by_node.items()
    }
    return {"NodeNameToMetaVictims": meta}


def preempt(harness: SchedulerHarness, cpu: str = "1") -> Failed:
    """Return the outcome of the first attempt of a pod that needs preemption."""
    harness.cluster.add(make_pod("vip", cpu=cpu, priority=10))
    harness.run_until(lambda: bool(harness.attempts.about("vip")))
    outcome = harness.attempts.about("vip")[0]
    assert isinstance(outcome, Failed)
    return outcome


def test_candidates_are_passed_from_one_extender_to_the_next(start: Start) -> None:
    """The first gets UIDs and keeps one node, the second gets whole pods and chooses another victim there."""
    extenders = FakeExtenders(a=UIDS, b="preemptVerb: preempt")
    harness = full(start, extenders)
    extenders.replies["a/preempt"] = lambda call: {
        "NodeNameToMetaVictims": {"n2": call.body["NodeNameToMetaVictims"]["n2"]}
    }
    extenders.replies["b/preempt"] = lambda _: victims(harness, n2="low2a")
    failed = preempt(harness)
    first, second = extenders.calls
    assert first.body["Pod"]["metadata"]["name"] == "vip"
    assert first.body["NodeNameToVictims"] is None
    assert set(first.body["NodeNameToMetaVictims"]) == {"n1", "n2", "n3"}
    assert second.body["NodeNameToMetaVictims"] is None
    [sent] = second.body["NodeNameToVictims"]["n2"]["Pods"]
    assert sent["spec"]["nodeName"] == "n2"
    assert (failed.nominated_node, [pod.name for pod in failed.victims]) == ("n2", ["low2a"])
    harness.run_until_idle()
    assert harness.cluster.node_of("vip") == "n2"


def test_the_best_remaining_candidate_is_chosen(start: Start) -> None:
    """The order is by violated budgets, as counted by the extender, then by priorities and number of victims."""
    extenders = FakeExtenders(a=UIDS)
    harness = full(start, extenders)

    def reply(_: ReceivedCall) -> Any:
        answer = victims(harness, n1="low1a", n2="low2a low2b", n3="low3b")
        answer["NodeNameToMetaVictims"]["n1"]["NumPDBViolations"] = 1
        return answer

    extenders.replies["a/preempt"] = reply
    failed = preempt(harness)
    assert (failed.nominated_node, [pod.name for pod in failed.victims]) == ("n3", ["low3b"])


def test_no_candidate_left(start: Start) -> None:
    """No pod is evicted, and the pod gets a message."""
    extenders = FakeExtenders(a=UIDS)
    harness = full(start, extenders)
    extenders.replies["a/preempt"] = lambda _: {"NodeNameToMetaVictims": {}}
    failed = preempt(harness)
    assert failed.message.endswith(" preemption: no candidate node for preemption")
    assert not failed.victims


@pytest.mark.parametrize("answer", [b"null", b"{}"])
def test_an_empty_answer_leaves_no_candidate(start: Start, answer: bytes) -> None:
    """It is decoded as in Go."""
    extenders = FakeExtenders(a=UIDS)
    harness = full(start, extenders)
    extenders.replies["a/preempt"] = lambda _: answer
    assert preempt(harness).message.endswith(" preemption: no candidate node for preemption")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"no", 'Post "http://x/a/preempt": the answer cannot be decoded'),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": []}}}, NO_VICTIM),
        ({"NodeNameToMetaVictims": {"n1": None}}, NO_VICTIM),
        (
            {"NodeNameToMetaVictims": {"n9": {"Pods": [{"UID": "u"}]}}},
            'extender: http://x/a: nodeinfo not found for node name "n9"',
        ),
        (
            {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}]}}},
            "extender: http://x/a claims to preempt pod (UID: &{u}) on node: n1, but the pod is not found on that node",
        ),
    ],
)
def test_no_pod_is_evicted_after_an_invalid_answer(start: Start, answer: Any, error: str) -> None:
    """The pod gets the message; the answer of an ignorable extender is ignored, and all candidates are kept."""
    for ignorable in (False, True):
        extenders = FakeExtenders(a=f"{UIDS}, ignorable: {str(ignorable).lower()}")
        harness = full(start, extenders)
        extenders.replies["a/preempt"] = lambda _: answer
        failed = preempt(harness)
        if not ignorable:
            assert f"preemption: {error}" in failed.message
        assert bool(failed.victims) is (ignorable and "expected" not in error)


def test_extenders_cannot_evict_pods_of_higher_priority(start: Start) -> None:
    """kube-scheduler would evict them."""
    extenders = FakeExtenders(a=UIDS)
    harness = full(start, extenders)
    harness.cluster.add(make_pod("peer", priority=10, node="n1"))
    harness.run_until_idle()
    extenders.replies["a/preempt"] = lambda _: victims(harness, n1="peer")
    failed = preempt(harness)
    assert failed.message.endswith("on node: n1, but the pod is not of lower priority")
    assert not failed.victims


def test_unresolvable_nodes_of_an_extender_are_no_candidates(start: Start) -> None:
    """No pod is evicted there; a pod on another node is."""
    extenders = FakeExtenders(a="filterVerb: filter, nodeCacheCapable: true")
    harness = start(extenders.configuration, ask=extenders.ask)
    for name in ("n1", "n2"):
        harness.cluster.add(make_node(name, cpu="2"))
        harness.cluster.add(make_pod(f"low-{name}", cpu="2", priority=0, node=name, grace_seconds=0))
    harness.cluster.add(make_node("n3", cpu="2"))
    extenders.replies["a/filter"] = only(failed={"n3": "not yet"}, lost={"n1": "never"})
    failed = preempt(harness)
    assert failed.message.startswith("0/3 nodes are available: 1 Insufficient cpu, 1 never, 1 not yet.")
    assert failed.nominated_node == "n2"
