"""The set of watched resources: started together, with the initial sync tracked per resource.

The objects are requested by `start`, and the handlers subscribe later, in `run`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from kubestow.api.failures import TimedOutError
from kubestow.client.api import ApiClient
from kubestow.client.informer import Handler, Informer
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.resources import ApiObject, Resource

T = TypeVar("T", bound=ApiObject)

HandlerOf = Callable[[Resource[Any]], Handler[Any]]


class Informers:
    """The set of informers; `watch` adds to it, `run` keeps it up to date until cancelled."""

    def __init__(self, client: ApiClient, random: Callable[[], float]) -> None:
        self._client = client
        self._random = random
        self._informers: list[Informer[Any]] = []
        self._last: list[Informer[Any]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def watch(self, resource: Resource[T], *, last: bool = False) -> Informer[T]:
        """Watch a resource from `start` on; with `last`, its handler subscribes once all others are synced."""
        informer = Informer(resource)
        self._informers.append(informer)
        if last:
            self._last.append(informer)
        return informer

    def start(self) -> None:
        """Start to list and watch all resources, before `run` subscribes the handlers."""
        loop, refusals = asyncio.get_running_loop(), Refusals()
        for informer in self._informers:
            reflector = Reflector(self._client, informer, self._random, refusals)
            self._tasks.append(loop.create_task(reflector.run(), name=f"watch {informer.resource.name}"))

    async def run(self, handler_of: HandlerOf) -> None:
        """Notify the handlers of all objects and their changes until cancelled."""
        if not self._tasks:
            self.start()
        subscribing = self._subscribe(handler_of)
        self._tasks.append(asyncio.get_running_loop().create_task(subscribing, name="subscribe handlers"))
        try:
            await asyncio.gather(*self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    async def _subscribe(self, handler_of: HandlerOf) -> None:
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
