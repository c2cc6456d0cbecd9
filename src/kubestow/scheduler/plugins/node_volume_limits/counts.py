"""The number of attached volumes and the limit, per driver and node; maintained incrementally.

Before a read, the rows that have changed are counted again: by changes of the node or its pods, of a claim or volume
they use, of an attachment, of the CSINode. The cost of a cycle depends on the changes since the previous one, not on
the size of the cluster.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

from kubestow.api.claims import claim_names_of
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, grown, row_count
from kubestow.scheduler.cluster.listers import Store
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.plugins.node_volume_limits.attachables import Attachable, attachables_of, attached_to, limits_of

K = TypeVar("K")

NO_LIMIT = 1 << 40


class _Driver:
    __slots__ = ("attached", "limit")

    def __init__(self, capacity: int) -> None:
        self.attached: IntArray = np.zeros(capacity, np.int64)
        self.limit: IntArray = np.full(capacity, NO_LIMIT, np.int64)

    def grow(self, capacity: int) -> None:
        old = len(self.limit)
        self.attached, self.limit = grown(self.attached, capacity), grown(self.limit, capacity)
        self.limit[old:] = NO_LIMIT


class AttachedCounts:
    """The numbers of attached volumes by row of the cluster's node table."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._listers = cluster.listers
        self._drivers: dict[str, _Driver] = {}
        self._rows_with: dict[Attachable, set[int]] = {}
        """The rows whose pods attach a volume."""
        self._rows_by_volume: dict[str, set[int]] = {}
        """The rows whose counts depend on a persistent volume, by its name."""
        self._inputs: dict[int, tuple[set[Attachable], set[str], set[str]]] = {}
        """The inputs of each row's counts: volumes of its pods, names of persistent volumes read, drivers."""
        self._node_of_attachment: dict[str, str] = {}
        self._errors: dict[int, ValueError] = {}
        self._row_version = -1
        self._versions: dict[str, int] = {}

    def exceeding_rows(self, wanted: Iterable[Attachable], rows: Rows) -> IntArray:
        """Return 1 for rows that cannot attach the volumes, 0 for others. Raises ValueError for an invalid pod."""
        self._update()
        capacity = self._cluster.nodes.capacity
        exceeded: BoolArray = np.zeros(row_count(rows), np.bool_)
        limited = exceeded.copy()
        for driver in self._drivers.values():
            limited |= driver.limit[rows] < NO_LIMIT
        if self._errors:
            self._raise_for(rows, limited)
        for name, volumes in _by_driver(wanted).items():
            if name not in self._drivers:
                continue
            driver = self._drivers[name]
            added: IntArray = np.full(capacity, len(volumes), np.int64)
            for volume in volumes:
                if rows_with_volume := self._rows_with.get(volume):
                    added[list(rows_with_volume)] -= 1
            here = added[rows]
            exceeded |= (here > 0) & (driver.attached[rows] + here > driver.limit[rows])
        return exceeded.astype(np.int64)

    def _raise_for(self, rows: Rows, limited: BoolArray) -> None:
        for row in np.arange(self._cluster.nodes.capacity)[rows][limited].tolist():
            if row in self._errors:
                raise self._errors[row]

    # Updates

    def _update(self) -> None:
        nodes = self._cluster.nodes
        for driver in self._drivers.values():
            if len(driver.limit) < nodes.capacity:
                driver.grow(nodes.capacity)
        dirty = set(nodes.changes.since(self._row_version))
        self._row_version = nodes.changes.last
        count_all = False
        for name, rows_of in (
            ("claims", self._rows_using_claim),
            ("volumes", self._rows_using_volume),
            ("csi_nodes", self._rows_named),
            ("volume_attachments", self._rows_of_attachment),
            ("storage_classes", None),
        ):
            store: Store[object] = getattr(self._listers, name)
            changed = store.changed_since(self._versions.get(name, 0))
            self._versions[name] = store.version
            if changed is None or (changed and rows_of is None):
                count_all = True
            elif rows_of is not None:
                for key in changed:
                    dirty.update(rows_of(key))
        if count_all:
            self._node_of_attachment = {a.metadata.name: a.spec.nodeName for a in self._listers.volume_attachments}
            dirty = set(range(nodes.size))
        for row in dirty:
            self._count(row)

    def _rows_using_claim(self, key: str) -> Iterator[int]:
        for uid in self._cluster.claim_users.get(key, ()):
            name = self._cluster.node_name_of(uid)
            if name is not None:
                yield from self._rows_named(name)

    def _rows_using_volume(self, key: str) -> Iterable[int]:
        return self._rows_by_volume.get(key, ())

    def _rows_named(self, node: str) -> Iterable[int]:
        row = self._cluster.nodes.row_of.get(node)
        return () if row is None else (row,)

    def _rows_of_attachment(self, key: str) -> Iterator[int]:
        before = self._node_of_attachment.pop(key, None)
        if before is not None:
            yield from self._rows_named(before)
        attachment = self._listers.volume_attachments.get(key)
        if attachment is not None:
            self._node_of_attachment[key] = attachment.spec.nodeName
            yield from self._rows_named(attachment.spec.nodeName)

    def _count(self, row: int) -> None:
        self._forget(row)
        nodes = self._cluster.nodes
        if not nodes.live[row]:
            return
        name = nodes.names[row]
        limits = limits_of(self._listers.csi_nodes.get(name))
        if not limits:
            return
        of_pods: set[Attachable] = set()
        volumes = {a.spec.source.persistentVolumeName or "" for a in self._listers.volume_attachments.group(name)}
        try:
            for info in nodes.pods[row].values():
                if info.pod.spec.volumes:
                    of_pods.update(attachables_of(info.pod, self._listers, with_csi_node=True, lenient=True))
                    for claim_name in claim_names_of(info.pod):
                        claim = self._listers.claims.received(f"{info.namespace}/{claim_name}")
                        if claim is not None:
                            volumes.add(claim.spec.volumeName)
        except ValueError as error:
            self._errors[row] = error
        attached = Counter(driver for driver, _ in of_pods.union(attached_to(name, self._listers)))
        for driver in limits.keys() | attached.keys():
            columns = self._drivers.get(driver)
            if columns is None:
                columns = self._drivers[driver] = _Driver(nodes.capacity)
            columns.limit[row] = limits.get(driver, NO_LIMIT)
            columns.attached[row] = attached[driver]
        for volume in of_pods:
            self._rows_with.setdefault(volume, set()).add(row)
        for volume_name in volumes:
            self._rows_by_volume.setdefault(volume_name, set()).add(row)
        self._inputs[row] = of_pods, volumes, set(limits) | set(attached)

    def _forget(self, row: int) -> None:
        self._errors.pop(row, None)
        of_pods, volumes, drivers = self._inputs.pop(row, (set(), set(), set()))
        for volume in of_pods:
            _discard(self._rows_with, volume, row)
        for name in volumes:
            _discard(self._rows_by_volume, name, row)
        for driver in drivers:
            self._drivers[driver].limit[row] = NO_LIMIT
            self._drivers[driver].attached[row] = 0


def _by_driver(volumes: Iterable[Attachable]) -> dict[str, list[Attachable]]:
    found: dict[str, list[Attachable]] = {}
    for volume in volumes:
        found.setdefault(volume[0], []).append(volume)
    return found


def _discard(index: dict[K, set[int]], key: K, row: int) -> None:
    members = index[key]
    members.discard(row)
    if not members:
        del index[key]
