"""What is measured while a simulation runs, in memory that does not grow with the pods that came and went.

Waits are kept in buckets whose bounds grow by two percent, so a percentile is exact to one percent. Samples are taken
at regular moments from the scheduler's own columns.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubestow.api.pod import Pod
from kubestow.api.priority import pod_priority
from kubestow.api.requests import CPU as CPU_NAME
from kubestow.api.requests import MEMORY as MEMORY_NAME
from kubestow.scheduler.cluster.nodes import CPU, MEMORY
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.simulator.simulation import Simulation

_RATIO = math.log(1.02)
_HEAT_ROWS = 60
_FATES = {"Succeeded": "succeeded", "Failed": "failed"}
FIRST_TRY = "placed at once"


class Distribution:
    """How often values were seen, to one percent."""

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.count = 0
        self.sum = 0.0
        self.highest = 0.0

    @classmethod
    def of(cls, parts: "Iterable[Distribution]") -> "Distribution":
        """Several together."""
        whole = cls()
        for one in parts:
            whole.buckets.update(one.buckets)
            whole.count += one.count
            whole.sum += one.sum
            whole.highest = max(whole.highest, one.highest)
        return whole

    def add(self, value: float) -> None:
        """One more."""
        bucket = math.ceil(math.log(value) / _RATIO) if value > 1e-6 else -10_000
        self.buckets[bucket] += 1
        self.count += 1
        self.sum += value
        if value > self.highest:
            self.highest = value

    def percentile(self, percent: float) -> float:
        """The value below which so many percent are."""
        left = self.count * percent / 100.0
        for bucket, count in sorted(self.buckets.items()):
            left -= count
            if left <= 1e-9:
                return min(math.exp((bucket - 0.5) * _RATIO), self.highest) if bucket > -10_000 else 0.0
        return self.highest

    def summary(self) -> dict[str, float]:
        """Count, mean and percentiles, rounded to what is known."""
        found = {"count": self.count, "mean": _short(self.sum / self.count) if self.count else 0.0}
        found |= {f"p{percent}": _short(self.percentile(percent)) for percent in (50, 90, 95, 99)}
        return found | {"max": _short(self.highest)}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


class Sample(NamedTuple):
    """The cluster at one moment."""

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
    """The share of free cores that is of no use to an average pod, for it is in pieces too small."""


class Measures:
    """Watches one simulation from now on."""

    def __init__(self, simulation: Simulation, every: float = 60.0) -> None:
        """`every`: seconds between samples."""
        self._simulation = simulation
        self._every = every
        self.counts: Counter[str] = Counter()
        self._waits: dict[tuple[int, str], Distribution] = {}
        """By priority and reason."""
        self.samples: list[Sample] = []
        self.heat: list[NDArray[np.float32]] = []
        """Per sample: how full nodes are, in at most 60 groups of neighbours by name."""
        self._since: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._asked_cpu = self._asked_memory = 0
        self._order: tuple[tuple[int, int], NDArray[np.intp]] | None = None
        """The rows of nodes by name, and for which layout of the table that is."""
        simulation.plane.listeners.append(self._changed)
        simulation.on_decision.append(self._decided)
        for which, obj in simulation.plane.current.items():
            if which[0] is Pod and not obj.spec.nodeName:
                self._changed(which, None, obj, "")
        # The first look is when the scheduler has heard of what there is.
        simulation.at(simulation.time + simulation.settings.latencies.watch, self._sample)

    def _changed(self, which: tuple[type, str], old: Any, new: Any, phase: str) -> None:
        if which[0] is not Pod:
            return
        if old is None:
            self.counts["created"] += 1
            if not new.spec.nodeName:
                self._since[new.metadata.uid] = self._simulation.time
        elif new is None:
            self._since.pop(old.metadata.uid, None)
            self._reasons.pop(old.metadata.uid, None)
            # What a kubelet stops because it is deleted ends as Failed, too.
            is_deleted = old.metadata.deletionTimestamp is not None
            self.counts["deleted" if is_deleted else _FATES.get(phase, "deleted")] += 1
        elif new.spec.nodeName and not old.spec.nodeName:
            self.counts["bound"] += 1
            self._count_wait(new)

    def count_open_waits(self) -> None:
        """At the end: pods that still wait have waited until now."""
        for pod in self._simulation.pending_pods():
            self._count_wait(pod)

    def _count_wait(self, pod: Pod) -> None:
        uid, priority = pod.metadata.uid, pod_priority(pod)
        waited = self._simulation.time - self._since.pop(uid, self._simulation.time)
        group = (priority, self._reasons.pop(uid, FIRST_TRY))
        if group not in self._waits:
            self._waits[group] = Distribution()
        self._waits[group].add(waited)

    def _decided(self, pod: Pod, outcome: Placed | Failed) -> None:
        self.counts["attempts"] += 1
        if isinstance(outcome, Placed):
            amounts = outcome.pod.requests.amounts
            self._asked_cpu += amounts.get(CPU_NAME, 0)
            self._asked_memory += amounts.get(MEMORY_NAME, 0)
        else:
            self.counts["preemptions"] += bool(outcome.victims)
            self.counts["victims"] += len(outcome.victims)
            self._reasons[pod.metadata.uid] = ", ".join(sorted(outcome.plugins)) or "no nodes, or an error"

    def waits(self) -> Distribution:
        """Of all pods, for a node."""
        return Distribution.of(self._waits.values())

    def waits_by_priority(self) -> dict[int, Distribution]:
        """The same, the lowest priority first."""
        return self._waits_by(0)

    def waits_by_reason(self) -> dict[str, Distribution]:
        """By who refused the pod last."""
        return self._waits_by(1)

    def _waits_by(self, part: int) -> dict[Any, Distribution]:
        groups = sorted({group[part] for group in self._waits})
        return {
            one: Distribution.of(waits for group, waits in self._waits.items() if group[part] == one) for one in groups
        }

    # Samples

    def _sample(self, simulation: Simulation) -> None:
        if simulation is self._simulation:
            self.take_sample()
            # A moment too early would be the same one again: three times 0.1 is more than 0.3.
            simulation.at((int(simulation.time / self._every + 1e-6) + 1) * self._every, self._sample)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Measures":
        """A fork is not measured."""
        return self

    def take_sample(self) -> None:
        """Look at the cluster now."""
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
            # Sorting the names costs more than all the rest.
            by_name = np.argsort(np.array([nodes.names[row] for row in rows]))
            self._order = ((nodes.layout, len(rows)), by_name)
        self.heat.append(_means(full[self._order[1]], min(_HEAT_ROWS, len(full))))

    def _fragmentation(self, free: NDArray[np.int64]) -> float:
        bound = self.counts["bound"]
        if not bound or not free[CPU].sum():
            return 0.0
        size = np.maximum(np.array([self._asked_cpu, self._asked_memory]) / bound, 1.0)
        fits = np.floor((free / size[:, None]).min(axis=0))
        return max(0.0, 1.0 - float(fits.sum() * size[CPU]) / float(free[CPU].sum()))


def _means(values: NDArray[np.float32], groups: int) -> NDArray[np.float32]:
    """Of so many groups of neighbours."""
    if not groups:
        return values
    starts = np.arange(groups) * len(values) // groups
    sizes = np.diff(np.append(starts, len(values)))
    return (np.add.reduceat(values, starts) / sizes).astype(np.float32)
