"""A handle for plugins outside of a running scheduler: they can read a cluster, and write nothing."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, TypeVar

from kubestow.api.pod import Pod
from kubestow.config.features import Features
from kubestow.scheduler.cluster.nodes import NodeTable
from kubestow.scheduler.cluster.nominated import NominatedPods
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.handle import ApiPort, Handle
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

T = TypeVar("T")


class FixedClock:
    """A clock that shows the time that it was set to."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def now(self) -> float:
        return self.seconds


class FirstRng:
    """Returns 0 every time, so that the first of several equal choices is taken."""

    def randrange(self, _stop: int, /) -> int:
        return 0


class NoNominations:
    """A nominator without nominated pods."""

    nodes: Collection[str] = ()

    def nominated_on(self, node: str) -> Iterable[PodInfo]:
        del node
        return ()

    def nominated_rows(self, table: NodeTable) -> NominatedPods:
        return NominatedPods(table)


class ListRecorder:
    """Keeps the recorded events, as (pod, reason, note)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, pod: Pod, kind: str, reason: str, action: str, note: str, related: Pod | None = None) -> None:
        del kind, action, related
        self.events.append((pod.key, reason, note))


class NoApi:
    """Rejects every call."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def refuse(*_args: Any, **_kwargs: Any) -> Any:
            raise RuntimeError(f"{name}: there is no API server behind this handle")

        return refuse


class WantedWrites:
    """Keeps the writes that plugins want to make, as (object, changes)."""

    def __init__(self) -> None:
        self.wanted: list[tuple[Any, dict[str, Any]]] = []

    def enqueue_patch(
        self, obj: Any, changes: dict[str, Any], subresource: str, is_current: Callable[[], bool]
    ) -> None:
        del subresource, is_current
        self.wanted.append((obj, changes))

    async def patch_object(self, obj: T, changes: dict[str, Any], subresource: str) -> T:
        del subresource
        self.wanted.append((obj, changes))
        return obj


async def _never(_condition: Callable[[], bool], _seconds: float) -> bool:
    return False


def _skip_write(pod: Pod, call: Callable[[], Awaitable[Any]], done: Callable[[], None] | None = None) -> None:
    del pod, call
    if done is not None:
        done()


def detached_handle(cluster: Cluster, features: Features | None = None, **parts: Any) -> Handle:
    """Return a handle for a cluster, without a scheduler; `parts` replaces any of its attributes."""
    api: ApiPort = NoApi()  # type: ignore[assignment]
    defaults: dict[str, Any] = {
        "features": features or Features(),
        "clock": FixedClock(),
        "rng": FirstRng(),
        "nominator": NoNominations(),
        "api": api,
        "recorder": ListRecorder(),
        "waiting_pods": {},
        "activate": lambda _pods: None,
        "reorder_queue": lambda: None,
        "wait_until": _never,
        "_writer": WantedWrites(),
        "write_aside": _skip_write,
        "is_preempting": lambda _uid: False,
    }
    if "metrics" not in parts:
        parts["metrics"] = SchedulerMetrics()
    return Handle(cluster=cluster, **(defaults | parts))
