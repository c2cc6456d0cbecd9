"""Which registrations include which events."""

import pytest

from kubestow.scheduler.cluster.events import (
    ANYTHING,
    ASSIGNED_POD_ADD,
    FORCE_ACTIVATE,
    UNSCHEDULED_POD_UPDATE,
    Action,
    ClusterEvent,
    Resource,
    on,
)

ASSIGNED_POD_UPDATE = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE)


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (UNSCHEDULED_POD_UPDATE, "UnscheduledPodUpdate"),
        (ClusterEvent(Resource.CSI_NODE, Action.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN), "AssignedPodUpdatePodScaleDown"),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE), "NodeUpdateNodeDeclaredFeature"),
        (ClusterEvent("foos.v1.example.com", Action.DELETE), "foos.v1.example.comDelete"),
        (FORCE_ACTIVATE, "ForceActivate"),
    ],
)
def test_labels_are_kube_schedulers(event: ClusterEvent, label: str) -> None:
    """Metrics and logs name events as kube-scheduler does."""
    assert event.label == label


@pytest.mark.parametrize(
    ("resource", "action", "happened", "heard"),
    [
        (Resource.NODE, Action.ADD, ClusterEvent(Resource.NODE, Action.ADD), True),
        (Resource.NODE, Action.ADD, ClusterEvent(Resource.NODE, Action.DELETE), False),
        (Resource.NODE, Action.ADD, ClusterEvent(Resource.CSI_NODE, Action.ADD), False),
        # More specific events are included; less specific ones are not.
        (Resource.NODE, Action.UPDATE, ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL), True),
        (Resource.POD, Action.UPDATE_POD_LABEL, ASSIGNED_POD_UPDATE, False),
        (Resource.POD, Action.UPDATE, ASSIGNED_POD_UPDATE, True),
        (Resource.POD, Action.ADD | Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, ASSIGNED_POD_UPDATE, False),
        # A registration for pods includes assigned and unassigned pods, and the target pod.
        (Resource.POD, Action.ADD, ASSIGNED_POD_ADD, True),
        (Resource.POD, Action.UPDATE, ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_LABEL), True),
        (Resource.UNSCHEDULED_POD, Action.UPDATE, ClusterEvent(Resource.TARGET_POD, Action.UPDATE), False),
        (Resource.POD, Action.UPDATE, UNSCHEDULED_POD_UPDATE, True),
        (Resource.ASSIGNED_POD, Action.UPDATE, UNSCHEDULED_POD_UPDATE, False),
        # Any resource.
        (Resource.ANY, Action.ADD, ClusterEvent(Resource.STORAGE_CLASS, Action.ADD), True),
        (Resource.ANY, Action.ADD, ClusterEvent(Resource.STORAGE_CLASS, Action.DELETE), False),
        (Resource.ANY, Action.ALL, ClusterEvent("foos.v1.example.com", Action.UPDATE), True),
        # A wildcard event moves pods by itself; registrations do not match it.
        (Resource.POD, Action.ALL, FORCE_ACTIVATE, False),
        (Resource.ANY, Action.ALL, FORCE_ACTIVATE, True),
    ],
)
def test_a_registration_includes_the_same_and_more_specific_events(
    resource: str, action: Action, happened: ClusterEvent, heard: bool
) -> None:
    """Resource and action must both match."""
    assert on(resource, action).event.covers(happened) is heard


def test_events_are_values() -> None:
    """Equal events are one dictionary key."""
    assert {ClusterEvent(Resource.NODE, Action.ADD): 1}[ClusterEvent("Node", Action.ADD)] == 1
    assert ClusterEvent(Resource.ANY, Action.ALL) != FORCE_ACTIVATE


def test_anything_includes_all_events_of_pods_and_nodes() -> None:
    """A plugin without `requeue_on` is retried after each of them."""
    for event in (ASSIGNED_POD_ADD, ASSIGNED_POD_UPDATE, ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)):
        assert any(registration.event.covers(event) for registration in ANYTHING)
