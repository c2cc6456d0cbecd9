"""What a change amounts to, and which plugins then find a waiting pod worth another attempt."""

from typing import Any

from conformance_kinds._inputs import object_of
from conformance_kinds.decision import World
from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.changes import events_of
from kubestow.scheduler.cluster.events import ClusterEvent, Registration, Resource


def check(case: dict[str, Any]) -> str | None:
    """The first change that is told, or judged, otherwise than recorded."""
    (profile,) = World(case).profiles.values()
    waiting = convert(Pod, case["pod"])
    for number, (given, expected) in enumerate(zip(case["events"], case["expect"], strict=True)):
        old, new = _object(given.get("old")), _object(given.get("new"))
        where = f"event {number} ({given['action']} {given['resource']})"
        events = events_of(old, new)
        told = [_recorded_label(event, given["action"]) for event in events]
        if told != (expected["events"] or []):
            return f"{where}: {told}, expected {expected['events']}"
        for plugin, answer in (expected["hints"] or {}).items():
            found = _answer(profile.registrations.get(plugin, ()), events, waiting, old, new)
            if found != answer:
                return f"{where}: {plugin} says {found}, expected {answer}"
    return None


def _answer(registrations: Any, events: list[ClusterEvent], waiting: Pod, old: Any, new: Any) -> str:
    hints = [
        _ask(registration, waiting, old, new)
        for event in events
        for registration in registrations
        if registration.event.covers(event)
    ]
    if not hints:
        return "-"
    return "Queue" if any(hints) else "Skip"


def _ask(registration: Registration, waiting: Pod, old: Any, new: Any) -> bool:
    return registration.hint is None or registration.hint(waiting, old, new)


def _object(manifest: dict[str, Any] | None) -> Any:
    return None if manifest is None else object_of(manifest)


def _recorded_label(event: ClusterEvent, action: str) -> str:
    """The recordings say of pods that come and go only that they are pods, not whether they have a node."""
    if event.resource in (Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD) and action != "update":
        return f"{Resource.POD}{event.label.removeprefix(event.resource)}"
    return event.label
