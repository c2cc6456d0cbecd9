"""The volumes of a storage class, and the smallest of them that suits a claim on each row.

Volumes are numbered by size, so that "the smallest that will do" is a minimum of numbers. Where a volume can be used is
mostly said by one label (`kubernetes.io/hostname` of a local disk, a zone): such volumes are filed under the values of
the label, and all rows look theirs up at once. A claim that comes after others of the same pod must leave them their
volumes: for it, as many spare numbers are kept per value as there are claims before it.
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
"""Stands for the number of no volume, and is larger than any."""


class ClassVolumes:
    """The volumes of a class by number; of two volumes the smaller has the smaller number."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self._volumes = volumes

    def __getitem__(self, number: int) -> PersistentVolume:
        return self._volumes[number]

    def find(self, claim: PersistentVolumeClaim, view: NodeView, rows: Rows, taken: Sequence[IntArray]) -> IntArray:
        """The number of the volume that suits a claim on each row, NONE where there is none.

        `taken` holds the numbers that earlier claims of the pod have been given on the rows.
        """
        best: IntArray = np.full(row_count(rows), NONE, np.int64)
        undecided: BoolArray = np.ones(len(best), np.bool_)
        kept_for_claim, free = self._suitable(claim)
        for number in kept_for_claim:
            # A volume that is kept for the claim is the only one that will do, where it can be used or not.
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
        """Numbers of the volumes that are kept for a claim, and of those free to be given to it."""
        asked = nano(claim.spec.resources.requests.get("storage", 0))
        selector = compile_selector(claim.spec.selector) if claim.spec.selector is not None else None
        mode = claim.spec.volumeMode or "Filesystem"
        attributes = claim.spec.volumeAttributesClassName or ""
        modes = set(claim.spec.accessModes)
        kept, free = [], []
        for number, volume in enumerate(self._volumes):
            spec = volume.spec
            if (
                nano(spec.capacity.get("storage", 0)) < asked
                or (spec.volumeMode or "Filesystem") != mode
                or (spec.volumeAttributesClassName or "") != attributes
                or volume.metadata.deletionTimestamp is not None
            ):
                continue
            if spec.claimRef is not None:
                if is_bound_to(volume, claim):
                    kept.append(number)
            elif (
                volume.status.phase == "Available"
                and (selector is None or selector.matches(volume.metadata.labels))
                and modes.issubset(spec.accessModes)
            ):
                free.append(number)
        return kept, free

    def _smallest(self, numbers: list[int], view: NodeView, rows: Rows, taken: Sequence[IntArray]) -> IntArray:
        best: IntArray = np.full(row_count(rows), NONE, np.int64)
        for choices in self._choices(numbers, view, rows, len(taken) + 1):
            for others in taken:
                choices[choices == others] = NONE
            best = np.minimum(best, choices.min(axis=0))
        return best

    def _choices(self, numbers: list[int], view: NodeView, rows: Rows, depth: int) -> Iterator[IntArray]:
        """For each way of saying where volumes can be used: the `depth` smallest volumes by row."""
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
    """The label and its values, if these alone say where a volume can be used."""
    if terms is None or len(terms.terms) != 1 or len(terms.terms[0].labels) != 1:
        return None
    condition = terms.terms[0].labels[0]
    return (condition.key, condition.values) if condition.operator in ONE_OF else None
