"""Events: recorded at once, written in the background.

`record` only stores an event in memory. The first of a kind is created at the server; the second turns it into a series
by a patch; later ones only increment a count, which is written every half hour while the series lasts and once after
its end (six minutes without another event). Workers write as fast as the rate limit of their client allows. A write is
tried twelve times, about ten seconds apart, if the server cannot be reached; events that the server rejects are
dropped. If too many are pending, new events are dropped: they never delay scheduling. If too many different ones are
recent, the oldest are forgotten: equal events after that are new ones.
"""

import asyncio
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import msgspec

from kubestow.api.failures import AlreadyExistsError, ApiError, CallError, NotFoundError
from kubestow.api.meta import ObjectReference
from kubestow.api.name_formats import DNS_SUBDOMAIN
from kubestow.api.timestamps import format_micro_time, format_time
from kubestow.client.api import STRATEGIC_MERGE
from kubestow.client.leases import LeaseLock
from kubestow.client.requests import Requests, path_of
from kubestow.clock import Clock
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.client import ClientMetrics

log = get_logger(__name__)

MAX_TRIES = 12
RETRY_SECONDS = 10.0
RETRY_JITTER = 0.25
FINISH_SECONDS = 360.0
REFRESH_SECONDS = 1800.0
TIDY_SECONDS = 60.0
MAX_PENDING = 50_000
MAX_KNOWN = 50_000
"""Maximum number of recent events, and of series, that equal events are merged with; about a kilobyte each."""
WORKERS = 8

QUEUE = "events"
"""The name of the recorder in the workqueue_... metrics."""


class _Meta(msgspec.Struct, gc=False):
    name: str
    namespace: str


class _Series(msgspec.Struct, gc=False):
    count: int
    lastObservedTime: str


class _Body(msgspec.Struct, omit_defaults=True, gc=False):
    kind: str
    apiVersion: str
    metadata: _Meta
    eventTime: str
    reportingController: str
    reportingInstance: str
    action: str
    reason: str
    regarding: ObjectReference
    note: str
    type: str
    related: ObjectReference | None = None
    series: _Series | None = None


class _Known(msgspec.Struct, gc=False):
    """A recent event that equal events are merged with; `count` is 0 until there is a series."""

    body: _Body
    at: float
    count: int = 0
    last: float = 0.0
    written: float = 0.0


class _Write(msgspec.Struct, gc=False):
    """A pending write of an event: its creation, or the state of its series if `count` is not 0."""

    body: _Body
    count: int
    last: float


class _CoreEvent(msgspec.Struct):
    namespace: str
    body: dict[str, Any]


_Key = tuple[str, str, str, str, ObjectReference, ObjectReference | None]


class EventRecorder:
    """Records events from any task of the loop; `run` writes them until cancelled."""

    def __init__(
        self,
        requests: Requests,
        *,
        hostname: str,
        clock: Clock,
        random: Callable[[], float],
        max_pending: int = MAX_PENDING,
        max_known: int = MAX_KNOWN,
        metrics: ClientMetrics | None = None,
    ) -> None:
        self.dropped = 0
        self._requests = requests
        self._hostname = hostname
        self._clock = clock
        self._random = random
        self._metrics = metrics or ClientMetrics()
        self._pending: deque[tuple[_Write | _CoreEvent, float]] = deque()
        """The pending writes, each with the time at which it was added."""
        self._idle: list[asyncio.Future[None]] = []
        """The futures of the workers that wait for a write."""
        self._emptied: asyncio.Future[None] | None = None
        """The future of `drain`, which waits until everything is written."""
        self._writing: dict[int, float] = {}
        self._max_pending = max_pending
        self._max_known = max_known
        # Both ordered by age: an event moves from the first to the second when it becomes a series.
        self._singles: OrderedDict[_Key, _Known] = OrderedDict()
        self._series: OrderedDict[_Key, _Known] = OrderedDict()
        self._last_stamp = 0
        self._metrics.work_depth.track(lambda: self.pending, QUEUE)
        self._metrics.work_unfinished.track(lambda: sum(self.being_written()), QUEUE)
        self._metrics.work_longest.track(lambda: max(self.being_written(), default=0.0), QUEUE)

    def record(
        self,
        controller: str,
        regarding: ObjectReference,
        kind: str,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Record an event; `kind` is Normal or Warning, `controller` is the name of the scheduler."""
        if kind not in ("Normal", "Warning"):
            raise ValueError(f"the kind of an event is Normal or Warning, not {kind!r}")
        now = self._clock.now()
        key = (kind, action, reason, controller, regarding, related)
        known = self._series.get(key)
        if known is not None:
            known.count += 1
            known.last = now
            return
        if len(self._pending) >= self._max_pending:
            self._drop()
            return
        known = self._singles.pop(key, None)
        if known is not None:
            known.count = 2
            known.last = known.written = now
            self._series[key] = known
            if len(self._series) > self._max_known:
                self._write_series(self._series.popitem(last=False)[1], now)
        else:
            meta = _Meta(self._name(regarding.name, now), regarding.namespace or "default")
            body = _Body(
                "Event",
                "events.k8s.io/v1",
                meta,
                format_micro_time(now),
                controller,
                f"{controller}-{self._hostname}",
                action,
                reason,
                regarding,
                note,
                kind,
                related,
            )
            known = self._singles[key] = _Known(body, now)
            if len(self._singles) > self._max_known:
                self._singles.popitem(last=False)
        self._put(_Write(known.body, known.count, known.last))

    def announce(
        self, controller: str, lock: LeaseLock, what: str, *, reason: str = "LeaderElection", kind: str = "Normal"
    ) -> None:
        """Record a change of a contender, such as that it became leader, as a core/v1 event about the lease."""
        meta = lock.metadata
        now = self._clock.now()
        moment = format_time(now)
        regarding = {
            "kind": "Lease",
            "namespace": lock.namespace,
            "name": lock.name,
            "uid": meta.get("uid", ""),
            "apiVersion": "coordination.k8s.io/v1",
            "resourceVersion": meta.get("resourceVersion", ""),
        }
        body = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": self._name(lock.name, now), "namespace": lock.namespace},
            "involvedObject": regarding,
            "reason": reason,
            "message": f"{lock.identity} {what}",
            "source": {"component": controller},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": kind,
            "reportingComponent": controller,
            "reportingInstance": "",
        }
        if len(self._pending) >= self._max_pending:
            self._drop()
        else:
            self._put(_CoreEvent(lock.namespace, body))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS):
                tasks.create_task(self._work(), name=f"write events {number}")
            tasks.create_task(self._tidy(), name="finish event series")

    async def drain(self, seconds: float) -> bool:
        """Wait until everything is written, up to a limit; return whether it is. `run` must be running."""
        try:
            async with asyncio.timeout(seconds):
                while self._pending or self._writing:
                    self._emptied = asyncio.get_running_loop().create_future()
                    await self._emptied
        except TimeoutError:
            return False
        return True

    def _drop(self) -> None:
        self.dropped += 1
        if self.dropped % 1000 == 1:
            log.warning("Events dropped: the server is too slow to write them", dropped=self.dropped)

    def _name(self, regarding: str, now: float) -> str:
        # Two events of one object at the same time must not get the same name.
        self._last_stamp = max(int(now * 1e9), self._last_stamp + 1)
        name = f"{regarding}.{self._last_stamp:x}"
        return str(uuid.uuid4()) if DNS_SUBDOMAIN.problems(name) else name

    @property
    def pending(self) -> int:
        """The number of events that wait to be written."""
        return len(self._pending)

    def being_written(self) -> list[float]:
        """Return how long each write in progress has taken so far, in seconds."""
        now = self._clock.now()
        return [now - since for since in self._writing.values()]

    def _put(self, item: _Write | _CoreEvent) -> None:
        self._metrics.work_adds.inc(QUEUE)
        self._pending.append((item, self._clock.now()))
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                break

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._pending:
                waiting = loop.create_future()
                self._idle.append(waiting)
                await waiting
                continue
            item, since = self._pending.popleft()
            start = self._writing[id(item)] = self._clock.now()
            self._metrics.work_waited.observe(start - since, QUEUE)
            try:
                await self._deliver(item)
            finally:
                self._metrics.work_seconds.observe(self._clock.now() - start, QUEUE)
                del self._writing[id(item)]
                if self._emptied is not None and not (self._pending or self._writing or self._emptied.done()):
                    self._emptied.set_result(None)

    async def _deliver(self, item: _Write | _CoreEvent) -> None:
        for tries in range(MAX_TRIES):
            if tries:
                self._metrics.work_retries.inc(QUEUE)
                await asyncio.sleep(RETRY_SECONDS * (1.0 + RETRY_JITTER * self._random()))
            try:
                if isinstance(item, _CoreEvent):
                    await self._requests.send("POST", path_of("v1", "events", item.namespace), item.body)
                elif item.count == 0:
                    await self._requests.send("POST", _events_of(item.body), item.body)
                else:
                    await self._continue(item.body, _Series(item.count, format_micro_time(item.last)))
                return
            except AlreadyExistsError:
                # A patch overtook the create it belongs to, and created the event itself.
                if isinstance(item, _CoreEvent) or item.count == 0:
                    return
                # The event was created in the meantime: the next try patches it.
            except ApiError as error:
                log.warning("The server rejected an event; it is dropped", err=error)
                return
            except CallError as error:
                log.warning("Failed to write an event; it is retried later", err=error)
        log.error("Failed to write an event; it is dropped", tries=MAX_TRIES)

    async def _continue(self, body: _Body, series: _Series) -> None:
        path = f"{_events_of(body)}/{body.metadata.name}"
        try:
            await self._requests.send("PATCH", path, {"series": series}, STRATEGIC_MERGE)
        except NotFoundError:
            # Events expire at the server, by default after an hour.
            await self._requests.send("POST", _events_of(body), msgspec.structs.replace(body, series=series))

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            now = self._clock.now()
            for key, known in list(self._series.items()):
                if known.last < now - FINISH_SECONDS:
                    del self._series[key]
                elif known.written >= now - REFRESH_SECONDS:
                    continue
                self._write_series(known, now)
            oldest = now - FINISH_SECONDS
            while self._singles:
                key = next(iter(self._singles))
                if self._singles[key].at >= oldest:
                    break
                del self._singles[key]

    def _write_series(self, known: _Known, now: float) -> None:
        known.written = now
        self._put(_Write(known.body, known.count, known.last))


def _events_of(body: _Body) -> str:
    return path_of("events.k8s.io/v1", "events", body.metadata.namespace)
