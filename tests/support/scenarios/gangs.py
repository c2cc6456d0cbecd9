"""Schedulers with the feature gates of pod groups on, and groups for their clusters."""

from collections.abc import Iterable
from typing import Any

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import Condition, PodGroup, group_key
from kubestow.config import Features
from kubestow.testing import SchedulerHarness, make_node, make_pod, make_pod_group

GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
TREE_GATES = (*GATES, "CompositePodGroup")


def features(*gates: str) -> Features:
    return Features.parse(",".join(f"{gate}=true" for gate in gates or GATES))


def add_nodes(harness: SchedulerHarness, count: int, cpu: str = "2", racks: int = 1, first: int = 0) -> None:
    for number in range(first, first + count):
        harness.cluster.add(make_node(f"n{number}", cpu=cpu, labels={"rack": f"r{number % racks}"}))


def add_gang(
    harness: SchedulerHarness, name: str, pods: int, min_count: int | None = None, cpu: str = "1", **options: Any
) -> None:
    """Add a gang whose pods must be scheduled together, all or at least some; `options` are those of the group."""
    harness.cluster.add(make_pod_group(name, pods if min_count is None else min_count, **options))
    add_members(harness, name, range(pods), cpu, priority=options.get("priority"))


def add_members(harness: SchedulerHarness, group: str, numbers: Iterable[int], cpu: str = "1", **options: Any) -> None:
    for number in numbers:
        harness.cluster.add(make_pod(f"{group}{number}", cpu=cpu, group=group, **options))


def bound(harness: SchedulerHarness, group: str) -> list[str]:
    """Return the nodes of a group's pods."""
    pods = harness.cluster.all(Pod)
    return [pod.spec.nodeName for pod in pods if group_key(pod) == f"default/{group}" and pod.spec.nodeName]


def conditions(harness: SchedulerHarness, group: str) -> tuple[Condition, ...]:
    """Return the conditions of a group."""
    found = harness.cluster.get(PodGroup, f"default/{group}")
    assert found is not None
    return found.status.conditions


def condition(harness: SchedulerHarness, group: str) -> Condition:
    """Return the only condition of a group."""
    (found,) = conditions(harness, group)
    return found


def message(harness: SchedulerHarness, pod: str) -> str:
    """Return why a pod has no node."""
    return harness.cluster.conditions(pod)["PodScheduled"].message
