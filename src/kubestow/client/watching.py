"""One watch: the lines of a connection, applied to an informer as they arrive."""

from typing import Generic, TypeVar

from kubestow.api.failures import ApiError
from kubestow.client.errors import api_error
from kubestow.client.informer import Informer
from kubestow.client.resources import ApiObject, key_of
from kubestow.client.watchlines import Added, Bookmarked, Deleted, Failed, LineDecoder, Modified, Unreadable

SILENCE_SECONDS = 150.0
"""A watch that brings nothing for this long is given up; servers send a bookmark about every minute."""
INITIAL_SILENCE_SECONDS = 30.0
"""The same while the initial objects are awaited."""
FAILED_SILENCE_SECONDS = 5.0
"""The same after an ERROR event: there is nothing more to come but the end."""
_INITIAL_END = "k8s.io/initial-events-end"
_CHANGED = (Modified, Added)

T = TypeVar("T", bound=ApiObject)


class Watch(Generic[T]):
    """The sink of one watch.

    `position` is the version up to which everything has been applied. A watch that begins with the initial objects
    holds them back until the bookmark that ends them has come, so that a torn one leaves the informer as it was.
    After an ERROR event the end of the answer is awaited, so that the connection can be used again.
    """

    def __init__(self, informer: Informer[T], position: str, *, begins_with_all: bool = False) -> None:
        self.position = position
        self.events = 0
        self.failure: ApiError | None = None
        """What an ERROR event said."""
        self.silence = INITIAL_SILENCE_SECONDS if begins_with_all else SILENCE_SECONDS
        self._informer = informer
        self._lines = LineDecoder(informer.resource.kind)
        self._initial: dict[str, T] | None = {} if begins_with_all else None
        self._initial_unreadable: dict[str, Unreadable] = {}

    @property
    def has_all(self) -> bool:
        """Whether the informer holds everything up to the position."""
        return self._initial is None

    def feed(self, piece: bytes) -> None:
        """Raises BadAnswerError for what is no event."""
        if self.failure is not None:
            return
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
