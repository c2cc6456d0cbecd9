"""Converts events about pods to the arguments of the event recorder."""

from kubestow.api.meta import ObjectReference
from kubestow.api.pod import Pod
from kubestow.client.events import EventRecorder


class PodRecorder:
    """Records events about pods under the name of the profile that schedules them."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._closed = False

    def close(self) -> None:
        """Drop all further events."""
        self._closed = True

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None:
        if self._closed:
            return
        # An evicted pod may belong to another profile or to none: report the profile of the pod that preempts it.
        scheduled = pod if related is None else related
        self._events.record(scheduled.spec.schedulerName, _reference(pod), kind, reason, action, note)


def _reference(pod: Pod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference("v1", "Pod", meta.namespace, meta.name, meta.uid, meta.resourceVersion)
