"""What a change amounts to, and which plugins then find a waiting pod worth another attempt."""

from typing import Any

from kubestow.cluster.changes import events_of
from kubestow.cluster.events import ClusterEvent, Resource
from kubestow.model.codec import convert
from kubestow.model.kinds import KINDS


def check(case: dict[str, Any]) -> str | None:
    """The first change that is told otherwise than recorded."""
    for number, (given, expected) in enumerate(zip(case["events"], case["expect"], strict=True)):
        events = events_of(_object(given.get("old")), _object(given.get("new")))
        told = [_recorded_label(event, given["action"]) for event in events]
        if told != (expected["events"] or []):
            return f"event {number} ({given['action']} {given['resource']}): {told}, expected {expected['events']}"
    return "hints not implemented"


def _object(manifest: dict[str, Any] | None) -> Any:
    return None if manifest is None else convert(KINDS[manifest["apiVersion"], manifest["kind"]], manifest)


def _recorded_label(event: ClusterEvent, action: str) -> str:
    """The recordings say of pods that come and go only that they are pods, not whether they have a node."""
    if event.resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD) and action != "update":
        return f"{Resource.POD}{event.label.removeprefix(event.resource)}"
    return event.label
