"""All the resources that are watched: started together, their initial sync tracked one by one."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from kubestow.client.api import ApiClient
from kubestow.client.informer import Handler, Informer
from kubestow.client.reflector import Reflector
from kubestow.client.refusals import Refusals
from kubestow.client.resources import ApiObject, Resource
from kubestow.model.failures import TimedOutError

T = TypeVar("T", bound=ApiObject)


class Informers:
    """The set; `watch` adds to it, `run` keeps it up to date until cancelled."""

    def __init__(self, client: ApiClient, random: Callable[[], float]) -> None:
        self._client = client
        self._random = random
        self._informers: list[Informer[Any]] = []
        self._last: list[Informer[Any]] = []

    def watch(self, resource: Resource[T], handler: Handler[T], *, last: bool = False) -> Informer[T]:
        """Watch a resource from `run` on; or, if it is to come last, once all others are synced."""
        informer = Informer(resource, handler)
        self._informers.append(informer)
        if last:
            self._last.append(informer)
        return informer

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            first = [informer for informer in self._informers if informer not in self._last]
            refusals = Refusals()
            for informer in first:
                tasks.create_task(self._keep(informer, refusals), name=f"watch {informer.resource.name}")
            for informer in first:
                await informer.synced.wait()
            for informer in self._last:
                tasks.create_task(self._keep(informer, refusals), name=f"watch {informer.resource.name}")

    async def _keep(self, informer: Informer[Any], refusals: Refusals) -> None:
        await Reflector(self._client, informer, self._random, refusals).run()

    def unsynced(self) -> list[str]:
        """The resources whose initial state is not complete yet."""
        return [informer.resource.name for informer in self._informers if not informer.synced.is_set()]

    async def wait_synced(self, seconds: float | None = None) -> None:
        """Wait until every resource is synced; raises TimedOutError naming those that are not."""
        try:
            async with asyncio.timeout(seconds):
                for informer in self._informers:
                    await informer.synced.wait()
        except TimeoutError:
            missing = ", ".join(self.unsynced())
            raise TimedOutError(f"not synced after {seconds:g} s: {missing}") from None
