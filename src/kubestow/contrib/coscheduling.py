"""Coscheduling: the pods of a PodGroup of scheduling.x-k8s.io are bound together, or not at all.

    label scheduling.x-k8s.io/pod-group ──> PodGroup of that name in the namespace of the pod

A pod goes through the ordinary cycle. PreFilter rejects it while its group has too few pods. Permit then holds it on
its node until `minMember` pods of the group have one; the last of them releases all. If one pod of the group cannot be
placed, PostFilter rejects the pods that are held, so that their nodes become free for others.

The groups of Kubernetes itself (scheduling.k8s.io) are another kind, which this plugin does not read.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from kubestow.plugin import (
    SKIP,
    Action,
    Code,
    CustomObject,
    FailedEvaluation,
    Handle,
    Permit,
    Pod,
    PodInfo,
    PostFilter,
    PostFilterResult,
    PreFilter,
    QueueSort,
    RawQuantity,
    Registration,
    Rejection,
    Reserve,
    Resource,
    Skip,
    Wait,
    WaitingPod,
    custom_resource,
    format_quantities,
    on,
    parse_quantities,
    unresolvable,
    unschedulable,
)

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
_DEFAULT_WAIT_SECONDS = 60
_PAUSES = (0, 1, 2, 4, 8, 10)
"""Seconds in which a group is not tried, by the number of its rejections before; without podGroupBackoffSeconds."""
_NOT_CREATED = float("-inf")

GroupKey = tuple[str, str]
"""Namespace and name of a group."""


class PodGroupSpec(Struct, frozen=True):
    minMember: int = 0
    minResources: dict[str, RawQuantity] | None = None
    scheduleTimeoutSeconds: int | None = None


@custom_resource("scheduling.x-k8s.io/v1alpha1", "podgroups")
class PodGroup(CustomObject, frozen=True):
    """Pods that are useful only together."""

    spec: PodGroupSpec = PodGroupSpec()


class CoschedulingArgs(Struct):
    """The arguments of the plugin."""

    permitWaitingTimeSeconds: int = 60
    """How long a pod is held for the others, unless its group says otherwise."""
    podGroupBackoffSeconds: int = 0
    """How long no pod of a group is tried after the group was rejected. 0: not at first, then up to 10 seconds."""
    podGroupRejectPercentage: int = 10
    """The group is not rejected if at most this share of `minMember` is missing."""

    def __post_init__(self) -> None:
        problems = [
            f"{name}: Invalid value: {value}: must be greater than 0"
            for name in ("permitWaitingTimeSeconds", "podGroupBackoffSeconds")
            if (value := getattr(self, name)) < 0
        ]
        if not 0 <= self.podGroupRejectPercentage <= 100:
            value = self.podGroupRejectPercentage
            problems.append(f"podGroupRejectPercentage: Invalid value: {value}: must be between 0 and 100")
        if problems:
            raise ValueError(", ".join(problems))


class _Failures(NamedTuple):
    """The failures of a group since it was last complete."""

    latest: float = 0.0
    """The time of the latest one. The group is queued as if it had been created then, not at the head of the queue."""
    rejections: int = 0
    """How often pods of the group were held and then rejected because another one could not be placed."""


class _Backoff(Struct):
    """The time after a group was rejected, in which its pods are not tried."""

    cause: str
    """The UID of the pod that could not be placed; events about it retry the group."""
    siblings: frozenset[str]
    """The UIDs of the other pods of the group that had no node. They wait for the first one."""
    refused: set[str]
    """The UIDs of the pods that were refused for the backoff."""


class Coscheduling(QueueSort, PreFilter[None], PostFilter, Reserve[None], Permit[None]):
    """Binds the pods of a PodGroup together, or not at all."""

    name = "Coscheduling"
    watches = (PodGroup,)

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._groups = handle.objects(PodGroup)
        self._members = handle.pods.index_by(_group_key)
        self._gated = handle.pods.index_by(lambda pod: _group_key(pod) if pod.pod.spec.schedulingGates else None)
        self._backoffs: dict[GroupKey, _Backoff] = {}
        self._failures: dict[GroupKey, _Failures] = {}
        self._groups.on_change(self._on_group_change)

    def requeue_on(self) -> list[Registration]:
        return [
            on(Resource.POD, Action.ADD, lambda pod, _, new: _key_of(pod) == _key_of(new), alike=True),
            on(
                PodGroup,
                Action.ADD | Action.UPDATE,
                lambda pod, _, new: new is not None and _key_of(pod) == (new.metadata.namespace, new.metadata.name),
                alike=True,
            ),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._may_have_room, alike=True),
            on(Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._may_have_room, alike=True),
        ]

    def _may_have_room(self, pod: Pod, old: Any, new: Any) -> bool:
        """Return whether a change may provide `minResources` for the group of a pod; its own pods count already."""
        key = _key_of(pod)
        group = None if key is None else self._group(key)
        return group is not None and group.spec.minResources is not None and _key_of(old or new) != key

    def sort_key(self, pod: Pod, waiting_since: float) -> tuple[int, float, str]:
        """Sort by priority, then by the age of the group, or of a pod without one, so that groups stay together."""
        since, key = waiting_since, _key_of(pod)
        if key is not None:
            group, failures = self._group(key), self._failures.get(key)
            if failures is not None:
                since = failures.latest
            elif group is not None:
                created = group.metadata.creationTimestamp
                since = _NOT_CREATED if created is None else datetime.fromisoformat(created).timestamp()
        return -(pod.spec.priority or 0), since, f"{pod.metadata.namespace}/{pod.metadata.name}"

    def pre_filter(self, pod: PodInfo) -> Skip | Rejection:
        key = _group_key(pod)
        if key is None or (group := self._group(key)) is None:
            return SKIP
        if key in self._backoffs:
            self._backoffs[key].refused.add(pod.uid)
            return unresolvable(f"podGroup {_full_name(key)} failed recently")
        count, required = len(self._members[key]), group.spec.minMember
        if count < required:
            return unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, "
                f"current pods number: {count}, minMember of group: {required}"
            )
        if count - len(self._gated[key]) < required:
            return unresolvable(f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup")
        if group.spec.minResources is None:
            return SKIP
        try:
            gap = self._resource_gap(key, parse_quantities(group.spec.minResources) | {"pods": required})
        except ValueError as error:
            return unresolvable(f"minResources of PodGroup {_full_name(key)}: {error}")
        return unresolvable(f"resource gap: {gap}") if gap else SKIP

    def _resource_gap(self, key: GroupKey, required: dict[str, int]) -> str:
        """Return what the cluster lacks for a group whose pods would leave their nodes; empty if it lacks nothing."""
        nodes, own = self._handle.cluster.nodes, self._members.requested(key)
        live = nodes.live[: nodes.size]
        missing: dict[str, int] = {}
        for name, amount in required.items():
            column = nodes.resource_index.get(name)
            if name == "pods":
                free, held = nodes.allowed_pods - nodes.pod_count, self._members.assigned_count(key)
            elif column is None:
                free, held = np.zeros(nodes.size, np.int64), 0
            else:
                free, held = nodes.allocatable[column] - nodes.requested[column], own.get(name, 0)
            left = int(np.maximum(free[: nodes.size][live], 0).sum()) + held
            if left < amount:
                missing[name] = amount - left
        return ", ".join(f"{name}: {amount}" for name, amount in format_quantities(missing).items())

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult:
        key = _group_key(pod)
        if key is None or (group := self._group(key)) is None:
            return PostFilterResult(Code.UNSCHEDULABLE, "can not find pod group")
        required = group.spec.minMember
        missing = required - self._members.assigned_count(key)
        is_small = missing * 100 <= self._args.podGroupRejectPercentage * required
        if missing <= 0 or is_small or key in self._backoffs:
            # Enough pods have a node, or nearly enough, so that the others are tried; in a backoff, none is held.
            return PostFilterResult(Code.UNSCHEDULABLE)
        pause = self._args.podGroupBackoffSeconds
        if self._reject(key, "optimistic rejection in PostFilter"):
            # The nodes that become free retry the pod, which then takes one of them: pauses end this circle.
            failures = self._failures[key]
            pause = pause or _PAUSES[min(failures.rejections, len(_PAUSES) - 1)]
            self._failures[key] = failures._replace(rejections=failures.rejections + 1)
        if pause and len(self._members[key]) >= required:
            siblings = frozenset(member.uid for member in self._members.unscheduled(key)) - {pod.uid}
            self._backoffs[key] = _Backoff(pod.uid, siblings, set())
            self._handle.call_later(pause, self._end_backoff, key)
        return PostFilterResult(
            Code.UNSCHEDULABLE,
            f"PodGroup {_full_name(key)} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter",
        )

    def reserve(self, state: None, pod: PodInfo, node: str) -> None:
        """Do nothing: the index counts the pod."""

    def unreserve(self, state: None, pod: PodInfo, node: str) -> None:
        key = _group_key(pod)
        if key is not None and self._group(key) is not None:
            self._reject(key, "rejection in Unreserve")

    def permit(self, state: None, pod: PodInfo, node: str) -> Rejection | Wait | None:
        key = _group_key(pod)
        if key is None:
            return None
        group = self._group(key)
        if group is None:
            return unschedulable("PodGroup not found")
        assigned = self._members.assigned_count(key)
        if assigned >= group.spec.minMember:
            self._release(key)
            return None
        if assigned == 1:
            # The first pod shows that the group may fit: its siblings need not wait for an event of their own.
            self._activate(member for member in self._members.unscheduled(key) if member.uid != pod.uid)
        return Wait(self._wait_seconds(group.spec.scheduleTimeoutSeconds))

    def _wait_seconds(self, of_group: int | None) -> int:
        default = self._args.permitWaitingTimeSeconds
        return max((default or _DEFAULT_WAIT_SECONDS) if of_group is None else of_group or default, 0)

    def _release(self, key: GroupKey) -> None:
        self._failures.pop(key, None)
        for waiting in self._waiting(key):
            waiting.allow(self.name)

    def _reject(self, key: GroupKey, message: str) -> bool:
        """Reject the pods of a group that are held, and queue it behind other groups; return False if none is held."""
        held = self._waiting(key)
        for waiting in held:
            waiting.reject(self.name, message)
        rejections = self._failures.get(key, _Failures()).rejections
        self._failures[key] = _Failures(self._handle.clock.now(), rejections)
        return bool(held)

    def _end_backoff(self, key: GroupKey) -> None:
        """Retry the refused pods, except those that wait for the pod that could not be placed."""
        backoff, unscheduled = self._backoffs.pop(key), self._members.unscheduled(key)
        still_waits = any(member.uid == backoff.cause for member in unscheduled)
        retried = backoff.refused - backoff.siblings if still_waits else backoff.refused
        self._activate(member for member in unscheduled if member.uid in retried)

    def _activate(self, members: Iterable[PodInfo]) -> None:
        self._handle.activate([member.pod for member in members])

    def _waiting(self, key: GroupKey) -> list[WaitingPod]:
        return [waiting for waiting in self._handle.waiting_pods if _group_key(waiting.pod) == key]

    def _group(self, key: GroupKey) -> PodGroup | None:
        return self._groups.get(key[1], namespace=key[0])

    def _on_group_change(self, name: str, group: PodGroup | None) -> None:
        namespace, _, group_name = name.partition("/")
        key = namespace, group_name
        if group is None:
            self._failures.pop(key, None)
        elif self._members.assigned_count(key) >= group.spec.minMember:
            self._release(key)


def _group_key(pod: PodInfo) -> GroupKey | None:
    name = pod.labels.get(GROUP_LABEL)
    return (pod.namespace, name) if name else None


def _key_of(pod: Any) -> GroupKey | None:
    """Return the group of a pod of the queue or of an event."""
    meta = pod.metadata
    name = meta.labels.get(GROUP_LABEL)
    return (meta.namespace, name) if name else None


def _full_name(key: GroupKey) -> str:
    return "/".join(key)
