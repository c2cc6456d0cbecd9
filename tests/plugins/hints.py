"""What plugins say of changes in the cluster."""

from typing import Any

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.changes import events_of


def hint_of(plugin: Any, waiting: Pod, old: Any, new: Any) -> bool | None:
    """Whether a change is worth another attempt of a pod the plugin rejected; None if it does not hear of it."""
    verdicts = [
        registration.hint(waiting, old, new)
        for registration in plugin.requeue_on()
        for event in events_of(old, new)
        if registration.event.covers(event) and registration.hint is not None
    ]
    return any(verdicts) if verdicts else None
