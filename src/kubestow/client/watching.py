"""One watch: the events of a connection, applied to an informer as they arrive."""

from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

from kubestow.api.failures import ApiError
from kubestow.client.errors import api_error
from kubestow.client.informer import Informer
from kubestow.client.resources import ApiObject, key_of
from kubestow.client.watchlines import Added, Bookmarked, Deleted, Failed, LineDecoder, Modified, Unreadable
from kubestow.telemetry.metrics.instruments import Observations

SILENCE_SECONDS = 150.0
"""A watch without data for this time is abandoned; servers send a bookmark about every minute."""
INITIAL_SILENCE_SECONDS = 30.0
"""The limit while waiting for the initial objects."""
FAILED_SILENCE_SECONDS = 5.0
"""The limit after an ERROR event: only the end of the response can follow."""
_INITIAL_END = "k8s.io/initial-events-end"
_CHANGED = (Modified, Added)

T = TypeVar("T", bound=ApiObject)


class Watch(Generic[T]):
    """The sink of one watch.

    `position` is the version up to which everything has been applied. With `sends_initial`, the watch begins with all
    objects; they are collected until the bookmark at their end, so that an interrupted watch does not change the
    informer. After an ERROR event the watch waits for the end of the response, so that the connection can be reused.
    """

    def __init__(
        self,
        informer: Informer[T],
        position: str,
        latencies: Observations,
        *,
        sends_initial: bool = False,
        on_synced: Callable[[], None] = lambda: None,
    ) -> None:
        """`latencies` gets the seconds that each piece with events takes.

        `on_synced` is called after the objects that the watch begins with.
        """
        self.position = position
        self.events = 0
        self.failure: ApiError | None = None
        """The error of an ERROR event."""
        self.silence = INITIAL_SILENCE_SECONDS if sends_initial else SILENCE_SECONDS
        self._informer = informer
        self._latencies = latencies
        self._on_synced = on_synced
        self._lines = LineDecoder(informer.resource.kind)
        self._initial: dict[str, T] | None = {} if sends_initial else None
        self._initial_unreadable: dict[str, Unreadable] = {}

    @property
    def is_synced(self) -> bool:
        """Whether the informer contains everything up to the position."""
        return self._initial is None

    def feed(self, piece: bytes) -> None:
        """Apply the events that a piece completes. Raises BadAnswerError for an invalid event."""
        if self.failure is None:
            events, started = self.events, perf_counter()
            self._apply(piece)
            if self.events > events:
                self._latencies.add(perf_counter() - started)

    def _apply(self, piece: bytes) -> None:
        for event in self._lines.feed(piece):
            if self._initial is not None:
                self._collect(event, self._initial)
            elif isinstance(event, _CHANGED):
                self._informer.put(event.object)
                self.position = event.object.metadata.resourceVersion
            elif isinstance(event, Deleted):
                self._informer.remove(event.object)
                self.position = event.object.metadata.resourceVersion
            elif isinstance(event, Bookmarked):
                self.position = event.object.metadata.resourceVersion
            elif isinstance(event, Failed):
                self._fail(event)
                return
            else:
                self._informer.skip(event)
                self.position = event.metadata.resourceVersion or self.position
            self.events += 1

    def _fail(self, event: Failed) -> None:
        self.failure = api_error(f"watch {self._informer.resource.path}", 0, event.object)
        self.silence = FAILED_SILENCE_SECONDS

    def _collect(self, event: object, initial: dict[str, T]) -> None:
        if isinstance(event, _CHANGED):
            initial[key_of(event.object.metadata)] = event.object
        elif isinstance(event, Deleted):
            initial.pop(key_of(event.object.metadata), None)
        elif isinstance(event, Failed):
            self._fail(event)
        elif isinstance(event, Unreadable):
            self._initial_unreadable[key_of(event.metadata)] = event
        elif isinstance(event, Bookmarked) and event.object.metadata.annotations.get(_INITIAL_END) == "true":
            self._initial = None
            self.silence = SILENCE_SECONDS
            self.position = event.object.metadata.resourceVersion
            self._informer.replace(initial.values(), self._initial_unreadable.values())
            self._on_synced()
