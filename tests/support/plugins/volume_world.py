"""A small cluster with storage, for tests of the volume plugins."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np

from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubestow.config.features import Features
from kubestow.config.plugin_args import VolumeBindingArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import Rejection, Skip
from kubestow.scheduler.offline_handle import offline_handle

T = TypeVar("T")

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


class FakeApi:
    """Accepts updates and assigns new versions; the cluster does not receive them automatically."""

    def __init__(self) -> None:
        self._version = 100
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.failing_update: str | None = None
        """The name of an object whose update is rejected."""

    async def update_volume(self, volume: PersistentVolume, changes: dict[str, Any]) -> PersistentVolume:
        return self._update(PersistentVolume, volume, changes)

    async def update_claim(self, claim: PersistentVolumeClaim, changes: dict[str, Any]) -> PersistentVolumeClaim:
        return self._update(PersistentVolumeClaim, claim, changes)

    def _update(self, kind: type[T], obj: Any, changes: dict[str, Any]) -> T:
        if obj.metadata.name == self.failing_update:
            raise ConnectionError(f"{obj.metadata.name} has been changed by another client")
        self.updates.append((obj.metadata.name, changes))
        self._version += 1
        manifest = merged(msgspec.json.decode(obj.source), changes)
        manifest["metadata"]["resourceVersion"] = str(self._version)
        return convert(kind, manifest)


def merged(manifest: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return an object with changed fields, as by a merge patch."""
    result = copy.deepcopy(manifest)
    for field, value in changes.items():
        result[field] = merged(result.get(field, {}), value) if isinstance(value, dict) else value
    return result


class World:
    """A cluster and its builders. `handle` is the handle of plugins."""

    def __init__(self, **features: Any) -> None:
        self.cluster = Cluster()
        self.api = FakeApi()
        self.handle: Handle = offline_handle(self.cluster, Features(**features), api=self.api)

    def node(self, name: str, **labels: str) -> None:
        """Add a node; `zone` is short for the zone label."""
        named = {HOSTNAME: name} | {{"zone": ZONE}.get(key, key): value for key, value in labels.items()}
        self.cluster.set_node(convert(Node, {"metadata": {"name": name, "labels": named}}))

    def csi_node(self, name: str, *, migrated: str = "", **limits: int | None) -> CSINode:
        """Add a CSINode with limits by driver; `ebs` is short for the AWS driver, None means no limit."""
        drivers = [
            {"name": {"ebs": "ebs.csi.aws.com"}.get(driver, driver)}
            | ({} if count is None else {"allocatable": {"count": count}})
            for driver, count in limits.items()
        ]
        annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
        return self._put(
            CSINode, {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}
        )

    def storage_class(self, name: str, *, delayed: bool = True, provisioner: str = "disks", **more: Any) -> None:
        mode = "WaitForFirstConsumer" if delayed else "Immediate"
        self._put(
            StorageClass, {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode} | more
        )

    def driver(self, name: str, **spec: bool) -> None:
        self._put(CSIDriver, {"metadata": {"name": name}, "spec": spec})

    def pool(self, name: str, storage_class: str, capacity: str, **labels: str) -> None:
        """Add a storage pool that nodes with the labels can access."""
        self._put(
            CSIStorageCapacity,
            {
                "metadata": {"name": name, "namespace": "kube-system"},
                "storageClassName": storage_class,
                "capacity": capacity,
                "nodeTopology": {"matchLabels": {{"zone": ZONE}.get(k, k): v for k, v in labels.items()}},
            },
        )

    def attachment(self, name: str, node: str, volume: str, driver: str = "disks") -> None:
        source = {"persistentVolumeName": volume}
        self._put(
            VolumeAttachment,
            {"metadata": {"name": name}, "spec": {"attacher": driver, "nodeName": node, "source": source}},
        )

    def volume(
        self,
        name: str,
        storage_class: str = "local",
        size: str = "10Gi",
        *,
        on: str | None = None,
        handle: str | None = None,
        claim: str | None = None,
        labels: dict[str, str] | None = None,
        version: str = "1",
        **spec: Any,
    ) -> PersistentVolume:
        """Add a volume, usable `on` one node only, with a CSI `handle`, reserved for a `claim`."""
        written: dict[str, Any] = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
        }
        if on is not None:
            written["nodeAffinity"] = affinity(HOSTNAME, on)
        if handle is not None:
            written["csi"] = {"driver": "disks", "volumeHandle": handle}
        if claim is not None:
            written["claimRef"] = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
        phase = "Available" if claim is None else "Bound"
        meta = {"name": name, "labels": labels or {}, "resourceVersion": version}
        return self._put(PersistentVolume, {"metadata": meta, "spec": written | spec, "status": {"phase": phase}})

    def claim(
        self,
        name: str,
        storage_class: str | None = "local",
        size: str = "5Gi",
        *,
        volume: str = "",
        version: str = "1",
        annotations: dict[str, str] | None = None,
        owner: str = "",
        phase: str = "",
        deleted: str | None = None,
        **spec: Any,
    ) -> PersistentVolumeClaim:
        """Add a claim, bound if it has a `volume`."""
        noted = dict(annotations or {})
        if volume:
            noted["pv.kubernetes.io/bind-completed"] = "yes"
        meta: dict[str, Any] = {
            "namespace": "default",
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": version,
            "annotations": noted,
            "deletionTimestamp": deleted,
        }
        if owner:
            meta["ownerReferences"] = [{"kind": "Pod", "uid": f"uid-{owner}", "controller": True}]
        base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "volumeName": volume}
        if storage_class is not None:
            base["storageClassName"] = storage_class
        return self._put(PersistentVolumeClaim, {"metadata": meta, "spec": base | spec, "status": {"phase": phase}})

    def running(self, name: str, node: str, *claims: str, **more: Any) -> PodInfo:
        """Add a pod on a node."""
        info = PodInfo(pod(name, *claims, node=node, **more))
        self.cluster.set_pod(info.pod)
        return info

    def _put(self, kind: type[T], manifest: dict[str, Any]) -> T:
        obj = convert(kind, manifest)
        self.cluster.set_object(obj)
        return obj

    def make(self, plugin: Callable[[Any, Handle], Any], args: Any = None) -> Any:
        return plugin(args, self.handle)

    def evaluate(self, plugin: Any, subject: Pod) -> Any:
        """Return the reasons of rejected nodes, or the result of PreFilter."""
        info = PodInfo(subject)
        state = plugin.pre_filter(info)
        if isinstance(state, Rejection | Skip):
            return state
        return self.rejected(plugin, state, info)

    def rejected(self, plugin: Any, state: Any, info: PodInfo) -> dict[str, tuple[str, ...]]:
        nodes = self.cluster.nodes
        rows = np.flatnonzero(nodes.live[: nodes.size])
        answer = plugin.filter_rows(state, info, nodes, rows)
        if answer is None:
            return {}
        return {
            nodes.names[row]: answer.words(int(kind)).reasons
            for row, kind in zip(rows, answer.kinds, strict=True)
            if kind
        }


def affinity(label: str, *values: str) -> dict[str, Any]:
    """Return the node affinity of a volume for values of a label."""
    expression = {"key": label, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def pod(
    name: str,
    *claims: str,
    node: str = "",
    namespace: str = "default",
    volumes: list[dict[str, Any]] | None = None,
) -> Pod:
    """Return a pod with volumes that name claims, and any other `volumes`."""
    named = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(claims)]
    meta = {"namespace": namespace, "name": name, "uid": f"uid-{name}"}
    return convert(Pod, {"metadata": meta, "spec": {"nodeName": node, "volumes": named + (volumes or [])}})


BINDING_ARGS = VolumeBindingArgs()
