"""The objects of one resource, and the notification of its handler.

The store contains the latest version of each object by key. Every object received from a list or a watch is compared
with it, so that a handler gets the changes of each object in order: add, updates, delete; never the same version twice.
An object replaced by another of the same name (another UID) is a delete and an add. A handler that subscribes late is
first notified of all existing objects.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from kubestow.client.resources import ApiObject, Resource, key_of
from kubestow.client.watchlines import Unreadable
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_MAX_PROBLEMS = 100
_HANDLER_FAILED = "The handler of an event failed"

T = TypeVar("T", bound=ApiObject)
H = TypeVar("H", contravariant=True)


class Handler(Protocol[H]):
    """Receives the changes of one resource. Called on the event loop; must not block."""

    def on_add(self, obj: H) -> None: ...
    def on_update(self, old: H, new: H) -> None: ...
    def on_delete(self, obj: H) -> None: ...
    def on_access(self, problem: str) -> None:
        """Handle a change of access: `problem` is empty once all objects were added, otherwise why none can be read."""


class Informer(Generic[T]):
    """The store of one resource."""

    def __init__(self, resource: Resource[T], handler: Handler[T] | None = None) -> None:
        self.resource = resource
        self.objects: dict[str, T] = {}
        self.synced = asyncio.Event()
        """Set once the handler has been notified of all objects."""
        self.unreadable = ""
        """Why the objects cannot be read, else empty."""
        self._is_listed = False
        self._handler = handler
        self._problems: set[str] = set()
        self.undecodable: set[str] = set()
        """The keys of the objects whose latest version cannot be decoded."""

    def subscribe(self, handler: Handler[T]) -> None:
        """Call a handler for every existing object, and for all changes from now on."""
        self._handler = handler
        for key, obj in self.objects.items():
            self._notify(key, handler.on_add, obj)
        if self._is_listed:
            self._notify_access(handler)

    def put(self, obj: T) -> None:
        """Store an added or modified object and notify the handler."""
        meta = obj.metadata
        key = key_of(meta)
        if self.undecodable:
            self.undecodable.discard(key)
        old = self.objects.get(key)
        if old is not None and old.metadata.resourceVersion == meta.resourceVersion and old.metadata.uid == meta.uid:
            return
        self.objects[key] = obj
        handler = self._handler
        if handler is None:
            return
        try:
            if old is None:
                handler.on_add(obj)
            elif old.metadata.uid == meta.uid:
                handler.on_update(old, obj)
            else:
                handler.on_delete(old)
                handler.on_add(obj)
        except Exception as error:
            log.unexpected(_HANDLER_FAILED, err=error, resource=self.resource.name, object=key)

    def remove(self, last: T) -> None:
        """Remove a deleted object and notify the handler; `last` is its last state."""
        key = key_of(last.metadata)
        self.undecodable.discard(key)
        if self.objects.pop(key, None) is not None:
            self._notify_deleted(key, last)

    def skip(self, unreadable: Unreadable) -> None:
        """Log an object that cannot be decoded; its previous version is kept unless it was deleted.

        Of the kinds that plugins declare, each problem is logged for one object: the class may not match any of them.
        """
        meta = unreadable.metadata
        key = key_of(meta)
        is_known = self.resource.is_declared and unreadable.problem in self._problems
        if not is_known:
            more = {"others": "are not logged for the same problem"} if self.resource.is_declared else {}
            log.error(
                "Ignoring object that cannot be decoded",
                err=unreadable.problem,
                resource=self.resource.name,
                object=key,
                **more,
            )
        if self.resource.is_declared and len(self._problems) < _MAX_PROBLEMS:
            self._problems.add(unreadable.problem)
        if unreadable.type != "DELETED":
            self.undecodable.add(key)
            return
        self.undecodable.discard(key)
        if (old := self.objects.pop(key, None)) is not None:
            self._notify_deleted(key, old)

    def replace(self, objects: Iterable[T], unreadable: Iterable[Unreadable] = ()) -> None:
        """Replace the content of the store by all objects of a list, and notify the handler of the differences."""
        present = set()
        listed = list(objects)
        self.undecodable.clear()
        for bad in unreadable:
            self.skip(bad)
            present.add(key_of(bad.metadata))
        present.update(key_of(obj.metadata) for obj in listed)
        # Deletions first: they free resources that added objects may need.
        for key in [key for key in self.objects if key not in present]:
            self._notify_deleted(key, self.objects.pop(key))
        for obj in listed:
            self.put(obj)
        self.set_access("")

    def clear(self) -> None:
        """Remove all objects, and notify the handler."""
        self.undecodable.clear()
        for key in tuple(self.objects):
            self._notify_deleted(key, self.objects.pop(key))

    def unsubscribe(self) -> None:
        """Notify the handler of the removal of all objects, and of nothing from then on."""
        self.clear()
        self._handler = None
        self.synced.set()

    def set_access(self, problem: str) -> None:
        """Mark the store as complete (empty), or as unreadable and why: it counts as synced, and objects are kept."""
        if self._is_listed and problem == self.unreadable:
            return
        self.unreadable, self._is_listed = problem, True
        if self._handler is not None:
            self._notify_access(self._handler)

    def _notify_access(self, handler: Handler[T]) -> None:
        self.synced.set()
        try:
            handler.on_access(self.unreadable)
        except Exception as error:
            log.unexpected(_HANDLER_FAILED, err=error, resource=self.resource.name, event="access")

    def _notify_deleted(self, key: str, last: T) -> None:
        if self._handler is not None:
            self._notify(key, self._handler.on_delete, last)

    def _notify(self, key: str, callback: Callable[[T], None], obj: T) -> None:
        try:
            callback(obj)
        except Exception as error:
            log.unexpected(_HANDLER_FAILED, err=error, resource=self.resource.name, object=key)
