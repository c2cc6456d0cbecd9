"""Records a live cluster: lists and watches everything that the scheduler watches, with read access only."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.api.failures import CallError
from kubestow.api.whole_objects import WholeObject
from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.clients import user_agent
from kubestow.client.informers import Informers
from kubestow.client.resources import NODES, PODS, WATCHED, Resource
from kubestow.clock import Clock
from kubestow.simulator.recording.files import RecordingWriter
from kubestow.simulator.recording.scrubbing import Hasher, scrubbed

FLUSH_SECONDS = 1.0
_REACH_SECONDS = 30.0
_PATIENT_SECONDS = 5.0


class _Recorder:
    """Writes the changes of one resource."""

    def __init__(
        self,
        resource: Resource[Any],
        writer: RecordingWriter,
        clock: Clock,
        hasher: Hasher | None,
        note: Callable[[str], None],
    ) -> None:
        self._group = f"{resource.group}/{resource.version}" if resource.group else resource.version
        self._kind = resource.kind.__name__
        self._name = resource.name
        self._writer = writer
        self._clock = clock
        self._hasher = hasher
        self._note = note

    def on_add(self, obj: WholeObject) -> None:
        self._put(obj)

    def on_update(self, _old: WholeObject, new: WholeObject) -> None:
        self._put(new)

    def on_delete(self, obj: WholeObject) -> None:
        tree = self._tree(obj)
        self._writer.add(self._clock.now(), "delete", {key: tree[key] for key in ("apiVersion", "kind", "metadata")})

    def on_access(self, problem: str) -> None:
        if problem:
            self._note(f"{self._name} cannot be recorded: {problem}")

    def _put(self, obj: WholeObject) -> None:
        self._writer.add(self._clock.now(), "put", self._tree(obj))

    def _tree(self, obj: WholeObject) -> dict[str, Any]:
        tree = {"apiVersion": self._group, "kind": self._kind, **scrubbed(msgspec.json.decode(obj.source))}
        return tree if self._hasher is None else self._hasher.hashed(tree)


async def check_access(access: Access, clock: Clock) -> None:
    """Raise CallError unless nodes and pods can be listed; a recording would wait for them for ever."""
    channel = open_channel(access, clock=clock)
    try:
        client = ApiClient(channel, user_agent=user_agent("record"), seconds=_REACH_SECONDS)
        for resource in (NODES, PODS):
            await client.request("GET", resource.url({"limit": "1"}))
    except CallError as error:
        raise CallError(f"{access.server}: {error}") from None
    finally:
        await channel.closed()


async def follow(
    access: Access, writer: RecordingWriter, clock: Clock, hasher: Hasher | None, note: Callable[[str], None]
) -> None:
    """Record until cancelled."""
    channel = open_channel(access, clock=clock)
    informers = Informers(ApiClient(channel, user_agent=user_agent("record"), unlimited_wait=True), random.random)
    for resource in WATCHED:
        # Pods are recorded until they are removed. Resources other than nodes and pods may be forbidden.
        optional = resource not in (NODES, PODS)
        whole = replace(resource, kind=WholeObject, field_selector="", optional=optional)
        informers.watch(whole, last=resource is PODS)
    recorders = {resource.name: _Recorder(resource, writer, clock, hasher, note) for resource in WATCHED}
    writer.add(clock.now(), "start")
    watching = asyncio.create_task(informers.run(lambda resource: recorders[resource.name]), name="record")
    try:
        syncing = asyncio.create_task(informers.wait_synced(), name="sync")
        both = {watching, syncing}
        done, _ = await asyncio.wait(both, timeout=_PATIENT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            note(f"waiting for {', '.join(informers.unsynced())}")
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not watching.done():
            writer.add(clock.now(), "synced")
            note("recording")
        while not watching.done():
            writer.flush()
            await asyncio.wait({watching}, timeout=FLUSH_SECONDS)
        watching.result()
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        await channel.closed()
        writer.add(clock.now(), "end")
        writer.close()
