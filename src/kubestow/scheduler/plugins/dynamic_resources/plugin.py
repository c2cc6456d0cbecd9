"""The DynamicResources plugin: its extension points and requeue hints.

PreFilter looks up the claims of a pod. Filter passes the nodes on which unallocated claims can be allocated and
allocated claims can be used. Reserve keeps the devices in memory, PreBind writes the allocation. If the devices of
allocated claims rule out nodes, PostFilter deallocates one of these claims.
"""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from kubestow.api.devices import ResourceClaim
from kubestow.api.lazy import lazy
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pod_groups import PodGroups
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.plugin import FailedEvaluation, PodsRead
from kubestow.scheduler.framework.results import (
    SKIP,
    Code,
    PostFilterResult,
    Rejection,
    Rejections,
    Skip,
    unresolvable,
    unschedulable,
)
from kubestow.scheduler.plugins.dynamic_resources.claim_writer import ClaimWriter
from kubestow.scheduler.plugins.dynamic_resources.claims import (
    UnusableClaimError,
    claims_of,
    consumer_of,
    is_reserved_for,
    names,
)
from kubestow.scheduler.plugins.dynamic_resources.conditions import has_failed, wait_until_ready
from kubestow.scheduler.plugins.dynamic_resources.extended import claim_for, is_stale_claim_of
from kubestow.scheduler.plugins.dynamic_resources.pending_allocations import PendingAllocations
from kubestow.scheduler.plugins.dynamic_resources.state import Place, State
from kubestow.scheduler.plugins.support.normalizing import proportional

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.dynamic_resources.evaluation import RowEvaluator

_BINDING_SECONDS = 600.0


class DynamicResources:
    """Allocates devices for the resource claims of pods."""

    name = "DynamicResources"
    skips_resizes = True
    reads_pods = PodsRead.NOTHING
    costly_rows = True
    needs_state = True
    normalizes_scores_alone = True

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._handle = handle
        self._nodes = handle.cluster.nodes
        self._devices = handle.cluster.devices
        self._claims = handle.cluster.listers.resource_claims
        self._classes = handle.cluster.listers.device_classes
        self._slices = handle.cluster.listers.resource_slices
        features = handle.features
        self._lists = features.dra_prioritized_list
        self._conditions = features.dra_device_binding_conditions and features.dra_resource_claim_device_status
        self._seconds = 0.0 if args.filterTimeout is None else args.filterTimeout.seconds
        self._binding_seconds = _BINDING_SECONDS if args.bindingTimeout is None else args.bindingTimeout.seconds
        self._places_groups = handle.features.topology_aware_workload_scheduling
        self._groups = handle.cluster.groups if features.dra_workload_resource_claims else None
        """The groups that claims may be reserved for; None without the feature."""
        self._pending_allocations = PendingAllocations(self._devices, with_groups=features.generic_workload)
        self._writer = ClaimWriter(handle, timestamps=self._conditions)

    @lazy
    def _evaluator(self) -> "RowEvaluator":
        # Imported here, because few pods claim devices.
        from kubestow.scheduler.plugins.dynamic_resources.evaluation import RowEvaluator
        from kubestow.scheduler.plugins.dynamic_resources.shapes import Allocator

        handle = self._handle
        allocator = Allocator(self._devices, self._classes, handle.features, handle.clock, handle.rng, self._seconds)
        return RowEvaluator(self._devices, allocator)

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if pod.pod.spec.resourceClaims or self._resources_of(pod) else ""

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if not pod.spec.resourceClaims or self._unreadable:
            # PreEnqueue reports nothing to the user; if claims cannot be read, PreFilter reports that.
            return None
        try:
            claims_of(pod, self._claims, with_groups=self._groups is not None)
        except UnusableClaimError as error:
            return unresolvable(str(error))
        return None

    @property
    def _unreadable(self) -> str:
        """The reason why claims, classes or slices cannot be read; empty if they can."""
        return self._claims.unreadable or self._classes.unreadable or self._slices.unreadable

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        if self._unreadable:
            raise UnusableClaimError(f"pod claims devices, which the scheduler cannot see: {self._unreadable}")
        return claims_of(pod, self._claims, with_groups=self._groups is not None)

    # Claims

    def _resources_of(self, pod: PodInfo) -> tuple[str, ...]:
        """Return the extended resources of a pod that are backed by devices."""
        classes = self._devices.classes
        if not classes:
            return ()
        return tuple(name for name, amount in pod.requests.amounts.items() if name in classes and amount > 0)

    def pre_filter(self, pod: PodInfo) -> State | Skip | Rejection:
        resources = self._resources_of(pod)
        if not pod.pod.spec.resourceClaims and not resources:
            return SKIP
        try:
            claims = self._claims_of(pod.pod) if pod.pod.spec.resourceClaims else []
        except UnusableClaimError as error:
            return unresolvable(str(error))
        if resources:
            claims.append(claim_for(pod.pod, self._claims))
        elif not claims:
            return SKIP
        shared: set[int] = set()
        for number, claim in enumerate(claims):
            pending = self._pending_allocations.shared_with(pod.pod, claim.metadata.uid)
            if pending is not None and claim.status.allocation is None:
                claims[number] = replace(claim, status=replace(claim.status, allocation=pending))
                shared.add(number)
        state = State(pod, claims, resources, shared=shared)
        for claim in claims:
            if claim.status.allocation is None and claim is not state.stale_claim:
                rejected = self._check(claim)
                if rejected is not None:
                    return rejected
        return state

    def _check(self, claim: ResourceClaim) -> Rejection | None:
        """Return why a claim cannot be allocated on any node, None if it may be. Raises ValueError without a class."""
        where = f"resource claim {key_of(claim)}"
        if self._devices.pending(claim.metadata.uid) is not None:
            return unresolvable(f"{where} is in the process of being allocated")
        for request in claim.spec.devices.requests:
            wanted = [(request.name, request.exactly)] if request.exactly is not None else []
            wanted += [(f"{request.name}/{option.name}", option) for option in request.firstAvailable]  # type: ignore[misc]
            if not wanted:
                return unresolvable(f"{where}, request {request.name}: unknown request type")
            if request.exactly is None and not self._lists:
                problem = "has subrequests, but the DRAPrioritizedList feature is disabled"
                return unresolvable(f"{where}, request {request.name}: {problem}")
            for name, option in wanted:
                if not option.deviceClassName:
                    raise ValueError(f"request {name}: unsupported request type")
                if self._classes.get(option.deviceClassName) is None:
                    return unresolvable(f"request {name}: device class {option.deviceClassName} does not exist")
        return None

    # Nodes

    def filter_rows(self, state: State | None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        if state is None:
            raise ValueError(f"{self.name} cannot filter without its PreFilter: enable both extension points")
        failed: Sequence[int] = ()
        if self._conditions and len(state.wanted) < len(state.claims):
            now, seconds = self._handle.clock.now(), self._binding_seconds
            failed = [number for number, claim in enumerate(state.claims) if has_failed(claim, now, seconds)]
        return self._evaluator.rejections(state, failed, self._place(view, rows))

    def _place(self, view: NodeView, rows: Rows) -> Place:
        numbers = row_numbers(rows)
        return Place(view, numbers, numbers if view is self._nodes else view.source_rows()[numbers])

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult:
        """Deallocate a claim whose devices rule out nodes, so that others can be allocated."""
        state: State | None = cycle.states.get(self.name)
        if state is None:
            rejected = cycle.rejected is not None and cycle.rejected.plugin == self.name
            if rejected or self.name in cycle.skipped:
                return PostFilterResult(Code.UNSCHEDULABLE)
            # In kube-scheduler, the state of PreFilter, which was not called, is missing.
            return PostFilterResult(Code.ERROR, "not found")
        return PostFilterResult(Code.UNSCHEDULABLE, self._release_claim(pod, state))

    def pod_group_post_filter(self, group: TriedGroup) -> Rejection:
        """Deallocate claims of the pods whose devices rule out nodes, unless the group has scheduling constraints.

        As in kube-scheduler, nothing is done for composite pod groups.
        """
        if group.is_composite:
            return unschedulable()
        if self._places_groups and group.group is not None and group.group.spec.schedulingConstraints is not None:
            return unschedulable()
        released = [self._release_claim(pod, group.states[pod.uid]) for pod in group.pods if pod.uid in group.states]
        if self._groups is not None and isinstance(group.group, PodGroup) and not all(released):
            rejection = self._release_claim_of_group(self._groups, group.group, group)
            if rejection is not None:
                return rejection
        return unschedulable("deallocation and deletion of ResourceClaims completed")

    def _release_claim_of_group(self, groups: PodGroups, group: PodGroup, tried: TriedGroup) -> Rejection | None:
        """Deallocate a claim that rules out nodes for a group without scheduled pods, or drop a reservation of it."""
        if groups.members(group.key).scheduled:
            return None
        pod, uid = tried.pods[0].pod, group.metadata.uid
        for state in tried.states.values():
            for claim in (state.claims[number] for number in sorted(state.unavailable - state.shared)):
                if {consumer.uid for consumer in claim.status.reservedFor} <= {uid}:
                    self._handle.write_aside(pod, partial(self._writer.deallocate, claim))
                    return unschedulable("deallocation of PodGroup ResourceClaim completed")
        made = {status.name: status.resourceClaimName for status in group.status.resourceClaimStatuses}
        for wanted in group.spec.resourceClaims:
            name = wanted.resourceClaimName or made.get(wanted.name)
            found = self._claims.get(f"{group.metadata.namespace}/{name}") if name else None
            if found is not None and any(consumer.uid == uid for consumer in found.status.reservedFor):
                self._writer.release(found, pod, uid)
                return unresolvable("ResourceClaim unreserved for PodGroup")
        return None

    def _release_claim(self, pod: PodInfo, state: State) -> str:
        """Start to deallocate or delete a claim that rules out nodes; return what was done."""
        for number in sorted(state.unavailable - state.shared):
            claim = state.claims[number]
            if {consumer.uid for consumer in claim.status.reservedFor} <= {pod.uid}:
                self._handle.write_aside(pod.pod, partial(self._writer.deallocate, claim))
                return "deallocation of ResourceClaim completed"
        if state.stale_claim is not None:
            self._handle.write_aside(pod.pod, partial(self._writer.delete, state.stale_claim))
            return "deletion of ResourceClaim completed"
        return ""

    # Scores

    def score_rows(self, state: State | None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        if state is None or not self._lists or not state.has_lists:
            return np.zeros(row_count(rows), np.int64)
        return self._evaluator.scores(state, self._place(view, rows))

    def normalize(self, state: object, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray) -> IntArray:
        return proportional(scores)

    # Allocation

    def reserve(self, state: State, pod: PodInfo, node: str) -> Rejection | None:
        wanted, allocations = self._evaluator.allocate(state, self._nodes, self._nodes.row_of[node])
        state.node_claim = wanted.node_claim
        for number, allocation in zip(state.unallocated, allocations, strict=False):
            state.allocations[number] = allocation
            uid = state.claims[number].metadata.uid
            if self._devices.pending(uid) is None:
                # If the pod names a claim twice, the first allocation counts.
                self._pending_allocations.add(pod.pod, uid, allocation)
        for number in state.shared:
            pending = self._pending_allocations.join(pod.pod, state.claims[number].metadata.uid)
            if pending is not None:
                state.allocations[number] = pending
        return None

    def unreserve(self, state: State, pod: PodInfo, node: str) -> None:
        for number, claim in enumerate(state.claims):
            self._pending_allocations.remove(pod.pod, claim.metadata.uid)
            if state.is_extended(number):
                continue
            if claim.status.allocation is not None and is_reserved_for(claim, pod.pod):
                self._writer.release(claim, pod.pod, pod.uid)
        if state.stale_claim is not None:
            self._handle.write_aside(pod.pod, partial(self._writer.delete, state.stale_claim))

    def pre_bind_needed(self, state: State, pod: PodInfo, node: str) -> bool:
        return True

    async def pre_bind(self, state: State, pod: PodInfo, node: str) -> Rejection | None:
        await self._writer.until_released(pod.uid)
        group = None if self._groups is None else self._groups.group_of(pod.pod)
        if group is not None:
            await self._writer.until_released(group.metadata.uid)
        for number, claim in enumerate(state.claims):
            # The claim may have been released or changed since the attempt began.
            current = self._claims.get(key_of(claim))
            if current is not None and current.metadata.uid == claim.metadata.uid:
                state.claims[number] = current
            if is_reserved_for(state.claims[number], pod.pod, with_groups=group is not None):
                if group is not None:
                    # Another pod of the group has written the allocation.
                    self._pending_allocations.remove(pod.pod, claim.metadata.uid)
                continue
            extended = state.node_claim if state.is_extended(number) else None
            if state.is_extended(number) and extended is None:
                # The node has enough without devices.
                continue
            try:
                if extended is not None:
                    state.claims[number] = await self._writer.create(extended, pod.pod)
                allocation = state.allocations.get(number)
                consumer = consumer_of(state.claims[number], pod.pod, group)
                state.claims[number] = await self._writer.reserve(state.claims[number], consumer, allocation)
            finally:
                # Whether it succeeded or not, the status of the claim is authoritative from now on.
                self._pending_allocations.remove(pod.pod, claim.metadata.uid)
            if extended is not None:
                await self._writer.set_pod_status(pod.pod, state.claims[number], extended)
        if self._conditions:
            await wait_until_ready(state.claims, pod, node, self._handle, self._binding_seconds)
        return None

    # When to retry

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            on(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE, self._is_relevant_claim),
            on(Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._claims_exist_now),
            on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
            on(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
        ]

    def _is_relevant_claim(self, waiting: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        if new is None:
            assert old is not None
            # The stale claim of an earlier attempt had to be deleted first; kube-scheduler would not retry here.
            return old.status.allocation is not None or is_stale_claim_of(old, waiting)
        was_deallocated = old is not None and old.status.allocation is not None and new.status.allocation is None
        if not was_deallocated and not names(waiting, new):
            # An early exit, because this runs for every waiting pod and every claim.
            return False
        try:
            found = claims_of(waiting, self._claims, with_groups=self._groups is not None)
            uids = {claim.metadata.uid for claim in found}
        except UnusableClaimError:
            return False
        return was_deallocated or (new.metadata.uid in uids and (old is None or old.status != new.status))

    def _claims_exist_now(self, _waiting: Pod, _old: Pod, new: Pod) -> bool:
        return self.pre_enqueue(new) is None
