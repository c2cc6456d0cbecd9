"""What a running scheduler tells at its secure port: how it is configured, and what it has recorded.

Kubestow's and kube-scheduler's alike; only Kubestow's has records.
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
    """Where a scheduler serves its pages, and how it is trusted."""

    url: str
    ca_file: str = ""
    """Empty: as the API server is."""
    insecure: bool = False


class _Configuration(msgspec.Struct):
    """The answer at /configz."""

    componentconfig: dict[str, Any]


class SchedulerPages:
    """The pages of one scheduler, as the one who has access to the API server sees them.

    Made inside the running loop; raises CallError if that is not possible, as all its questions do.
    """

    def __init__(self, access: Access, scheduler: SchedulerAddress, client: str) -> None:
        self._url = scheduler.url
        self._channel = open_channel(_way_to(access, scheduler), most_requests=1, clock=SystemClock())
        self._client = ApiClient(self._channel, user_agent=user_agent(client), seconds=_SECONDS)

    async def close(self) -> None:
        await self._channel.closed()

    async def configuration(self) -> dict[str, Any]:
        """Complete, as it is written in files."""
        answer = await self._client.request("GET", "/configz")
        try:
            return msgspec.json.decode(answer.body, type=_Configuration).componentconfig
        except msgspec.DecodeError as error:
            raise BadAnswerError(f"/configz is not that of a scheduler: {error}") from None

    async def gates(self) -> dict[str, bool]:
        """Which features are on, by name; empty if its metrics do not tell."""
        answer = await self._client.request("GET", "/metrics")
        return {name: value == "1" for name, value in _GATE.findall(answer.body.decode(errors="replace"))}

    async def recorded(self, pod: Pod) -> Decision | None:
        """The last decision about a pod."""
        found = await self._recorded(_path_of(pod.metadata), DecisionList)
        return next((item for item in found.items if item.uid in ("", pod.metadata.uid)), None)

    async def recorded_last(self, namespace: str, name: str) -> Decision | None:
        """The last decision about any pod of this name, also one that is gone."""
        found = await self._recorded(_path_of(ObjectMeta(namespace=namespace, name=name)), DecisionList)
        return next(iter(found.items), None)

    async def recorded_group(self, group: PodGroup) -> GroupDecision | None:
        """The same about a pod group."""
        found = await self._recorded(f"podgroups/{_path_of(group.metadata)}", GroupDecisionList)
        return next((item for item in found.items if item.uid in ("", group.metadata.uid)), None)

    async def _recorded(self, path: str, kind: type[Answer]) -> Answer:
        answer = await self._client.request("GET", f"/debug/decisions/{path}?limit=1")
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError as error:
            raise ExplainError(f"{self._url}: the answer is not a list of decisions: {error}") from None


def demand_authority(scheduler: SchedulerAddress) -> None:
    """Raises CallError if a file says whom to trust and cannot be used, whether or not there is a scheduler to ask."""
    if scheduler.ca_file:
        TlsContexts(TlsSettings(source=_SOURCE, ca_file=scheduler.ca_file)).current()


def plugins_lacking(configuration: dict[str, Any], known: PluginCollection) -> Iterator[tuple[str, str]]:
    """Plugins that a scheduler's configuration enables and that are not here, each with its profile."""
    for profile in configuration.get("profiles") or ():
        points = (profile.get("plugins") or {}).values()
        named = {plugin["name"] for point in points for plugin in point.get("enabled") or ()}
        lacking = (name for name in sorted(named - {"*"}) if not _is_here(name, known))
        yield from ((profile.get("schedulerName", ""), name) for name in lacking)


def _is_here(name: str, known: PluginCollection) -> bool:
    try:
        return name in known
    except PluginLoadError:
        return False


def _path_of(meta: ObjectMeta) -> str:
    return f"{quote(meta.namespace, safe='')}/{quote(meta.name, safe='')}"


def _way_to(access: Access, scheduler: SchedulerAddress) -> Access:
    tls = access.tls
    if scheduler.insecure or scheduler.ca_file:
        tls = TlsSettings(
            source=_SOURCE,
            ca_file=scheduler.ca_file,
            insecure=scheduler.insecure,
            certificate=tls.certificate,
        )
    # A secure port it is: without https:// the user's token would go over the wire for all to read.
    url = scheduler.url if "://" in scheduler.url else f"https://{scheduler.url}"
    return replace(access, server=url, server_field="--server", tls=replace(tls, server_name=""), proxy_url="")
