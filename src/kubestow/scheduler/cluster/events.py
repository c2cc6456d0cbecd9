"""Cluster events: what happened to which kind of object, and who wants to hear of it.

A plugin that rejects pods registers the events that may change its mind, each with a hint: a function that looks at
the waiting pod and the object (before and after) and says whether the pod is worth another attempt. The queue keeps a
pod out of the way until an event for which a plugin that rejected it is registered happens and its hint says yes.

Updates are told as narrowly as possible: UPDATE_NODE_LABEL rather than UPDATE. A registration for UPDATE hears every
narrower one; a registration for UPDATE_NODE_LABEL does not hear an UPDATE that was nothing known.
"""

from collections.abc import Callable
from enum import IntFlag, StrEnum
from typing import Any

import msgspec

from kubestow.api.pod import Pod


class Resource(StrEnum):
    """Kinds of objects as events name them. A custom resource is named `plural.version.group`."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    ANY = "*"


class Action(IntFlag):
    """What happened to an object."""

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = (1 << 13) - (1 << 2)
    ALL = (1 << 13) - 1


def _action_label(action: Action) -> str:
    name = action.name or repr(action)
    return "|".join("".join(word.title() for word in part.split("_")) for part in name.split("|"))


class ClusterEvent(msgspec.Struct, frozen=True):
    """Something that happened, or, in a registration, a set of things that may happen."""

    resource: str
    action: Action
    label: str = ""
    """The event's name in metrics and logs; derived from resource and action unless given."""
    is_wildcard: bool = False
    """Stands for every event at once; derived."""

    def __post_init__(self) -> None:
        if not self.label:
            msgspec.structs.force_setattr(self, "label", f"{self.resource}{_action_label(self.action)}")
        is_wildcard = self.resource == Resource.ANY and self.action == Action.ALL
        msgspec.structs.force_setattr(self, "is_wildcard", is_wildcard)

    def covers(self, happened: "ClusterEvent") -> bool:
        """Does a registration for this event hear `happened`, which must be the same or narrower?"""
        if self.is_wildcard:
            return True
        if self.resource not in (Resource.ANY, happened.resource) and not (
            self.resource == Resource.POD and happened.resource in _KINDS_OF_POD
        ):
            return False
        # Plain numbers: flag arithmetic on the enum itself costs a microsecond.
        return not happened.action.value & ~self.action.value


_KINDS_OF_POD = (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD)

ASSIGNED_POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE)
UNSCHEDULED_POD_DELETE = ClusterEvent(Resource.UNSCHEDULED_POD, Action.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.ANY, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(Resource.ANY, Action.ALL, "ForceActivate")
CONFIGURATION_RELOAD = ClusterEvent(Resource.ANY, Action.ALL, "ConfigurationReload")

Hint = Callable[[Pod, Any, Any], bool]
"""(waiting pod, object before or None, object after or None) -> is the pod worth another attempt?

An exception counts as yes: a pod must not be stranded by a faulty hint.
"""


class Registration(msgspec.Struct, frozen=True):
    """A plugin's wish to hear of an event; without a hint, every such event is worth another attempt."""

    event: ClusterEvent
    hint: Hint | None = None
    alike: bool = False
    """The hint looks at no more of a waiting pod than its namespace, labels, owners and spec, and whether it is the
    very pod that the event is about; so it is asked once for many pods that are alike."""


def on(resource: str, action: Action, hint: Hint | None = None, *, alike: bool = False) -> Registration:
    """Registers for `action` (flags may be combined) on `resource`."""
    return Registration(ClusterEvent(resource, action), hint, alike)


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
"""What a plugin that rejects pods and does not say when to retry is registered for."""
