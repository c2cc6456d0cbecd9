"""The NodeVolumeLimits plugin: its extension points and requeue hints."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from kubestow.api.claims import claim_names_of
from kubestow.api.csi_translation import MIGRATED, SUCCESSORS, old_driver
from kubestow.api.pod import Pod
from kubestow.api.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.results import SKIP, Reasons, Rejection, Rejections, Skip, unresolvable, unschedulable
from kubestow.scheduler.plugins.node_volume_limits.attachables import (
    Attachable,
    ClaimNotFoundError,
    attachables_of,
    attached_to,
    handle_in_pod,
    is_attachable,
    limits_of,
)
from kubestow.scheduler.plugins.node_volume_limits.counts import AttachedCounts

_EXCEEDED = unschedulable("node(s) exceed max volume count")


class NodeVolumeLimits:
    """Rejects nodes that cannot attach the pod's volumes without exceeding the limit of a driver."""

    name = "NodeVolumeLimits"
    skips_resizes = True
    costly_rows = True

    def __init__(self, args: Any, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._listers = handle.cluster.listers
        self._counts = AttachedCounts(handle.cluster)
        self._drivers_must_be_installed = handle.features.volume_limit_scaling

    def requeue_on(self) -> Sequence[Registration]:
        return (
            on(Resource.CSI_NODE, Action.ADD),
            on(Resource.CSI_NODE, Action.UPDATE, self._limit_has_grown),
            on(Resource.ASSIGNED_POD, Action.DELETE, self._had_volumes),
            on(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, self._is_used),
            on(Resource.VOLUME_ATTACHMENT, Action.DELETE, self._may_free_an_attachment),
        )

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if any(map(is_attachable, pod.pod.spec.volumes)) else ""

    def pre_filter(self, pod: PodInfo) -> Skip | None:
        return None if any(map(is_attachable, pod.pod.spec.volumes)) else SKIP

    def filter_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        try:
            # The volumes that the pod attaches depend on whether a node has a CSINode, but not on the node otherwise.
            with_csi_node = set(attachables_of(pod.pod, self._listers, with_csi_node=True))
        except ClaimNotFoundError as error:
            missing = unresolvable(str(error))
            return Rejections(np.ones(row_count(rows), np.int64), lambda _: missing)
        reasons, kinds = Reasons(), np.zeros(row_count(rows), np.int64)
        if self._drivers_must_be_installed:
            without = set(attachables_of(pod.pod, self._listers, with_csi_node=False))
            for position, missing in self._without_driver(with_csi_node, without, view, rows):
                kinds[position] = reasons.number(missing)
        if with_csi_node:
            full = self._full(with_csi_node, view, rows)
            kinds[(kinds == 0) & (full != 0)] = reasons.number(_EXCEEDED)
        return Rejections(kinds, reasons.words)

    def _full(self, wanted: set[Attachable], view: NodeView, rows: Rows) -> IntArray:
        """Return 1 for rows that cannot attach the wanted volumes, 0 for others."""
        if view is self._cluster.nodes:
            return self._counts.exceeding_rows(wanted, rows)
        return np.array([self._is_full(wanted, view, row) for row in row_numbers(rows).tolist()], np.int64)

    def _is_full(self, wanted: set[Attachable], view: NodeView, row: int) -> bool:
        """Return whether a row of a what-if view cannot attach the volumes; its pods may differ from the cluster's."""
        limits = limits_of(self._listers.csi_nodes.get(view.names[row]))
        if not limits:
            return False
        attached = {
            attachable
            for other in view.pods[row].values()
            if other.pod.spec.volumes
            for attachable in attachables_of(other.pod, self._listers, with_csi_node=True, lenient=True)
        }
        added = Counter(driver for driver, _ in wanted - attached)
        present = Counter(driver for driver, _ in attached.union(attached_to(view.names[row], self._listers)))
        return any(driver in limits and present[driver] + count > limits[driver] for driver, count in added.items())

    def _without_driver(
        self, with_csi_node: set[Attachable], without: set[Attachable], view: NodeView, rows: Rows
    ) -> Iterator[tuple[int, Rejection]]:
        """Yield the positions of rows that lack a driver, with the rejection."""
        for position, row in enumerate(row_numbers(rows).tolist()):
            csi_node = self._listers.csi_nodes.get(view.names[row])
            wanted = without if csi_node is None else with_csi_node
            for driver in sorted({driver for driver, _ in wanted}):
                if not self._is_installed(driver, csi_node):
                    yield position, unschedulable(f"{driver} CSI driver is not installed on the node")
                    break

    def _is_installed(self, driver: str, csi_node: CSINode | None) -> bool:
        """Return whether a node has a driver; True for drivers that do not require the check."""
        found = self._listers.csi_drivers.get(driver)
        if found is None or not found.spec.preventPodSchedulingIfMissing:
            return True
        return csi_node is not None and any(installed.name == driver for installed in csi_node.spec.drivers)

    # Hints

    def _limit_has_grown(self, waiting: Pod, old: CSINode, new: CSINode) -> bool:
        before = limits_of(old)
        return any(limit > before.get(driver, 0) for driver, limit in limits_of(new).items())

    def _had_volumes(self, waiting: Pod, old: Pod, new: None) -> bool:
        return any(map(is_attachable, old.spec.volumes))

    def _is_used(self, waiting: Pod, old: None, new: PersistentVolumeClaim) -> bool:
        return new.metadata.namespace == waiting.metadata.namespace and new.metadata.name in claim_names_of(waiting)

    def _may_free_an_attachment(self, waiting: Pod, old: VolumeAttachment, new: None) -> bool:
        for volume in waiting.spec.volumes:
            if volume.persistentVolumeClaim is not None:
                return True
            driver = old_driver(volume)
            if driver is not None:
                if driver in MIGRATED:
                    handle_in_pod(volume)
                if SUCCESSORS[driver].driver == old.spec.attacher:
                    return True
        return False
