"""Records a live cluster: lists and watches everything that the scheduler watches, with read access only."""

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

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
        kind: str,
        writer: RecordingWriter,
        clock: Clock,
        hasher: Hasher | None,
        note: Callable[[str], None],
    ) -> None:
        self._group = f"{resource.group}/{resource.version}" if resource.group else resource.version
        self._kind = kind
        self._is_custom = resource.is_declared
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
        if self._hasher is None:
            return tree
        # The fields of custom resources have names of their own, and values that plugins read.
        hashed = self._hasher.hashed({"metadata": tree["metadata"]} if self._is_custom else tree)
        return {**tree, **hashed}


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


class Custom(NamedTuple):
    """A custom resource to record."""

    resource: Resource[Any]
    kind: str
    """Its name in manifests."""


async def find_custom(access: Access, clock: Clock, names: Iterable[str]) -> list[Custom]:
    """Return the custom resources with names such as `elasticquotas.v1alpha1.scheduling.x-k8s.io`. Raises CallError."""
    found = []
    channel = open_channel(access, clock=clock)
    try:
        client = ApiClient(channel, user_agent=user_agent("record"), seconds=_REACH_SECONDS)
        for name in names:
            plural, version, group = (*name.split(".", 2), "", "")[:3]
            resource = Resource(group, version, plural, WholeObject, optional=True, is_declared=True)
            answer = await client.request("GET", resource.path.rpartition("/")[0])
            served = msgspec.json.decode(answer.body)["resources"]
            kinds = [one["kind"] for one in served if one["name"] == plural]
            if not kinds:
                raise CallError(f"{resource.path} is not served")
            found.append(Custom(resource, kinds[0]))
    except CallError as error:
        raise CallError(f"--watch {name}: {error}") from None
    finally:
        await channel.closed()
    return found


async def follow(
    access: Access,
    writer: RecordingWriter,
    clock: Clock,
    hasher: Hasher | None,
    note: Callable[[str], None],
    custom: Iterable[Custom] = (),
) -> None:
    """Record until cancelled; `custom` resources are recorded as well."""
    channel = open_channel(access, clock=clock)
    informers = Informers(ApiClient(channel, user_agent=user_agent("record"), unlimited_wait=True), random.random)
    recorded = [Custom(resource, resource.kind.__name__) for resource in WATCHED]
    recorded = list({one.resource.path: one for one in (*recorded, *custom)}.values())
    for resource, _ in recorded:
        # Pods are recorded until they are removed. Resources other than nodes and pods may be forbidden.
        optional = resource not in (NODES, PODS)
        selector = resource.field_selector if resource.is_declared else ""
        whole = replace(resource, kind=WholeObject, field_selector=selector, optional=optional)
        informers.watch(whole, last=resource is PODS)
    recorders = {resource.path: _Recorder(resource, kind, writer, clock, hasher, note) for resource, kind in recorded}
    writer.add(clock.now(), "start")
    watching = asyncio.create_task(informers.run(lambda resource: recorders[resource.path]), name="record")
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
