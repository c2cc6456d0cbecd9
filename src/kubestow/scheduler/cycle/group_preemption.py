"""The search for the victims of a pod group: remove all possible victims, place the group, put back the others.

The pods keep the nodes that they get when all possible victims are gone. The victims are put back in the order given
by the plugin; each stays if all pods of the group still fit on their nodes. If the filters read only the pods on the
node itself, only the pods on the victim's nodes are checked. Otherwise all are, and several victims are put back at a
time, twice as many after each success: if the group fits with all of them, it fits with each.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster, PlacedPod
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.group_outcome import Trial
from kubestow.scheduler.cycle.outcome import Placed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.extenders.extender import Conversation
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.placements import TriedGroup, VictimUnit
from kubestow.scheduler.framework.profile import Profile

Try = Callable[[], Conversation[Trial]]
"""Tries the group in the current cluster, and undoes the trial."""


class _Member(msgspec.Struct):
    """A pod of the group on the node that it would get."""

    pod: PodInfo
    found: Placed
    """The node, as found by the trial."""
    row: int
    evaluation: Evaluation | None = None
    placed: Placed | None = None
    """Set while the pod is reserved."""


class GroupPreemption:
    """One search for victims."""

    def __init__(
        self,
        profile: Profile,
        group: TriedGroup,
        cluster: Cluster,
        cycles: SchedulingCycles,
        nominator: Nominator,
        units: Sequence[VictimUnit],
    ) -> None:
        self._profile = profile
        self._group = group
        self._cluster = cluster
        self._cycles = cycles
        self._nominator = nominator
        self._units = units
        self._removed: dict[str, PlacedPod] = {}
        self._members: list[_Member] = []
        self._is_local = False

    def run(self, try_group: Try) -> Conversation[tuple[Trial, list[VictimUnit]]]:
        """Return a trial without all possible victims and, if it succeeded, the victims."""
        try:
            self._remove(self._units)
            trial = yield from try_group()
            return trial, self._reprieve(trial) if trial.fits else []
        finally:
            self._release(self._members)
            for removed in self._removed.values():
                self._cluster.reattach(removed)

    def _reprieve(self, trial: Trial) -> list[VictimUnit]:
        """Put back the units that the group does not need; return the others."""
        row_of = self._cluster.nodes.row_of
        self._members = [
            _Member(pod, found, row_of[found.node])
            for pod, found in zip(self._group.pods, trial.outcomes, strict=False)
            if isinstance(found, Placed)
        ]
        # Plugins with a state that act after a node is chosen may connect pods on different nodes.
        self._is_local = self._fit(self._members) and not any(
            one.evaluation is None or one.evaluation.has_adapting_states or one.found.states for one in self._members
        )
        victims: list[VictimUnit] = []
        start, number = 0, 1
        while start < len(self._units):
            batch = self._units[start : start + number]
            self._restore(batch)
            if self._still_fit(batch):
                start, number = start + len(batch), 1 if self._is_local else 2 * number
                continue
            self._remove(batch)
            self._fit(self._members)
            if len(batch) == 1:
                victims.append(batch[0])
                start += 1
            number = max(len(batch) // 2, 1)
        return victims

    def _still_fit(self, units: Sequence[VictimUnit]) -> bool:
        """Return whether the members still fit after units were put back; if not, some are not reserved."""
        members = self._members
        if self._is_local:
            nodes = {self._cluster.node_name_of(pod.uid) for unit in units for pod in unit.pods}
            members = [one for one in members if one.found.node in nodes]
        self._release(members)
        return self._fit(members)

    def _fit(self, members: Sequence[_Member]) -> bool:
        """Reserve the members that are not, in order, as long as they fit on their nodes; return whether all do."""
        for one in members:
            if one.placed is not None:
                continue
            evaluation = one.evaluation
            if evaluation is None or not self._is_local:
                evaluation = Evaluation(self._profile, self._cluster, self._nominator, one.pod, np.array([one.row]))
                one.evaluation = evaluation
                if not evaluation.pre_filter():
                    return False
            if not evaluation.passes(one.row):
                return False
            states = {name: state for name, state in evaluation.states.items() if name in self._profile.acting}
            outcome = self._cycles.reserve(self._profile, replace(one.found, states=states), permits=False)
            if not isinstance(outcome, Placed):
                return False
            one.placed = outcome
        return True

    def _release(self, members: Sequence[_Member]) -> None:
        for one in reversed(members):
            if one.placed is not None:
                self._cycles.unreserve(self._profile, one.placed)
                one.placed = None

    def _remove(self, units: Sequence[VictimUnit]) -> None:
        for unit in units:
            for pod in unit.pods:
                self._removed[pod.uid] = self._cluster.detach(pod.uid)

    def _restore(self, units: Sequence[VictimUnit]) -> None:
        for unit in units:
            for pod in unit.pods:
                self._cluster.reattach(self._removed.pop(pod.uid))
