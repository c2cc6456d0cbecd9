"""Conformance of kind `hints`: the events of a change, and the plugins that then requeue an unschedulable pod."""

from typing import Any

from conformance_kinds._inputs import object_of
from conformance_kinds.decision import World
from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.changes import events_of
from kubestow.scheduler.cluster.events import ClusterEvent, Registration


def check(case: dict[str, Any]) -> str | None:
    """Return the first change whose events or hints differ from the recorded ones, None if there is none."""
    (profile,) = World(case).profiles.values()
    pod = convert(Pod, case["pod"])
    for number, (given, expected) in enumerate(zip(case["events"], case["expect"], strict=True)):
        old, new = _object(given.get("old")), _object(given.get("new"))
        where = f"event {number} ({given['action']} {given['resource']})"
        events = events_of(old, new, pod)
        labels = [event.label for event in events]
        if labels != (expected["events"] or []):
            return f"{where}: {labels}, expected {expected['events']}"
        for plugin, answer in (expected["hints"] or {}).items():
            found = _hint(profile.registrations.get(plugin, ()), events, pod, old, new)
            if found != answer:
                return f"{where}: {plugin} returns {found}, expected {answer}"
    return None


def _hint(registrations: Any, events: list[ClusterEvent], pod: Pod, old: Any, new: Any) -> str:
    hints = [
        _requeues(registration, pod, old, new)
        for event in events
        for registration in registrations
        if registration.event.covers(event)
    ]
    if not hints:
        return "-"
    return "Queue" if any(hints) else "Skip"


def _requeues(registration: Registration, pod: Pod, old: Any, new: Any) -> bool:
    return registration.hint is None or registration.hint(pod, old, new)


def _object(manifest: dict[str, Any] | None) -> Any:
    return None if manifest is None else object_of(manifest)
