"""The set of watched resources: started together, with the initial sync tracked per resource.

The objects are requested by `start`, and the handlers subscribe later, in `run`. From then on, more resources may be
watched, and those no longer.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kubestow.api.failures import TimedOutError
from kubestow.client.api import ApiClient
from kubestow.client.informer import Handler, Informer
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.resources import ApiObject, Resource
from kubestow.telemetry.metrics.client import ClientMetrics

T = TypeVar("T", bound=ApiObject)

HandlerOf = Callable[[Resource[Any]], Handler[Any]]


class Informers:
    """The set of informers; `watch` adds to it, `run` keeps it up to date until cancelled."""

    def __init__(self, client: ApiClient, random: Callable[[], float], metrics: ClientMetrics | None = None) -> None:
        self._client = client
        self._random = random
        self._metrics = ClientMetrics() if metrics is None else metrics
        self._informers: list[Informer[Any]] = []
        self._last: list[Informer[Any]] = []
        self._tasks: dict[object, asyncio.Task[None]] = {}
        """The running tasks: that of each informer, and the subscription of the handlers."""
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """The first exception of a task."""
        self._refusals: Refusals | None = None
        self._handler_of: HandlerOf | None = None

    def watch(self, resource: Resource[T], *, last: bool = False) -> Informer[T]:
        """Watch a resource from `start` on, or from now on; return its informer.

        With `last`, its handler subscribes once all others are synced.
        """
        informer = Informer(resource)
        self._informers.append(informer)
        if last:
            self._last.append(informer)
        if self._refusals is not None:
            self._start(informer, self._refusals)
        if self._handler_of is not None:
            informer.subscribe(self._handler_of(resource))
        return informer

    def unwatch(self, informer: Informer[Any]) -> None:
        """Stop to watch a resource; its handler is notified that its objects are gone."""
        self._informers.remove(informer)
        task = self._tasks.pop(informer, None)
        if task is not None:
            task.cancel()
        metrics = self._metrics
        for gauge in (
            metrics.informer_queued,
            metrics.informer_version,
            metrics.informer_unreadable,
            metrics.informer_undecodable,
        ):
            gauge.untrack(*informer.resource.labels)
        informer.unsubscribe()

    def start(self) -> None:
        """Start to list and watch all resources, before `run` subscribes the handlers."""
        self._refusals = Refusals()
        for informer in self._informers:
            self._start(informer, self._refusals)

    def _start(self, informer: Informer[Any], refusals: Refusals) -> None:
        reflector = Reflector(self._client, informer, self._random, refusals, self._metrics)
        self._spawn(informer, reflector.run(), f"watch {informer.resource.name}")

    def _spawn(self, key: object, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks[key] = task = asyncio.get_running_loop().create_task(coroutine, name=name)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def run(self, handler_of: HandlerOf) -> None:
        """Notify the handlers of all objects and their changes until cancelled."""
        if self._refusals is None:
            self.start()
        self._spawn("subscribe", self._subscribe(handler_of), "subscribe handlers")
        try:
            await self._failed
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.wait(self._tasks.values())

    async def _subscribe(self, handler_of: HandlerOf) -> None:
        self._handler_of = handler_of
        first = [informer for informer in self._informers if informer not in self._last]
        for informer in first:
            informer.subscribe(handler_of(informer.resource))
        for informer in first:
            await informer.synced.wait()
        for informer in self._last:
            informer.subscribe(handler_of(informer.resource))

    def unsynced(self) -> list[str]:
        """Return the names of the resources whose initial list is not complete yet."""
        return [informer.resource.name for informer in self._informers if not informer.synced.is_set()]

    async def wait_synced(self, seconds: float | None = None) -> None:
        """Wait until every resource is synced. Raises TimedOutError, which names those that are not."""
        try:
            async with asyncio.timeout(seconds):
                for informer in self._informers:
                    await informer.synced.wait()
        except TimeoutError:
            missing = ", ".join(self.unsynced())
            raise TimedOutError(f"not synced after {seconds:g} s: {missing}") from None
