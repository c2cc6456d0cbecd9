"""Benchmark of custom plugins in each of their forms, examples 1 and 6, and of the plugins of `kubestow.contrib`.

5,000 nodes, of which a cycle evaluates 500, in memory as in `bench_scheduling`; the first row of each workload is
without a plugin. A row is the least of several runs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_rows import MILLIS, Row
from bench_scheduling import NODES, measure
from kubestow.contrib.capacity import CapacityScheduling, ElasticQuota
from kubestow.contrib.coscheduling import GROUP_LABEL, Coscheduling, CoschedulingArgs, PodGroup
from kubestow.contrib.load import LoadVariationRiskBalancing, LowRiskOverCommitment, TargetLoadPacking
from kubestow.contrib.load.risk import LowRiskOverCommitmentArgs
from kubestow.contrib.load.sources import Data, Measurements, Metric, NodeMetrics
from kubestow.contrib.load.target import TargetLoadPackingArgs
from kubestow.contrib.load.variation import LoadVariationRiskBalancingArgs
from kubestow.contrib.numa import NodeResourceTopologyMatch
from kubestow.contrib.numa.plugin import NodeResourceTopologyMatchArgs
from kubestow.contrib.numa.topology import NodeResourceTopology
from kubestow.plugin.fast import PodsRead
from kubestow.plugin.loading import load
from kubestow.testing import make_object
from workloads import Workload, node_name

_EXAMPLES = Path(__file__).parents[1] / "examples"
_PODS = 1_000
_RUNS = 5
_NAMESPACES = 20
_MEMBERS = 8


def _example(name: str) -> Any:
    (loaded,) = load(str(_EXAMPLES / f"{name}.py"))
    return loaded.plugin


def _forms() -> Iterator[tuple[str, Any]]:
    zone, spare = _example("01_prefer_zone"), _example("06_spare_memory")
    signed_zone = type("SignedZone", (zone,), {"reads_pods": PodsRead.NOTHING, "sign": lambda _self, _pod: ()})

    class PlainSpare:
        name, __init__, pre_filter, filter = spare.name, spare.__init__, spare.pre_filter, spare.filter

    class UnsignedSpare(PlainSpare):
        filter_rows = spare.filter_rows

    class SignedPlainSpare(PlainSpare):
        reads_pods, sign = spare.reads_pods, spare.sign

    yield "no plugin", None
    yield "PreferZone, plain", zone
    yield "PreferZone, plain, signs, reads no pods", signed_zone
    yield "SpareMemory, plain", PlainSpare
    yield "SpareMemory, plain, signs, reads sums", SignedPlainSpare
    yield "SpareMemory, vector", UnsignedSpare
    yield "SpareMemory, vector, signs, reads sums", spare


class _NumaWorkload(Workload):
    """Guaranteed pods, and a report about the two zones of each node."""

    def others(self, nodes: int, _pods: int) -> list[Any]:
        resources = [{"name": name, "available": amount} for name, amount in (("cpu", 16), ("memory", "128Gi"))]
        zones = [{"name": f"node-{number}", "type": "Node", "resources": resources} for number in range(2)]
        policy = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
        return [
            make_object(NodeResourceTopology, node_name(number), attributes=policy, zones=zones)
            for number in range(nodes)
        ]


def _guaranteed(number: int, sizes: int = 10) -> dict[str, Any]:
    amounts = {"cpu": f"{100 + number % sizes}m", "memory": f"{100 + number % sizes}Mi"}
    resources = {"requests": amounts, "limits": amounts}
    return {"spec": {"containers": [{"name": "main", "image": "app", "resources": resources}]}}


def _measured(plugin: Any, args: Any) -> Any:
    """Return a plugin with arguments and, when there are nodes, measurements of all of them."""

    class Measured(_with(plugin, args)):  # type: ignore[misc]
        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__(args, handle)
            self._waits = True

        def sign(self, pod: Any) -> Any:
            if self._waits:
                self._waits = False
                values = [("CPU", "AVG", 30), ("CPU", "STD", 10), ("Memory", "AVG", 40), ("Memory", "STD", 5)]
                metrics = NodeMetrics(tuple(Metric(*value) for value in values))
                nodes = {node_name(number): metrics for number in range(NODES)}
                self._load.succeed(Measurements(data=Data(nodes)), self.handle.clock.now())
            return super().sign(pod)

    Measured.name = plugin.name
    return Measured


def _with(plugin: Any, args: Any) -> Any:
    """Return a plugin with arguments."""
    make = plugin.__init__
    return type(plugin.__name__, (plugin,), {"__init__": lambda self, _args, handle: make(self, args, handle)})


def _shipped() -> Iterator[tuple[str, Workload, Any]]:
    numa = {
        "NodeResourceTopologyMatch": NodeResourceTopologyMatchArgs(),
        "NodeResourceTopologyMatch with reservations": NodeResourceTopologyMatchArgs(cacheResyncPeriodSeconds=5),
    }
    for sizes in (10, 1_000):
        workload = _NumaWorkload("", lambda number, sizes=sizes: _guaranteed(number, sizes))  # type: ignore[misc]
        yield f"no plugin, guaranteed pods of {sizes:,} sizes", workload, None
        for name, args in numa.items():
            yield f"{name}, {sizes:,} sizes", workload, _with(NodeResourceTopologyMatch, args)
        for plugin, load_args in (
            (TargetLoadPacking, TargetLoadPackingArgs()),
            (LoadVariationRiskBalancing, LoadVariationRiskBalancingArgs()),
            (LowRiskOverCommitment, LowRiskOverCommitmentArgs()),
        ):
            yield f"{plugin.name}, {sizes:,} sizes", workload, _measured(plugin, load_args)


class _QuotaWorkload(Workload):
    """Pods of 20 namespaces, each with a quota."""

    def others(self, _nodes: int, pods: int) -> list[Any]:
        limits = {"cpu": pods, "memory": f"{pods}Gi"}
        spec = {"min": limits, "max": limits}
        return [make_object(ElasticQuota, "quota", namespace=f"n{number}", spec=spec) for number in range(_NAMESPACES)]


class _GroupWorkload(Workload):
    """Pods in groups of 8."""

    def others(self, _nodes: int, pods: int) -> list[Any]:
        spec = {"minMember": _MEMBERS, "minResources": {"cpu": 1}}
        return [make_object(PodGroup, f"g{number}", spec=spec) for number in range(-(-pods // _MEMBERS))]


def _admitting() -> Iterator[tuple[str, Workload, Any]]:
    quotas = _QuotaWorkload("", lambda number: {"cpu": "100m", "namespace": f"n{number % _NAMESPACES}"})
    yield f"no plugin, pods of {_NAMESPACES} namespaces", quotas, None
    yield "CapacityScheduling", quotas, CapacityScheduling
    groups = _GroupWorkload("", lambda number: {"cpu": "100m", "labels": {GROUP_LABEL: f"g{number // _MEMBERS}"}})
    yield f"no plugin, pods in groups of {_MEMBERS}", groups, None
    yield "Coscheduling", groups, _with(Coscheduling, CoschedulingArgs())


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    pods = _PODS * (5 if full else 1)
    forms: Iterator[tuple[str, str | Workload, Any]] = ((what, "basic", plugin) for what, plugin in _forms())
    for what, workload, plugin in (*forms, *_shipped(), *_admitting()):
        found = [measure(workload, NODES, pods, plugin=plugin) for _ in range(_RUNS)]
        best = min(found, key=lambda one: one["cpu_ms_per_pod"])
        yield Row(f"{what}: CPU per pod", best["cpu_ms_per_pod"], MILLIS, f"{best['scheduled']:,} pods")
