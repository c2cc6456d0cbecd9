"""/metrics/resources: the requests and limits of every pod, as computed by the scheduler and the kubelet."""

from collections.abc import Callable, Iterable

from kubestow.api.pod import POD_FAILED, POD_SUCCEEDED, Pod
from kubestow.api.quantity import NANO_PER_UNIT
from kubestow.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, Nanos, declared_limits, declared_requests
from kubestow.telemetry.metrics import exposition
from kubestow.telemetry.metrics.instruments import STABLE, Gauge, Key

_LABELS = "namespace node pod priority resource scheduler unit"
_BYTES = (MEMORY, EPHEMERAL_STORAGE, "storage")


class ResourceMetrics:
    """The page, computed from all pods at each scrape; empty unless this instance is the leader."""

    def __init__(self, pods: Callable[[], Iterable[Pod]], leads: Callable[[], bool]) -> None:
        self._pods = pods
        self._leads = leads
        self._families = tuple(
            Gauge(
                f"kube_pod_resource_{name}",
                STABLE,
                f"{text} of a pod, by resource, in the unit of the resource.",
                _LABELS,
            )
            for name, text in (("limit", "Resource limit"), ("request", "Resource request"))
        )
        for family, declared in zip(self._families, (declared_limits, declared_requests), strict=True):
            family.watch(lambda declared=declared: self._values(declared))  # type: ignore[misc]

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the page and its Content-Type."""
        return exposition.render(self._families if self._leads() else (), accept)

    def _values(self, declared: Callable[[Pod], Nanos]) -> dict[Key, float]:
        values: dict[Key, float] = {}
        for pod in self._pods():
            spec = pod.spec
            if spec.nodeName and pod.status.phase in (POD_SUCCEEDED, POD_FAILED):
                continue
            priority = "" if spec.priority is None else str(spec.priority)
            for resource, amount in declared(pod).items():
                if amount:
                    key = (pod.metadata.namespace, spec.nodeName, pod.metadata.name, priority, resource)
                    values[(*key, spec.schedulerName, _unit(resource))] = amount / NANO_PER_UNIT
        return values


def _unit(resource: str) -> str:
    if resource == CPU:
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""
