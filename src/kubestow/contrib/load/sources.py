"""Where measurements come from, and their common format: that of the answers of load-watcher.

- a load watcher (`watcherAddress`);
- Prometheus, by queries for the average and the standard deviation of CPU and memory;
- metrics-server, by way of the API server (`KubernetesMetricsServer`);
- Koordinator, whose agents write NodeMetrics (`Koordinator`).
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, convert

from kubestow.plugin import CustomObject, Handle, RawQuantity, custom_resource, parse_quantities

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_IN_CLUSTER = "https://kubernetes.default.svc"
CPU, MEMORY = "CPU", "Memory"
AVERAGE, DEVIATION, LATEST = "AVG", "STD", "Latest"
_PROVIDERS = ("KubernetesMetricsServer", "Prometheus", "Koordinator")
_QUERIES = {
    (CPU, AVERAGE): "avg_over_time(instance:node_cpu:ratio[15m])",
    (CPU, DEVIATION): "stddev_over_time(instance:node_cpu:ratio[15m])",
    (MEMORY, AVERAGE): "avg_over_time(instance:node_memory_utilisation:ratio[15m])",
    (MEMORY, DEVIATION): "stddev_over_time(instance:node_memory_utilisation:ratio[15m])",
}


class Queries(Struct, frozen=True):
    """PromQL queries for shares of the capacity, from 0 to 1, by the label `node` or `instance`."""

    cpuAverage: str = _QUERIES[CPU, AVERAGE]
    cpuDeviation: str = _QUERIES[CPU, DEVIATION]
    memoryAverage: str = _QUERIES[MEMORY, AVERAGE]
    memoryDeviation: str = _QUERIES[MEMORY, DEVIATION]


class MetricProvider(Struct, frozen=True):
    """A source of measurements."""

    type: str = "KubernetesMetricsServer"
    address: str = ""
    """The URL of Prometheus, or of the API server; without it, that of the cluster in which the scheduler runs."""
    token: str = ""
    tokenFile: str = ""
    caFile: str = ""
    insecureSkipVerify: bool = False
    queries: Queries = Queries()


class LoadArgs(Struct, frozen=True, kw_only=True):
    """Arguments of all plugins for utilization; those that kubernetes-sigs/scheduler-plugins has are named as there."""

    watcherAddress: str = ""
    metricProvider: MetricProvider = MetricProvider()
    updateIntervalSeconds: float = 30
    staleAfterSeconds: float = 180
    """The age from which measurements do not count."""

    def __post_init__(self) -> None:
        """Raise ValueError for arguments that cannot be used."""
        provider = self.metricProvider
        if not self.watcherAddress and provider.type not in _PROVIDERS:
            known = ", ".join(_PROVIDERS)
            raise ValueError(f'metricProvider.type: Invalid value: "{provider.type}": must be one of {known}')
        if not self.watcherAddress and provider.type == "Prometheus" and not provider.address:
            raise ValueError("metricProvider.address: Required value: the URL of Prometheus")
        if provider.insecureSkipVerify:
            raise ValueError(
                "metricProvider.insecureSkipVerify: certificates are always verified; set metricProvider.caFile"
            )
        self.positive("updateIntervalSeconds", "staleAfterSeconds")

    def positive(self, *fields: str) -> None:
        """Raise ValueError unless fields are positive."""
        for field in fields:
            if not getattr(self, field) > 0:
                raise ValueError(f"{field}: Invalid value: {getattr(self, field)}: must be positive")


class Metric(Struct, frozen=True):
    """A measurement, in percent of the capacity of the node."""

    type: str = ""
    operator: str = ""
    value: float = 0


class NodeMetrics(Struct, frozen=True):
    """The measurements of a node."""

    metrics: tuple[Metric, ...] = ()


class Data(Struct, frozen=True):
    """Measurements by node; None if there are none."""

    NodeMetricsMap: dict[str, NodeMetrics] | None = None


class Window(Struct, frozen=True):
    """The time in which was measured, in seconds since 1970; 0 if unknown."""

    start: float = 0
    end: float = 0


class Measurements(Struct, frozen=True):
    """An answer of load-watcher."""

    timestamp: float = 0
    window: Window = Window()
    data: Data = Data()

    @property
    def by_node(self) -> Mapping[str, NodeMetrics]:
        return self.data.NodeMetricsMap or {}


class _Resources(Struct, frozen=True):
    resources: dict[str, RawQuantity] = {}

    def __post_init__(self) -> None:
        """Refuse a report with text that is not an amount: those of other nodes count."""
        parse_quantities(self.resources)


class _NodeUsage(Struct, frozen=True):
    nodeUsage: _Resources = _Resources()


class _NodeMetricStatus(Struct, frozen=True):
    updateTime: str = ""
    nodeMetric: _NodeUsage = _NodeUsage()


@custom_resource("slo.koordinator.sh/v1alpha1", "nodemetrics", namespaced=False)
class NodeMetric(CustomObject, frozen=True):
    """What an agent of Koordinator measured on the node of the same name."""

    status: _NodeMetricStatus = _NodeMetricStatus()


class Source:
    """Fetches measurements from the place that arguments name."""

    def __init__(self, args: LoadArgs, handle: Handle, capacity: Callable[[str], Mapping[str, int]]) -> None:
        """`capacity(node)` returns the capacity of a node, empty for an unknown one."""
        self._args = args
        self._provider = args.metricProvider
        self._handle = handle
        self._capacity = capacity
        self._agents = handle.objects(NodeMetric, read_in_cycle=False)

    async def fetch(self) -> Measurements:
        """Return the latest measurements; raises an exception if there are none."""
        args = self._args
        if args.watcherAddress:
            answer = await self._handle.http.get_json(f"{args.watcherAddress.rstrip('/')}/watcher")
            return convert(answer, Measurements)
        if self._provider.type == "Prometheus":
            return await self._from_prometheus()
        if self._provider.type == "KubernetesMetricsServer":
            return await self._from_metrics_server()
        if self._agents.unavailable_reason:
            raise RuntimeError(self._agents.unavailable_reason)
        return self.reported()

    def reported(self) -> Measurements:
        """Return what agents of Koordinator have reported recently."""
        now, found = self._handle.clock.now(), dict[str, Mapping[str, RawQuantity]]()
        for agent in self._agents:
            try:
                age = now - datetime.fromisoformat(agent.status.updateTime).timestamp()
            except ValueError:
                continue
            if age < self._args.staleAfterSeconds:
                found[agent.metadata.name] = agent.status.nodeMetric.nodeUsage.resources
        return self._of_usage(found)

    async def _from_prometheus(self) -> Measurements:
        found: dict[str, list[Metric]] = {}
        queries = self._provider.queries
        for kind, operator, query in (
            (CPU, AVERAGE, queries.cpuAverage),
            (CPU, DEVIATION, queries.cpuDeviation),
            (MEMORY, AVERAGE, queries.memoryAverage),
            (MEMORY, DEVIATION, queries.memoryDeviation),
        ):
            answer = await self._get(f"{self._provider.address.rstrip('/')}/api/v1/query", {"query": query})
            for sample in answer["data"]["result"]:
                labels, value = sample["metric"], float(sample["value"][1])
                node = labels.get("node") or labels.get("instance", "").rpartition(":")[0] or labels.get("instance", "")
                if value == value:  # not NaN
                    found.setdefault(node, []).append(Metric(kind, operator, 100 * value))
        return self._answer(found)

    async def _from_metrics_server(self) -> Measurements:
        address = self._provider.address or _IN_CLUSTER
        answer = await self._get(f"{address.rstrip('/')}/apis/metrics.k8s.io/v1beta1/nodes", {})
        return self._of_usage({item["metadata"]["name"]: item["usage"] for item in answer["items"]})

    async def _get(self, url: str, params: Mapping[str, str]) -> Any:
        provider, headers = self._provider, {}
        in_cluster = provider.type == "KubernetesMetricsServer" and not provider.address
        token_file = provider.tokenFile or (f"{_ACCOUNT}/token" if in_cluster and not provider.token else "")
        token = _text(token_file) if token_file else provider.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        ca_file = provider.caFile or (f"{_ACCOUNT}/ca.crt" if in_cluster else "")
        return await self._handle.http.get_json(url, params, headers, ca_file=ca_file)

    def _of_usage(self, usage_by_node: Mapping[str, Mapping[str, RawQuantity]]) -> Measurements:
        return self.of_amounts({node: parse_quantities(usage) for node, usage in usage_by_node.items()})

    def of_amounts(self, used_by_node: Mapping[str, Mapping[str, int]]) -> Measurements:
        """Return measurements of amounts in use, in the units of `pod.requests.amounts`."""
        found: dict[str, list[Metric]] = {}
        for node, used in used_by_node.items():
            capacity = self._capacity(node)
            found[node] = [
                Metric(kind, LATEST, 100 * used[name] / capacity[name])
                for name, kind in (("cpu", CPU), ("memory", MEMORY))
                if name in used and capacity.get(name)
            ]
        return self._answer(found)

    def _answer(self, metrics_by_node: Mapping[str, Iterable[Metric]]) -> Measurements:
        now = self._handle.clock.now()
        nodes = {node: NodeMetrics(tuple(metrics)) for node, metrics in metrics_by_node.items()}
        return Measurements(now, Window(0, now), Data(nodes))


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except FileNotFoundError as error:
        advice = "; outside of a cluster, set metricProvider.address, tokenFile and caFile" if _ACCOUNT in path else ""
        raise RuntimeError(f"{path} does not exist{advice}") from error
