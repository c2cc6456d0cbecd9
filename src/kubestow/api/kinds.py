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

KINDS: dict[tuple[str, str], type[Base]] = {
    ("v1", "Pod"): Pod,
    ("v1", "Node"): Node,
    ("v1", "Namespace"): Namespace,
    ("v1", "Service"): Service,
    ("v1", "ReplicationController"): ReplicationController,
    ("v1", "PersistentVolume"): PersistentVolume,
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("v1", "Binding"): Binding,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
    ("policy/v1", "PodDisruptionBudget"): PodDisruptionBudget,
    ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClass,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): PodGroup,
    ("scheduling.k8s.io/v1alpha3", "CompositePodGroup"): CompositePodGroup,
    ("storage.k8s.io/v1", "StorageClass"): StorageClass,
    ("storage.k8s.io/v1", "CSINode"): CSINode,
    ("storage.k8s.io/v1", "CSIDriver"): CSIDriver,
    ("storage.k8s.io/v1", "CSIStorageCapacity"): CSIStorageCapacity,
    ("storage.k8s.io/v1", "VolumeAttachment"): VolumeAttachment,
    ("resource.k8s.io/v1", "ResourceClaim"): ResourceClaim,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): ResourceClaimTemplate,
    ("resource.k8s.io/v1", "ResourceSlice"): ResourceSlice,
    ("resource.k8s.io/v1", "DeviceClass"): DeviceClass,
    ("resource.k8s.io/v1", "DeviceTaintRule"): DeviceTaintRule,
    ("events.k8s.io/v1", "Event"): Event,
    ("coordination.k8s.io/v1", "Lease"): Lease,
}

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
