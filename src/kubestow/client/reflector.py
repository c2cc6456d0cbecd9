"""Keeps an informer in sync with the server: list, watch, resume after errors, and list again if that is impossible.

The initial state is received by a watch that begins with all objects and marks their end with a bookmark (watch-list),
or by a list if the server rejects that. From then on the position (resourceVersion of the last event or bookmark) is
enough to resume: a dropped, stalled or malformed watch is opened again at this position after a delay. Only a position
that the server no longer has (410), or that makes no progress, requires a new list; the informer turns the differences
into adds, updates and deletes.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

from kubestow.api import codec
from kubestow.api.envelopes import ApiGroup, ApiResourceList
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
from kubestow.telemetry.metrics.client import ClientMetrics

log = get_logger(__name__)

MIN_WATCH_SECONDS = 300
"""The minimum timeout of a watch at the server; a random time up to the same length is added."""
REFUSED_SECONDS = 300.0
"""The maximum delay between requests for an optional resource that the server lacks or forbids."""
DECLARED_SECONDS = 15.0
"""The same for the resources that plugins declare; with jitter, they are requested at least every 30 seconds."""
HEALTHY_SECONDS = 10.0
"""A watch that lasted this long resets the backoff."""
MAX_RESUMES = 3
"""Number of consecutive failures without any event after which the resource is listed again."""

T = TypeVar("T", bound=ApiObject)


class Reflector(Generic[T]):
    """Lists and watches one resource."""

    def __init__(
        self,
        client: ApiClient,
        informer: Informer[T],
        random: Callable[[], float],
        refusals: Refusals,
        metrics: ClientMetrics | None = None,
    ) -> None:
        self._client = client
        self._refusal_log = refusals
        self._informer = informer
        self._resource = informer.resource
        self._loop = asyncio.get_running_loop()
        self._random = random
        self._backoff = Backoff(self._loop, random)
        self._refused_backoff = Backoff(
            self._loop, random, limit=DECLARED_SECONDS if informer.resource.is_declared else REFUSED_SECONDS
        )
        self._lister = Lister(client, informer.resource)
        self._position = ""
        self._current: Watch[T] | None = None
        """The open watch."""
        self._position_is_gone = False
        self._must_list = True
        self._streams_lists = True
        self._served_in_pages = False
        self._failures = 0
        self._refusal: type[ApiError] | None = None
        self._refusal_text = ""
        metrics, labels = ClientMetrics() if metrics is None else metrics, informer.resource.labels
        self._latencies = metrics.informer_seconds.of(*labels)
        metrics.informer_queued.track(int, *labels)
        metrics.informer_version.track(self._version, *labels)
        metrics.informer_unreadable.track(lambda: int(bool(informer.unreadable)), *labels)
        metrics.informer_undecodable.track(lambda: len(informer.undecodable), *labels)

    def _version(self) -> float:
        """Return the last 15 digits of the version of the stored objects; they fit in a float."""
        watch = self._current
        position = self._position if watch is None or not watch.is_synced else watch.position
        return float(position[-15:]) if position.isdecimal() else 0.0

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            started = self._loop.time()
            try:
                has_events = await self._run_once()
            except CallError as error:
                if self._loop.time() - started >= HEALTHY_SECONDS:
                    self._backoff.reset()
                await asyncio.sleep(await self._delay_after(error))
            else:
                if not has_events and self._loop.time() - started < 1.0:
                    log.info("Watch ended within a second, without events", v=4, resource=self._resource.name)
                    await asyncio.sleep(self._backoff.next())

    async def _run_once(self) -> bool:
        """Run one list or one watch until it ends; return whether it had any objects or events. Raises CallError."""
        if not self._must_list:
            watch = Watch(self._informer, self._position, self._latencies)
            return await self._watch(watch, {"resourceVersion": self._position})
        if self._streams_lists:
            watch = Watch(
                self._informer, self._position, self._latencies, sends_initial=True, on_synced=self._end_refusal
            )
            query = {
                "resourceVersion": "" if self._position_is_gone else self._position,
                "resourceVersionMatch": "NotOlderThan",
                "sendInitialEvents": "true",
            }
            try:
                has_events = await self._watch(watch, query)
                if watch.is_synced:
                    return has_events
            except (BadRequestError, InvalidError, ServerFailedError, TimedOutError) as error:
                if watch.is_synced or isinstance(error, VersionTooLargeError):
                    raise
                self._streams_lists = not isinstance(error, BadRequestError | InvalidError)
                log.info("Watch-list failed, falling back to a list", v=4, err=error, resource=self._resource.name)
        await self._list()
        return True

    async def _list(self) -> None:
        version = "" if self._position_is_gone else self._position or "0"
        page = PAGE if version in ("", "0") or self._served_in_pages else 0
        listed = await self._lister.fetch(version, page)
        self._served_in_pages |= listed.in_pages and version == "0"
        started = perf_counter()
        self._informer.replace(listed.objects, listed.unreadable)
        self._latencies.add(perf_counter() - started)
        self._position = listed.version
        self._mark_synced()

    async def _watch(self, watch: Watch[T], query: dict[str, str]) -> bool:
        seconds = MIN_WATCH_SECONDS + int(self._random() * MIN_WATCH_SECONDS)
        query |= {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        self._current = watch
        try:
            async with self._client.stream(self._resource.url(query), watch) as ended:
                await ended
        except TimedOutError:
            if watch.failure is None:
                raise
        finally:
            self._current = None
            if watch.is_synced and (watch.events or self._must_list):
                self._position = watch.position
                self._mark_synced()
        if watch.failure is not None:
            raise watch.failure
        return watch.events > 0

    def _mark_synced(self) -> None:
        self._must_list = self._position_is_gone = False
        self._failures = 0
        self._end_refusal()

    def _end_refusal(self) -> None:
        if self._refusal is not None:
            self._refusal = None
            log.info("Resource is available now", resource=self._resource.name)

    async def _delay_after(self, error: CallError) -> float:
        name = self._resource.name
        if isinstance(error, ForbiddenError | NotFoundError):
            return (self._refused_backoff if await self._is_optional(error) else self._backoff).next()
        if isinstance(error, GoneError | VersionTooLargeError):
            # A list rejected for its version means that the server has nothing "not older than the position".
            self._position_is_gone = self._must_list
            self._must_list = True
            log.info("Listing again", v=4, err=error, resource=name)
        else:
            self._failures += 1
            self._must_list |= self._failures >= MAX_RESUMES
            self._refusal_log.add_interruption(self._resource, error)
            if self._resource.is_declared and self._failures >= MAX_RESUMES and isinstance(error, ServerFailedError):
                # A broken API of a plugin, such as one whose server is down, must not keep the scheduler from starting.
                self._informer.set_access(f"{name}: {error}")
        return self._backoff.next(error.retry_after or 0.0)

    async def _is_optional(self, error: ApiError) -> bool:
        """Report a refusal once; return whether the scheduler continues without the resource."""
        lacking, resource = isinstance(error, NotFoundError), self._resource
        optional = resource.optional or (lacking and bool(resource.group))
        if type(error) is not self._refusal:
            self._refusal = type(error)
            problem = "forbids to list and watch them"
            if lacking:
                served = await self._served_versions() if resource.is_declared else ""
                problem = f"has them as {served} only, not {resource.version}" if served else "does not have them"
            self._refusal_log.add(resource, problem, error, optional=optional)
            self._refusal_text = f"{resource.name}: the API server {problem}"
        if optional:
            if lacking:
                # What was listed before is gone.
                self._must_list = self._position_is_gone = True
                self._informer.clear()
            self._informer.set_access(self._refusal_text)
        return optional

    async def _served_versions(self) -> str:
        """Return the other versions of the API group; empty if it has none, or they cannot be read."""
        if not self._resource.group:
            return ""
        try:
            response = await self._client.request("GET", f"/apis/{self._resource.group}")
            group = codec.decode(ApiGroup, response.body)
        except (CallError, codec.DecodeError):
            return ""
        versions = [one.version for one in group.versions if one.version != self._resource.version]
        return ", ".join([version for version in versions if await self._serves(version)])

    async def _serves(self, version: str) -> bool:
        """Return whether a version of the group has the resource."""
        try:
            response = await self._client.request("GET", f"/apis/{self._resource.group}/{version}")
            listed = codec.decode(ApiResourceList, response.body)
        except (CallError, codec.DecodeError):
            return False
        return any(one.name == self._resource.plural for one in listed.resources)
