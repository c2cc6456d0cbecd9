"""The distribution of the pods of a spread constraint over the domains of its topology key.

The cluster keeps sums per domain. They are used directly unless the pod's node affinity, its tolerations or a missing
label exclude nodes; only then are the counts of the other rows summed.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from kubestow.api.node_selector import required_node_affinity
from kubestow.api.pod import Toleration
from kubestow.api.tolerations import REPELLING, untolerated
from kubestow.scheduler.cluster.arrays import BoolArray, CountArray
from kubestow.scheduler.cluster.counts import PodQuery, RowCounts, Scope
from kubestow.scheduler.cluster.node_matching import required_affinity_match
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.plugins.support.spread_constraints import Constraint

_MAX_TOLERATIONS = 1_000


class Domains(msgspec.Struct, frozen=True):
    """The number of pods per domain, by label value id."""

    counts: CountArray
    present: BoolArray | None
    """By id, whether the domain has a node that counts. None: all but 0 do."""

    @property
    def number(self) -> int:
        """The number of domains."""
        return len(self.counts) - 1 if self.present is None else int(np.count_nonzero(self.present))

    @property
    def least(self) -> int:
        """The smallest number of pods in a domain. There must be at least one domain."""
        return int((self.counts[1:] if self.present is None else self.counts[self.present]).min())


class Inclusion:
    """The nodes that count for a pod's constraints, by their policies for node affinity and taints."""

    def __init__(self, cluster: Cluster, pod: PodInfo, tolerated: BoolArray | None, keys: Sequence[str]) -> None:
        self._nodes = cluster.nodes
        self._pod = pod
        self._tolerated = tolerated
        self._labelled = self._with_all_labels(keys)
        self._affine: BoolArray | None = None
        self._has_affine = False

    def _with_all_labels(self, keys: Sequence[str]) -> BoolArray | None:
        if len(keys) < 2:
            # Nodes without the only key are in no domain.
            return None
        included: BoolArray | None = None
        for key in keys:
            column = self._nodes.labels.column(key)
            if column.labelled < self._nodes.count:
                labelled = column.ids[: self._nodes.size] != 0
                included = labelled if included is None else included & labelled
        return included

    def rows(self, constraint: Constraint) -> BoolArray | None:
        """Return by row whether the node counts for a constraint; None: all do."""
        included = self._labelled
        if constraint.honors_affinity and (affine := self._matching_affinity()) is not None:
            included = affine if included is None else included & affine
        if constraint.honors_taints and self._tolerated is not None:
            tolerated = self._tolerated[self._nodes.taint_set[: self._nodes.size]]
            included = tolerated if included is None else included & tolerated
        return None if included is None or included.all() else included

    def _matching_affinity(self) -> BoolArray | None:
        if not self._has_affine:
            self._has_affine = True
            affinity = required_node_affinity(self._pod.pod)
            if not affinity.is_everything:
                self._affine = required_affinity_match(self._nodes, slice(0, self._nodes.size), affinity)
        return self._affine


class Distributions:
    """Counts pods by domain for the constraints of pods."""

    def __init__(self, cluster: Cluster, comparison_operators: bool) -> None:
        self._cluster = cluster
        self._comparison_operators = comparison_operators
        self._tolerated: dict[tuple[Toleration, ...], BoolArray] = {}

    def inclusion(self, pod: PodInfo, constraints: Sequence[Constraint], *, needs_every_key: bool) -> Inclusion:
        """Return the nodes that count for these constraints of a pod."""
        keys = list({constraint.key for constraint in constraints}) if needs_every_key else []
        honors_taints = any(constraint.honors_taints for constraint in constraints)
        return Inclusion(self._cluster, pod, self._tolerated_by(pod) if honors_taints else None, keys)

    def _tolerated_by(self, pod: PodInfo) -> BoolArray | None:
        """Return by taint set whether the pod tolerates it; None: it tolerates all."""
        tolerations = pod.pod.spec.tolerations
        taint_sets = self._cluster.nodes.taint_sets.taints
        tolerated = self._tolerated.get(tolerations)
        if tolerated is None or len(tolerated) != len(taint_sets):
            if len(self._tolerated) >= _MAX_TOLERATIONS:
                self._tolerated.clear()
            tolerated = self._tolerated[tolerations] = np.fromiter(
                (
                    untolerated(taints, tolerations, REPELLING, self._comparison_operators) is None
                    for taints in taint_sets
                ),
                np.bool_,
                len(taint_sets),
            )
        return None if tolerated.all() else tolerated

    def matching(self, pod: PodInfo, constraint: Constraint) -> RowCounts | None:
        """Return the counts of the selected pods; None if no pod counts. A selector of everything selects none here."""
        if constraint.selector.is_everything or constraint.selector.selects_nothing:
            return None
        scope = Scope(frozenset((pod.namespace,)), constraint.selector)
        return self._cluster.matches.count(PodQuery((scope,), skip_terminating=True))

    def by_domain(self, pod: PodInfo, constraint: Constraint, included: BoolArray | None) -> Domains:
        """Return the number of selected pods per domain, on the included rows (None: on all rows)."""
        counts = self.matching(pod, constraint)
        column = self._cluster.nodes.labels.column(constraint.key)
        size = len(column.values)
        if included is None:
            sums = np.zeros(size, np.int32) if counts is None else counts.by_domain(constraint.key)
            return Domains(sums, None if len(column.id_of) == size - 1 else column.members > 0)
        nodes = self._cluster.nodes
        # Multiplying removes label and pods of the excluded rows, which is much faster than selecting the others.
        ids = column.ids[: nodes.size] * included
        present = np.bincount(ids, minlength=size) > 0
        present[0] = False
        if counts is None or not counts.total:
            return Domains(np.zeros(size, np.int32), present)
        on_rows = counts.by_row(nodes.size) * included
        return Domains(np.bincount(ids, weights=on_rows, minlength=size).astype(np.int32), present)
