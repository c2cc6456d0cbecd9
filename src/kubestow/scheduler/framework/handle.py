"""What a plugin is given: the cluster to look at, and the few things it may do."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Protocol

import msgspec

from kubestow.api.devices import ResourceClaim
from kubestow.api.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from kubestow.api.pod_groups import Condition, PodGroup
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.clock import Clock
from kubestow.config.features import Features
from kubestow.rng import Rng
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.nominated import NominatedPods
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics


class PluginApi(Protocol):
    """Writes that plugins may make. A call returns when the server has answered, and raises what the server refused."""

    async def bind(self, pod: Pod, node: str) -> None: ...

    async def update_volume(self, volume: PersistentVolume, changes: dict[str, Any]) -> PersistentVolume: ...

    async def update_claim(self, claim: PersistentVolumeClaim, changes: dict[str, Any]) -> PersistentVolumeClaim: ...

    async def get_resource_claim(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as the server has it."""

    async def create_resource_claim(self, namespace: str, manifest: dict[str, Any]) -> ResourceClaim: ...

    async def update_resource_claim(self, claim: ResourceClaim, changes: dict[str, Any]) -> ResourceClaim: ...

    async def update_resource_claim_status(self, claim: ResourceClaim, changes: dict[str, Any]) -> ResourceClaim: ...

    async def unreserve_resource_claim(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        """Take a pod off the list of those that a claim is reserved for."""

    async def delete_resource_claim(self, claim: ResourceClaim) -> None: ...

    async def set_extended_resource_claim(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> None:
        """Note in a pod's status which claim its extended resources come from."""


class ApiPort(PluginApi, Protocol):
    """All writes of the scheduler."""

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node: str | None = None
    ) -> None: ...

    async def delete_pod(self, pod: Pod) -> None: ...

    async def patch_pod_group_status(self, group: PodGroup, condition: Condition) -> None: ...


class Recorder(Protocol):
    """Writes events about pods; never blocks, never fails."""

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None: ...


class WriteAside(Protocol):
    """Takes what is to be done, and what is to be called when that is over, well or badly."""

    def __call__(
        self, pod: Pod, call: Callable[[], Awaitable[Any]], done: Callable[[], None] | None = None
    ) -> None: ...


class WaitingPod(Protocol):
    """A pod that Permit holds."""

    @property
    def pod(self) -> PodInfo: ...

    @property
    def node(self) -> str: ...

    def pending_plugins(self) -> Iterable[str]: ...

    def allow(self, plugin: str) -> None: ...

    def reject(self, plugin: str, message: str) -> bool: ...


class WaitingPods(Protocol):
    """The pods that Permit holds."""

    def __iter__(self) -> Any: ...

    def get(self, uid: str) -> WaitingPod | None: ...


class Nominator(Protocol):
    """Pods that are nominated to a node, once room is made there."""

    @property
    def nodes(self) -> Collection[str]: ...

    def nominated_on(self, node: str) -> Iterable[PodInfo]: ...

    def nominated_rows(self, table: NodeTable) -> NominatedPods: ...


class Handle(msgspec.Struct):
    """Handed to every plugin when it is made."""

    cluster: Cluster
    features: Features
    clock: Clock
    rng: Rng
    nominator: Nominator
    api: PluginApi
    recorder: Recorder
    waiting_pods: WaitingPods
    metrics: SchedulerMetrics
    """To feed; a plugin adds metrics of its own to their registry."""
    activate: Callable[[Iterable[Pod]], None]
    """Retry these pods now."""
    wait_until: Callable[[Callable[[], bool], float], Awaitable[bool]]
    """Wait until a condition on the cluster holds, checked whenever an object changes; False after so many seconds."""
    write_aside: WriteAside
    """Has something written about a pod that nobody waits for: tried until it succeeds or is refused."""
    is_preempting: Callable[[str], bool]
    """Whether the victims of a pod (by uid) are still being evicted."""
    extenders_judge_preemption: Callable[[PodInfo], bool] = lambda _pod: False
    """Whether extenders are to be asked before pods are evicted for a pod: PostFilter answers with Candidates then."""
