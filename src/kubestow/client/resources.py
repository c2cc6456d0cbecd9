"""The resources that can be listed and watched: path, type of the decoded objects, and whether they are required."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from kubestow.api.custom_kinds import resource_of
from kubestow.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubestow.api.node import Namespace, Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import CompositePodGroup, PodGroup
from kubestow.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubestow.api.workloads import PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StatefulSet
from kubestow.config.features import Features


class Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...


class Meta(Named, Protocol):
    @property
    def uid(self) -> str: ...
    @property
    def resourceVersion(self) -> str: ...  # noqa: N802 the API's own name


class ApiObject(Protocol):
    @property
    def metadata(self) -> Meta: ...


T = TypeVar("T", bound=ApiObject)


class Resource(msgspec.Struct, Generic[T], frozen=True):
    """A resource across all namespaces.

    If the server lacks it, there are no such objects and the scheduler continues, except for the core API, which every
    server has. If the server forbids it, there may be objects that cannot be read: the scheduler continues only if the
    resource is `optional`, that is, if missing objects do no harm, or if its users check first whether it can be read
    (`unreadable` of its lister).
    """

    group: str
    version: str
    plural: str
    kind: type[T]
    field_selector: str = ""
    optional: bool = False
    is_declared: bool = False
    """Whether a plugin declares the kind: it may be installed, removed or broken at any time."""

    @property
    def path(self) -> str:
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}/{self.plural}"

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def labels(self) -> tuple[str, str, str, str]:
        """The labels of the metrics of its informer: group, the name of the component, resource and version."""
        return self.group, "kube-scheduler", self.plural, self.version

    def url(self, parameters: Mapping[str, str]) -> str:
        """Return the path with the field selector and the parameters that are not empty."""
        query = {key: value for key, value in parameters.items() if value}
        if self.field_selector:
            query["fieldSelector"] = self.field_selector
        return f"{self.path}?{urlencode(sorted(query.items()))}" if query else self.path


def declared_resource(kind: type[T]) -> Resource[T] | None:
    """Return the resource of a kind that is declared with `custom_resource`; None for others."""
    found = resource_of(kind)
    if found is None:
        return None
    return Resource(
        found.group, found.version, found.plural, kind, found.field_selector, optional=True, is_declared=True
    )


def declared_resources(kinds: Iterable[type[Any]]) -> list[Resource[Any]]:
    """Return the resources of the kinds that are declared."""
    return [found for kind in kinds if (found := declared_resource(kind)) is not None]


def key_of(meta: Named) -> str:
    """Return namespace/name, or only the name for an object without a namespace."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


PODS = Resource("", "v1", "pods", Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")
NODES = Resource("", "v1", "nodes", Node)
NAMESPACES = Resource("", "v1", "namespaces", Namespace)
# The next four only group pods, for spreading by preference.
SERVICES = Resource("", "v1", "services", Service, optional=True)
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", ReplicationController, optional=True)
REPLICA_SETS = Resource("apps", "v1", "replicasets", ReplicaSet, optional=True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", StatefulSet, optional=True)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", PersistentVolume)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", PersistentVolumeClaim)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", PodDisruptionBudget)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", StorageClass)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", CSINode)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", CSIDriver)
CSI_STORAGE_CAPACITIES = Resource("storage.k8s.io", "v1", "csistoragecapacities", CSIStorageCapacity)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", VolumeAttachment)
# Servers before v1.34 do not have the next three; pods that claim devices are rejected with them.
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", ResourceClaim, optional=True)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", ResourceSlice, optional=True)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", DeviceClass, optional=True)
# The next three are watched only if their feature gate is enabled.
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1", "devicetaintrules", DeviceTaintRule, optional=True)
POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", PodGroup)
COMPOSITE_POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha3", "compositepodgroups", CompositePodGroup)

WATCHED: tuple[Resource[Any], ...] = (
    PODS,
    NODES,
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    REPLICA_SETS,
    STATEFUL_SETS,
    POD_DISRUPTION_BUDGETS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    DEVICE_CLASSES,
)
"""The resources that the scheduler watches, which are those that kube-scheduler watches by default."""


def watched_by_gates(features: Features) -> tuple[Resource[Any], ...]:
    """Return the resources that the scheduler watches because of feature gates that are on."""
    gated: tuple[tuple[Resource[Any], bool], ...] = (
        (DEVICE_TAINT_RULES, features.dra_device_taint_rules),
        (POD_GROUPS, features.generic_workload),
        (COMPOSITE_POD_GROUPS, features.composite_pod_group),
    )
    return tuple(resource for resource, is_watched in gated if is_watched)
