"""The volumes of a storage class, and the smallest one that matches a claim on each row.

Volumes are numbered by size, so that the smallest match is a minimum of numbers. The node affinity of most volumes is a
single label (`kubernetes.io/hostname` of a local disk, a zone): such volumes are indexed by the values of the label,
and all rows are looked up at once. A claim must not use the volumes of the pod's earlier claims: with n earlier claims,
the index has the n + 1 smallest volumes per value.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from kubestow.api.claims import is_bound_to
from kubestow.api.labels import ONE_OF, compile_selector
from kubestow.api.node_selector import NodeTerms
from kubestow.api.quantity import nano
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.scheduler.cluster.arrays import BoolArray, IntArray, Rows, row_count
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.plugins.volume_binding.affinity import usable_by, volume_terms

NONE = np.iinfo(np.int64).max
"""The number that means no volume; larger than any other."""


class ClassVolumes:
    """The volumes of a class, sorted by size, smallest first."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self._volumes = volumes

    def __getitem__(self, number: int) -> PersistentVolume:
        return self._volumes[number]

    def find(self, claim: PersistentVolumeClaim, view: NodeView, rows: Rows, taken: Sequence[IntArray]) -> IntArray:
        """Return by row the number of the volume that matches a claim, NONE if there is none.

        `taken` has the numbers by row for earlier claims of the pod.
        """
        best: IntArray = np.full(row_count(rows), NONE, np.int64)
        undecided: BoolArray = np.ones(len(best), np.bool_)
        reserved, free = self._suitable(claim)
        for number in reserved:
            # A volume that is reserved for the claim is the only match, even on rows where it cannot be used.
            here = undecided.copy()
            for others in taken:
                here &= others != number
            usable = usable_by(volume_terms(self._volumes[number].spec.nodeAffinity), view, rows)
            best[here & usable] = number
            undecided &= ~here
        if free and undecided.any():
            smallest = self._smallest(free, view, rows, taken)
            best[undecided] = smallest[undecided]
        return best

    def _suitable(self, claim: PersistentVolumeClaim) -> tuple[list[int], list[int]]:
        """Return the numbers of the volumes that are reserved for a claim, and of the free ones that match it."""
        requested = nano(claim.spec.resources.requests.get("storage", 0))
        selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
        mode = claim.spec.volumeMode or "Filesystem"
        attributes = claim.spec.volumeAttributesClassName or ""
        modes = set(claim.spec.accessModes)
        reserved, free = [], []
        for number, volume in enumerate(self._volumes):
            spec = volume.spec
            if (
                nano(spec.capacity.get("storage", 0)) < requested
                or (spec.volumeMode or "Filesystem") != mode
                or (spec.volumeAttributesClassName or "") != attributes
                or volume.metadata.deletionTimestamp is not None
            ):
                continue
            if spec.claimRef is not None:
                if is_bound_to(volume, claim):
                    reserved.append(number)
            elif (
                volume.status.phase == "Available"
                and (selector is None or selector.matches(volume.metadata.labels))
                and modes.issubset(spec.accessModes)
            ):
                free.append(number)
        return reserved, free

    def _smallest(self, numbers: list[int], view: NodeView, rows: Rows, taken: Sequence[IntArray]) -> IntArray:
        best: IntArray = np.full(row_count(rows), NONE, np.int64)
        for choices in self._choices(numbers, view, rows, len(taken) + 1):
            for others in taken:
                choices[choices == others] = NONE
            best = np.minimum(best, choices.min(axis=0))
        return best

    def _choices(self, numbers: list[int], view: NodeView, rows: Rows, depth: int) -> Iterator[IntArray]:
        """Yield the `depth` smallest volumes by row, for each group of volumes with the same kind of node affinity."""
        by_terms: dict[NodeTerms | None, list[int]] = defaultdict(list)
        by_label: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number in numbers:
            terms = volume_terms(self._volumes[number].spec.nodeAffinity)
            label = _single_label(terms)
            if label is None:
                by_terms[terms].append(number)
            else:
                for value in set(label[1]):
                    by_label[label[0]][value].append(number)
        for terms, found in by_terms.items():
            choices: IntArray = np.full((depth, row_count(rows)), NONE, np.int64)
            usable = usable_by(terms, view, rows)
            for place, number in enumerate(found[:depth]):
                choices[place, usable] = number
            yield choices
        for key, values in by_label.items():
            by_value: IntArray = np.full((depth, len(view.label_values(key))), NONE, np.int64)
            for value, found in values.items():
                value_id = view.label_id(key, value)
                if value_id > 0:
                    by_value[: len(found[:depth]), value_id] = found[:depth]
            yield by_value[:, view.label_ids(key)[rows]]


def _single_label(terms: NodeTerms | None) -> tuple[str, tuple[str, ...]] | None:
    """Return key and values of the label if the terms are a single condition on it; otherwise None."""
    if terms is None or len(terms.terms) != 1 or len(terms.terms[0].labels) != 1:
        return None
    condition = terms.terms[0].labels[0]
    return (condition.key, condition.values) if condition.operator in ONE_OF else None
