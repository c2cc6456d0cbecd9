"""The event recorder of the harness, which keeps all events in memory."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kubestow.api.pod import Pod


class RecordedEvent(NamedTuple):
    """An event about a pod, as listed by `kubectl get events`."""

    pod: str
    kind: str
    reason: str
    action: str
    note: str
    time: float
    """Time on the loop's clock."""
    related: str | None = None


class EventLog:
    """Keeps every event, in order."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._events: list[RecordedEvent] = []

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None:
        about = None if related is None else related.key
        self._events.append(RecordedEvent(pod.key, kind, reason, action, note, self._time(), about))

    def __iter__(self) -> Iterator[RecordedEvent]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def about(self, pod: str, namespace: str = "default") -> list[RecordedEvent]:
        """Return the events of one pod."""
        return [event for event in self._events if event.pod == f"{namespace}/{pod}"]

    def notes(self, reason: str) -> list[str]:
        """Return the notes of all events with a reason."""
        return [event.note for event in self._events if event.reason == reason]
