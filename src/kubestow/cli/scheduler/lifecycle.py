"""A scheduler at an API server, from start to end.

    watches, until all is known -> lease -> scheduling -> an end in good order

Whoever does not get the lease keeps watching, so that it knows everything the moment it does (unless the configuration
delays that). Cancelling `run` is the orderly way to stop: no more pods are taken, bindings under way may finish, what
is left to write is written, the lease is released. A lost lease is the opposite: nothing is written any more.
"""

import asyncio
import gc

import msgspec

from kubestow.client.candidate import Candidate
from kubestow.client.election import Elector
from kubestow.client.events import EventRecorder
from kubestow.client.informers import HandlerOf, Informers
from kubestow.client.recording import PodRecorder
from kubestow.scheduler.binding.dispatcher import Dispatcher
from kubestow.scheduler.loop import Scheduler
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.memory import GC_THRESHOLDS, keep_freed_memory

log = get_logger(__name__)

BINDING_SECONDS = 10.0
"""How long bindings under way may take when the scheduler is asked to stop."""
WRITING_SECONDS = 5.0
"""How long what is left to write (conditions, evictions, events) may take then."""


class Permission(msgspec.Struct):
    """Whether this instance may write: only while it leads, and never again once it has ended."""

    elector: Elector | None
    ended: bool = False

    def __call__(self) -> bool:
        return not self.ended and (self.elector is None or self.elector.may_act)


class Lifecycle(msgspec.Struct, frozen=True):
    """What is run, in which order, and how it ends."""

    scheduler: Scheduler
    dispatcher: Dispatcher
    informers: Informers
    handler_of: HandlerOf
    """Who is told of a resource."""
    events: EventRecorder
    recorder: PodRecorder
    elector: Elector | None
    may_write: Permission
    candidate: Candidate | None
    """Where the API server chooses the leader."""
    delays_watching: bool
    """Whether nothing is watched before the lease is held."""
    synced: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set once everything there was at the start is known."""

    async def run(self) -> None:
        """Schedule until cancelled; raises LeaseLostError when the lease is lost."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.events.run(), name="write events")
                if self.candidate is not None:
                    tasks.create_task(self.candidate.run(), name="stand for election")
                if not self.delays_watching:
                    await self._watch(tasks)
                if self.elector is None:
                    await self._schedule(tasks)
                else:
                    await self.elector.run(lambda: self._schedule(tasks))
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _watch(self, tasks: asyncio.TaskGroup) -> None:
        keep_freed_memory()
        gc.set_threshold(*GC_THRESHOLDS)
        tasks.create_task(self.informers.run(self.handler_of), name="watch")
        await self.informers.wait_synced()
        # What was just listed lives as long as the process: the collector need not look at it, not even once.
        gc.freeze()
        self.synced.set()
        log.info("Handlers synced", v=3)

    async def _schedule(self, tasks: asyncio.TaskGroup) -> None:
        if self.delays_watching:
            await self._watch(tasks)
        try:
            await self.scheduler.run()
        finally:
            await self._finish()

    async def _finish(self) -> None:
        """End in good order what is under way, as far as it is still allowed; give up the rest without a word."""
        scheduler = self.scheduler
        if self.may_write():
            if not await scheduler.binder.drain(BINDING_SECONDS):
                log.warning("Bindings did not end in time", seconds=BINDING_SECONDS, bindings=len(scheduler.binder))
            try:
                async with asyncio.timeout(WRITING_SECONDS):
                    await scheduler.evictions.drain()
                    await self.dispatcher.drain()
            except TimeoutError:
                log.warning("Not everything could be written in time", seconds=WRITING_SECONDS)
            await self.events.drain(WRITING_SECONDS)
        self.may_write.ended = True
        self.recorder.close()
        scheduler.binder.abandon()
