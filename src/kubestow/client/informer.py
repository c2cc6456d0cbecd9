"""What is known of one resource, and who is told of changes.

The store is the last object by key, nothing else. Whatever comes in, from a list or a watch, is compared with it, so
that a handler sees every object's life in order: add, updates, delete; never twice the same version. An object replaced
by another of the same name (another uid) is a delete and an add. A handler may come late: it is told of everything
there is by then.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from kubestow.client.resources import ApiObject, Resource, key_of
from kubestow.client.watchlines import Unreadable
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

_HANDLER_FAILED = "The handler of an event failed"

T = TypeVar("T", bound=ApiObject)
H = TypeVar("H", contravariant=True)


class Handler(Protocol[H]):
    """Is told of changes, inside the event loop; must not block."""

    def on_add(self, obj: H) -> None: ...
    def on_update(self, old: H, new: H) -> None: ...
    def on_delete(self, obj: H) -> None: ...
    def on_access(self, problem: str) -> None:
        """Every object there is has been told (empty), or why none can be seen; at the start, and when that changes."""


class Informer(Generic[T]):
    """The store of one resource."""

    def __init__(self, resource: Resource[T], handler: Handler[T] | None = None) -> None:
        self.resource = resource
        self.objects: dict[str, T] = {}
        self.synced = asyncio.Event()
        """Set once the handler has been told of everything."""
        self.unreadable = ""
        """Why the objects cannot be seen, if that is so."""
        self._is_listed = False
        self._handler = handler

    def tell(self, handler: Handler[T]) -> None:
        """Tell this handler of every object there is, and of all changes from now on."""
        self._handler = handler
        for key, obj in self.objects.items():
            self._tell(key, handler.on_add, obj)
        if self._is_listed:
            self._tell_access(handler)

    def put(self, obj: T) -> None:
        """An object was added or modified."""
        meta = obj.metadata
        key = key_of(meta)
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
        """An object was deleted; `last` is its last state."""
        key = key_of(last.metadata)
        if self.objects.pop(key, None) is not None:
            self._tell_deleted(key, last)

    def skip(self, unreadable: Unreadable) -> None:
        """An object came that cannot be understood: keep what was known of it, unless it is gone."""
        meta = unreadable.metadata
        key = key_of(meta)
        log.error(
            "Object ignored: cannot be understood", err=unreadable.problem, resource=self.resource.name, object=key
        )
        if unreadable.type == "DELETED" and (old := self.objects.pop(key, None)) is not None:
            self._tell_deleted(key, old)

    def replace(self, objects: Iterable[T], unreadable: Iterable[Unreadable] = ()) -> None:
        """These are all the objects there are now."""
        present = set()
        listed = list(objects)
        for bad in unreadable:
            self.skip(bad)
            present.add(key_of(bad.metadata))
        present.update(key_of(obj.metadata) for obj in listed)
        # Deletions first: what they free is seen before what may need it.
        for key in [key for key in self.objects if key not in present]:
            self._tell_deleted(key, self.objects.pop(key))
        for obj in listed:
            self.put(obj)
        self.set_access("")

    def set_access(self, problem: str) -> None:
        """All objects are known (empty), or why they cannot be seen: nobody waits for them, what was known stays."""
        if self._is_listed and problem == self.unreadable:
            return
        self.unreadable, self._is_listed = problem, True
        if self._handler is not None:
            self._tell_access(self._handler)

    def _tell_access(self, handler: Handler[T]) -> None:
        self.synced.set()
        try:
            handler.on_access(self.unreadable)
        except Exception as error:
            log.unexpected(_HANDLER_FAILED, err=error, resource=self.resource.name, event="access")

    def _tell_deleted(self, key: str, last: T) -> None:
        if self._handler is not None:
            self._tell(key, self._handler.on_delete, last)

    def _tell(self, key: str, what: Callable[[T], None], obj: T) -> None:
        try:
            what(obj)
        except Exception as error:
            log.unexpected(_HANDLER_FAILED, err=error, resource=self.resource.name, object=key)
