"""The live cluster, read with the caller's own rights, and what its scheduler has recorded.

Every resource that the scheduler watches is listed once. What the caller may not list is not there in the dry run, and
a note says so; without nodes there is nothing to say.
"""

from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.lists import Lister
from kubestow.client.resources import NODES, POD_GROUPS, PODS, WATCHED, Resource
from kubestow.client.tls import TlsSettings
from kubestow.config import Features
from kubestow.decisions.schema import Decision, DecisionList, GroupDecision, GroupDecisionList
from kubestow.explaining.world import ExplainError
from kubestow.model import codec
from kubestow.model.devices import ResourceClaimTemplate
from kubestow.model.failures import CallError, ForbiddenError, NotFoundError
from kubestow.model.meta import ObjectMeta
from kubestow.model.pod import Pod
from kubestow.model.pod_groups import PodGroup
from kubestow.model.workloads import PriorityClass
from kubestow.running.clock import WallClock
from kubestow.wiring.clients import user_agent

RESOURCE_CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", ResourceClaimTemplate)
"""Nothing to a scheduler, but to whoever asks what would become of a pod."""
_PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", PriorityClass)
_SECONDS = 30.0

Answer = TypeVar("Answer")


class Reading(NamedTuple):
    """What was read."""

    objects: list[Any]
    notes: tuple[str, ...] = ()
    """What could not be."""
    unreadable: tuple[tuple[type, str], ...] = ()
    """Kinds that the caller may not list, or the server does not have, and why."""
    forbidden: tuple[str, ...] = ()
    """Resources that the caller may not list."""


class NodesForbiddenError(ExplainError):
    """The caller may not list nodes."""


class LiveCluster:
    """An API server, as one user sees it; made inside the running loop."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._channel = open_channel(access, most_requests=1, clock=WallClock())
        self._client = ApiClient(self._channel, user_agent=user_agent("explain"), seconds=_SECONDS)

    async def close(self) -> None:
        await self._channel.closed()

    async def pod(self, namespace: str, name: str) -> Pod:
        """One pod; raises ExplainError."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
        try:
            return codec.decode(Pod, (await self._client.request("GET", path)).body)
        except NotFoundError:
            raise ExplainError(f"there is no pod {namespace}/{name} at {self._access.server}") from None
        except (CallError, codec.DecodeError) as error:
            raise ExplainError(f"pod {namespace}/{name} cannot be read: {error}") from None

    async def read(self, features: Features, *, with_templates: bool = False) -> Reading:
        """All that a decision depends on; raises ExplainError if something cannot be listed that may be, or nodes.

        Templates of claims matter to pods that do not exist yet.
        """
        resources: tuple[Resource[Any], ...] = (*WATCHED, _PRIORITY_CLASSES)
        if features.generic_workload:
            resources += (POD_GROUPS,)
        if with_templates:
            resources += (RESOURCE_CLAIM_TEMPLATES,)
        # One after the other: the caller may share the server with everybody else.
        answers = [await self._list(resource) for resource in resources]
        objects = [obj for answer in answers for obj in answer.objects]
        notes = tuple(note for answer in answers for note in answer.notes)
        forbidden = ", ".join(name for answer in answers for name in answer.forbidden)
        notes += (f"{forbidden} may not be listed and are left out",) if forbidden else ()
        return Reading(objects, notes, tuple(kind for answer in answers for kind in answer.unreadable))

    async def _list(self, resource: Resource[Any]) -> Reading:
        try:
            listed = await Lister(self._client, resource).fetch("0")
        except NotFoundError:
            problem = f"{resource.name}: the API server does not have them"
            return Reading([], (), ((resource.kind, problem),) if resource.group else ())
        except ForbiddenError as error:
            if resource is NODES:
                raise NodesForbiddenError(f"nodes cannot be listed: {error}") from None
            unreadable = ((resource.kind, str(error)),)
            if resource is PODS:
                note = f"{resource.name} may not be listed and are left out; nodes look emptier than they are"
                return Reading([], (note,), unreadable)
            return Reading([], (), unreadable, (resource.name,))
        except CallError as error:
            raise ExplainError(f"{resource.name} cannot be listed: {error}") from None
        notes: tuple[str, ...] = ()
        if listed.unreadable:
            notes = (f"{len(listed.unreadable)} {resource.name} cannot be read and are left out",)
        return Reading(listed.objects, notes)


class SchedulerAddress(NamedTuple):
    """Where a scheduler serves its pages, and how it is trusted."""

    url: str
    ca_file: str = ""
    """Empty: as the API server is."""
    insecure: bool = False


async def recorded(access: Access, scheduler: SchedulerAddress, pod: Pod) -> Decision | None:
    """The last decision that a scheduler has recorded about a pod; raises CallError if it has none, with its reason."""
    found = await _recorded(access, scheduler, _path_of(pod.metadata), DecisionList)
    return next((item for item in found.items if item.uid in ("", pod.metadata.uid)), None)


async def recorded_group(access: Access, scheduler: SchedulerAddress, group: PodGroup) -> GroupDecision | None:
    """The same about a pod group."""
    found = await _recorded(access, scheduler, f"podgroups/{_path_of(group.metadata)}", GroupDecisionList)
    return next((item for item in found.items if item.uid in ("", group.metadata.uid)), None)


def _path_of(meta: ObjectMeta) -> str:
    return f"{quote(meta.namespace, safe='')}/{quote(meta.name, safe='')}"


def pages_of(access: Access, scheduler: SchedulerAddress) -> Access:
    """The way to a scheduler's pages, as the one who has access to the API server."""
    tls = access.tls
    if scheduler.insecure or scheduler.ca_file:
        tls = TlsSettings(
            source="--server",
            ca_file=scheduler.ca_file,
            insecure=scheduler.insecure,
            certificate=tls.certificate,
        )
    # A secure port it is: without https:// the user's token would go over the wire for all to read.
    url = scheduler.url if "://" in scheduler.url else f"https://{scheduler.url}"
    return replace(access, server=url, server_field="--server", tls=replace(tls, server_name=""), proxy_url="")


async def _recorded(access: Access, scheduler: SchedulerAddress, path: str, kind: type[Answer]) -> Answer:
    channel = open_channel(pages_of(access, scheduler), most_requests=1, clock=WallClock())
    try:
        client = ApiClient(channel, user_agent=user_agent("explain"), seconds=_SECONDS)
        answer = await client.request("GET", f"/debug/decisions/{path}?limit=1")
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.DecodeError as error:
        raise ExplainError(f"{scheduler.url}: the answer is not a list of decisions: {error}") from None
    finally:
        await channel.closed()
