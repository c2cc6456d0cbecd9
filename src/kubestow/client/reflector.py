"""Keeps an informer in step with the server: list once, watch for ever, resume after whatever goes wrong.

The initial state comes as a watch that begins with all objects and marks their end with a bookmark (watch-list);
servers that refuse are listed instead. From then on the position (resourceVersion of the last event or bookmark) is
enough to resume: a dropped, stalled or garbled watch is opened again from there after a pause. Only a position that
the server no longer has (410), or one that brings no progress, costs a new list; the informer turns that into adds,
updates and deletes.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from kubestow.api.failures import (
    ApiError,
    BadRequestError,
    CallError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    ServerFailedError,
    TimedOutError,
    VersionTooLargeError,
)
from kubestow.client.api import ApiClient
from kubestow.client.backoff import Backoff
from kubestow.client.informer import Informer
from kubestow.client.lists import PAGE, Lister
from kubestow.client.refusals import Refusals
from kubestow.client.resources import ApiObject
from kubestow.client.watching import Watch
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

SHORTEST_WATCH = 300
"""Seconds after which the server is asked to end a watch, plus as much again at random."""
REFUSED_SECONDS = 300.0
"""How seldom, at last, a server is asked again for what it lacks or forbids and the scheduler can do without."""
HEALTHY_SECONDS = 10.0
MOST_RESUMES = 3
"""Failures in a row without any event, after which the position is not trusted any more."""

T = TypeVar("T", bound=ApiObject)


class Reflector(Generic[T]):
    """Runs one resource."""

    def __init__(
        self, client: ApiClient, informer: Informer[T], random: Callable[[], float], refusals: Refusals
    ) -> None:
        self._client = client
        self._told = refusals
        self._informer = informer
        self._resource = informer.resource
        self._loop = asyncio.get_running_loop()
        self._random = random
        self._backoff = Backoff(self._loop, random)
        self._refusals = Backoff(self._loop, random, longest=REFUSED_SECONDS)
        self._lister = Lister(client, informer.resource)
        self._position = ""
        self._position_is_gone = False
        self._must_list = True
        self._streams_lists = True
        self._served_in_pages = False
        self._failures = 0
        self._refusal: type[ApiError] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            started = self._loop.time()
            try:
                brought_something = await self._once()
            except CallError as error:
                if self._loop.time() - started >= HEALTHY_SECONDS:
                    self._backoff.reset()
                await asyncio.sleep(self._delay_after(error))
            else:
                if not brought_something and self._loop.time() - started < 1.0:
                    log.info("Watch ended as soon as it began", v=4, resource=self._resource.name)
                    await asyncio.sleep(self._backoff.next())

    async def _once(self) -> bool:
        """One list or one watch, until it ends; tells whether it brought anything. Raises CallError."""
        if not self._must_list:
            return await self._follow(Watch(self._informer, self._position), {"resourceVersion": self._position})
        if self._streams_lists:
            watch = Watch(self._informer, self._position, begins_with_all=True)
            query = {
                "resourceVersion": "" if self._position_is_gone else self._position,
                "resourceVersionMatch": "NotOlderThan",
                "sendInitialEvents": "true",
            }
            try:
                brought_something = await self._follow(watch, query)
                if watch.has_all:
                    return brought_something
            except (BadRequestError, InvalidError, ServerFailedError, TimedOutError) as error:
                if watch.has_all or isinstance(error, VersionTooLargeError):
                    raise
                self._streams_lists = not isinstance(error, BadRequestError | InvalidError)
                log.info("No list by streaming, trying a plain one", v=4, err=error, resource=self._resource.name)
        await self._list()
        return True

    async def _list(self) -> None:
        version = "" if self._position_is_gone else self._position or "0"
        page = PAGE if version in ("", "0") or self._served_in_pages else 0
        listed = await self._lister.fetch(version, page)
        self._served_in_pages |= listed.in_pages and version == "0"
        self._informer.replace(listed.objects, listed.unreadable)
        self._position = listed.version
        self._has_all()

    async def _follow(self, watch: Watch[T], query: dict[str, str]) -> bool:
        seconds = SHORTEST_WATCH + int(self._random() * SHORTEST_WATCH)
        query |= {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        try:
            async with self._client.stream(self._resource.url(query), watch) as ended:
                await ended
        except TimedOutError:
            if watch.failure is None:
                raise
        finally:
            if watch.has_all and (watch.events or self._must_list):
                self._position = watch.position
                self._has_all()
        if watch.failure is not None:
            raise watch.failure
        return watch.events > 0

    def _has_all(self) -> None:
        self._must_list = self._position_is_gone = False
        self._failures = 0
        if self._refusal is not None:
            self._refusal = None
            log.info("Resource is available now", resource=self._resource.name)

    def _delay_after(self, error: CallError) -> float:
        name = self._resource.name
        if isinstance(error, ForbiddenError | NotFoundError):
            return (self._refusals if self._refused(error) else self._backoff).next()
        if isinstance(error, GoneError | VersionTooLargeError):
            # A list refused for its version means that even "not older than the position" asks too much.
            self._position_is_gone = self._must_list
            self._must_list = True
            log.info("Listing again", v=4, err=error, resource=name)
        else:
            self._failures += 1
            self._must_list |= self._failures >= MOST_RESUMES
            log.warning("Listing again" if self._must_list else "Watching again", err=error, resource=name)
        return self._backoff.next(error.retry_after or 0.0)

    def _refused(self, error: ApiError) -> bool:
        """Tell it once; whether the scheduler goes on without."""
        lacking = isinstance(error, NotFoundError)
        goes_on = bool(self._resource.group) if lacking else self._resource.optional
        problem = "does not have them" if lacking else "forbids to list and watch them"
        if type(error) is not self._refusal:
            self._refusal = type(error)
            self._told.add(self._resource, problem, error, goes_on=goes_on)
        if goes_on:
            self._informer.set_access(f"{self._resource.name}: the API server {problem}")
        return goes_on
