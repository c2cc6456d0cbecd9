"""Reads the objects of a live cluster with the user's permissions.

Every resource that the scheduler watches is listed once. Resources that the user may not list are missing in the dry
run, and a note reports them; without permission to list nodes, a dry run is impossible.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from kubestow.api import codec
from kubestow.api.devices import ResourceClaimTemplate
from kubestow.api.failures import CallError, ForbiddenError, NotFoundError
from kubestow.api.pod import Pod
from kubestow.api.workloads import PriorityClass
from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.clients import user_agent
from kubestow.client.lists import Lister
from kubestow.client.resources import NODES, PODS, WATCHED, Resource, declared_resources, watched_by_gates
from kubestow.clock import SystemClock
from kubestow.config import Features
from kubestow.insight.explain.names import absent, did_you_mean, nearest
from kubestow.insight.explain.world import ExplainError

RESOURCE_CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", ResourceClaimTemplate)
"""Not read by schedulers, but by dry runs of pods that do not exist yet."""
_PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", PriorityClass)
_SECONDS = 30.0


class Reading(NamedTuple):
    """The objects that were read, and the resources that were not."""

    objects: list[Any]
    remarks: tuple[str, ...] = ()
    unreadable: tuple[tuple[type, str], ...] = ()
    """Kinds that the user may not list or the server does not serve, with the problem."""
    forbidden: tuple[str, ...] = ()
    """Resources that the user may not list."""

    def union(self, other: "Reading") -> "Reading":
        """Return the union of two readings."""
        return Reading(
            self.objects + other.objects,
            self.remarks + other.remarks,
            self.unreadable + other.unreadable,
            self.forbidden + other.forbidden,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages about objects that could not be read."""
        names = ", ".join(self.forbidden)
        return self.remarks + ((f"{names} may not be listed and are ignored",) if names else ())


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Item(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Named(msgspec.Struct, frozen=True):
    """The names in a list of objects of any kind."""

    items: tuple[_Item, ...] = ()


def _waits_for_claims(pod: Pod) -> bool:
    made = {one.name for one in pod.status.resourceClaimStatuses}
    return any(one.resourceClaimTemplateName and one.name not in made for one in pod.spec.resourceClaims)


class NoPodError(ExplainError):
    """The pod does not exist."""


class NodesForbiddenError(ExplainError):
    """The user may not list nodes."""


class LiveCluster:
    """A client of an API server with a user's permissions; created inside the running event loop."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._channel = open_channel(access, most_requests=1, clock=SystemClock())
        self._client = ApiClient(self._channel, user_agent=user_agent("explain"), seconds=_SECONDS)

    async def close(self) -> None:
        await self._channel.closed()

    async def pod(self, namespace: str, name: str) -> Pod:
        """Return a pod. Raises NoPodError if it does not exist, ExplainError if it cannot be read."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
        try:
            return codec.decode(Pod, (await self._client.request("GET", path)).body)
        except NotFoundError:
            raise NoPodError(await self.absent_pod(namespace, name)) from None
        except (CallError, codec.DecodeError) as error:
            raise ExplainError(f"pod {namespace}/{name} cannot be read: {error}") from None

    async def names(self, path: str) -> list[str] | None:
        """Return the names of the objects at a path; None if they cannot be listed."""
        try:
            listed = msgspec.json.decode((await self._client.request("GET", path)).body, type=_Named)
        except (CallError, msgspec.DecodeError):
            return None
        return [one.metadata.name for one in listed.items]

    async def absent_pod(self, namespace: str, name: str) -> str:
        """Return the sentence that a pod does not exist, with the nearest names of pods, or of namespaces."""
        spaces = await self.names("/api/v1/namespaces")
        if spaces is not None and namespace not in spaces:
            return absent("namespace", namespace, spaces)
        pods = await self.names(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods") or ()
        similar = [f"{namespace}/{one}" for one in nearest(name, pods)]
        return f"there is no pod {namespace}/{name} at {self._access.server}{did_you_mean(similar)}"

    async def is_node_missing(self, name: str) -> bool:
        """Return whether a node does not exist; False if the user may not get it."""
        try:
            await self._client.request("GET", f"/api/v1/nodes/{quote(name, safe='')}")
        except NotFoundError:
            return True
        except CallError:
            return False
        return False

    async def read(self, *, with_templates: bool = False) -> Reading:
        """Read the objects that all schedulers use; with claim templates for pods that do not exist yet.

        Templates are also read if a pending pod waits for a claim of one.

        Raises ExplainError if nodes, or other resources that the user may list, cannot be listed.
        """
        found = await self._read(*WATCHED, _PRIORITY_CLASSES)
        if with_templates or any(isinstance(one, Pod) and _waits_for_claims(one) for one in found.objects):
            found = found.union(await self._read(RESOURCE_CLAIM_TEMPLATES))
        return found

    async def read_configured(self, features: Features, declared: Iterable[type]) -> Reading:
        """Read the objects that only schedulers with certain features and plugins use. Raises ExplainError.

        `declared` are the kinds that the plugins watch.
        """
        watched = declared_resources(kind for kind in declared if kind is not PriorityClass)
        return await self._read(*watched_by_gates(features), *watched)

    async def _read(self, *resources: Resource[Any]) -> Reading:
        # One list at a time: the user shares the server with others.
        answers = [await self._list(resource) for resource in resources]
        return reduce(Reading.union, answers, Reading([]))

    async def _list(self, resource: Resource[Any]) -> Reading:
        try:
            listed = await Lister(self._client, resource).fetch("0")
        except NotFoundError:
            problem = f"{resource.name}: the API server does not have them"
            remarks = (problem,) if resource.is_declared else ()
            return Reading([], remarks, ((resource.kind, problem),) if resource.group else ())
        except ForbiddenError as error:
            if resource is NODES:
                raise NodesForbiddenError(f"nodes cannot be listed: {error}") from None
            unreadable = ((resource.kind, str(error)),)
            if resource is PODS:
                note = f"{resource.name} may not be listed and are ignored; nodes appear emptier than they are"
                return Reading([], (note,), unreadable)
            return Reading([], (), unreadable, (resource.name,))
        except CallError as error:
            raise ExplainError(f"{resource.name} cannot be listed: {error}") from None
        notes: tuple[str, ...] = ()
        if listed.unreadable:
            notes = (f"{len(listed.unreadable)} {resource.name} cannot be read and are ignored",)
        return Reading(listed.objects, notes)
