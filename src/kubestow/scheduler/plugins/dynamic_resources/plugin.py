"""DynamicResources: pods that claim devices.

PreFilter looks up the claims of a pod; Filter says on which nodes those that have no devices yet can get some, and
where the others have theirs; Reserve promises the devices, PreBind has them written. Where claims that already have
devices stand in the way, PostFilter gives up what one of them has.
"""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from kubestow.api.devices import ResourceClaim
from kubestow.api.lazy import lazy
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.events import Action, Registration, Resource, on
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import FailedEvaluation, PodsRead
from kubestow.scheduler.framework.results import SKIP, Code, PostFilterResult, Rejection, Rejections, Skip, unresolvable
from kubestow.scheduler.plugins.dynamic_resources.claims import UnusableClaimError, claims_of, is_reserved_for, names
from kubestow.scheduler.plugins.dynamic_resources.conditions import is_hopeless, wait_until_ready
from kubestow.scheduler.plugins.dynamic_resources.extended import claim_for, is_left_behind
from kubestow.scheduler.plugins.dynamic_resources.promises import Promises
from kubestow.scheduler.plugins.dynamic_resources.state import Place, State
from kubestow.scheduler.plugins.dynamic_resources.writing import ClaimWriter
from kubestow.scheduler.plugins.support.normalizing import proportional

if TYPE_CHECKING:
    from kubestow.scheduler.plugins.dynamic_resources.judging import Judge

_BINDING_SECONDS = 600.0


class DynamicResources:
    """Finds devices for the claims of pods."""

    name = "DynamicResources"
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
        self._promises = Promises(self._devices, with_groups=features.generic_workload)
        self._writer = ClaimWriter(handle, timestamps=self._conditions)
        self._latest: State | None = None
        """Of the pod that was looked at last: Score is handed nothing."""

    @lazy
    def _judge(self) -> "Judge":
        # Imported only now: few pods claim devices.
        from kubestow.scheduler.plugins.dynamic_resources.judging import Judge
        from kubestow.scheduler.plugins.dynamic_resources.shapes import Allocator

        handle = self._handle
        allocator = Allocator(self._devices, self._classes, handle.features, handle.clock, handle.rng, self._seconds)
        return Judge(self._devices, allocator)

    def sign(self, pod: PodInfo) -> Hashable | None:
        return None if pod.pod.spec.resourceClaims or self._resources_of(pod) else ""

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if not pod.spec.resourceClaims or self._unreadable:
            # A pod that is not tried is told nothing; where claims cannot be seen at all, PreFilter tells it so.
            return None
        try:
            claims_of(pod, self._claims)
        except UnusableClaimError as error:
            return unresolvable(str(error))
        return None

    @property
    def _unreadable(self) -> str:
        """Why claims, classes or slices cannot be seen; empty if they can."""
        return self._claims.unreadable or self._classes.unreadable or self._slices.unreadable

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        if self._unreadable:
            raise UnusableClaimError(f"pod claims devices, which the scheduler cannot see: {self._unreadable}")
        return claims_of(pod, self._claims)

    # Which claims

    def _resources_of(self, pod: PodInfo) -> tuple[str, ...]:
        """The extended resources of a pod that devices stand for."""
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
            promised = self._promises.shared_with(pod.pod, claim.metadata.uid)
            if promised is not None and claim.status.allocation is None:
                claims[number] = replace(claim, status=replace(claim.status, allocation=promised))
                shared.add(number)
        state = State(pod, claims, resources, shared=shared)
        for claim in claims:
            if claim.status.allocation is None and claim is not state.left_behind:
                refused = self._check(claim)
                if refused is not None:
                    return refused
        self._latest = state
        return state

    def _check(self, claim: ResourceClaim) -> Rejection | None:
        """Whether a claim can be allocated at all."""
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

    # Which nodes

    def filter_rows(self, state: State | None, pod: PodInfo, view: NodeView, rows: Rows) -> Rejections | None:
        if state is None:
            raise ValueError(f"{self.name} cannot filter without its PreFilter: enable both extension points")
        hopeless: Sequence[int] = ()
        if self._conditions and len(state.wanted) < len(state.claims):
            now, seconds = self._handle.clock.now(), self._binding_seconds
            hopeless = [number for number, claim in enumerate(state.claims) if is_hopeless(claim, now, seconds)]
        return self._judge.refusals(state, hopeless, self._place(view, rows))

    def _place(self, view: NodeView, rows: Rows) -> Place:
        numbers = row_numbers(rows)
        return Place(view, numbers, numbers if view is self._nodes else view.source_rows()[numbers])

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult:
        """Give up what a claim has where that stands in the way, so that it may get something else."""
        state: State | None = cycle.states.get(self.name)
        if state is None:
            refused = cycle.rejected is not None and cycle.rejected.plugin == self.name
            if refused or self.name in cycle.skipped:
                return PostFilterResult(Code.UNSCHEDULABLE, "no new claims to deallocate")
            # kube-scheduler's plugin misses what its PreFilter, which did not run, would have left for it.
            return PostFilterResult(Code.ERROR, "not found")
        for number in sorted(state.unavailable - state.shared):
            claim = state.claims[number]
            if {consumer.uid for consumer in claim.status.reservedFor} <= {pod.uid}:
                self._handle.write_aside(pod.pod, partial(self._writer.deallocate, claim))
                return PostFilterResult(Code.UNSCHEDULABLE, "deallocation of ResourceClaim completed")
        if state.left_behind is not None:
            self._handle.write_aside(pod.pod, partial(self._writer.delete, state.left_behind))
            return PostFilterResult(Code.UNSCHEDULABLE, "deletion of ResourceClaim completed")
        return PostFilterResult(Code.UNSCHEDULABLE, "still not schedulable")

    # How good

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        current = self._latest
        if current is None or current.pod is not pod or not self._lists or not current.has_lists:
            return np.zeros(row_count(rows), np.int64)
        return self._judge.scores(current, self._place(view, rows))

    def normalize(self, state: None, pod: PodInfo, view: NodeView, rows: IntArray, scores: IntArray) -> IntArray:
        return proportional(scores)

    # Taking it

    def reserve(self, state: State, pod: PodInfo, node: str) -> Rejection | None:
        wanted, allocations = self._judge.allocate(state, self._nodes, self._nodes.row_of[node])
        state.node_claim = wanted.node_claim
        for number, allocation in zip(state.unallocated, allocations, strict=False):
            state.allocations[number] = allocation
            uid = state.claims[number].metadata.uid
            if self._devices.pending(uid) is None:
                # A claim that the pod names twice gets what was found first.
                self._promises.make(pod.pod, uid, allocation)
        for number in state.shared:
            promised = self._promises.join(pod.pod, state.claims[number].metadata.uid)
            if promised is not None:
                state.allocations[number] = promised
        return None

    def unreserve(self, state: State, pod: PodInfo, node: str) -> None:
        for number, claim in enumerate(state.claims):
            self._promises.settle(pod.pod, claim.metadata.uid)
            if state.is_extended(number):
                continue
            if claim.status.allocation is not None and is_reserved_for(claim, pod.pod):
                self._writer.release(claim, pod.pod)
        if state.left_behind is not None:
            self._handle.write_aside(pod.pod, partial(self._writer.delete, state.left_behind))

    def pre_bind_needed(self, state: State, pod: PodInfo, node: str) -> bool:
        return True

    async def pre_bind(self, state: State, pod: PodInfo, node: str) -> Rejection | None:
        await self._writer.until_released(pod.pod)
        for number, claim in enumerate(state.claims):
            # It may have been released, or changed otherwise, since the attempt began.
            current = self._claims.get(key_of(claim))
            if current is not None and current.metadata.uid == claim.metadata.uid:
                state.claims[number] = current
            if is_reserved_for(state.claims[number], pod.pod):
                continue
            extended = state.node_claim if state.is_extended(number) else None
            if state.is_extended(number) and extended is None:
                # The node has what is asked for without devices.
                continue
            try:
                if extended is not None:
                    state.claims[number] = await self._writer.create(extended, pod.pod)
                allocation = state.allocations.get(number)
                state.claims[number] = await self._writer.reserve(state.claims[number], pod.pod, allocation)
            finally:
                # Whatever became of it: from now on what the claim itself says is what counts.
                self._promises.settle(pod.pod, claim.metadata.uid)
            if extended is not None:
                await self._writer.tell(pod.pod, state.claims[number], extended)
        if self._conditions:
            await wait_until_ready(state.claims, pod, node, self._handle, self._binding_seconds)
        return None

    # When to retry

    def requeue_on(self) -> Sequence[Registration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            on(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE, self._claim_helps),
            on(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._claims_are_known),
            on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
            on(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
        ]

    def _claim_helps(self, waiting: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        if new is None:
            # One that an earlier attempt has left behind had to go first; kube-scheduler would let the pod wait.
            return old is not None and is_left_behind(old, waiting)
        gave_up = old is not None and old.status.allocation is not None and new.status.allocation is None
        if not gave_up and not names(waiting, new):
            # Asked of every pod that waits, about every claim there is.
            return False
        try:
            uids = {claim.metadata.uid for claim in claims_of(waiting, self._claims)}
        except UnusableClaimError:
            return False
        return gave_up or (new.metadata.uid in uids and (old is None or old.status != new.status))

    def _claims_are_known(self, waiting: Pod, _old: Pod | None, new: Pod) -> bool:
        return waiting.metadata.uid == new.metadata.uid and self.pre_enqueue(new) is None
