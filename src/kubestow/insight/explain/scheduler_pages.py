"""Reads the configuration and the recorded decisions of a running scheduler at its secure port.

The scheduler may be Kubestow or kube-scheduler; only Kubestow records decisions.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from kubestow.api.failures import BadAnswerError
from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup
from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.clients import user_agent
from kubestow.client.tls import TlsContexts, TlsSettings
from kubestow.clock import SystemClock
from kubestow.insight.decisions.schema import Decision, DecisionList, GroupDecision, GroupDecisionList
from kubestow.insight.explain.world import ExplainError
from kubestow.plugin.loading import PluginCollection, PluginLoadError

_SECONDS = 10.0
_SOURCE = "command line"
_GATE = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)",[^}]*\} (\d)', re.MULTILINE)

Answer = TypeVar("Answer")


class SchedulerAddress(NamedTuple):
    """The address of a scheduler's pages, and the authority that has signed its certificate."""

    url: str
    ca_file: str = ""
    """Empty: the authority of the API server."""
    insecure: bool = False


class _Configuration(msgspec.Struct):
    """The response of /configz."""

    componentconfig: dict[str, Any]


class SchedulerPages:
    """A client of one scheduler's pages, with the credentials of an API server's user.

    Created inside the running event loop. The constructor and all requests raise CallError.
    """

    def __init__(self, access: Access, scheduler: SchedulerAddress, client: str) -> None:
        self._url = scheduler.url
        self._channel = open_channel(_access_to(access, scheduler), most_requests=1, clock=SystemClock())
        self._client = ApiClient(self._channel, user_agent=user_agent(client), seconds=_SECONDS)

    async def close(self) -> None:
        await self._channel.closed()

    async def configuration(self) -> dict[str, Any]:
        """Return the complete configuration in the format of configuration files."""
        answer = await self._client.request("GET", "/configz")
        try:
            return msgspec.json.decode(answer.body, type=_Configuration).componentconfig
        except msgspec.DecodeError as error:
            raise BadAnswerError(f"/configz has no scheduler configuration: {error}") from None

    async def gates(self) -> dict[str, bool]:
        """Return whether each feature is on, by name; empty if the scheduler has no such metrics."""
        answer = await self._client.request("GET", "/metrics")
        return {name: value == "1" for name, value in _GATE.findall(answer.body.decode(errors="replace"))}

    async def recorded(self, pod: Pod) -> Decision | None:
        """Return the last decision about a pod."""
        found = await self._recorded(_path_of(pod.metadata), DecisionList)
        return next((item for item in found.items if item.uid in ("", pod.metadata.uid)), None)

    async def last_decision_by_name(self, namespace: str, name: str) -> Decision | None:
        """Return the last decision about any pod with this name, including deleted pods."""
        found = await self._recorded(_path_of(ObjectMeta(namespace=namespace, name=name)), DecisionList)
        return next(iter(found.items), None)

    async def recorded_group(self, group: PodGroup) -> GroupDecision | None:
        """Return the last decision about a pod group."""
        found = await self._recorded(f"podgroups/{_path_of(group.metadata)}", GroupDecisionList)
        return next((item for item in found.items if item.uid in ("", group.metadata.uid)), None)

    async def _recorded(self, path: str, kind: type[Answer]) -> Answer:
        answer = await self._client.request("GET", f"/debug/decisions/{path}?limit=1")
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError as error:
            raise ExplainError(f"{self._url}: the answer is not a list of decisions: {error}") from None


def check_ca_file(scheduler: SchedulerAddress) -> None:
    """Raise CallError if the CA file of the scheduler is set and unusable."""
    if scheduler.ca_file:
        TlsContexts(TlsSettings(source=_SOURCE, ca_file=scheduler.ca_file)).current()


def missing_plugins(configuration: dict[str, Any], known: PluginCollection) -> Iterator[tuple[str, str]]:
    """Yield the profile and name of each plugin that a configuration enables and that is not `known` here."""
    for profile in configuration.get("profiles") or ():
        points = (profile.get("plugins") or {}).values()
        named = {plugin["name"] for point in points for plugin in point.get("enabled") or ()}
        lacking = (name for name in sorted(named - {"*"}) if not _is_known(name, known))
        yield from ((profile.get("schedulerName", ""), name) for name in lacking)


def _is_known(name: str, known: PluginCollection) -> bool:
    try:
        return name in known
    except PluginLoadError:
        return False


def _path_of(meta: ObjectMeta) -> str:
    return f"{quote(meta.namespace, safe='')}/{quote(meta.name, safe='')}"


def _access_to(access: Access, scheduler: SchedulerAddress) -> Access:
    tls = access.tls
    if scheduler.insecure or scheduler.ca_file:
        tls = TlsSettings(
            source=_SOURCE,
            ca_file=scheduler.ca_file,
            insecure=scheduler.insecure,
            certificate=tls.certificate,
        )
    # Default to https://, so that the user's token is never sent unencrypted.
    url = scheduler.url if "://" in scheduler.url else f"https://{scheduler.url}"
    return replace(access, server=url, server_field="--server", tls=replace(tls, server_name=""), proxy_url="")
