"""The conditions and patches that the scheduler writes into the status of a pod or a pod group.

A condition keeps its transition time as long as its status stays the same. One that equals the existing condition is
not written; a difference in the observed generation alone does not count.
"""

from typing import Any, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from kubestow.api.pod import Pod, PodCondition, PodStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.timestamps import format_time

POD_SCHEDULED = "PodScheduled"
POD_GROUP_SCHEDULED = "PodGroupInitiallyScheduled"
DISRUPTION_TARGET = "DisruptionTarget"

UNSCHEDULABLE = "Unschedulable"
"""No node has capacity for the pod, or a plugin rejected it."""
SCHEDULED = "Scheduled"
SCHEDULER_ERROR = "SchedulerError"
"""An error inside the scheduler, or between it and the API server."""

MAX_NOTE_BYTES = 1024
"""Maximum size in bytes of the note of an event, set by the API server."""
_ELLIPSIS = " ..."


C = TypeVar("C", bound=PodCondition | Condition)


def scheduling_condition(pod: Pod, reason: str, message: str, now: float) -> PodCondition | None:
    """Return the condition of a pod that could not be scheduled; None if its status has it already."""
    new = PodCondition(POD_SCHEDULED, "False", reason, message, pod.metadata.generation)
    return _dated(new, pod.status.conditions, now)


def disruption_target(victim: Pod, scheduler: str, now: float, *, beneficiary: str = "pod") -> PodCondition | None:
    """Return the condition of a pod preempted by a `beneficiary` of a scheduler; None if its status has it already."""
    message = f"{scheduler}: preempting to accommodate a higher priority {beneficiary}"
    new = PodCondition(DISRUPTION_TARGET, "True", "PreemptionByScheduler", message, victim.metadata.generation)
    return _dated(new, victim.status.conditions, now)


def status_patch(pod: Pod, condition: PodCondition | None = None, nominated_node: str | None = None) -> dict[str, Any]:
    """Return the strategic merge patch of a pod's status; empty if nothing changes.

    None leaves that part unchanged; an empty `nominated_node` clears the field.
    """
    status: dict[str, Any] = {}
    if condition is not None:
        status |= _conditions_patch(pod.status.conditions, condition)
    if nominated_node is not None and nominated_node != pod.status.nominatedNodeName:
        status["nominatedNodeName"] = nominated_node or None
    return {"status": status} if status else {}


def group_condition(group: PodGroup, problem: str, message: str, now: float) -> Condition | None:
    """Return the condition of a group: scheduled, or not because of `problem`; None if its status has it already.

    A group that has been scheduled stays scheduled, whatever the result for pods that are added later.
    """
    old = _find(group.status.conditions, POD_GROUP_SCHEDULED)
    if old is not None and old.status == "True" and problem:
        return None
    status, reason = ("False", problem) if problem else ("True", SCHEDULED)
    new = Condition(POD_GROUP_SCHEDULED, status, reason, message, group.metadata.generation)
    dated = _dated(new, group.status.conditions, now)
    if dated is None and old is not None and old.observedGeneration != new.observedGeneration:
        return replace(new, lastTransitionTime=old.lastTransitionTime)
    return dated


def group_status_patch(condition: Condition) -> dict[str, Any]:
    """Return the strategic merge patch of a group's status."""
    # The message is required, empty or not.
    patch = {**to_builtins(condition), "message": condition.message}
    return {"status": {"conditions": [patch]}}


def with_condition(conditions: tuple[C, ...], new: C) -> tuple[C, ...]:
    """Return the conditions with a new one, which replaces the one of its type."""
    if _find(conditions, new.type) is None:
        return (*conditions, new)
    return tuple(new if old.type == new.type else old for old in conditions)


def with_result(status: PodStatus, condition: PodCondition | None, nominated_node: str | None) -> PodStatus:
    """Return a pod's status with a condition and a nominated node; None leaves that part unchanged."""
    if condition is not None:
        status = replace(status, conditions=with_condition(status.conditions, condition))
    return status if nominated_node is None else replace(status, nominatedNodeName=nominated_node)


def truncate_note(message: str) -> str:
    """Return a message, truncated to the maximum size of the note of an event."""
    if len(message) <= MAX_NOTE_BYTES // 4:
        return message
    encoded = message.encode()
    if len(encoded) <= MAX_NOTE_BYTES:
        return message
    return encoded[: MAX_NOTE_BYTES - len(_ELLIPSIS)].decode(errors="ignore") + _ELLIPSIS


def _dated(new: C, conditions: tuple[C, ...], now: float) -> C | None:
    """Return a new condition with its transition time; None if it equals the existing one of its type."""
    old = _find(conditions, new.type)
    if old is not None and (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return None
    since = old.lastTransitionTime if old is not None and old.status == new.status else format_time(now)
    return replace(new, lastTransitionTime=since)


def _find(conditions: tuple[C, ...], kind: str) -> C | None:
    return next((condition for condition in conditions if condition.type == kind), None)


def _conditions_patch(conditions: tuple[PodCondition, ...], new: PodCondition) -> dict[str, Any]:
    old = _find(conditions, new.type)
    if old is None:
        patch = {"lastProbeTime": None, **to_builtins(new)}
        kinds = [condition.type for condition in conditions] + [new.type]
    else:
        patch = _difference(old, new)
        kinds = [condition.type for condition in conditions]
        if not patch:
            return {}
        patch["type"] = new.type
    if not conditions:
        return {"conditions": [patch]}
    return {"$setElementOrder/conditions": [{"type": kind} for kind in kinds], "conditions": [patch]}


def _difference(old: PodCondition, new: PodCondition) -> dict[str, Any]:
    before, after = to_builtins(old), to_builtins(new)
    fields = sorted(before.keys() | after.keys())
    return {field: after.get(field) for field in fields if before.get(field) != after.get(field)}
