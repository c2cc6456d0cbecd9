"""The handle that plugins get: read access to the cluster, and a few operations."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from kubestow.api.devices import ResourceClaim
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.clock import Clock
from kubestow.config.features import Features
from kubestow.rng import Rng
from kubestow.scheduler.cluster.node_columns import NodeColumns
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.nominated import NominatedPods
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.declarations import Watched
from kubestow.scheduler.framework.polling import Background, Http, NoBackground, PolledValue, Timer
from kubestow.scheduler.framework.scope import Objects, ObjectWriter, Pods, Scope, Tracked
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

T = TypeVar("T")
N = TypeVar("N", int, float)


class PluginApi(Protocol):
    """Writes that plugins may make. A call returns when the server has answered, and raises a returned error."""

    async def bind(self, pod: Pod, node: str) -> None: ...

    async def update_volume(self, volume: PersistentVolume, changes: dict[str, Any]) -> PersistentVolume: ...

    async def update_claim(self, claim: PersistentVolumeClaim, changes: dict[str, Any]) -> PersistentVolumeClaim: ...

    async def get_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim as stored by the server."""

    async def create_resource_claim(self, namespace: str, manifest: dict[str, Any]) -> ResourceClaim: ...

    async def update_resource_claim(self, claim: ResourceClaim, changes: dict[str, Any]) -> ResourceClaim: ...

    async def update_resource_claim_status(self, claim: ResourceClaim, changes: dict[str, Any]) -> ResourceClaim: ...

    async def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        """Remove a pod from the list of pods that a claim is reserved for."""

    async def delete_resource_claim(self, claim: ResourceClaim) -> None: ...

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        """Write the claim of a pod's extended resources to the status of the pod."""


class ApiPort(PluginApi, Protocol):
    """All writes of the scheduler."""

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
    ) -> None: ...

    async def delete_pod(self, pod: Pod) -> None: ...

    async def patch_pod_group_status(self, group: PodGroup, condition: Condition) -> None: ...

    async def patch_object(self, obj: T, changes: dict[str, Any], subresource: str) -> T:
        """Merge changes into an object of a declared kind, or into a subresource of it; return the new object."""
        ...


class Recorder(Protocol):
    """Writes events about pods; does not block and does not raise."""

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None: ...


class WriteAside(Protocol):
    """Starts a write; `done` is called when it has succeeded or failed."""

    def __call__(
        self, pod: Pod, call: Callable[[], Awaitable[Any]], done: Callable[[], None] | None = None
    ) -> None: ...


class WaitingPod(Protocol):
    """A pod that waits for Permit plugins."""

    @property
    def pod(self) -> PodInfo: ...

    @property
    def node(self) -> str: ...

    def pending_plugins(self) -> Iterable[str]: ...

    def allow(self, plugin: str) -> None: ...

    def reject(self, plugin: str, message: str) -> bool: ...


class WaitingPods(Protocol):
    """The pods that wait for Permit plugins."""

    def __iter__(self) -> Any: ...

    def get(self, uid: str) -> WaitingPod | None: ...


class Nominator(Protocol):
    """Pods that are nominated to a node, where preemption frees resources for them."""

    @property
    def nodes(self) -> Collection[str]: ...

    def nominated_on(self, node: str) -> Iterable[PodInfo]: ...

    def nominated_rows(self, table: NodeTable) -> NominatedPods: ...


class Handle(msgspec.Struct):
    """Passed to every plugin when it is created."""

    cluster: Cluster
    features: Features
    clock: Clock
    rng: Rng
    nominator: Nominator
    api: PluginApi
    recorder: Recorder
    waiting_pods: WaitingPods
    metrics: SchedulerMetrics
    """The scheduler's metrics; a plugin adds its own metrics to their registry."""
    activate: Callable[[Iterable[Pod]], None]
    """Retry these pods now."""
    reorder_queue: Callable[[], None]
    """Compute the sort keys of all waiting pods again, before the next pod is scheduled."""
    wait_until: Callable[[Callable[[], bool], float], Awaitable[bool]]
    """Wait until a condition on the cluster holds, checked after every change of an object; False after a timeout."""
    _writer: ObjectWriter
    """Writes to the objects that `objects` returns."""
    write_aside: WriteAside
    """Write something about a pod without waiting: retried until it succeeds or is rejected."""
    is_preempting: Callable[[str], bool]
    """Return whether the victims of a pod (by UID) are still being evicted."""
    extenders_judge_preemption: Callable[[PodInfo], bool] = lambda _pod: False
    """Return whether extenders must be called before pods are evicted for a pod: PostFilter then returns Candidates."""
    _background: Background = NoBackground()
    """Runs the timers and polls of plugins."""
    _scope: Scope | None = None
    """What the plugin reads and keeps; None: any kind may be read."""

    def objects(self, kind: type[T], *, read_in_cycle: bool = True) -> Objects[T]:
        """Return the objects of a kind that is in `watches` of the plugin; raises LookupError for another one.

        `read_in_cycle=False` declares that they are not read while pods are evaluated, for example because the plugin
        keeps what matters in `node_columns`. Pods then go on sharing results when an object changes.
        """
        return self._own_scope().objects(kind, read_in_cycle=read_in_cycle)

    @property
    def pods(self) -> Pods:
        """All pods, by keys of the plugin."""
        return Pods(self._own_scope())

    def node_columns(self, dtype: type[N] = int, default: N = 0) -> NodeColumns[N]:
        """Return new columns for numbers of the plugin about each node, which filters and scores read as arrays.

        `default` is the number of nodes for which none was set.
        """
        return self._own_scope().columns(dtype, default)

    def poll(
        self,
        fetch: Callable[[], Awaitable[T]],
        *,
        interval: float,
        stale_after: float,
        on_update: Callable[[T], object] | None = None,
        simulate: Callable[[], T] | None = None,
    ) -> PolledValue[T]:
        """Return a value that `fetch` replaces every `interval` seconds, until the plugin ends.

        `fetch` runs beside the scheduling loop, once at a time, and gets at most `interval` seconds. If it raises, the
        value stays; it is stale `stale_after` seconds after the latest success. `on_update(value)` is called with each
        value, between two cycles. Replicas that do not schedule poll as well. `simulate` returns a value in simulations
        that have no recorded one. Raises TypeError or ValueError for invalid arguments.
        """
        return self._own_scope().poll(
            fetch, interval=interval, stale_after=stale_after, on_update=on_update, simulate=simulate
        )

    @property
    def http(self) -> Http:
        """Requests to other servers, for the `fetch` of `poll`; refused in simulations."""
        return self._background.http

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Timer:
        """Call `callback(*args)` after a time, between two cycles, unless the timer is cancelled or the plugin ends.

        Raises RuntimeError in methods that evaluate a pod, such as PreFilter, Filter and Score.
        """
        return self._own_scope().call_later(seconds, callback, *args)

    def scope_of(self, plugin: str, watches: Sequence[Watched] | None) -> Scope:
        """Return a new scope for a plugin, which may read the kinds that it watches; None: any."""
        return Scope(self.cluster, plugin, watches, writer=self._writer, background=self._background)

    def _own_scope(self) -> Scope:
        if self._scope is None:
            self._scope = self.scope_of("", None)
        return self._scope


def scoped_handle(handle: Handle, scope: Scope, *, signs: bool) -> Handle:
    """Return the handle for one plugin; for a plugin that `signs`, reading the state of the scheduler is noted."""
    if not signs:
        return replace(handle, _scope=scope)
    noted: dict[str, Any] = {name: Tracked(scope, getattr(handle, name)) for name in _UNVERSIONED}
    return replace(handle, _scope=scope, cluster=Tracked(scope, handle.cluster, ("nodes",), always=True), **noted)


_UNVERSIONED = ("clock", "rng", "nominator", "waiting_pods")
