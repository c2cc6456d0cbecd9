"""The live cluster, read with the caller's own rights.

Every resource that the scheduler watches is listed once. What the caller may not list is not there in the dry run, and
a note says so; without nodes there is nothing to say.
"""

from functools import reduce
from typing import Any, NamedTuple
from urllib.parse import quote

from kubestow.api import codec
from kubestow.api.devices import ResourceClaimTemplate
from kubestow.api.failures import CallError, ForbiddenError, NotFoundError
from kubestow.api.pod import Pod
from kubestow.api.workloads import PriorityClass
from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.clients import user_agent
from kubestow.client.lists import Lister
from kubestow.client.resources import DEVICE_TAINT_RULES, NODES, POD_GROUPS, PODS, WATCHED, Resource
from kubestow.clock import SystemClock
from kubestow.config import Features
from kubestow.insight.explain.world import ExplainError

RESOURCE_CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", ResourceClaimTemplate)
"""Nothing to a scheduler, but to whoever asks what would become of a pod."""
_PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", PriorityClass)
_SECONDS = 30.0


class Reading(NamedTuple):
    """What was read."""

    objects: list[Any]
    said: tuple[str, ...] = ()
    unreadable: tuple[tuple[type, str], ...] = ()
    """Kinds that the caller may not list, or the server does not have, and why."""
    forbidden: tuple[str, ...] = ()
    """Resources that the caller may not list."""

    def joined(self, other: "Reading") -> "Reading":
        """Both."""
        return Reading(
            self.objects + other.objects,
            self.said + other.said,
            self.unreadable + other.unreadable,
            self.forbidden + other.forbidden,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be read."""
        names = ", ".join(self.forbidden)
        return self.said + ((f"{names} may not be listed and are left out",) if names else ())


class NoPodError(ExplainError):
    """There is no such pod."""


class NodesForbiddenError(ExplainError):
    """The caller may not list nodes."""


class LiveCluster:
    """An API server, as one user sees it; made inside the running loop."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._channel = open_channel(access, most_requests=1, clock=SystemClock())
        self._client = ApiClient(self._channel, user_agent=user_agent("explain"), seconds=_SECONDS)

    async def close(self) -> None:
        await self._channel.closed()

    async def pod(self, namespace: str, name: str) -> Pod:
        """One pod; raises ExplainError."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
        try:
            return codec.decode(Pod, (await self._client.request("GET", path)).body)
        except NotFoundError:
            raise NoPodError(f"there is no pod {namespace}/{name} at {self._access.server}") from None
        except (CallError, codec.DecodeError) as error:
            raise ExplainError(f"pod {namespace}/{name} cannot be read: {error}") from None

    async def lacks_node(self, name: str) -> bool:
        """Whether there is no such node, as far as the caller may know."""
        try:
            await self._client.request("GET", f"/api/v1/nodes/{quote(name, safe='')}")
        except NotFoundError:
            return True
        except CallError:
            return False
        return False

    async def read(self, *, with_templates: bool = False) -> Reading:
        """All that every decision depends on; raises ExplainError if something cannot be listed that may be, or nodes.

        Templates of claims matter to pods that do not exist yet.
        """
        templates = (RESOURCE_CLAIM_TEMPLATES,) if with_templates else ()
        return await self._read(*WATCHED, _PRIORITY_CLASSES, *templates)

    async def read_gated(self, features: Features) -> Reading:
        """What decisions depend on with these features only; raises ExplainError."""
        gated = ((DEVICE_TAINT_RULES, features.dra_device_taint_rules), (POD_GROUPS, features.generic_workload))
        return await self._read(*(resource for resource, is_read in gated if is_read))

    async def _read(self, *resources: Resource[Any]) -> Reading:
        # One after the other: the caller may share the server with everybody else.
        answers = [await self._list(resource) for resource in resources]
        return reduce(Reading.joined, answers, Reading([]))

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
