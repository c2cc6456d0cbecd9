"""The search for the victims of a pod group: remove all possible victims, place the group, put back the others.

The pods keep the nodes that they get when all possible victims are gone. The victims are put back in the order given
by the plugin; each stays if all pods of the group still fit on their nodes. A victim that no filter counts across nodes
matters only to the pods on its own node. For other victims all pods are checked, and several victims are put back at a
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
from kubestow.scheduler.framework.placements import VictimUnit
from kubestow.scheduler.framework.plugin import Change
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
        cluster: Cluster,
        cycles: SchedulingCycles,
        nominator: Nominator,
        units: Sequence[VictimUnit],
    ) -> None:
        self._profile = profile
        self._cluster = cluster
        self._cycles = cycles
        self._nominator = nominator
        self._units = units
        self._removed: dict[str, PlacedPod] = {}
        self._members: list[_Member] = []
        self._different: list[Evaluation] = []
        """The evaluations of pods that are not equal."""
        self._are_linked = False
        """Whether plugins act after a node is chosen: they may connect pods on different nodes."""

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
        self._members = [_Member(found.pod, found, row_of[found.node]) for found in trial.placed]
        self._are_linked = not self._fit(self._members) or any(one.found.states for one in self._members)
        self._different = _different(self._members)
        victims: list[VictimUnit] = []
        start, number = 0, 1
        while start < len(self._units):
            batch = self._units[start : start + number]
            self._restore(batch)
            is_local = not self._are_linked and len(batch) == 1 and not self._are_counted(batch)
            if self._still_fit(batch, is_local):
                start, number = start + len(batch), number if is_local else 2 * number
                continue
            self._remove(batch)
            self._fit(self._members, again=is_local)
            if len(batch) == 1:
                victims.append(batch[0])
                start += 1
            number = max(len(batch) // 2, 1)
        return victims

    def _are_counted(self, units: Sequence[VictimUnit]) -> bool:
        """Return whether a filter's state counts pods of these units, for any pod of the group."""
        nodes, cluster = self._cluster.nodes, self._cluster
        changes = [
            Change(pod, nodes.row_of[cluster.node_name_of(pod.uid) or ""], added=True)
            for unit in units
            for pod in unit.pods
        ]
        for evaluation in self._different:
            if evaluation.has_adapting_states:
                after = evaluation.states_after(changes)
                if any(after[name] is not state for name, state in evaluation.states.items()):
                    return True
        return False

    def _still_fit(self, units: Sequence[VictimUnit], is_local: bool) -> bool:
        """Return whether the members still fit after units were put back; if not, some are not reserved."""
        members = self._members
        if is_local:
            nodes = {self._cluster.node_name_of(pod.uid) for unit in units for pod in unit.pods}
            members = [one for one in members if one.found.node in nodes]
        self._release(members)
        return self._fit(members, again=is_local)

    def _fit(self, members: Sequence[_Member], *, again: bool = False) -> bool:
        """Reserve the members that are not, in order, as long as they fit on their nodes; return whether all do.

        With `again`, their states are those of the last time.
        """
        for one in members:
            if one.placed is not None:
                continue
            evaluation = one.evaluation
            if evaluation is None or not again:
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


def _different(members: Sequence[_Member]) -> list[Evaluation]:
    """Return an evaluation of each of the pods that differ in more than their names."""
    found: list[Evaluation] = []
    for one in members:
        pod, evaluation = one.pod, one.evaluation
        if evaluation is not None and not any(
            pod.labels == other.pod.labels and pod.pod.spec == other.pod.pod.spec for other in found
        ):
            found.append(evaluation)
    return found
