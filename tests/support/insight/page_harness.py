"""A harness for the page of a scheduler in virtual time: makes moments, serves the page, and reads it."""

import asyncio
import http.client
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from kubestow import config
from kubestow.cli.scheduler.page import live_run
from kubestow.insight.explain.world import Setup
from kubestow.insight.page.api import Api
from kubestow.insight.page.events import Events
from kubestow.insight.page.history import RING_BYTES, PageHistory
from kubestow.insight.page.local import HOST, LocalServer
from kubestow.insight.page.moments import Moment
from kubestow.insight.page.pages import Site
from kubestow.insight.page.watching import Watch, WatchedScheduler
from kubestow.testing import SchedulerHarness

TOKEN = "let-me-in"
API = "/ui/api/v1"


class PageHarness:
    """Makes the moments of a scheduler harness that records decisions."""

    def __init__(
        self, world: SchedulerHarness, limit: int = RING_BYTES, features: config.Features | None = None
    ) -> None:
        assert world.decisions is not None
        archive = world.decisions
        self.archive = archive
        features = features or config.Features()
        setup = Setup(config.default(features), features)
        self.run = live_run("a test", world.core, archive, world.clock, lambda: setup)
        self.history = self.run.history = PageHistory(
            world.core.cluster, world.core.queue.nominator, archive.recorder.history, limit
        )
        self.events = Events(self.history)
        self._watch = Watch(WatchedScheduler(world.core, world.metrics, archive.recorder, world.clock), number=1000)

    def make_moment(self) -> Moment | None:
        """Make the next moment, and send it to all readers."""
        moment = self._watch.next_moment()
        if moment is not None:
            self.history.add(moment)
            self.events.publish(moment)
        return moment

    def add_objects(self, world: SchedulerHarness, *objects: Any) -> None:
        """Add objects, let them be scheduled, and make a moment."""
        for obj in objects:
            world.cluster.add(obj)
        world.run_for(1.0)
        assert self.make_moment() is not None

    def site(self) -> Site:
        return Site(Api([self.run], self.events))


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def tree(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reader:
    """Sends requests to a server, each in a new connection."""

    port: int
    token: str = TOKEN
    headers: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, method: str = "GET", body: str | None = None) -> Answer:
        return await asyncio.to_thread(self.read, path, method, body)

    def read(self, path: str, method: str = "GET", body: str | None = None) -> Answer:
        """Send a request, and block until the response."""
        headers = {**self.headers, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=300)
        try:
            connection.request(method, path, None if body is None else body.encode(), headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


def served(site: Site, read: Callable[[Reader], Awaitable[Any]]) -> Any:
    """Serve a site while `read` runs."""

    async def main() -> Any:
        server = LocalServer(site, TOKEN)
        address = await server.start(0)
        try:
            return await read(Reader(int(address.split(":")[2].partition("/")[0])))
        finally:
            await server.stop()

    return asyncio.run(main())


def ask(site: Site, *paths: str) -> list[Any]:
    """Return the JSON responses of GETs, which must all succeed."""

    async def read(reader: Reader) -> list[Any]:
        answers = [await reader.get(API + path) for path in paths]
        assert [answer.status for answer in answers] == [200] * len(paths), answers
        return [answer.tree for answer in answers]

    found: list[Any] = served(site, read)
    return found
