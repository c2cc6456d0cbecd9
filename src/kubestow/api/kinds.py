"""The Struct of each kind, by apiVersion and kind; used by manifests, watches and tests."""

from kubestow.api.coordination import Binding, Event, Lease
from kubestow.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kubestow.api.meta import Base
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
from kubestow.api.workloads import (
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

_BY_VERSION: dict[str, tuple[type[Base], ...]] = {
    "v1": (Pod, Node, Namespace, Service, ReplicationController, PersistentVolume, PersistentVolumeClaim, Binding),
    "apps/v1": (ReplicaSet, StatefulSet),
    "policy/v1": (PodDisruptionBudget,),
    "scheduling.k8s.io/v1": (PriorityClass,),
    "scheduling.k8s.io/v1beta1": (PodGroup,),
    "scheduling.k8s.io/v1alpha3": (CompositePodGroup,),
    "storage.k8s.io/v1": (StorageClass, CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment),
    "resource.k8s.io/v1": (ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, DeviceTaintRule),
    "events.k8s.io/v1": (Event,),
    "coordination.k8s.io/v1": (Lease,),
}
KINDS = {(version, kind.__name__): kind for version, kinds in _BY_VERSION.items() for kind in kinds}

CLUSTER_SCOPED: frozenset[type[Base]] = frozenset(
    (
        Node,
        Namespace,
        PersistentVolume,
        PriorityClass,
        StorageClass,
        CSINode,
        CSIDriver,
        VolumeAttachment,
        ResourceSlice,
        DeviceClass,
        DeviceTaintRule,
    )
)
"""Kinds without a namespace."""
