"""The cycle of a pod group: its pods are tried together, and the group is placed if Permit accepts enough of them.

    placements -> trial of each: one cycle per pod -> best feasible placement -> reserve

A trial reserves nodes in the cluster itself, so that each pod sees the previous ones, and is undone unless it is the
final one. Because a cycle never waits, no other cycle sees a group that is partly placed.

A trial succeeds if Permit allows a pod without waiting: for a gang, if enough of its pods have a node. Pods without a
node then go back to the queue on their own.
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.config.features import Features
from kubestow.rng import Rng
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.group_counts import GroupCounts, count
from kubestow.scheduler.cycle.group_outcome import (
    UNSCHEDULABLE_GROUP,
    WAITS_FOR_PREEMPTION,
    GroupOutcome,
    Trial,
    TriedPlacement,
    refused_outcomes,
)
from kubestow.scheduler.cycle.group_preemption import GroupPreemption
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed, refusal
from kubestow.scheduler.cycle.placement_choice import PlacementScoreError, best_placement
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.extenders.extender import Conversation, PausedConversation, run_until_calls
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.placements import GroupVictims, PlacedPods, Placement, TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection

_NOT_REGISTERED = "default preemption plugin is not registered, workload aware preemption is disabled"
_NO_PREEMPTION = "workload aware preemption is not supported for pod groups with scheduling constraints"

Decision: TypeAlias = tuple[Trial, tuple[TriedPlacement, ...]]
"""The final trial, and all placements that were tried."""


class Nominations(Nominator, Protocol):
    """The nominated pods. A pod that is placed in a trial is not nominated during the trial."""

    def node_of(self, uid: str) -> str: ...

    def nominate(self, pod: Pod, node: str | None = None) -> None: ...

    def remove(self, uid: str) -> None: ...


class GroupCycles:
    """Runs the cycles of pod groups."""

    def __init__(
        self,
        cluster: Cluster,
        cycles: SchedulingCycles,
        nominations: Nominations,
        features: Features,
        rng: Rng,
        *,
        collects_failures: bool = False,
        only_placement: str = "",
    ) -> None:
        """With `collects_failures`, the outcome has the failures by placement. `only_placement`: the one to try."""
        self._cluster = cluster
        self._cycles = cycles
        self._nominations = nominations
        self._by_placements = features.topology_aware_workload_scheduling
        self._preempts = features.generic_workload
        self._rng = rng
        self._collects_failures = collects_failures
        self._only_placement = only_placement

    def schedule(self, profile: Profile, group: TriedGroup) -> Conversation[GroupOutcome]:
        """Schedule the pods of a group; yield the calls to extenders. A failure is an outcome, not an exception."""
        revision, extenders = self._cluster.revision, self._cycles.extenders
        try:
            trial, tried = yield from self._decide(profile, group)
        except (PlacementError, PlacementScoreError) as error:
            trial, tried = Trial(error.code, str(error), []), ()
        if trial.code is Code.SUCCESS:
            permitted = self._permit_again(profile, trial.outcomes)
            return GroupOutcome(
                trial.code,
                "",
                permitted,
                tried=tried,
                placement=trial.placement,
                revision=revision,
                extenders=extenders,
            )
        outcome = GroupOutcome(
            trial.code,
            trial.message,
            [],
            trial.waits_for_preemption,
            tried=tried,
            revision=revision,
            extenders=extenders,
        )
        if trial.code is Code.UNSCHEDULABLE and self._preempts and not trial.waits_for_preemption:
            outcome = yield from self._preempt(profile, group, outcome)
        return replace(outcome, outcomes=refused_outcomes(outcome, trial, group))

    def _decide(self, profile: Profile, group: TriedGroup) -> Conversation[Decision]:
        """Return the final trial; its pods are reserved if the group is schedulable, and only then."""
        counts = self._count(profile, group)
        if not self._by_placements:
            trial = yield from self._try_one(profile, group, None, counts)
            return trial, (_tried("", self._cluster.nodes.count, trial),)
        placements = self._placements(profile, group)
        if len(placements) == 1:
            trial = yield from self._try_one(profile, group, placements[0], counts)
            tried: tuple[TriedPlacement, ...] = (_tried(placements[0].name, len(placements[0].rows), trial),)
        else:
            decision = None if counts is None else (yield from self._try_by_counts(profile, group, placements, counts))
            trial, tried = decision or (yield from self._try_all(profile, group, placements))
        if trial.is_rejected:
            message = f"0/{len(placements)} placements are available, first placement status: {UNSCHEDULABLE_GROUP}"
            trial = replace(trial, message=message)
        return trial, tried

    def _count(self, profile: Profile, group: TriedGroup) -> GroupCounts | None:
        """Count the pods that fit; None if that is impossible or a pod may preempt others by itself."""
        constrained = self._by_placements and group.group is not None and bool(group.group.topology_key)
        may_preempt_alone = not self._preempts and not constrained and self._has_lower_priority_pods(group)
        if may_preempt_alone or self._cycles.has_extenders:
            return None
        return count(profile, self._cluster, self._nominations, group)

    def _has_lower_priority_pods(self, group: TriedGroup) -> bool:
        """Return whether there are pods that a pod of the group might preempt."""
        highest = max(pod.priority for pod in group.pods)
        return len(self._cluster.rows_with_lower_priority(highest)) > 0

    def _try_one(
        self, profile: Profile, group: TriedGroup, placement: Placement | None, counts: GroupCounts | None
    ) -> Conversation[Trial]:
        """Try the group in a placement, or on all nodes, unless the counts show that it does not fit."""
        if counts is not None and not counts.is_enough(counts.fitting(self._within(placement))):
            refused = counts.refused(placement, self._within(placement))
            if refused is not None:
                return refused
        trial = yield from self._try(profile, group, placement)
        if trial.code is not Code.SUCCESS:
            self._undo(profile, trial)
        return trial

    def _try_by_counts(
        self, profile: Profile, group: TriedGroup, placements: Sequence[Placement], counts: GroupCounts
    ) -> Conversation[Decision | None]:
        """Choose a placement by how many pods fit in each, and try only that; None if all have to be tried."""
        fitting = [counts.fitting(placement.rows) for placement in placements]
        feasible = [number for number, fits in enumerate(fitting) if counts.is_enough(fits)]
        if not feasible:
            trial = counts.refused(placements[0], placements[0].rows)
        else:
            candidates = [
                PlacedPods(
                    placements[number],
                    group.pods[: fitting[number]],
                    partial(self._nodes_of, profile, group, placements[number]),
                )
                for number in feasible
            ]
            best = placements[feasible[best_placement(profile, group, candidates, self._rng)]]
            trial = yield from self._try(profile, group, best)
            if trial.code is not Code.SUCCESS:
                self._undo(profile, trial)
                return None
        if trial is None:
            return None
        failures = counts.reasons(placements, fitting) if self._collects_failures else [()] * len(placements)
        found = zip(placements, fitting, failures, strict=True)
        return trial, tuple(TriedPlacement(one.name, len(one.rows), fits, messages) for one, fits, messages in found)

    def _try_all(self, profile: Profile, group: TriedGroup, placements: Sequence[Placement]) -> Conversation[Decision]:
        """Try the group in all placements, and reserve the best feasible one."""
        trials: list[Trial] = []
        for placement in placements:
            trial = yield from self._try(profile, group, placement)
            self._undo(profile, trial)
            trials.append(trial)
            if trial.code is Code.ERROR:
                break
        tried = tuple(_tried(one.name, len(one.rows), trial) for one, trial in zip(placements, trials, strict=False))
        if trials[-1].code is Code.ERROR:
            return trials[-1], tried
        feasible = [number for number, trial in enumerate(trials) if not trial.is_rejected]
        if not feasible:
            plugins = frozenset().union(*(trial.plugins for trial in trials))
            return replace(trials[0], other_plugins=plugins), tried
        candidates = [_placed_pods(placements[number], trials[number]) for number in feasible]
        best = trials[feasible[best_placement(profile, group, candidates, self._rng)]]
        return self._reserve_again(profile, best) if best.code is Code.SUCCESS else best, tried

    def _nodes_of(self, profile: Profile, group: TriedGroup, placement: Placement) -> Sequence[str]:
        """Return the nodes on which the pods would be placed in a placement."""
        trial = run_until_calls(self._try(profile, group, placement))
        assert not isinstance(trial, PausedConversation), "placements are not chosen by counts if there are extenders"
        self._undo(profile, trial)
        return [placed.node for placed in trial.placed]

    # Placements

    def _placements(self, profile: Profile, group: TriedGroup) -> Sequence[Placement]:
        nodes = self._cluster.nodes
        everywhere = Placement("", np.flatnonzero(nodes.live[: nodes.size]))
        if not profile.placement_generate:
            return [everywhere]
        (hook,) = profile.placement_generate
        start, status = profile.caller.started(), Code.ERROR
        try:
            placements: Sequence[Placement] = profile.caller.call(hook, group, everywhere)
            status = Code.SUCCESS if placements else Code.UNSCHEDULABLE
        except PluginError as error:
            raise PlacementError(Code.ERROR, str(error.__cause__ or error)) from error
        finally:
            profile.caller.record_point("PlacementGenerate", status, start)
        if self._only_placement:
            placements = [one for one in placements if one.name == self._only_placement]
        if not placements:
            raise PlacementError(Code.UNSCHEDULABLE, "no feasible placements found")
        return placements if hook.is_trusted else [_checked(one, everywhere) for one in placements]

    def _within(self, placement: Placement | None) -> IntArray | None:
        """Return the rows of a placement; None if it has all nodes."""
        return None if placement is None or len(placement.rows) == self._cluster.nodes.count else placement.rows

    # Trials

    def _try(
        self, profile: Profile, group: TriedGroup, placement: Placement | None, *, feasibility_only: bool = False
    ) -> Conversation[Trial]:
        """Reserve nodes for all pods of a group that find one, in a placement or on all nodes."""
        trial = Trial(Code.UNSCHEDULABLE, UNSCHEDULABLE_GROUP, [], "" if placement is None else placement.name)
        within = self._within(placement)
        is_permitted = False
        for number, pod in enumerate(group.pods):
            outcome = yield from self._cycles.schedule(profile, pod, within, feasibility_only=feasibility_only)
            searched = outcome.searched
            assert searched is not None
            searched.group, searched.placement = group, placement
            if isinstance(outcome, Failed) and outcome.nominated_node:
                # The next pods see it on the node that it will have after its evictions.
                trial.preempting[number] = outcome
                placed = Placed(pod.placed_on(outcome.nominated_node), outcome.nominated_node, {}, searched)
                outcome = self._cycles.reserve(profile, placed)
            trial.outcomes.append(outcome)
            if isinstance(outcome, Placed):
                self._hide_nomination(trial, pod)
                is_permitted |= not outcome.waits
            elif not outcome.is_rejection:
                message = f"failed to schedule other pod from a pod group: {outcome.message}"
                return replace(trial, code=Code.ERROR, message=message)
        if not is_permitted:
            return trial
        if trial.preempting:
            return replace(trial, message=WAITS_FOR_PREEMPTION, waits_for_preemption=True)
        return replace(trial, code=Code.SUCCESS, message="")

    def _hide_nomination(self, trial: Trial, pod: PodInfo) -> None:
        """Remove the nomination of a placed pod until the trial is undone."""
        node = self._nominations.node_of(pod.uid)
        if node:
            trial.nominations.append((pod.pod, node))
            self._nominations.remove(pod.uid)

    def _undo(self, profile: Profile, trial: Trial) -> None:
        for placed in reversed(trial.placed):
            self._cycles.unreserve(profile, placed)
        for pod, node in trial.nominations:
            self._nominations.nominate(pod, node)

    def _reserve_again(self, profile: Profile, trial: Trial) -> Trial:
        """Reserve the nodes of a trial that was undone."""
        outcomes = [
            self._cycles.reserve(profile, outcome) if isinstance(outcome, Placed) else outcome
            for outcome in trial.outcomes
        ]
        for pod, _ in trial.nominations:
            self._nominations.remove(pod.metadata.uid)
        return replace(trial, outcomes=outcomes)

    def _permit_again(self, profile: Profile, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Run Permit again for the pods that had to wait when not all pods had a node."""
        permitted: list[Outcome] = []
        for outcome in outcomes:
            if isinstance(outcome, Placed) and outcome.waits:
                answer = self._cycles.permit(profile, outcome)
                if isinstance(answer, Placed):
                    permitted.append(answer)
                    continue
                self._cycles.unreserve(profile, outcome)
                permitted.append(refusal(answer, outcome.searched))
            else:
                permitted.append(outcome)
        return permitted

    # Preemption

    def _preempt(self, profile: Profile, group: TriedGroup, outcome: GroupOutcome) -> Conversation[GroupOutcome]:
        """Find pods to evict for the group as a whole."""
        if not profile.pod_group_post_filter:
            return _with_reasons(outcome, _NOT_REGISTERED)
        if group.group is None:
            missing = f'podgroup.scheduling.k8s.io "{group.name}" not found'
            return replace(outcome, code=Code.ERROR, message=f"failed to get pod group object: {missing}")
        if group.group.topology_key:
            return _with_reasons(outcome, _NO_PREEMPTION)
        reasons: list[str] = []
        for hook in profile.pod_group_post_filter:
            try:
                answer: GroupVictims | Rejection = profile.caller.call(hook, group)
            except PluginError as error:
                return replace(outcome, code=Code.ERROR, message=str(error))
            if isinstance(answer, GroupVictims):
                break
            reasons += answer.reasons
            if answer.code is Code.UNRESOLVABLE:
                return _with_reasons(outcome, *answer.reasons)
        else:
            return _with_reasons(outcome, *reasons)
        preemption = GroupPreemption(self._cluster, answer.units, lambda: self._try_and_undo(profile, group))
        trial, victims = yield from preemption.run()
        if trial.code is Code.ERROR:
            return replace(outcome, code=Code.ERROR, message=trial.message)
        if trial.code is not Code.SUCCESS:
            return _with_reasons(outcome, outcome.message)
        return replace(
            outcome,
            waits_for_preemption=True,
            victims=victims,
            preempting_plugin=hook.name,
            nominated=tuple(one.node if isinstance(one, Placed) else "" for one in trial.outcomes),
        )

    def _try_and_undo(self, profile: Profile, group: TriedGroup) -> Conversation[Trial]:
        trial = yield from self._try(profile, group, None, feasibility_only=True)
        self._undo(profile, trial)
        return trial


class PlacementError(Exception):
    """There are no valid placements to try."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def _checked(placement: Placement, everywhere: Placement) -> Placement:
    """Return a placement with its rows sorted and distinct. Raises PlacementError if a row is not a node."""
    rows = np.unique(placement.rows)
    if not np.isin(rows, everywhere.rows).all():
        problem = f"placement {placement.name!r} has rows that are no nodes"
        raise PlacementError(Code.ERROR, f"failed to assume pod group placement: {problem}")
    return placement._replace(rows=rows)


def _tried(name: str, nodes: int, trial: Trial) -> TriedPlacement:
    failures = dict.fromkeys(one.message for one in trial.outcomes if isinstance(one, Failed))
    return TriedPlacement(name, nodes, len(trial.placed), tuple(failures))


def _placed_pods(placement: Placement, trial: Trial) -> PlacedPods:
    placed = trial.placed
    return PlacedPods(placement, [one.pod for one in placed], lambda: [one.node for one in placed])


def _with_reasons(outcome: GroupOutcome, *reasons: str) -> GroupOutcome:
    return replace(outcome, message=", ".join((outcome.message, *reasons)))
