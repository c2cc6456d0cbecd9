"""The search for the victims of a pod group: remove all possible victims, then put back as many as possible.

The victims are put back in the order given by the plugin, several at a time, and twice as many after each success: if
the group fits with all of them, it fits with each. If it does not, smaller numbers are tried.
"""

from collections.abc import Callable, Sequence

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster, PlacedPod
from kubestow.scheduler.cycle.group_outcome import Trial
from kubestow.scheduler.extenders.extender import Conversation
from kubestow.scheduler.framework.placements import VictimUnit
from kubestow.scheduler.framework.results import Code

Try = Callable[[], Conversation[Trial]]
"""Tries the group in the current cluster, and undoes the trial."""


class GroupPreemption:
    """One search for victims."""

    def __init__(self, cluster: Cluster, units: Sequence[VictimUnit], try_group: Try) -> None:
        self._cluster = cluster
        self._units = units
        self._try = try_group
        self._removed: dict[str, PlacedPod] = {}

    def run(self) -> Conversation[tuple[Trial, tuple[PodInfo, ...]]]:
        """Return a trial without the victims, and the victims; if the trial failed, no eviction helps the group."""
        try:
            self._remove(self._units)
            trial = yield from self._try()
            if trial.code is not Code.SUCCESS:
                return trial, ()
            victims = yield from self._reprieve()
            trial = yield from self._try()
            return trial, tuple(pod for unit in victims for pod in unit.pods)
        finally:
            for removed in self._removed.values():
                self._cluster.reattach(removed)

    def _reprieve(self) -> Conversation[list[VictimUnit]]:
        """Put back the units that the group does not need; return the others."""
        victims: list[VictimUnit] = []
        start, number = 0, 1
        while start < len(self._units):
            batch = self._units[start : start + number]
            self._restore(batch)
            trial = yield from self._try()
            if trial.code is Code.SUCCESS:
                start, number = start + len(batch), 2 * number
                continue
            self._remove(batch)
            if len(batch) == 1:
                victims.append(batch[0])
                start += 1
            number = max(len(batch) // 2, 1)
        return victims

    def _remove(self, units: Sequence[VictimUnit]) -> None:
        for unit in units:
            for pod in unit.pods:
                self._removed[pod.uid] = self._cluster.detach(pod.uid)

    def _restore(self, units: Sequence[VictimUnit]) -> None:
        for unit in units:
            for pod in unit.pods:
                self._cluster.reattach(self._removed.pop(pod.uid))
