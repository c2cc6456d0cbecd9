"""The VolumeBinding plugin: its extension points and requeue hints."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np

from kubestow.api.claims import claim_names_of
from kubestow.api.csi_translation import MIGRATED_PLUGINS
from kubestow.api.pod import Pod
from kubestow.api.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kubestow.config.plugin_args import VolumeBindingArgs
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import SKIP, Rejection, Rejections, Skip, unresolvable
from kubestow.scheduler.plugins.volume_binding import binding
from kubestow.scheduler.plugins.volume_binding.claims import PodClaims, UnusableClaimError, check_claims, sort_claims
from kubestow.scheduler.plugins.volume_binding.finding import find, rejection_of
from kubestow.scheduler.plugins.volume_binding.provisioning import volume_limit
from kubestow.scheduler.plugins.volume_binding.scoring import CapacityScorer

_UNBOUND_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")


class State(msgspec.Struct):
    """A pod's claims and, after a node is chosen, the changes that bind them."""

    claims: PodClaims
    reservation: binding.Reservation | None = None


class VolumeBinding:
    """Rejects nodes that lack volumes for a pod's claims; binds the claims after a node is chosen."""

    name = "VolumeBinding"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING
    costly_rows = True
    needs_state = True

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        self._handle = handle
        self._cluster = handle.cluster
        self._listers = handle.cluster.listers
        self._seconds = args.bindTimeoutSeconds
        scored = handle.features.storage_capacity_scoring
        self._scorer = CapacityScorer(args.shape) if scored and args.shape else None

    def requeue_on(self) -> Sequence[Registration]:
        changed = Action.ADD | Action.UPDATE
        return (
            on(Resource.STORAGE_CLASS, changed, self._topologies_changed),
            on(Resource.PERSISTENT_VOLUME_CLAIM, changed, self._is_used),
            on(Resource.PERSISTENT_VOLUME, changed),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.CSI_NODE, changed, self._migration_changed),
            on(Resource.CSI_DRIVER, Action.UPDATE, self._capacity_check_was_disabled),
            on(Resource.CSI_STORAGE_CAPACITY, changed, self._capacity_grew),
        )

    # Finding

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if pod.claim_names else ""

    def pre_filter(self, pod: PodInfo) -> State | Skip | Rejection:
        if not pod.pod.spec.volumes:
            return SKIP
        try:
            if not check_claims(pod.pod, self._listers):
                return SKIP
        except UnusableClaimError as error:
            return unresolvable(str(error))
        claims = sort_claims(pod.pod, self._listers)
        return _UNBOUND_IMMEDIATE if claims.unbound_immediate else State(claims)

    def filter_rows(self, state: State | None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        if state is None:
            raise ValueError(f"{self.name} cannot filter without its PreFilter: enable both extension points")
        with self._stage("predicate"):
            return Rejections(find(state.claims, view, rows, self._listers).problems, rejection_of)

    def pre_score(self, pod: PodInfo, view: NodeView, rows: IntArray) -> PodClaims | Skip:
        return SKIP if self._scorer is None else sort_claims(pod.pod, self._listers)

    def score_rows(self, state: PodClaims, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        scores: IntArray = np.zeros(row_count(rows), np.int64)
        if self._scorer is not None and state.delayed:
            finding = find(state, view, rows, self._listers)
            for position in np.flatnonzero(finding.problems == 0).tolist():
                scores[position] = self._scorer.score(finding.matches_at(position), finding.provisions_at(position))
        return scores

    # Binding

    def reserve(self, state: State, pod: PodInfo, node: str) -> Rejection | None:
        if not state.claims.delayed:
            return None
        with self._stage("assume"):
            # Filter evaluated all nodes; the changes are computed for the chosen one only.
            row = self._cluster.nodes.row_of.get(node)
            if row is None or not self._cluster.nodes.live[row]:
                raise binding.BindingError(f'node "{node}" not found')
            finding = find(state.claims, self._cluster.nodes, np.array([row]), self._listers)
            if finding.problems[0]:
                return rejection_of(int(finding.problems[0]))
            state.reservation = binding.assume(node, finding.matches_at(0), finding.provisions_at(0), self._listers)
        return None

    def unreserve(self, state: State, pod: PodInfo, node: str) -> None:
        if state.reservation is not None:
            binding.undo(state.reservation, self._listers)

    def pre_bind_needed(self, state: State, pod: PodInfo, node: str) -> bool:
        return state.reservation is not None and not state.reservation.all_bound

    async def pre_bind(self, state: State, pod: PodInfo, node: str) -> Rejection | None:
        if state.reservation is None or state.reservation.all_bound:
            return None
        with self._stage("bind"):
            await binding.write(state.reservation, self._handle)
            await binding.wait_until_bound(state.reservation, pod, self._handle, self._seconds)
        return None

    @contextmanager
    def _stage(self, operation: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self._handle.metrics.volume_stage_errors.inc(operation)
            raise

    # Hints

    def _topologies_changed(self, waiting: Pod, old: StorageClass | None, new: StorageClass) -> bool:
        return old is None or old.allowedTopologies != new.allowedTopologies

    def _is_used(self, waiting: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
        return new.metadata.namespace == waiting.metadata.namespace and new.metadata.name in claim_names_of(waiting)

    def _migration_changed(self, waiting: Pod, old: CSINode | None, new: CSINode) -> bool:
        if old is None:
            return True
        before, after = (node.metadata.annotations.get(MIGRATED_PLUGINS, "") for node in (old, new))
        return before != after

    def _capacity_check_was_disabled(self, waiting: Pod, old: CSIDriver, new: CSIDriver) -> bool:
        inline = any(volume.csi and volume.csi.driver == new.metadata.name for volume in waiting.spec.volumes)
        return inline and bool(old.spec.storageCapacity) and not new.spec.storageCapacity

    def _capacity_grew(self, waiting: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> bool:
        if old is None:
            return True
        before, after = volume_limit(old), volume_limit(new)
        return after is not None and (before is None or after > before)
