"""VolumeZone: rejects nodes outside the zones and regions that a pod's volumes are labelled with.

Only bound volumes are checked, and only nodes that have a zone or region label: a cluster in one zone need not label
its nodes. The label of a volume may list several zones.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np

from kubestow.api.claims import WAIT_FOR_FIRST_CONSUMER, claim_class, named_claims, not_found
from kubestow.api.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from kubestow.api.labels import Operator, Requirement
from kubestow.api.pod import Pod
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubestow.scheduler.cluster.arrays import BoolArray, Rows, row_count
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.labels import ABSENT
from kubestow.scheduler.cluster.node_matching import labels_match
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import SKIP, Rejection, Rejections, Skip, unresolvable

_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_SUCCESSOR = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_CONFLICT = unresolvable("node(s) had no available volume zone")


class Place(msgspec.Struct, frozen=True):
    """A topology label of a volume, and the values that a node may have."""

    label: str
    values: frozenset[str]


class VolumeZone:
    """Rejects nodes in another zone or region than the pod's volumes."""

    name = "VolumeZone"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        listers = handle.cluster.listers
        self._claims = listers.claims
        self._volumes = listers.volumes
        self._classes = listers.storage_classes

    def requeue_on(self) -> Sequence[Registration]:
        return (
            on(Resource.STORAGE_CLASS, Action.ADD, self._waits_for_consumer),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, self._is_named),
            on(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, self._topology_changed),
        )

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if pod.claim_names else ""

    def pre_filter(self, pod: PodInfo) -> list[Place] | Skip | Rejection:
        if not pod.pod.spec.volumes:
            return SKIP
        places: list[Place] = []
        for name in named_claims(pod.pod):
            if not name:
                return unresolvable("PersistentVolumeClaim had no name")
            claim = self._claims.received(f"{pod.namespace}/{name}")
            if claim is None:
                return unresolvable(not_found(name))
            if not claim.spec.volumeName:
                rejection = self._why_unbound(claim)
                if rejection is not None:
                    return rejection
                continue
            volume = self._volumes.received(claim.spec.volumeName)
            if volume is None:
                return unresolvable(f'persistentvolume "{claim.spec.volumeName}" not found')
            places += _places_of(volume)
        return places or SKIP

    def _why_unbound(self, claim: PersistentVolumeClaim) -> Rejection | None:
        """Return why a claim without a volume rejects the pod; None if its class waits for the first consumer."""
        name = claim_class(claim)
        if not name:
            return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        found = self._classes.get(name)
        if found is None:
            return unresolvable(f'storageclass.storage.k8s.io "{name}" not found')
        if found.volumeBindingMode is None:
            return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
        if found.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER:
            return None
        return unresolvable("PersistentVolume had no name")

    def filter_rows(self, state: list[Place] | None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        if state is None:
            found = self.pre_filter(pod)
            if isinstance(found, Skip):
                return None
            if isinstance(found, Rejection):
                return Rejections(np.ones(row_count(rows), np.int64), lambda _: found)
            state = found
        placed: BoolArray = np.zeros(row_count(rows), np.bool_)
        for label in _LABELS:
            placed |= view.label_ids(label)[rows] != 0
        if not placed.any():
            return None
        near: BoolArray = np.ones(len(placed), np.bool_)
        for place in state:
            near &= _is_at(view, rows, place)
        return Rejections((placed & ~near).astype(np.int64), lambda _: _CONFLICT)

    def _waits_for_consumer(self, waiting: Pod, old: None, new: StorageClass) -> bool:
        return new.volumeBindingMode == WAIT_FOR_FIRST_CONSUMER

    def _is_named(self, waiting: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
        return new.metadata.namespace == waiting.metadata.namespace and new.metadata.name in named_claims(waiting)

    def _topology_changed(self, waiting: Pod, old: PersistentVolume | None, new: PersistentVolume) -> bool:
        return old is None or _places_of(old) != _places_of(new)


def _is_at(view: NodeView, rows: Rows, place: Place) -> BoolArray:
    values = tuple(place.values)
    matched = labels_match(view, rows, Requirement(place.label, Operator.IN, values))
    successor = _SUCCESSOR.get(place.label)
    if successor is not None:
        # Volumes keep the beta label; newer nodes have only its successor.
        is_newer = view.label_ids(place.label)[rows] == ABSENT
        matched |= is_newer & labels_match(view, rows, Requirement(successor, Operator.IN, values))
    return matched


def _places_of(volume: PersistentVolume) -> list[Place]:
    places = []
    for label in _LABELS:
        text = volume.metadata.labels.get(label)
        if text is not None:
            values = frozenset(value.strip() for value in text.split(ZONE_DELIMITER))
            if "" not in values:  # an invalid label is ignored
                places.append(Place(label, values))
    return places
