"""Leader election on a Lease: at most one instance leads.

A contender reads the lease periodically. It does not trust the times in the lease: it records by its own monotonic
clock when it last saw the lease change, and acquires it only if it has not changed for its whole duration. The leader
renews; if it cannot within the renew deadline, which is shorter than the lease's duration, or sees another holder, it
stops at once, before another instance may start. A leader that is shut down keeps renewing until its work has ended,
then releases the lease, so that the next leader need not wait.

In a coordinated election (see `candidate`) the API server writes the holder into the lease. The contenders do not
acquire it then; the holder renews it until the server names a preferred holder to succeed it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from kubestow.api.failures import CallError, LeaseLostError, NotFoundError
from kubestow.api.timestamps import format_micro_time
from kubestow.client.leases import LeaseLock, Record
from kubestow.clock import Clock
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.client import ClientMetrics

log = get_logger(__name__)

JITTER = 1.2


class Terms(msgspec.Struct, frozen=True):
    """The duration of the lease, the time the leader tries to renew it, and the interval of the tries, in seconds."""

    lease: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if self.lease <= self.renew_deadline:
            raise ValueError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline <= JITTER * self.retry:
            raise ValueError(f"renewDeadline must be greater than retryPeriod times {JITTER}")
        if self.retry <= 0:
            raise ValueError("retryPeriod must be greater than zero")


class Elector:
    """One contender; `run` competes, leads, and returns when it is no longer the leader.

    `announce` is called with "became leader" or "stopped leading" when that happens; it must not block.
    """

    def __init__(
        self,
        lock: LeaseLock,
        terms: Terms,
        *,
        clock: Clock,
        random: Callable[[], float],
        announce: Callable[[LeaseLock, str], None],
        metrics: ClientMetrics | None = None,
        coordinated: bool = False,
    ) -> None:
        """`coordinated`: the API server chooses the leader."""
        self._coordinated = coordinated
        self._lock = lock
        self._terms = terms
        self._clock = clock
        self._random = random
        self._announce = announce
        self._metrics = metrics or ClientMetrics()
        self._loop = asyncio.get_running_loop()
        self._observed = Record()
        self._observed_at = float("-inf")
        self._last_read = Record()
        self._sent_at = float("-inf")
        self._reported = ""
        self._metrics.leads.set(0, lock.name)

    @property
    def lease(self) -> str:
        """The name of the lease."""
        return self._lock.name

    @property
    def leader(self) -> str:
        """The identity of the holder of the lease last seen; empty if there is none."""
        return self._observed.holder

    @property
    def leads(self) -> bool:
        return self._observed.holder == self._lock.identity

    @property
    def may_act(self) -> bool:
        """Whether no other instance can hold the lease now. Check it before each irreversible action.

        The lease counts from before the last renewal was sent, so the result is right even if this process was stopped
        or starved for a while and its timers are late.
        """
        return self.leads and self._loop.time() < self._sent_at + self._terms.lease

    def overdue(self, tolerated: float) -> bool:
        """Return whether this instance still leads although its lease expired more than `tolerated` seconds ago."""
        return self.leads and self._loop.time() - self._observed_at > self._terms.lease + tolerated

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Compete, then lead until `lead` ends. Raises LeaseLostError if the lease is lost before that.

        If cancelled: cancels `lead`, waits for its end while renewing, then releases the lease.
        """
        await self._acquire()
        leading = asyncio.create_task(lead(), name="leading")
        renewing = asyncio.create_task(self._renew(), name="renew lease")
        try:
            await asyncio.wait({leading, renewing}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            leading.cancel()
            await asyncio.wait({leading, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                await self._step_down(renewing)
            raise
        finally:
            self._sent_at = float("-inf")
            leading.cancel()
            renewing.cancel()
            self._metrics.leads.set(0, self._lock.name)
            self._announce(self._lock, "stopped leading")
        if renewing.done():
            raise LeaseLostError(f"lost the lease {self._lock}")
        await self._step_down(renewing)
        leading.result()

    async def _acquire(self) -> None:
        log.info("Attempting to acquire leader lease...", lock=str(self._lock))
        while not await self._try():
            self._report_leader()
            await asyncio.sleep(self._terms.retry * (1.0 + JITTER * self._random()))
        self._report_leader()
        self._announce(self._lock, "became leader")
        self._metrics.leads.set(1, self._lock.name)
        log.info("Successfully acquired lease", lock=str(self._lock))

    async def _renew(self) -> None:
        """Renew the lease until it is lost."""
        while True:
            try:
                async with asyncio.timeout(self._terms.renew_deadline):
                    while not await self._try():
                        if not self.leads or self._observed.preferred:
                            break
                        await asyncio.sleep(self._terms.retry)
            except TimeoutError:
                log.error("Failed to renew lease", lock=str(self._lock), seconds=self._terms.renew_deadline)
                return
            self._report_leader()
            if self._observed.preferred:
                log.info("Term of the lease has ended", lock=str(self._lock), next=self._observed.preferred)
                return
            if not self.leads:
                log.error("Lost lease", lock=str(self._lock), to=self.leader or "no holder")
                return
            await asyncio.sleep(self._terms.retry)

    async def _step_down(self, renewing: asyncio.Task[None]) -> None:
        renewing.cancel()
        await asyncio.wait({renewing})
        try:
            async with asyncio.timeout(self._terms.renew_deadline):
                held = await self._lock.read()
                if held.holder != self._lock.identity:
                    return
                now = format_micro_time(self._clock.now())
                released = Record("", 1, now, now, held.transitions, held.strategy)
                await self._lock.update(released)
        except (CallError, TimeoutError) as error:
            log.error("Failed to release lease", err=error, lock=str(self._lock))
        else:
            self._observe(released)

    async def _try(self) -> bool:
        """Try once to acquire or renew the lease; return whether this instance holds it now."""
        started = self._loop.time()
        now = format_micro_time(self._clock.now())
        mine = Record(self._lock.identity, int(self._terms.lease), now, now, 0)
        if self.leads and self._is_valid(started) and not self._coordinated:
            try:
                return await self._take(mine, self._observed, started)
            except CallError as error:
                log.info("Failed to renew lease at once, reading it", err=error, lock=str(self._lock))
        try:
            found = await self._lock.read()
        except NotFoundError:
            return not self._coordinated and await self._create(mine, started)
        except CallError as error:
            log.error("Error retrieving lease", err=error, lock=str(self._lock))
            return False
        if found != self._last_read:
            self._last_read = found
            self._observe(found)
        if found.holder and not self.leads and self._is_valid(started):
            log.info("Lease is held and has not expired", v=4, lock=str(self._lock), holder=found.holder)
            return False
        if self._coordinated and (not self.leads or found.preferred or not self._is_valid(started)):
            return False
        if self.leads:
            self._metrics.slow_renewals.inc(self._lock.name)
        try:
            return await self._take(mine, found, started)
        except CallError as error:
            log.error("Failed to update lease", err=error, lock=str(self._lock))
            return False

    async def _create(self, mine: Record, started: float) -> bool:
        try:
            await self._lock.create(mine)
        except CallError as error:
            log.error("Error creating lease", err=error, lock=str(self._lock))
            return False
        self._hold(mine, started)
        return True

    async def _take(self, mine: Record, found: Record, started: float) -> bool:
        if self.leads:
            strategy = found.strategy if self._coordinated else ""
            taken = Record(mine.holder, mine.seconds, found.acquired, mine.renewed, found.transitions, strategy)
        else:
            taken = Record(mine.holder, mine.seconds, mine.acquired, mine.renewed, found.transitions + 1)
        await self._lock.update(taken)
        self._hold(taken, started)
        return True

    def _hold(self, record: Record, sent_at: float) -> None:
        self._sent_at = sent_at
        self._observe(record)

    def _observe(self, record: Record) -> None:
        self._observed = record
        self._observed_at = self._loop.time()

    def _is_valid(self, now: float) -> bool:
        return self._observed_at + self._observed.seconds > now

    def _report_leader(self) -> None:
        if self.leader != self._reported:
            self._reported = self.leader
            log.info("New leader elected", lock=str(self._lock), identity=self.leader)
