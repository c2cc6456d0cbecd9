"""NodeVolumeLimits: nodes whose CSI drivers can attach the pod's volumes besides those attached already.

A CSINode says how many volumes of each driver its node can attach. Volumes are told apart by driver and handle, so that
one that several pods use counts once; a claim that has no volume yet counts as a volume of its own. Attached are the
volumes of the node's pods, and those that a VolumeAttachment says are (still) attached.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kubestow.cluster.arrays import Rows, row_count, row_numbers
from kubestow.cluster.events import Action, Registration, Resource, on
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.view import NodeView
from kubestow.framework.handle import Handle
from kubestow.framework.results import SKIP, Rejection, Rejections, Skip, unresolvable, unschedulable
from kubestow.model.claims import claim_class, claim_name_of, claim_names_of, not_found, ownership_problem
from kubestow.model.csi_translation import (
    MIGRATED,
    SUCCESSORS,
    TranslationError,
    inline_handle,
    old_driver,
    translated,
)
from kubestow.model.pod import Pod, Volume
from kubestow.model.storage import CSINode, PersistentVolumeClaim, VolumeAttachment

_EXCEEDED = unschedulable("node(s) exceed max volume count")

Attachable = tuple[str, str]
"""A volume as a node attaches it: driver and handle."""


class _ClaimNotFoundError(LookupError):
    """The pod to be scheduled has a claim that does not exist."""


class NodeVolumeLimits:
    """Refuses nodes that cannot attach that many volumes."""

    name = "NodeVolumeLimits"
    costly_rows = True

    def __init__(self, args: Any, handle: Handle) -> None:
        self._listers = handle.cluster.listers
        self._drivers_must_be_installed = handle.features.volume_limit_scaling

    def requeue_on(self) -> Sequence[Registration]:
        return (
            on(Resource.CSI_NODE, Action.ADD),
            on(Resource.CSI_NODE, Action.UPDATE, self._limit_has_grown),
            on(Resource.POD, Action.DELETE, self._had_volumes),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, self._is_used),
            on(Resource.VOLUME_ATTACHMENT, Action.DELETE, self._may_free_an_attachment),
        )

    def pre_filter(self, pod: PodInfo) -> Skip | None:
        return None if any(map(_is_attachable, pod.pod.spec.volumes)) else SKIP

    def filter_rows(self, want: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        try:
            # What the pod attaches depends on whether a node has a CSINode, and on nothing else of the node.
            wanted = {known: set(self._attachables(pod.pod, with_csi_node=known)) for known in (False, True)}
        except _ClaimNotFoundError as error:
            missing = unresolvable(str(error))
            return Rejections(np.ones(row_count(rows), np.int64), lambda _: missing)
        rejections: list[Rejection] = []
        kinds = [self._kind(wanted, view, row, rejections) for row in row_numbers(rows).tolist()]
        return Rejections(np.asarray(kinds, np.int64), lambda kind: rejections[kind - 1])

    def _kind(self, wanted: dict[bool, set[Attachable]], view: NodeView, row: int, rejections: list[Rejection]) -> int:
        rejection = self._judge(wanted, view, row)
        if rejection is None:
            return 0
        if rejection not in rejections:
            rejections.append(rejection)
        return rejections.index(rejection) + 1

    def _judge(self, wanted: dict[bool, set[Attachable]], view: NodeView, row: int) -> Rejection | None:
        csi_node = self._listers.csi_nodes.get(view.names[row])
        new = wanted[csi_node is not None]
        if not new:
            return None
        if self._drivers_must_be_installed:
            for driver in sorted({driver for driver, _ in new}):
                if not self._is_installed(driver, csi_node):
                    return unschedulable(f"{driver} CSI driver is not installed on the node")
        limits = _limits(csi_node)
        if csi_node is None or not limits:
            return None
        attached = {
            attachable
            for other in view.pods[row].values()
            if other.pod.spec.volumes
            for attachable in self._attachables(other.pod, with_csi_node=True, lenient=True)
        }
        added = Counter(driver for driver, _ in new - attached)
        attached.update(self._attachments(view.names[row]))
        present = Counter(driver for driver, _ in attached)
        if any(driver in limits and present[driver] + count > limits[driver] for driver, count in added.items()):
            return _EXCEEDED
        return None

    def _is_installed(self, driver: str, csi_node: CSINode | None) -> bool:
        """Whether a node has a driver, as far as the driver wants to be asked."""
        found = self._listers.csi_drivers.get(driver)
        if found is None or not found.spec.preventPodSchedulingIfMissing:
            return True
        return csi_node is not None and any(installed.name == driver for installed in csi_node.spec.drivers)

    def _attachables(self, pod: Pod, *, with_csi_node: bool, lenient: bool = False) -> Iterator[Attachable]:
        """What a pod attaches. `lenient`: a claim that does not exist is none of the pod's, rather than an error."""
        for volume in pod.spec.volumes:
            name = claim_name_of(pod, volume)
            if name is None:
                driver = old_driver(volume)
                if driver in MIGRATED and with_csi_node:
                    yield SUCCESSORS[driver].driver, _handle(volume)
                continue
            if not name:
                raise ValueError("PersistentVolumeClaim had no name")
            claim = self._listers.claims.received(f"{pod.metadata.namespace}/{name}")
            if claim is None:
                if lenient:
                    continue
                raise _ClaimNotFoundError(f"looking up PVC {pod.metadata.namespace}/{name}: {not_found(name)}")
            if volume.ephemeral is not None and (problem := ownership_problem(pod, claim)):
                raise ValueError(problem)
            attachable = self._attachable(claim, with_csi_node)
            if attachable is not None and all(attachable):
                yield attachable

    def _attachable(self, claim: PersistentVolumeClaim, with_csi_node: bool) -> Attachable | None:
        """What a claim stands for: its volume or, before it has one, a volume of its class."""
        volume = self._listers.volumes.received(claim.spec.volumeName) if claim.spec.volumeName else None
        if volume is None:
            return self._to_be_provisioned(claim, with_csi_node)
        source = volume.spec.csi
        if source is None:
            if old_driver(volume.spec) not in MIGRATED or not with_csi_node:
                return None
            try:
                source = translated(volume).spec.csi
            except TranslationError:
                return None
            assert source is not None
        return source.driver, source.volumeHandle

    def _to_be_provisioned(self, claim: PersistentVolumeClaim, with_csi_node: bool) -> Attachable | None:
        name = claim_class(claim)
        found = self._listers.storage_classes.get(name) if name else None
        if found is None:
            return None
        driver = found.provisioner
        if driver in SUCCESSORS:
            if driver not in MIGRATED or not with_csi_node:
                return None
            driver = SUCCESSORS[driver].driver
        # No driver hands out a handle like this.
        return driver, f"\0{claim.metadata.namespace}/{claim.metadata.name}"

    def _attachments(self, node: str) -> Iterator[Attachable]:
        for attachment in self._listers.volume_attachments.group(node):
            name = attachment.spec.source.persistentVolumeName
            volume = self._listers.volumes.received(name) if name is not None else None
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                yield attachment.spec.attacher, volume.spec.csi.volumeHandle

    # Hints

    def _limit_has_grown(self, waiting: Pod, old: CSINode, new: CSINode) -> bool:
        before = _limits(old)
        return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())

    def _had_volumes(self, waiting: Pod, old: Pod, new: None) -> bool:
        was_expected_on_a_node = bool(old.spec.nodeName or old.status.nominatedNodeName)
        return was_expected_on_a_node and any(map(_is_attachable, old.spec.volumes))

    def _is_used(self, waiting: Pod, old: None, new: PersistentVolumeClaim) -> bool:
        return new.metadata.namespace == waiting.metadata.namespace and new.metadata.name in claim_names_of(waiting)

    def _may_free_an_attachment(self, waiting: Pod, old: VolumeAttachment, new: None) -> bool:
        for volume in waiting.spec.volumes:
            if volume.persistentVolumeClaim is not None:
                return True
            driver = old_driver(volume)
            if driver is not None:
                if driver in MIGRATED:
                    _handle(volume)
                if SUCCESSORS[driver].driver == old.spec.attacher:
                    return True
        return False


def _is_attachable(volume: Volume) -> bool:
    return volume.persistentVolumeClaim is not None or volume.ephemeral is not None or old_driver(volume) is not None


def _handle(volume: Volume) -> str:
    try:
        return inline_handle(volume)
    except TranslationError as error:
        raise ValueError(f"converting volume({volume.name}) from inline to csi: {error}") from None


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    """How many volumes of each driver a node can attach; no limit for drivers that are not listed."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
