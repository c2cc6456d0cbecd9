"""Pods whose in-place resize waits for capacity on their node."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow import config
from kubestow.api.node import Node, NodePodPreemptionPolicy
from kubestow.api.pod import Pod
from kubestow.testing import SchedulerHarness, make_node, make_pod, make_pod_group
from support.scenarios.start import Start

GATE = "in_place_pod_vertical_scaling_scheduler_preemption"


def resizing(name: str = "growing", *, wants: str, has: str = "1", reason: str = "Deferred", **fields: Any) -> Pod:
    """Return a pod on `n1` whose kubelet has put off the resize from `has` to `wants`."""
    held = {"cpu": has}
    return make_pod(
        name,
        node="n1",
        cpu=wants,
        status={
            "phase": "Running",
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
            "containerStatuses": [{"name": "main", "allocatedResources": held, "resources": {"requests": held}}],
        },
        **{"priority": 10, **fields},
    )


@pytest.fixture
def world(start: Start) -> SchedulerHarness:
    return world_of(start, make_node("n1", cpu="4"))


def world_of(start: Start, node: Node, **gates: Any) -> SchedulerHarness:
    """Start a scheduler with a node where pods of lower priority request 1 and 2 of 4 CPUs, and an empty one."""
    harness = start(features=config.Features(**{GATE: True, **gates}))
    harness.cluster.add(node)
    harness.cluster.add(make_node("n2", cpu="4"))
    for name, cpu, priority in (("small", "1", 1), ("large", "2", 2)):
        harness.cluster.add(make_pod(name, node="n1", cpu=cpu, priority=priority, grace_seconds=1))
    return harness


def names(world: SchedulerHarness) -> list[str]:
    return sorted(pod.metadata.name for pod in world.cluster.all(Pod))


def queued(world: SchedulerHarness) -> list[str]:
    return [pod.metadata.name for pods in world.core.queue.snapshot().values() for pod in pods]


def rejections_by(world: SchedulerHarness, plugin: str) -> int:
    return world.core.queue.rejections()[plugin, "default-scheduler"]


def test_pods_of_lower_priority_make_room(world: SchedulerHarness) -> None:
    """As few as needed, and on its node only; the pod gets no condition, event or nomination."""
    pod = world.cluster.add(resizing(wants="2"))
    world.run_for(20.0)
    assert names(world) == ["growing", "large"]
    assert world.events.about("growing") == []
    assert world.cluster.pod("growing") == pod


def test_a_pod_that_fits_waits_for_the_kubelet(world: SchedulerHarness) -> None:
    """It stays in the queue until its resize is no longer deferred."""
    world.cluster.add(resizing(wants="1"))
    world.run_for(20.0)
    assert names(world) == ["growing", "large", "small"]
    assert queued(world) == ["growing"]
    assert rejections_by(world, "DeferredPodScheduling") == 1
    world.cluster.update(resizing(wants="1", reason=""))
    world.run_for(1.0)
    assert queued(world) == []


@pytest.mark.parametrize("change", ["terminal", "deleted"])
def test_a_pod_that_ends_leaves_the_queue(world: SchedulerHarness, change: str) -> None:
    """Whether it has finished or was deleted."""
    pod = resizing(wants="1")
    world.cluster.add(pod)
    world.run_for(1.0)
    if change == "deleted":
        world.cluster.delete(world.cluster.pod("growing"), grace_seconds=0)
    else:
        world.cluster.update(make_pod("growing", node="n1", status={"phase": "Succeeded"}))
    world.run_for(1.0)
    assert queued(world) == []


def test_a_pod_that_grows_further_is_tried_again(world: SchedulerHarness) -> None:
    """So is one whose resize is put off later."""
    world.cluster.add(resizing(wants="9", reason=""))
    world.run_for(1.0)
    assert queued(world) == []
    world.cluster.update(resizing(wants="9"))
    world.run_for(1.0)
    assert names(world) == ["growing", "large", "small"]
    assert rejections_by(world, "NodeResourcesFit") == 1
    world.cluster.update(resizing(wants="2"))
    world.run_for(20.0)
    assert names(world) == ["growing", "large"]


def test_nodes_that_disable_preemption_for_resizes(start: Start) -> None:
    """No pod is evicted until the policy is gone."""
    node = make_node("n1", cpu="4")
    policy = NodePodPreemptionPolicy(("example.com/autoscaler",))
    world = world_of(start, replace(node, spec=replace(node.spec, podPreemptionPolicy=policy)))
    world.cluster.add(resizing(wants="2"))
    world.run_for(20.0)
    assert names(world) == ["growing", "large", "small"]
    assert rejections_by(world, "DeferredPodScheduling") == 1
    world.cluster.update(node)
    world.run_for(20.0)
    assert names(world) == ["growing", "large"]


def test_other_plugins_do_not_judge_a_pod_on_its_node(start: Start) -> None:
    """The node may have been cordoned and tainted, or have lost labels, since the pod was bound."""
    world = world_of(start, make_node("n1", cpu="4", unschedulable=True, taints=["dedicated:NoSchedule"]))
    world.cluster.add(resizing(wants="2", node_selector={"disk": "ssd"}, host_ports=[80]))
    world.run_for(20.0)
    assert names(world) == ["growing", "large"]


def test_events_on_other_nodes_do_not_retry(world: SchedulerHarness) -> None:
    """Capacity elsewhere does not help, but a pod that grows on the same node may need another preemption."""
    world.cluster.add(resizing(wants="9"))
    world.cluster.add(make_pod("elsewhere", node="n2", cpu="1"))
    world.run_for(20.0)
    attempts = len(world.attempts.about("growing"))
    world.cluster.delete(world.cluster.pod("elsewhere"), grace_seconds=0)
    world.cluster.update(make_node("n2", cpu="5"))
    world.run_for(20.0)
    assert len(world.attempts.about("growing")) == attempts
    world.cluster.update(make_pod("small", node="n1", cpu="1100m", priority=1, grace_seconds=1))
    world.run_for(20.0)
    assert len(world.attempts.about("growing")) == attempts + 1


def test_a_member_of_a_group_is_tried_alone(start: Start) -> None:
    """The group was scheduled before."""
    world = world_of(start, make_node("n1", cpu="4"), generic_workload=True)
    world.cluster.add(make_pod_group("gang", 1))
    world.cluster.add(resizing(wants="1", group="gang"))
    world.run_for(20.0)
    assert rejections_by(world, "DeferredPodScheduling") == 1


def test_without_the_gate_nothing_happens(start: Start) -> None:
    """The pod waits until its node has capacity."""
    world = world_of(start, make_node("n1", cpu="4"), **{GATE: False})
    world.cluster.add(resizing(wants="2"))
    world.run_for(20.0)
    assert names(world) == ["growing", "large", "small"]
    assert queued(world) == []
