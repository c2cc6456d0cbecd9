"""Cluster events derived from a change of an object.

Events of an update are as specific as possible: each aspect of a pod or node that scheduling reads has its own event,
and one update may cause several of them. An update of a node that changes none of them is no event; such an update of
a pod is a plain UPDATE. Objects of other kinds are simply added, updated or deleted.

A pod that gets its node is an assigned pod that is added. The update of an unassigned pod concerns that pod alone: the
queue derives its events, which are about the target pod.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from kubestow.api.custom_kinds import resource_of
from kubestow.api.devices import DeviceTaintRule
from kubestow.api.meta import ResourceList
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.quantity import nano
from kubestow.api.requests import has_status_resources, pod_requests
from kubestow.scheduler.cluster.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    Action,
    ClusterEvent,
    Resource,
    event_resource,
)


def events_of(old: Any, new: Any, waiting: Pod | None = None) -> list[ClusterEvent]:
    """Return the events of the change from `old` to `new`, for hints about a waiting pod.

    None stands for an object that does not exist.
    """
    present = new if old is None else old
    if isinstance(present, Pod):
        is_target = waiting is not None and waiting.metadata.uid == present.metadata.uid
        return pod_events(old, new, is_target=is_target)
    if isinstance(present, Node):
        return node_events(old, new)
    if isinstance(present, DeviceTaintRule):
        # A rule changes the devices that slices offer.
        return [_event(Resource.RESOURCE_SLICE, Action.UPDATE)]
    resource = event_resource(type(present))
    return [] if resource is None else object_events(resource, old, new)


def object_events(resource: str, old: Any, new: Any) -> list[ClusterEvent]:
    """Return the events for an object of any kind but pod and node, custom resources included."""
    return [_event(resource, _plain_action(old, new))]


def availability_event(kind: type) -> ClusterEvent | None:
    """Return the event that objects of a declared kind can be read, or cannot be read any more.

    Its action is empty, so that every registration for the kind covers it. Hints are not called.
    """
    declared = resource_of(kind)
    return None if declared is None else _availability(declared.event_resource)


@cache
def _availability(resource: str) -> ClusterEvent:
    return ClusterEvent(resource, Action(0), f"{resource}Availability")


def pod_events(old: Pod | None, new: Pod | None, *, is_target: bool = False) -> list[ClusterEvent]:
    """Return the events of a change of a pod; see `pod_update_events`."""
    if new is None:
        assert old is not None
        # Pods of at most the same priority take the nominated node into account.
        return [ASSIGNED_POD_DELETE if old.spec.nodeName or old.status.nominatedNodeName else UNSCHEDULED_POD_DELETE]
    if old is not None and (old.spec.nodeName or not new.spec.nodeName):
        return pod_update_events(old, new, is_target=is_target)
    return [ASSIGNED_POD_ADD if new.spec.nodeName else UNSCHEDULED_POD_ADD]


def node_events(old: Node | None, new: Node | None) -> list[ClusterEvent]:
    if old is None or new is None:
        return [_event(Resource.NODE, _plain_action(old, new))]
    return [_event(Resource.NODE, action) for changed, action in _NODE_ASPECTS if changed(old, new)]


def pod_update_events(old: Pod, new: Pod, *, is_target: bool = False) -> list[ClusterEvent]:
    """Return the events of an update that does not assign the pod to a node.

    With `is_target`, the events of an unassigned pod are for its own hints.
    """
    unassigned = Resource.TARGET_POD if is_target else Resource.UNSCHEDULED_POD
    resource = Resource.ASSIGNED_POD if new.spec.nodeName else unassigned
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    actions += _scaling(old, new)
    if old.spec.schedulingGates and not new.spec.schedulingGates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API allows tolerations to be added only.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if (
        old.status.resourceClaimStatuses != new.status.resourceClaimStatuses
        or old.status.extendedResourceClaimStatus != new.status.extendedResourceClaimStatus
    ):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [_event(resource, action) for action in actions] if actions else [_event(resource, Action.UPDATE)]


@cache
def _event(resource: str, action: Action) -> ClusterEvent:
    return ClusterEvent(resource, action)


def _plain_action(old: object, new: object) -> Action:
    if old is None:
        return Action.ADD
    return Action.DELETE if new is None else Action.UPDATE


def _scaling(old: Pod, new: Pod) -> list[Action]:
    """Return whether requests were lowered, raised, or both."""
    if old.spec == new.spec and not has_status_resources(old) and not has_status_resources(new):
        return []
    try:
        before, after = pod_requests(old).amounts, pod_requests(new).amounts
    except ValueError:
        # One of them is invalid, so that its requests are unknown.
        return [Action.UPDATE_POD_SCALE_DOWN, Action.UPDATE_POD_SCALE_UP]
    down = [Action.UPDATE_POD_SCALE_DOWN] if _is_any_lower(after, before) else []
    return [*down, Action.UPDATE_POD_SCALE_UP] if _is_any_lower(before, after) else down


def _is_any_lower(amounts: dict[str, int], than: dict[str, int]) -> bool:
    return any(resource not in amounts or amount > amounts[resource] for resource, amount in than.items())


def _same_amounts(one: ResourceList, other: ResourceList) -> bool:
    return one == other or (
        one.keys() == other.keys() and all(nano(raw) == nano(other[name]) for name, raw in one.items())
    )


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


_NODE_ASPECTS: tuple[tuple[Callable[[Node, Node], bool], Action], ...] = (
    # Being unschedulable is treated as a taint; a node that becomes unschedulable makes no pod schedulable.
    (lambda old, new: old.spec.unschedulable and not new.spec.unschedulable, Action.UPDATE_NODE_TAINT),
    (
        lambda old, new: not _same_amounts(old.status.allocatable, new.status.allocatable),
        Action.UPDATE_NODE_ALLOCATABLE,
    ),
    (lambda old, new: old.metadata.labels != new.metadata.labels, Action.UPDATE_NODE_LABEL),
    (lambda old, new: old.spec.taints != new.spec.taints, Action.UPDATE_NODE_TAINT),
    (lambda old, new: _conditions(old) != _conditions(new), Action.UPDATE_NODE_CONDITION),
    (lambda old, new: old.metadata.annotations != new.metadata.annotations, Action.UPDATE_NODE_ANNOTATION),
    (
        lambda old, new: old.spec.podPreemptionPolicy != new.spec.podPreemptionPolicy,
        Action.UPDATE_NODE_PREEMPTION_POLICY,
    ),
    (
        lambda old, new: old.status.declaredFeatures != new.status.declaredFeatures,
        Action.UPDATE_NODE_DECLARED_FEATURE,
    ),
)
