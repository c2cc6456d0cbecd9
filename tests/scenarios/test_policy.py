"""A scheduler that is configured by a legacy Policy, from end to end."""

import json
from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.workloads import Service
from kubestow.config import policy
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.start import Start

WEB = {"app": "web"}


def by_policy(start: Start, **fields: Any) -> SchedulerHarness:
    return start(policy.load(json.dumps({"apiVersion": "v1", "kind": "Policy", **fields})))


def test_the_default_policy_schedules(start: Start) -> None:
    """Equal pods and pods of many sizes are spread over the nodes, and gates are respected."""
    harness = by_policy(start)
    for number in range(4):
        harness.cluster.add(make_node(f"n{number}", cpu="4"))
    for number in range(8):
        harness.cluster.add(make_pod(f"same{number}", cpu="500m"))
        harness.cluster.add(make_pod(f"sized{number}", cpu=f"{100 + number}m"))
    harness.cluster.add(make_pod("gated", gates=["wait"]))
    harness.run_until_idle()
    assert len(harness.bindings) == 16
    assert set(harness.bindings.values()) == {"n0", "n1", "n2", "n3"}
    assert harness.place_of("gated") == "gated"


def test_missing_predicates_are_not_checked(start: Start) -> None:
    """A node without capacity gets pods nevertheless, but a cordoned one does not."""
    harness = by_policy(start, predicates=[], priorities=[])
    harness.cluster.add(make_node("small", cpu="1"))
    harness.cluster.add(make_node("cordoned", unschedulable=True))
    harness.cluster.add(make_pod("large", cpu="2"))
    harness.run_until_idle()
    assert harness.bindings == {"default/large": "small"}


@pytest.mark.parametrize(
    ("checks_all", "message"),
    [
        (False, "0/1 nodes are available: 1 Insufficient cpu."),
        (True, "0/1 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."),
    ],
)
def test_all_reasons_are_reported_if_all_predicates_are_checked(start: Start, checks_all: bool, message: str) -> None:
    """That applies to a pod with shared results, too; the pod is retried in vain when one reason is resolved."""
    harness = by_policy(start, alwaysCheckAllPredicates=checks_all)
    harness.cluster.add(make_node("n1", cpu="1", taints=["busy:NoSchedule"]))
    for number in range(3):
        harness.cluster.add(make_pod(f"p{number}", cpu="2"))
    harness.run_until_idle()
    for number in range(3):
        assert harness.cluster.conditions(f"p{number}")["PodScheduled"].message.startswith(message)
    harness.cluster.update(make_node("n1", cpu="4", taints=["busy:NoSchedule"]))
    harness.run_until_idle()
    text = harness.cluster.conditions("p0")["PodScheduled"].message
    assert text.startswith("0/1 nodes are available: 1 node(s) had untolerated taint(s).")
    harness.cluster.update(make_node("n1", cpu="8"))
    harness.run_until_idle()
    assert len(harness.bindings) == 3


@pytest.mark.parametrize("checks_all", [False, True])
def test_pods_are_preempted(start: Start, checks_all: bool) -> None:
    """Preemption works with a Policy."""
    harness = by_policy(start, alwaysCheckAllPredicates=checks_all)
    harness.cluster.add(make_node("n1", cpu="2"))
    harness.cluster.add(make_node("tainted", cpu="2", taints=["busy:NoSchedule"]))
    harness.cluster.add(make_pod("low", cpu="2", priority=0, node="n1", grace_seconds=1))
    harness.cluster.add(make_pod("other", cpu="2", priority=0, node="tainted", grace_seconds=1))
    harness.cluster.add(make_pod("high", cpu="2", priority=10))
    harness.run_until_idle()
    assert harness.cluster.node_of("high") == "n1"
    assert harness.cluster.node_of("other") == "tainted"


def test_pods_of_a_service_stay_together(start: Start) -> None:
    """The label is set by the Policy; without other pods, the next one may be placed anywhere."""
    argument = {"serviceAffinity": {"labels": ["rack"]}}
    harness = by_policy(start, predicates=[{"name": "PodFitsResources"}, {"name": "racks", "argument": argument}])
    for rack in ("a", "b"):
        for number in range(2):
            harness.cluster.add(make_node(f"{rack}{number}", cpu="1", labels={"rack": rack}))
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": WEB}}
    harness.cluster.add(convert(Service, service))
    pods = [harness.cluster.add(make_pod(f"p{number}", cpu="1", labels=WEB)) for number in range(3)]
    harness.run_until_idle()
    first, second = (harness.cluster.node_of(f"p{number}") for number in range(2))
    assert first[0] == second[0]
    assert harness.place_of("p2") == "unschedulable"
    for pod in pods[:2]:
        harness.cluster.delete(pod)
    harness.run_until_idle()
    assert harness.cluster.node_of("p2")
