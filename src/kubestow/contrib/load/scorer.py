"""What the plugins for utilization have in common: measurements in columns, and no decision by old ones."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping

import numpy as np

from kubestow.contrib.load.sources import (
    AVERAGE,
    CPU,
    DEVIATION,
    LATEST,
    MEMORY,
    LoadArgs,
    Measurements,
    NodeMetric,
    NodeMetrics,
    Source,
)
from kubestow.plugin import Handle, PodInfo, parse_quantities
from kubestow.plugin.fast import FloatArray, IntArray, NodeView, PodsRead, Rows, ScoreRows, Signs

Numbers = Mapping[Hashable, float]


class LoadScorer(ScoreRows[None], Signs):
    """Polls measurements, and scores nodes by them while they are recent.

    The columns have "cpu", "memory" and their deviations, in percent of the capacity, and what a plugin adds for nodes
    with measurements. NaN: there is no number.
    """

    watches = (NodeMetric,)
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: LoadArgs, handle: Handle) -> None:
        self.handle = handle
        self.columns = handle.node_columns(float, default=np.nan)
        self.measured_until = 0.0
        """The end of the time that the latest measurements are about."""
        self._max_age = args.staleAfterSeconds
        self._measured: Mapping[str, dict[Hashable, float]] = {}
        self._source = Source(args, handle, self.capacity)
        reports = not args.watcherAddress and args.metricProvider.type == "Koordinator"
        self._load = handle.poll(
            self.fetch,
            interval=args.updateIntervalSeconds,
            stale_after=args.staleAfterSeconds,
            on_update=self._on_update,
            simulate=self._source.reported if reports else self.simulate,
        )

    async def fetch(self) -> Measurements:
        """Return the latest measurements."""
        found = await self._source.fetch()
        age = self.handle.clock.now() - found.timestamp
        if found.timestamp and age > self._max_age:
            raise RuntimeError(f"the measurements are older than staleAfterSeconds ({self._max_age:g})")
        return found

    def simulate(self) -> Measurements:
        """Return measurements for simulations without recorded ones: pods use what they request."""
        nodes, found = self.handle.cluster.nodes, dict[str, dict[str, int]]()
        for name, row in nodes.row_of.items():
            if nodes.live[row]:
                found[name] = {
                    resource: int(nodes.requested[nodes.resource_index[resource], row])
                    for resource in ("cpu", "memory")
                }
        return self._source.of_amounts(found)

    def capacity(self, node: str) -> Mapping[str, int]:
        """Return the capacity of a node, empty for an unknown one."""
        nodes = self.handle.cluster.nodes
        row = nodes.row_of.get(node)
        found = None if row is None else nodes.nodes[row]
        return {} if found is None else parse_quantities(found.status.capacity)

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        if self._load.is_stale:
            return np.zeros(len(view.source_rows()[rows]), np.int64)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = self.rate(pod, view, rows)
        return np.nan_to_num(np.clip(scores, 0, 100)).astype(np.int64)

    @abstractmethod
    def rate(self, pod: PodInfo, view: NodeView, rows: Rows) -> FloatArray:
        """Return whole scores; NaN for nodes without measurements, which get 0."""

    def numbers_of(self, node: str, measured: Numbers) -> Numbers:
        """Return the columns of a node with measurements; may be overridden to add others."""
        return measured

    def update(self, node: str) -> None:
        """Write the columns of a node again; a write declares that results for other nodes have not changed."""
        measured = self._measured.get(node)
        self.columns.set(node, {} if measured is None else self.numbers_of(node, measured))

    def _on_update(self, measurements: Measurements) -> None:
        self.measured_until = measurements.window.end or self.handle.clock.now()
        self._measured = {node: _numbers(metrics) for node, metrics in measurements.by_node.items()}
        self.columns.replace_all({node: self.numbers_of(node, own) for node, own in self._measured.items()})


def _numbers(metrics: NodeMetrics) -> dict[Hashable, float]:
    found: dict[Hashable, float] = {}
    for name, kind in (("cpu", CPU), ("memory", MEMORY)):
        values = {metric.operator or LATEST: metric.value for metric in metrics.metrics if metric.type == kind}
        if values:
            found[name] = values.get(AVERAGE, values.get(LATEST, 0.0))
            found[name, "deviation"] = values.get(DEVIATION, 0.0)
    totals = [metric.value for metric in metrics.metrics if metric.type == CPU and metric.operator in (AVERAGE, LATEST)]
    if totals:
        found["latest cpu"] = totals[-1]
    return found
