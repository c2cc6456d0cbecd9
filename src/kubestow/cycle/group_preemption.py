"""Who has to go so that a pod group can be placed: all who may be evicted leave, then as many as possible come back.

They come back in the order that the plugin says. Several are tried at once, twice as many after each success: where the
group still fits with all of them, it would with each. Only where it does not is it found out who stands in the way.
"""

from collections.abc import Callable, Sequence

from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster, PlacedPod
from kubestow.cycle.group_outcome import Trial
from kubestow.extenders.extender import Conversation
from kubestow.framework.placements import VictimUnit
from kubestow.framework.results import Code

Try = Callable[[], Conversation[Trial]]
"""Tries the group as things are, and gives everything back."""


class GroupPreemption:
    """One search for victims."""

    def __init__(self, cluster: Cluster, units: Sequence[VictimUnit], try_group: Try) -> None:
        self._cluster = cluster
        self._units = units
        self._try = try_group
        self._away: dict[str, PlacedPod] = {}

    def run(self) -> Conversation[tuple[Trial, tuple[PodInfo, ...]]]:
        """How the group fares without the victims, and who they are; a trial that failed: nobody can help it."""
        try:
            self._leave(self._units)
            trial = yield from self._try()
            if trial.code is not Code.SUCCESS:
                return trial, ()
            victims = yield from self._reprieve()
            trial = yield from self._try()
            return trial, tuple(pod for unit in victims for pod in unit.pods)
        finally:
            for lifted in self._away.values():
                self._cluster.put_back(lifted)

    def _reprieve(self) -> Conversation[list[VictimUnit]]:
        victims: list[VictimUnit] = []
        start, number = 0, 1
        while start < len(self._units):
            some = self._units[start : start + number]
            self._return(some)
            trial = yield from self._try()
            if trial.code is Code.SUCCESS:
                start, number = start + len(some), 2 * number
                continue
            self._leave(some)
            if len(some) == 1:
                victims.append(some[0])
                start += 1
            number = max(len(some) // 2, 1)
        return victims

    def _leave(self, units: Sequence[VictimUnit]) -> None:
        for unit in units:
            for pod in unit.pods:
                self._away[pod.uid] = self._cluster.lift(pod.uid)

    def _return(self, units: Sequence[VictimUnit]) -> None:
        for unit in units:
            for pod in unit.pods:
                self._cluster.put_back(self._away.pop(pod.uid))
