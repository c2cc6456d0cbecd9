"""Cluster events: what happened to which kind of object, and the registrations for them.

A plugin that rejects pods registers the events that may make a pod schedulable, each with a hint: a function that gets
the waiting pod and the object (before and after) and returns whether the pod is worth another attempt. The queue keeps
a rejected pod until an event happens for which a plugin that rejected it is registered, and whose hint returns True.

Updates are as specific as possible: UPDATE_NODE_LABEL rather than UPDATE. A registration for UPDATE includes every more
specific action; a registration for UPDATE_NODE_LABEL does not include a plain UPDATE.
"""

from collections.abc import Callable
from enum import IntFlag, StrEnum
from typing import Any, Protocol, TypeVar, overload

import msgspec

from kubestow.api.custom_kinds import resource_of
from kubestow.api.kinds import KINDS
from kubestow.api.pod import Pod

T = TypeVar("T")


class Resource(StrEnum):
    """Kinds of objects, as named by events. A custom resource is named `plural.version.group`."""

    POD = "Pod"
    """All pods: stands for the next three in a registration."""
    ASSIGNED_POD = "AssignedPod"
    """Pods that have a node, or lose one: assumed and nominated pods that are deleted included."""
    UNSCHEDULED_POD = "UnscheduledPod"
    """Pods without a node other than the waiting pod."""
    TARGET_POD = "TargetPod"
    """The waiting pod itself, which was updated."""
    NODE = "Node"
    """A node."""
    PERSISTENT_VOLUME = "PersistentVolume"
    """A persistent volume."""
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    """A claim for a persistent volume."""
    CSI_NODE = "storage.k8s.io/CSINode"
    """The volume drivers on a node, and how many volumes of each it can attach."""
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    """A volume driver."""
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    """The free storage of a storage class in a part of the cluster."""
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    """A storage class."""
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    """A volume that is attached to a node."""
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    """A claim for devices."""
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    """Devices that nodes offer."""
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    """A class of devices."""
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    """A pod group."""
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    """A group of pod groups."""
    ANY = "*"
    """All of these."""


class Action(IntFlag):
    """What happened to an object."""

    ADD = 1 << 0
    """It was created; a pod on a node: it was assigned."""
    DELETE = 1 << 1
    """It was deleted; a pod on a node: it is gone from it, or has finished."""
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    """The allocatable resources of a node changed."""
    UPDATE_NODE_LABEL = 1 << 3
    """The labels of a node changed."""
    UPDATE_NODE_TAINT = 1 << 4
    """The taints of a node changed, or it is no longer unschedulable."""
    UPDATE_NODE_CONDITION = 1 << 5
    """The status of a condition of a node changed."""
    UPDATE_NODE_ANNOTATION = 1 << 6
    """The annotations of a node changed."""
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    """The features that a node declares changed."""
    UPDATE_NODE_PREEMPTION_POLICY = 1 << 8
    """The preemption policy of a node changed."""
    UPDATE_POD_LABEL = 1 << 9
    """The labels of a pod changed."""
    UPDATE_POD_SCALE_DOWN = 1 << 10
    """The requests of a pod became smaller."""
    UPDATE_POD_SCALE_UP = 1 << 11
    """The requests of a pod became larger."""
    UPDATE_POD_TOLERATION = 1 << 12
    """A pod got another toleration."""
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 13
    """The last scheduling gate of a pod was removed."""
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 14
    """A resource claim was created for a pod."""
    UPDATE = (1 << 15) - (1 << 2)
    """It changed in any way."""
    ALL = (1 << 15) - 1
    """It was created, changed or deleted."""


def _action_label(action: Action) -> str:
    name = action.name or repr(action)
    return "|".join("".join(word.title() for word in part.split("_")) for part in name.split("|"))


class ClusterEvent(msgspec.Struct, frozen=True):
    """Something that happened, or, in a registration, a set of possible events."""

    resource: str
    action: Action
    label: str = ""
    """The name of the event in metrics and logs; derived from resource and action unless given."""
    is_wildcard: bool = False
    """Whether it stands for every event; derived."""

    def __post_init__(self) -> None:
        if not self.label:
            msgspec.structs.force_setattr(self, "label", f"{self.resource}{_action_label(self.action)}")
        is_wildcard = self.resource == Resource.ANY and self.action == Action.ALL
        msgspec.structs.force_setattr(self, "is_wildcard", is_wildcard)

    def covers(self, happened: "ClusterEvent") -> bool:
        """Return whether a registration for this event includes `happened`: the same event, or a more specific one."""
        if self.is_wildcard:
            return True
        if self.resource not in (Resource.ANY, happened.resource) and not (
            self.resource == Resource.POD and happened.resource in _KINDS_OF_POD
        ):
            return False
        # Plain numbers: flag arithmetic on the enum itself costs a microsecond.
        return not happened.action.value & ~self.action.value


_KINDS_OF_POD = (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TARGET_POD)

ASSIGNED_POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE)
UNSCHEDULED_POD_DELETE = ClusterEvent(Resource.UNSCHEDULED_POD, Action.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.ANY, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(Resource.ANY, Action.ALL, "ForceActivate")
CONFIGURATION_RELOAD = ClusterEvent(Resource.ANY, Action.ALL, "ConfigurationReload")

_NAMES = {resource.rpartition("/")[2]: resource for resource in Resource}
_BUILT_IN = {kind: _NAMES[kind.__name__] for kind in KINDS.values() if kind.__name__ in _NAMES}


def event_resource(kind: type) -> str | None:
    """Return the name of a kind in events; None for a kind that has no events."""
    declared = resource_of(kind)
    return _BUILT_IN.get(kind) if declared is None else declared.event_resource


Hint = Callable[[Pod, Any, Any], bool]
"""(waiting pod, object before or None, object after or None) -> whether the pod is worth another attempt.

An exception counts as True: a faulty hint must not strand a pod.
"""


class EventSource(Protocol):
    """Something besides objects that has events."""

    @property
    def event_resource(self) -> str: ...


class Registration(msgspec.Struct, frozen=True):
    """The events at which a rejected pod is retried; without a hint, every such event is worth another attempt."""

    event: ClusterEvent
    hint: Hint | None = None
    alike: bool = False
    """The hint reads no more of a waiting pod than its namespace, labels, owners and spec; it is called once for all
    equal pods."""
    kind: type | None = None
    """The class of the objects that the hint accepts; None: any."""


@overload
def on(resource: str, action: Action, hint: Hint | None = None, *, alike: bool = False) -> Registration: ...


@overload
def on(
    resource: type[T],
    action: Action,
    hint: Callable[[Any, T | None, T | None], bool] | None = None,
    *,
    alike: bool = False,
) -> Registration: ...


@overload
def on(
    resource: EventSource,
    action: Action,
    hint: Callable[[Any, Any, Any], bool] | None = None,
    *,
    alike: bool = False,
) -> Registration: ...


def on(resource: str | type | EventSource, action: Action, hint: Any = None, *, alike: bool = False) -> Registration:
    """Return a registration for `action` (flags may be combined).

    `resource` is a `Resource`, a kind that is watched, or a value that the plugin polls, whose hint gets the previous
    and the new value. Raises TypeError for a class that is not a kind with events.
    """
    if not isinstance(resource, type | str):
        resource = resource.event_resource
    if isinstance(resource, str):
        return Registration(ClusterEvent(resource, action), hint, alike)
    name = event_resource(resource)
    if name is None:
        raise TypeError(f"on: there are no events of {resource.__name__}; declare a kind with @custom_resource")
    return Registration(ClusterEvent(name, action), hint, alike, resource)


ANYTHING: tuple[Registration, ...] = tuple(
    on(resource, Action.ALL)
    for resource in (
        Resource.POD,
        Resource.NODE,
        Resource.PERSISTENT_VOLUME,
        Resource.PERSISTENT_VOLUME_CLAIM,
        Resource.CSI_NODE,
        Resource.CSI_DRIVER,
        Resource.CSI_STORAGE_CAPACITY,
        Resource.STORAGE_CLASS,
        Resource.RESOURCE_CLAIM,
        Resource.DEVICE_CLASS,
    )
)
"""The registrations of extenders, and of plugins that reject pods and have no `requeue_on`.

Events of other kinds (ResourceSlice, VolumeAttachment, PodGroup) do not retry their pods, as in kube-scheduler.
"""
