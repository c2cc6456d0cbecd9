"""A control plane and schedulers in one event loop, with helpers for tests.

Everything runs in virtual time: waiting for a lease or a backoff takes no real time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubestow import config
from kubestow.apiserver import ControlPlane, Options
from kubestow.apiserver.rest import paths, reading
from kubestow.cli.scheduler.live import LiveOptions, LiveScheduler
from kubestow.cli.scheduler.options import DecisionOptions
from kubestow.client.access import Access, Identity, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.tls import TlsSettings
from kubestow.config.configuration import SchedulerConfiguration
from kubestow.config.features import Features
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.server.http.connection import Connection
from kubestow.server.http.errors import ApiError as RefusedError
from kubestow.server.http.limits import Limits
from kubestow.server.http.listening import listen
from kubestow.server.http.messages import Request
from kubestow.server.http.server import Server
from kubestow.simulator.in_memory.harness import configured
from support.client.doubles import SkewedClock

TOKEN = "integration"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
PODS = "/api/v1/namespaces/default/pods"


def node(name: str, cpu: str = "4", pods: str = "110", **labels: str) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "16Gi", "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def priority_class(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def settings(*, elects: bool = False, **fields: Any) -> SchedulerConfiguration:
    """Return the default configuration, without a rate limit."""
    chosen = config.default()
    return replace(
        chosen,
        leaderElection=replace(chosen.leaderElection, leaderElect=elects),
        clientConnection=replace(chosen.clientConnection, qps=-1.0),
        **fields,
    )


Application = Callable[[Request, Connection], None]
Wrap = Callable[[Application], Application]


def _unwrapped(application: Application) -> Application:
    return application


class Binding(NamedTuple):
    """A binding that arrived at the server."""

    pod: str
    sender: str
    leader: str
    """The lease holder at that time."""


class Link:
    """One scheduler's connection to the control plane: it can be cut, and its requests can be made to fail."""

    def __init__(self, cluster: "Cluster", name: str, wrap: Wrap) -> None:
        self._cluster = cluster
        self._name = name
        self._application = wrap(cluster.plane.application)
        self._server: Server | None = None
        self.port = 0

    @property
    def access(self) -> Access:
        return Access("test", f"http://127.0.0.1:{self.port}", identity=Identity(token=TOKEN))

    async def connect(self) -> None:
        self._server = Server(self._forward, Limits())
        self.port = self._server.start(listen("127.0.0.1", self.port, "--port"), None)

    async def disconnect(self) -> None:
        assert self._server is not None
        await self._server.stop()

    def _forward(self, request: Request, connection: Connection) -> None:
        if request.method == "POST" and request.path.endswith("/binding"):
            name = request.path.split("/")[-2]
            self._cluster.bindings.append(Binding(name, self._name, self._cluster.leader_now()))
        self._application(request, connection)


class Cluster:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.bindings: list[Binding] = []
        tls = TlsSettings(insecure=True)
        access = Access("test", plane.url, tls=tls, identity=Identity(token=TOKEN))
        self._channel = open_channel(access, clock=SkewedClock())
        self._admin = ApiClient(self._channel, user_agent="test")

    def leader_now(self) -> str:
        """Return the lease holder, without a request."""
        target = paths.parse(LEASE, self.plane.application.registry)
        assert target is not None
        try:
            record = reading.get(self.plane.store, target.resource, target.namespace or "", target.name)
        except RefusedError:
            return ""
        found: str = record.object()["spec"].get("holderIdentity") or ""
        return found

    def close(self) -> None:
        self._channel.close()

    async def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        response = await self._admin.request(method, path, data, content_type)
        return json.loads(response.body)

    async def get(self, path: str) -> Any:
        return await self.call("GET", path)

    async def add(self, *objects: dict[str, Any]) -> None:
        for obj in objects:
            group = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"/api/{obj['apiVersion']}"
            namespace = obj["metadata"].get("namespace")
            where = f"{group}/namespaces/{namespace}" if namespace else group
            await self.call("POST", f"{where}/{_PLURALS.get(obj['kind'], obj['kind'].lower() + 's')}", obj)

    async def patch(self, path: str, body: Any) -> Any:
        return await self.call("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str) -> None:
        await self.call("DELETE", path)

    async def pods(self) -> dict[str, dict[str, Any]]:
        return {item["metadata"]["name"]: item for item in (await self.get(PODS))["items"]}

    async def nodes_of_pods(self) -> dict[str, str]:
        return {name: item["spec"].get("nodeName", "") for name, item in (await self.pods()).items()}

    async def all_bound(self, *names: str) -> bool:
        placed = await self.nodes_of_pods()
        return all(placed.get(name) for name in names or placed)

    async def events(self, reason: str) -> list[dict[str, Any]]:
        return [event for event in (await self.get(EVENTS))["items"] if event["reason"] == reason]


_PLURALS = {"DeviceClass": "deviceclasses", "StorageClass": "storageclasses", "PriorityClass": "priorityclasses"}


async def eventually(holds: Callable[[], Any], seconds: float = 120.0) -> None:
    """Wait until a condition holds, for a limited virtual time."""
    async with asyncio.timeout(seconds):
        while True:
            answer = holds()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def running_cluster(**options: Any) -> AsyncIterator[Cluster]:
    """Yield a control plane without controllers, unless `options` change that."""
    chosen: dict[str, Any] = {"token": TOKEN, "controllers": False, "kubelets": False} | options
    async with ControlPlane(Options(**chosen)) as plane:
        cluster = Cluster(plane)
        try:
            yield cluster
        finally:
            cluster.close()


class Instance:
    """A running scheduler."""

    def __init__(self, live: LiveScheduler, link: Link) -> None:
        self.live = live
        self.link = link
        self.task = asyncio.create_task(live.run())

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})

    async def ended(self) -> BaseException | None:
        """Wait for the end of the scheduler and return its exception."""
        await asyncio.wait({self.task})
        return self.task.exception()


@asynccontextmanager
async def running_scheduler(
    cluster: Cluster,
    configuration: SchedulerConfiguration | None = None,
    *,
    name: str = "s1",
    skew: float = 0.0,
    wrap: Wrap = _unwrapped,
    decisions: DecisionOptions | None = None,
    features: Features | None = None,
    plugins: Sequence[Any] = (),
) -> AsyncIterator[Instance]:
    """Yield a scheduler at the cluster, stopped at the end; `plugins` are out-of-tree plugins."""
    link = Link(cluster, name, wrap)
    await link.connect()
    registry = in_tree_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    options = LiveOptions(
        configured(configuration or settings(), plugins, features or Features()),
        link.access,
        features or Features(),
        registry,
        seed=1,
        identity=name,
        clock=SkewedClock(skew),
        decisions=decisions or DecisionOptions(),
    )
    instance = Instance(LiveScheduler(options), link)
    try:
        yield instance
    finally:
        await instance.stop()
        await link.disconnect()
