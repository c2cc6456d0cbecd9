"""Measurements of a running simulation, in memory that does not grow with the number of pods.

Waits are counted in buckets whose bounds grow by two percent, so a percentile is exact to one percent. Samples are
taken at regular intervals from the scheduler's columns.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubestow.api.natural_order import natural
from kubestow.api.pod import Pod
from kubestow.api.priority import pod_priority
from kubestow.api.requests import CPU as CPU_NAME
from kubestow.api.requests import MEMORY as MEMORY_NAME
from kubestow.scheduler.cluster.nodes import CPU, MEMORY
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.simulator.simulation import Simulation

_RATIO = math.log(1.02)
_HEAT_ROWS = 60
_END_COUNTS = {"Succeeded": "succeeded", "Failed": "failed"}
FIRST_TRY = "placed at once"


class Distribution:
    """A histogram of values with a relative error of one percent."""

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.count = 0
        self.sum = 0.0
        self.highest = 0.0

    @classmethod
    def merged(cls, parts: "Iterable[Distribution]") -> "Distribution":
        """Return the union of several distributions."""
        whole = cls()
        for one in parts:
            whole.buckets.update(one.buckets)
            whole.count += one.count
            whole.sum += one.sum
            whole.highest = max(whole.highest, one.highest)
        return whole

    def add(self, value: float) -> None:
        """Count a value."""
        bucket = math.ceil(math.log(value) / _RATIO) if value > 1e-6 else -10_000
        self.buckets[bucket] += 1
        self.count += 1
        self.sum += value
        if value > self.highest:
            self.highest = value

    def percentile(self, percent: float) -> float:
        """Return the value below which the given percentage of values lies."""
        left = self.count * percent / 100.0
        for bucket, count in sorted(self.buckets.items()):
            left -= count
            if left <= 1e-9:
                return min(math.exp((bucket - 0.5) * _RATIO), self.highest) if bucket > -10_000 else 0.0
        return self.highest

    def summary(self) -> dict[str, float]:
        """Return count, mean and percentiles, rounded to four digits."""
        found = {"count": self.count, "mean": _rounded(self.sum / self.count) if self.count else 0.0}
        found |= {f"p{percent}": _rounded(self.percentile(percent)) for percent in (50, 90, 95, 99)}
        return found | {"max": _rounded(self.highest)}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


class Sample(NamedTuple):
    """The state of the cluster at one time."""

    time: float
    nodes: int
    pending: int
    running: int
    cpu_allocatable: float
    """Cores."""
    cpu_requested: float
    memory_allocatable: int
    """Bytes."""
    memory_requested: int
    fragmentation: float
    """Share of the free cores in pieces too small for an average pod."""


class Measures:
    """Measures one simulation from now on."""

    def __init__(self, simulation: Simulation, every: float = 60.0) -> None:
        """`every`: seconds between samples."""
        self._simulation = simulation
        self._every = every
        self.counts: Counter[str] = Counter()
        self._waits: dict[tuple[int, str], Distribution] = {}
        """By priority and reason."""
        self.samples: list[Sample] = []
        self.heat: list[NDArray[np.float32]] = []
        """For each sample: utilization of the nodes in at most 60 groups, neighbours by name."""
        self._since: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._requested_cpu = self._requested_memory = 0
        self._order: tuple[tuple[int, int], NDArray[np.intp]] | None = None
        """The table layout, and the rows of its nodes sorted by name."""
        simulation.plane.listeners.append(self._on_change)
        simulation.on_decision.append(self._on_decision)
        for object_id, obj in simulation.plane.current.items():
            if object_id[0] is Pod and not obj.spec.nodeName:
                self._on_change(object_id, None, obj, "")
        # The first sample is taken once the scheduler has received the existing objects.
        simulation.at(simulation.time + simulation.settings.latencies.watch, self._sample)

    def _on_change(self, object_id: tuple[type, str], old: Any, new: Any, phase: str) -> None:
        if object_id[0] is not Pod:
            return
        if old is None:
            self.counts["created"] += 1
            if not new.spec.nodeName:
                self._since[new.metadata.uid] = self._simulation.time
        elif new is None:
            self._since.pop(old.metadata.uid, None)
            self._reasons.pop(old.metadata.uid, None)
            # A deleted pod that a kubelet stops ends as Failed, too.
            is_deleted = old.metadata.deletionTimestamp is not None
            self.counts["deleted" if is_deleted else _END_COUNTS.get(phase, "deleted")] += 1
        elif new.spec.nodeName and not old.spec.nodeName:
            self.counts["bound"] += 1
            self._count_wait(new)

    def count_open_waits(self) -> None:
        """Count the waits of pending pods at the end of the run."""
        for pod in self._simulation.pending_pods():
            self._count_wait(pod)

    def _count_wait(self, pod: Pod) -> None:
        uid, priority = pod.metadata.uid, pod_priority(pod)
        waited = self._simulation.time - self._since.pop(uid, self._simulation.time)
        group = (priority, self._reasons.pop(uid, FIRST_TRY))
        if group not in self._waits:
            self._waits[group] = Distribution()
        self._waits[group].add(waited)

    def _on_decision(self, pod: Pod, outcome: Placed | Failed) -> None:
        self.counts["attempts"] += 1
        if isinstance(outcome, Placed):
            amounts = outcome.pod.requests.amounts
            self._requested_cpu += amounts.get(CPU_NAME, 0)
            self._requested_memory += amounts.get(MEMORY_NAME, 0)
        else:
            self.counts["preemptions"] += bool(outcome.victims)
            self.counts["victims"] += len(outcome.victims)
            self._reasons[pod.metadata.uid] = ", ".join(sorted(outcome.plugins)) or "no nodes, or an error"

    def waits(self) -> Distribution:
        """Return the waits of all pods for a node."""
        return Distribution.merged(self._waits.values())

    def waits_by_priority(self) -> dict[int, Distribution]:
        """Return the waits by priority, lowest first."""
        return self._waits_by(0)

    def waits_by_reason(self) -> dict[str, Distribution]:
        """Return the waits by the plugins that last rejected the pod."""
        return self._waits_by(1)

    def _waits_by(self, part: int) -> dict[Any, Distribution]:
        parts: dict[Any, list[Distribution]] = {}
        for group, waits in self._waits.items():
            parts.setdefault(group[part], []).append(waits)
        return {key: Distribution.merged(parts[key]) for key in sorted(parts)}

    # Samples

    def _sample(self, simulation: Simulation) -> None:
        if simulation is self._simulation:
            self.take_sample()
            # A sample slightly too early would be repeated at once: three times 0.1 is more than 0.3.
            simulation.at((int(simulation.time / self._every + 1e-6) + 1) * self._every, self._sample)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Measures":
        """A fork is not measured."""
        return self

    def take_sample(self) -> None:
        """Record the current state of the cluster."""
        simulation, nodes = self._simulation, self._simulation.core.cluster.nodes
        rows = np.flatnonzero(nodes.live[: nodes.size])
        allocatable, requested = nodes.allocatable[:2, rows], nodes.requested[:2, rows]
        free = np.maximum(allocatable - requested, 0)
        sample = Sample(
            round(simulation.time, 3),
            len(rows),
            len(simulation.core.intake.pending_pods()),
            simulation.core.cluster.pod_count,
            float(allocatable[CPU].sum()) / 1000.0,
            float(requested[CPU].sum()) / 1000.0,
            int(allocatable[MEMORY].sum()),
            int(requested[MEMORY].sum()),
            round(self._fragmentation(free), 4),
        )
        if self.samples and self.samples[-1].time == sample.time:
            self.samples.pop()
            self.heat.pop()
        self.samples.append(sample)
        with np.errstate(divide="ignore", invalid="ignore"):
            full = np.where(allocatable[CPU] > 0, requested[CPU] / allocatable[CPU], 0.0).astype(np.float32)
        if self._order is None or self._order[0] != (nodes.layout, len(rows)):
            # Sorting the names takes longer than everything else.
            names = [natural(nodes.names[row]) for row in rows]
            by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
            self._order = ((nodes.layout, len(rows)), by_name)
        self.heat.append(_means(full[self._order[1]], min(_HEAT_ROWS, len(full))))

    def _fragmentation(self, free: NDArray[np.int64]) -> float:
        bound = self.counts["bound"]
        if not bound or not free[CPU].sum():
            return 0.0
        size = np.maximum(np.array([self._requested_cpu, self._requested_memory]) / bound, 1.0)
        fits = np.floor((free / size[:, None]).min(axis=0))
        return max(0.0, 1.0 - float(fits.sum() * size[CPU]) / float(free[CPU].sum()))


def _means(values: NDArray[np.float32], groups: int) -> NDArray[np.float32]:
    """Return the means of `groups` groups of neighbouring values."""
    if not groups:
        return values
    starts = np.arange(groups) * len(values) // groups
    sizes = np.diff(np.append(starts, len(values)))
    return (np.add.reduceat(values, starts) / sizes).astype(np.float32)
