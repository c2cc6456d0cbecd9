"""The resources that can be listed and watched: path, type of the decoded objects, and whether they are required."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from kubestow.api.custom_kinds import Named, resource_of
from kubestow.api.devices import DeviceTaintRule
from kubestow.api.kinds import KINDS
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import CompositePodGroup, PodGroup
from kubestow.config.features import Features


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


def _built_in(api_version: str, kind: str, plural: str, *, optional: bool = False) -> Resource[Any]:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, plural, KINDS[api_version, kind], optional=optional)


PODS = Resource("", "v1", "pods", Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")
NODES = Resource("", "v1", "nodes", Node)
# The next three are watched only if their feature gate is enabled.
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1", "devicetaintrules", DeviceTaintRule, optional=True)
POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", PodGroup)
COMPOSITE_POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha3", "compositepodgroups", CompositePodGroup)

WATCHED: tuple[Resource[Any], ...] = (
    PODS,
    NODES,
    _built_in("v1", "Namespace", "namespaces"),
    # The optional ones of the next groups only group pods, for spreading by preference.
    _built_in("v1", "Service", "services", optional=True),
    _built_in("v1", "ReplicationController", "replicationcontrollers", optional=True),
    _built_in("v1", "PersistentVolume", "persistentvolumes"),
    _built_in("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    _built_in("apps/v1", "ReplicaSet", "replicasets", optional=True),
    _built_in("apps/v1", "StatefulSet", "statefulsets", optional=True),
    _built_in("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    _built_in("storage.k8s.io/v1", "StorageClass", "storageclasses"),
    _built_in("storage.k8s.io/v1", "CSINode", "csinodes"),
    _built_in("storage.k8s.io/v1", "CSIDriver", "csidrivers"),
    _built_in("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities"),
    _built_in("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments"),
    # Servers before v1.34 do not have the next three; pods that claim devices are rejected with them.
    _built_in("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", optional=True),
    _built_in("resource.k8s.io/v1", "ResourceSlice", "resourceslices", optional=True),
    _built_in("resource.k8s.io/v1", "DeviceClass", "deviceclasses", optional=True),
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
