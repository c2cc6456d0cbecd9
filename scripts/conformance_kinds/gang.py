"""Conformance of kind `gang`: pod groups at an API server; compares bound and pending pods, and groups after each step.

The control plane is the embedded one, without controllers and kubelets; it and the scheduler communicate over sockets,
in virtual time.
"""

import asyncio
import json
from collections import Counter
from typing import Any

from msgspec.structs import replace

from kubestow import config
from kubestow.api.failures import NotFoundError
from kubestow.apiserver import ControlPlane, Options
from kubestow.cli.scheduler.live import LiveOptions, LiveScheduler
from kubestow.client.access import Access, Identity, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.tls import TlsSettings
from kubestow.config import Features
from kubestow.scheduler.assembly import Core
from kubestow.testing.jumping_loop import run

GATES = "GenericWorkload TopologyAwareWorkloadScheduling WorkloadWithJob"
_FEATURES = Features.parse(",".join(f"{gate}=true" for gate in GATES.split()))
PRIORITIES = {"p1": 100, "p5": 500, "p9": 900}
_QUIET_SECONDS = 2.5
_QUIET_LOOKS = 25
_TOKEN = "conformance"  # noqa: S105 - of a local server
PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
    "Workload": "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "Event": "/apis/events.k8s.io/v1/namespaces/default/events",
}
OBSERVED_KINDS = ("Node", "Pod", "PodGroup", "Event")
_EVENT_FIELDS = ("type", "reason", "action")
_OPTIONAL_REASON = "FailedScheduling"
"""Events with this reason may occur even if none is recorded."""

Object = dict[str, Any]


def check(case: Object) -> str | None:
    """Return the first difference from the recorded steps, None if there is none."""
    return run(_check(case))


class _Clock:
    """The loop's time as a clock."""

    def now(self) -> float:
        return 1_767_225_600.0 + asyncio.get_running_loop().time()


async def _check(case: Object) -> str | None:
    async with ControlPlane(Options(token=_TOKEN, controllers=False, kubelets=False, features=_FEATURES)) as plane:
        access = Access("case", plane.url, tls=TlsSettings(insecure=True), identity=Identity(token=_TOKEN))
        channel = open_channel(access, clock=_Clock())
        scheduler = LiveScheduler(LiveOptions(_configuration(), access, _FEATURES, seed=1, clock=_Clock()))
        running = asyncio.create_task(scheduler.run())
        try:
            await scheduler.synced.wait()
            api = ApiClient(channel, user_agent="conformance")
            return await _Scenario(plane, scheduler.core, api).play(case)
        finally:
            running.cancel()
            await asyncio.wait({running})
            channel.close()


def _configuration() -> config.SchedulerConfiguration:
    chosen = config.default(_FEATURES)
    return replace(
        chosen,
        leaderElection=replace(chosen.leaderElection, leaderElect=False),
        clientConnection=replace(chosen.clientConnection, qps=-1.0),
    )


class _Scenario:
    """Executes one case step by step."""

    def __init__(self, plane: ControlPlane, core: Core, api: ApiClient) -> None:
        self._plane = plane
        self._core = core
        self._api = api

    async def play(self, case: Object) -> str | None:
        for name, value in PRIORITIES.items():
            await self._create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )
        for number, (step, expected) in enumerate(zip(case["steps"], case["expect"], strict=True)):
            for obj in step.get("apply", ()):
                await self._create(obj)
            for kind, name in step.get("delete", ()):
                await self._delete(kind, name)
            await self._wait_until_quiet()
            found = difference(await self._observe(), expected)
            if found is not None:
                return f"step {number}: {found}"
        return None

    async def _create(self, obj: Object) -> None:
        await self._call("POST", PATHS[obj["kind"]], obj)

    async def _delete(self, kind: str, name: str) -> None:
        try:
            await self._call("DELETE", f"{PATHS[kind]}/{name}", {"gracePeriodSeconds": 0})
        except NotFoundError:
            pass

    async def _call(self, method: str, path: str, body: Object | None = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        return json.loads((await self._api.request(method, path, data, "application/json")).body)

    async def _wait_until_quiet(self) -> None:
        """Wait until the scheduler was idle, and nothing changed, for a while."""
        version, looks = -1, 0
        while looks < _QUIET_LOOKS:
            await asyncio.sleep(_QUIET_SECONDS / _QUIET_LOOKS)
            looks = looks + 1 if self._version == version and self._is_idle else 0
            version = self._version

    @property
    def _version(self) -> int:
        collections = [self._plane.store.collection(name) for name in ("pods", "podgroups.scheduling.k8s.io")]
        return sum(record.rv for collection in collections for record in collection.objects.values())

    @property
    def _is_idle(self) -> bool:
        core = self._core
        busy = (core.scheduler.binder, core.scheduler.evictions, core.dispatcher)
        return not (core.queue.has_work or core.queue.awaits_retry or any(len(part) for part in busy))

    async def _observe(self) -> Object:
        return observed_state({kind: (await self._call("GET", PATHS[kind]))["items"] for kind in OBSERVED_KINDS})


def observed_state(items: dict[str, list[Object]]) -> Object:
    """Return the observable state of the objects of each kind."""
    labels = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in items["Node"]}
    bound, pending = Counter[str](), Counter[tuple[str, str, str, bool]]()
    nodes: dict[str, list[str]] = {}
    for pod in items["Pod"]:
        group = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "-")
        if pod["spec"].get("nodeName"):
            bound[group] += 1
            nodes.setdefault(group, []).append(pod["spec"]["nodeName"])
        else:
            condition = _condition(pod, "PodScheduled")
            condition_texts = condition.get("reason", ""), condition.get("message", "")
            pending[group, *condition_texts, bool(pod["status"].get("nominatedNodeName"))] += 1
    domains = {}
    for group in items["PodGroup"]:
        key = (group["spec"].get("schedulingConstraints") or {}).get("topology") or ()
        name = group["metadata"]["name"]
        if key and name in nodes:
            domains[name] = len({labels[node].get(key[0]["key"]) for node in nodes[name]})
    return {
        "bound": dict(bound),
        "domains": domains,
        "pending": pending,
        "groups": {group["metadata"]["name"]: _conditions(group) for group in items["PodGroup"]},
        "events": {(one["regarding"]["kind"], *(one[field] for field in _EVENT_FIELDS)) for one in items["Event"]},
    }


def _conditions(obj: Object) -> list[Object]:
    fields = ("type", "status", "reason", "message")
    return [{field: one.get(field, "") for field in fields} for one in obj.get("status", {}).get("conditions", ())]


def _condition(pod: Object, kind: str) -> Object:
    conditions = pod.get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == kind), {})


def difference(found: Object, expected: Object) -> str | None:
    """Return the first difference between an observed and a recorded state, None if there is none."""
    wanted = dict(expected)
    wanted["pending"] = Counter(
        {(one["group"], one["reason"], one["message"], one["nominated"]): one["pods"] for one in expected["pending"]}
    )
    wanted["events"] = {(one["kind"], *(one[field] for field in _EVENT_FIELDS)) for one in expected["events"]}
    more = {event for event in found["events"] - wanted["events"] if event[2] == _OPTIONAL_REASON}
    wanted["events"] |= more
    for part, value in wanted.items():
        if found[part] != value:
            return f"{part}: {_shown(found[part])}, expected {_shown(value)}"
    return None


def _shown(value: Any) -> Any:
    return sorted(value) if isinstance(value, set) else dict(value)
