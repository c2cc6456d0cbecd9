"""The lifecycle of a scheduler at an API server.

    watch until synced -> acquire the lease -> schedule -> shut down

An instance without the lease keeps watching, so that it can schedule at once when it acquires the lease (unless the
configuration delays watching). Cancelling `run` shuts down in order: no more pods are popped, running bindings may
finish, pending writes are sent, the lease is released. After a lost lease nothing is written.
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
"""Time limit of running bindings at shutdown."""
WRITING_SECONDS = 5.0
"""Time limit of pending writes (conditions, evictions, events) at shutdown."""


class Permission(msgspec.Struct):
    """Whether this instance may write: only while it leads, and never again once it has ended."""

    elector: Elector | None
    ended: bool = False

    def __call__(self) -> bool:
        return not self.ended and (self.elector is None or self.elector.may_act)


class Lifecycle(msgspec.Struct, frozen=True):
    """The start order of the parts of a scheduler, and its shutdown."""

    scheduler: Scheduler
    dispatcher: Dispatcher
    informers: Informers
    handler_of: HandlerOf
    """Returns the handler of a resource."""
    events: EventRecorder
    recorder: PodRecorder
    elector: Elector | None
    may_write: Permission
    candidate: Candidate | None
    """Set for coordinated leader election, where the API server selects the leader."""
    delays_watching: bool
    """Whether watching starts only when the lease is held."""
    synced: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set once the initial lists are complete."""

    async def run(self) -> None:
        """Schedule until cancelled. Raises LeaseLostError when the lease is lost."""
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
        # Listed objects live as long as the process: the collector can ignore them.
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
        """Finish running work as far as writing is still allowed, and drop the rest."""
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
        scheduler.binder.cancel_remaining()
