"""The cluster events of changes of objects."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.node import Node, NodePodPreemptionPolicy
from kubestow.api.pod import Pod
from kubestow.api.storage import CSINode, StorageClass
from kubestow.api.workloads import Service
from kubestow.scheduler.cluster.changes import events_of, object_events

NODE = convert(
    Node,
    {
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Up"}],
        },
    },
)
POD = convert(
    Pod,
    {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"app": "web"}},
        "spec": {
            "nodeName": "n",
            "schedulingGates": [{"name": "g"}],
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "example.com/gpu": "2"}}}],
        },
    },
)


def _labels(old: Any, new: Any) -> list[str]:
    return [event.label for event in events_of(old, new)]


def _node(**changes: Any) -> Node:
    return replace(NODE, **{part: replace(getattr(NODE, part), **fields) for part, fields in changes.items()})


def _pod(**changes: Any) -> Pod:
    return replace(POD, **{part: replace(getattr(POD, part), **fields) for part, fields in changes.items()})


def _requesting(**requests: str) -> Pod:
    container = POD.spec.containers[0]
    renamed = {name.replace("gpu", "example.com/gpu"): amount for name, amount in requests.items()}
    return _pod(spec={"containers": (replace(container, resources=replace(container.resources, requests=renamed)),)})


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (_node(), []),
        (_node(status={"allocatable": {"cpu": "4000m", "memory": "8192Mi"}}), []),
        (_node(status={"allocatable": {"cpu": "3", "memory": "8Gi"}}), ["NodeUpdateNodeAllocatable"]),
        (_node(status={"allocatable": {"cpu": "4"}}), ["NodeUpdateNodeAllocatable"]),
        (_node(metadata={"labels": {}}), ["NodeUpdateNodeLabel"]),
        (_node(metadata={"annotations": {"a": "b"}}), ["NodeUpdateNodeAnnotation"]),
        (_node(spec={"taints": ()}), ["NodeUpdateNodeTaint"]),
        (_node(spec={"unschedulable": True}), []),
        (_node(status={"conditions": ()}), ["NodeUpdateNodeCondition"]),
        (_node(status={"conditions": (replace(NODE.status.conditions[0], reason="Rested"),)}), []),
        (_node(status={"declaredFeatures": ("F",)}), ["NodeUpdateNodeDeclaredFeature"]),
        (_node(spec={"podPreemptionPolicy": NodePodPreemptionPolicy(("a",))}), ["NodeUpdateNodePreemptionPolicy"]),
        (
            _node(metadata={"labels": {}, "annotations": {"a": "b"}}, status={"allocatable": {}}),
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel", "NodeUpdateNodeAnnotation"],
        ),
    ],
)
def test_node_updates_have_an_event_per_aspect(new: Node, expected: list[str]) -> None:
    """Each aspect that changed is an event; heartbeats and other notations of an amount are none."""
    assert _labels(NODE, new) == expected


def test_a_node_that_becomes_schedulable_counts_as_a_taint_removed() -> None:
    """The opposite change is no event (see above): it makes no pod schedulable."""
    assert _labels(_node(spec={"unschedulable": True}), NODE) == ["NodeUpdateNodeTaint"]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (_pod(), ["AssignedPodUpdate"]),
        (_pod(status={"phase": "Running"}), ["AssignedPodUpdate"]),
        (_pod(metadata={"labels": {"app": "db"}}), ["AssignedPodUpdatePodLabel"]),
        (_requesting(cpu="400m", gpu="2"), ["AssignedPodUpdatePodScaleDown"]),
        (_requesting(cpu="0.5"), ["AssignedPodUpdatePodScaleDown"]),
        (_requesting(cpu="1", gpu="2"), ["AssignedPodUpdatePodScaleUp"]),
        (_requesting(cpu="1"), ["AssignedPodUpdatePodScaleDown", "AssignedPodUpdatePodScaleUp"]),
        (_pod(spec={"schedulingGates": ()}), ["AssignedPodUpdatePodSchedulingGatesEliminated"]),
        (_pod(spec={"tolerations": ("t",)}), ["AssignedPodUpdatePodToleration"]),
        (_pod(status={"resourceClaimStatuses": ("c",)}), ["AssignedPodUpdatePodGeneratedResourceClaim"]),
        (
            _pod(metadata={"labels": {}}, spec={"tolerations": ("t",)}),
            ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodToleration"],
        ),
    ],
)
def test_pod_updates_have_an_event_per_aspect(new: Pod, expected: list[str]) -> None:
    """Each aspect that changed is an event; an update without any is a plain one."""
    assert _labels(POD, new) == expected


def test_additions_and_deletions_of_pods() -> None:
    """A pod that gets a node is an added assigned pod; assigned and unassigned pods have different events."""
    unassigned = _pod(spec={"nodeName": ""})
    assert _labels(None, POD) == ["AssignedPodAdd"]
    assert _labels(POD, None) == ["AssignedPodDelete"]
    assert _labels(None, unassigned) == ["UnscheduledPodAdd"]
    assert _labels(unassigned, None) == ["UnscheduledPodDelete"]
    assert _labels(_pod(spec={"nodeName": ""}, status={"nominatedNodeName": "n"}), None) == ["AssignedPodDelete"]
    assert _labels(unassigned, POD) == ["AssignedPodAdd"]
    assert _labels(unassigned, unassigned) == ["UnscheduledPodUpdate"]


def test_an_update_of_the_waiting_pod_is_one_of_the_target_pod() -> None:
    """Updates of other unassigned pods are not."""
    waiting, other = _pod(spec={"nodeName": ""}), _pod(spec={"nodeName": ""}, metadata={"uid": "other"})
    relabelled = replace(waiting, metadata=replace(waiting.metadata, labels={}))
    assert [event.label for event in events_of(waiting, relabelled, waiting)] == ["TargetPodUpdatePodLabel"]
    assert [event.label for event in events_of(waiting, relabelled, other)] == ["UnscheduledPodUpdatePodLabel"]


def test_other_kinds_are_added_updated_deleted() -> None:
    """Their changes are not analyzed; changes of kinds that scheduling does not wait for are no events."""
    assert _labels(None, NODE) == ["NodeAdd"]
    assert _labels(NODE, None) == ["NodeDelete"]
    assert _labels(None, StorageClass()) == ["storage.k8s.io/StorageClassAdd"]
    assert _labels(CSINode(), CSINode()) == ["storage.k8s.io/CSINodeUpdate"]
    assert _labels(CSINode(), None) == ["storage.k8s.io/CSINodeDelete"]
    assert _labels(None, Service()) == []
    assert [event.label for event in object_events("foos.v1.example.com", None, {})] == ["foos.v1.example.comAdd"]
