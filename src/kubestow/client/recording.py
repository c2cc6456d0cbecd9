"""Events about pods, in the form that the event recorder takes them."""

from kubestow.api.meta import ObjectReference
from kubestow.api.pod import Pod
from kubestow.client.events import EventRecorder


class PodRecorder:
    """Notes events about pods, in the name of the profile that schedules them."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._closed = False

    def close(self) -> None:
        """What is told from now on is dropped."""
        self._closed = True

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None:
        if self._closed:
            return
        # An evicted pod may belong to another profile, or to nobody: the one that evicts it speaks.
        speaker = pod if related is None else related
        self._events.record(speaker.spec.schedulerName, _reference(pod), kind, reason, action, note)


def _reference(pod: Pod) -> ObjectReference:
    meta = pod.metadata
    return ObjectReference("v1", "Pod", meta.namespace, meta.name, meta.uid, meta.resourceVersion)
