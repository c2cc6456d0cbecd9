"""The cycle of a pod group: its pods are tried together, and the group is placed if enough of them find a node.

    placements -> trial of each: one cycle per pod -> best feasible placement -> reserve -> Permit
                                                   -> none is feasible: PodGroupPostFilter

A trial reserves nodes in the cluster itself, so that each pod sees the previous ones, and is undone unless it is the
final one. Because a cycle never waits, no other cycle sees a group that is partly placed.

The PlacementFeasible methods decide whether enough pods have a node: for a gang, `minCount`, otherwise one. A trial
ends as soon as that is impossible. Pods without a node of a group that fits go back to the queue.

The trial of a composite pod group in a placement consists of the trials of its groups within that placement, one after
the other: the groups that fit keep their nodes if enough of them fit. Only the root runs PodGroupPostFilter.
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.config.features import Features
from kubestow.rng import Rng
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.group_counts import GroupCounts, count
from kubestow.scheduler.cycle.group_outcome import (
    NOT_FILTERED,
    GroupOutcome,
    PostFiltered,
    Status,
    Trial,
    TriedPlacement,
    failed_group,
    refused_outcomes,
    unschedulable_group,
)
from kubestow.scheduler.cycle.group_post_filter import GroupPostFilter
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed, SearchedNodes, refusal
from kubestow.scheduler.cycle.placement_choice import PlacementScoreError, best_placement
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.extenders.extender import Conversation, PausedConversation, run_until_calls
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.placements import PlacedPods, Placement, TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection, Wait


class Nominations(Nominator, Protocol):
    """The nominated pods. A pod that found a node in a trial is not nominated during the rest of the cycle."""

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
        runs_post_filter: bool = True,
    ) -> None:
        """With `collects_failures`, the outcome has the failures by placement. `only_placement`: the one to try."""
        self.cluster = cluster
        self.cycles = cycles
        self.nominations = nominations
        self.by_placements = features.topology_aware_workload_scheduling
        self.rng = rng
        self.collects_failures = collects_failures
        self.only_placement = only_placement
        self.runs_post_filter = runs_post_filter

    def schedule(self, profile: Profile, group: TriedGroup) -> Conversation[GroupOutcome]:
        """Schedule the pods of a group; yield the calls to extenders. A failure is an outcome, not an exception."""
        return _GroupCycle(self, profile, group, [], []).run()


class _GroupCycle:
    """One cycle of one group, or the part of it that tries a group of a tree."""

    def __init__(
        self,
        by: GroupCycles,
        profile: Profile,
        group: TriedGroup,
        hidden: list[tuple[Pod, str]],
        evaluated: list[TriedPlacement],
    ) -> None:
        """`hidden` gets the nominations of pods that found a node in a trial; `evaluated`, the placements tried."""
        self._by = by
        self._cluster = by.cluster
        self._cycles = by.cycles
        self._profile = profile
        self._group = group
        groups = by.cluster.groups
        self._scheduled = 0 if groups is None else len(groups.members(group.key).scheduled)
        self._hidden = hidden
        self._evaluated = evaluated

    def run(self) -> Conversation[GroupOutcome]:
        revision, extenders, groups = self._cluster.revision, self._cycles.extenders, self._cluster.groups
        leaves = self._group.leaves
        scheduled = [0 if groups is None else len(groups.members(leaf.key).scheduled) for leaf in leaves]
        trial = yield from self._find()
        found = NOT_FILTERED
        if trial.status.code is Code.UNSCHEDULABLE and self._by.runs_post_filter:
            search = GroupPostFilter(self._profile, self._group, self._cluster, self._cycles, self._by.nominations)
            found = yield from search.run(trial, self._find_and_undo)
        by_leaf = list(trial.by_group(self._group))
        refused = {pod.uid for leaf, of_leaf in by_leaf if not of_leaf.fits for pod in leaf.pods}
        for pod, node in self._hidden:
            if pod.metadata.uid in refused:
                self._by.nominations.nominate(pod, node)
        evaluated = tuple(self._evaluated)
        outcome = partial(GroupOutcome, found=found, revision=revision, extenders=extenders, evaluated=evaluated)
        of_leaves = []
        for (leaf, of_leaf), number in zip(by_leaf, scheduled, strict=True):
            status, placement = _after(of_leaf.status, found), of_leaf.placement if of_leaf.fits else ""
            if of_leaf.fits:
                outcomes = [self._permit(one) if isinstance(one, Placed) else one for one in of_leaf.outcomes]
            else:
                untried = SearchedNodes(revision, extenders, self._cluster.nodes.count, group=leaf)
                outcomes = refused_outcomes(status, of_leaf, found, leaf, untried)
            of_leaves.append(
                outcome(
                    status.code, status.message, outcomes, tried=of_leaf.tried, placement=placement, scheduled=number
                )
            )
        if not self._group.is_composite:
            return of_leaves[0]
        status = _after(trial.status, found)
        all_outcomes = [one for of_leaf in of_leaves for one in of_leaf.outcomes]
        return outcome(status.code, status.message, all_outcomes, scheduled=sum(scheduled), leaves=of_leaves)

    def _find(self) -> Conversation[Trial]:
        """Return the final trial; its pods are reserved if the group is schedulable, and only then."""
        nodes = self._cluster.nodes
        trial = yield from self.find_within(Placement("", np.flatnonzero(nodes.live[: nodes.size])))
        if trial.fits and not trial.placed:
            # At least one pod must be placed, however many have a node already.
            return replace(trial, status=unschedulable_group())
        return trial

    def _find_and_undo(self) -> Conversation[Trial]:
        trial = yield from self._find()
        if trial.fits:
            self._undo(trial)
        return trial

    def find_within(self, everywhere: Placement) -> Conversation[Trial]:
        """Return the final trial on some nodes."""
        try:
            return (yield from self._decide(everywhere))
        except (PlacementError, PlacementScoreError) as error:
            return Trial(Status(error.code, (str(error),)))

    def _decide(self, everywhere: Placement) -> Conversation[Trial]:
        counts, started = self._count(), self._profile.caller.started
        if not self._by.by_placements:
            trial = yield from self._try_one(None, counts)
            return replace(trial, tried=(_tried("", self._cluster.nodes.count, trial, 0.0),))
        placements = self._placements(everywhere)
        if len(placements) == 1:
            start = started()
            trial = yield from self._try_one(placements[0], counts)
            tried = _tried(placements[0].name, len(placements[0].rows), trial, started() - start)
            trial = replace(trial, tried=(tried,))
        else:
            found = None if counts is None else (yield from self._try_by_counts(placements, counts))
            trial = found or (yield from self._try_all(placements))
        if not self._group.is_composite:
            self._evaluated += trial.tried
        if trial.status.code is Code.UNSCHEDULABLE:
            first = f"0/{len(placements)} placements are available, first placement status: {trial.status.summary}"
            trial = replace(trial, status=unschedulable_group(first))
        return trial

    def _count(self) -> GroupCounts | None:
        """Count the pods that fit; None if that is impossible or takes longer than a trial."""
        if self._group.is_composite or self._cycles.has_extenders:
            return None
        if self._feasible(self._scheduled, len(self._group.pods)).code is not Code.WAIT:
            return None
        return count(self._profile, self._cluster, self._by.nominations, self._group)

    def _is_enough(self, fitting: int) -> bool:
        return fitting > 0 and self._feasible(self._scheduled + fitting, 0).code is Code.SUCCESS

    def _refused(self, placement: Placement | None, within: IntArray | None, counts: GroupCounts) -> Trial | None:
        """Return the result of a trial that places too few pods; None if it takes a trial to find out."""
        fitting, status, remaining = counts.fitting(within), Status(), len(self._group.pods)
        remaining -= fitting
        while remaining and status.code is not Code.UNSCHEDULABLE:
            remaining -= 1
            status = self._feasible(self._scheduled + fitting, remaining)
            if status.code is Code.ERROR:
                return None
        outcomes = counts.outcomes(placement, within, failed=len(self._group.pods) - fitting - remaining)
        return None if outcomes is None else Trial(status, outcomes, "" if placement is None else placement.name)

    def _try_one(self, placement: Placement | None, counts: GroupCounts | None) -> Conversation[Trial]:
        """Try the group in a placement, or on all nodes, unless the counts show that it does not fit."""
        if counts is not None and not self._is_enough(counts.fitting(self._within(placement))):
            refused = self._refused(placement, self._within(placement), counts)
            if refused is not None:
                return refused
        return (yield from self._try(placement))

    def _try_by_counts(self, placements: Sequence[Placement], counts: GroupCounts) -> Conversation[Trial | None]:
        """Choose a placement by how many pods fit in each, and try only that; None if all have to be tried."""
        start = self._profile.caller.started()
        fitting = [counts.fitting(placement.rows) for placement in placements]
        feasible = [number for number, fits in enumerate(fitting) if self._is_enough(fits)]
        if not feasible:
            trial = self._refused(placements[0], placements[0].rows, counts)
        else:
            candidates = [
                PlacedPods(
                    placements[number], self._group.pods[: fitting[number]], partial(self._nodes_of, placements[number])
                )
                for number in feasible
            ]
            best = placements[feasible[best_placement(self._profile, self._group, candidates, self._by.rng)]]
            trial = yield from self._try(best)
            if not trial.fits:
                trial = None
        if trial is None:
            return None
        failures = counts.reasons(placements, fitting) if self._by.collects_failures else [()] * len(placements)
        seconds = (self._profile.caller.started() - start) / len(placements)
        tried = tuple(
            TriedPlacement(one.name, len(one.rows), fits, messages, self._is_enough(fits), seconds)
            for one, fits, messages in zip(placements, fitting, failures, strict=True)
        )
        return replace(trial, tried=tried)

    def _try_all(self, placements: Sequence[Placement]) -> Conversation[Trial]:
        """Try the group in all placements, and reserve the best feasible one."""
        trials: list[Trial] = []
        tried: list[TriedPlacement] = []
        for placement in placements:
            start = self._profile.caller.started()
            trial = yield from self._try(placement)
            if trial.fits:
                self._undo(trial)
            trials.append(trial)
            seconds = self._profile.caller.started() - start
            tried.append(_tried(placement.name, len(placement.rows), trial, seconds))
            if trial.status.code is Code.ERROR:
                break
        if trials[-1].status.code is Code.ERROR:
            return replace(trials[-1], tried=tuple(tried))
        feasible = [number for number, trial in enumerate(trials) if trial.fits]
        if not feasible:
            return replace(trials[0], tried=tuple(tried))
        candidates = [_placed_pods(placements[number], trials[number]) for number in feasible]
        best = trials[feasible[best_placement(self._profile, self._group, candidates, self._by.rng)]]
        return replace(self._reserved(best), tried=tuple(tried))

    def _reserved(self, trial: Trial) -> Trial:
        """Reserve the nodes of a trial that fits and was undone."""
        outcomes = [
            self._cycles.reserve(self._profile, outcome, permits=False) if isinstance(outcome, Placed) else outcome
            for outcome in trial.outcomes
        ]
        return replace(
            trial, outcomes=outcomes, parts=[self._reserved(part) if part.fits else part for part in trial.parts]
        )

    def _nodes_of(self, placement: Placement) -> Sequence[str]:
        """Return the nodes on which the pods would be placed in a placement."""
        trial = run_until_calls(self._try(placement))
        assert not isinstance(trial, PausedConversation), "placements are not chosen by counts if there are extenders"
        if trial.fits:
            self._undo(trial)
        return [placed.node for placed in trial.placed]

    # Placements

    def _placements(self, everywhere: Placement) -> Sequence[Placement]:
        caller = self._profile.caller
        if not self._profile.placement_generate:
            return [everywhere]
        (hook,) = self._profile.placement_generate
        start, status = caller.started(), Code.ERROR
        try:
            placements: Sequence[Placement] = caller.call(hook, self._group, everywhere)
            status = Code.SUCCESS if placements else Code.UNSCHEDULABLE
        except PluginError as error:
            raise PlacementError(Code.ERROR, str(error.__cause__ or error)) from error
        finally:
            caller.record_point("PlacementGenerate", status, start)
        if self._by.only_placement and not self._group.is_composite:
            placements = [one for one in placements if one.name == self._by.only_placement]
        if not placements:
            raise PlacementError(Code.UNSCHEDULABLE, "no feasible placements found")
        return placements if hook.is_trusted else [_checked(one, everywhere) for one in placements]

    def _within(self, placement: Placement | None) -> IntArray | None:
        """Return the rows of a placement; None if it has all nodes."""
        return None if placement is None or len(placement.rows) == self._cluster.nodes.count else placement.rows

    # Trials

    def _try(self, placement: Placement | None) -> Conversation[Trial]:
        """Reserve nodes for all pods of a group that find one, in a placement or on all nodes, if the group fits."""
        if self._group.is_composite:
            assert placement is not None, "composite pod groups are tried by placements"
            return (yield from self._try_groups(placement))
        name = "" if placement is None else placement.name
        pods, scheduled, outcomes = self._group.pods, self._scheduled, list[Outcome]()
        status = self._feasible(scheduled, len(pods))
        if status.code is Code.UNSCHEDULABLE:
            return Trial(unschedulable_group(*status.reasons), outcomes, name)
        if status.code is Code.ERROR:
            return Trial(status, outcomes, name)
        for number, pod in enumerate(pods, 1):
            outcome = yield from self._cycles.schedule(self._profile, pod, self._within(placement), in_group=True)
            outcomes.append(outcome)
            searched = outcome.searched
            assert searched is not None
            searched.group, searched.placement = self._group, placement
            if isinstance(outcome, Placed):
                scheduled += 1
                self._hide_nomination(pod.pod)
            elif not outcome.is_rejection:
                status = failed_group(f"failed to schedule other pod from a pod group: {outcome.message}")
                break
            status = self._feasible(scheduled, len(pods) - number)
            if status.code in (Code.UNSCHEDULABLE, Code.ERROR):
                break
        if status.code is Code.WAIT:
            status = unschedulable_group(*status.reasons)
        trial = Trial(status, outcomes, name)
        if not trial.fits:
            self._undo(trial)
        return trial

    def _try_groups(self, placement: Placement) -> Conversation[Trial]:
        """Try the groups of a composite pod group in turn in a placement; keep their nodes if enough of them fit."""
        children, parts, fitting = self._group.children, list[Trial](), 0
        status = self._feasible(0, len(children))
        for child in () if status.code in (Code.UNSCHEDULABLE, Code.ERROR) else children:
            part = yield from self._part(child).find_within(placement)
            parts.append(part)
            if part.status.code is Code.ERROR:
                why = "composite pod group evaluation failed due to child error"
                status = failed_group(f"{why}: {part.status.message}")
                break
            fitting += part.fits
            status = self._feasible(fitting, len(children) - len(parts))
            if status.code in (Code.UNSCHEDULABLE, Code.ERROR):
                break
        if status.code is Code.WAIT:
            status = unschedulable_group(*status.reasons)
        trial = Trial(status, placement=placement.name, parts=parts)
        if not trial.fits:
            self._undo(trial)
        # After an error, it does not matter which groups fit.
        return replace(trial, parts=()) if status.code is Code.ERROR else trial

    def _part(self, child: TriedGroup) -> "_GroupCycle":
        return _GroupCycle(self._by, self._profile, child, self._hidden, self._evaluated)

    def _feasible(self, scheduled: int, remaining: int) -> Status:
        """Return whether enough pods have a node, if `remaining` pods have not been tried yet."""
        caller, start, status = self._profile.caller, self._profile.caller.started(), Status()
        try:
            for hook in self._profile.placement_feasible:
                answer: Rejection | Wait | None = caller.call(hook, self._group, scheduled, remaining)
                if isinstance(answer, Rejection):
                    return (status := Status(answer.code, answer.reasons))
                if answer is not None:
                    status = Status(Code.WAIT, (answer.reason,))
        except PluginError as error:
            status = failed_group(f"failed to evaluate placement feasibility: {error}")
        finally:
            caller.record_point("PlacementFeasible", status.code, start)
        return status

    def _hide_nomination(self, pod: Pod) -> None:
        node = self._by.nominations.node_of(pod.metadata.uid)
        if node:
            self._hidden.append((pod, node))
            self._by.nominations.remove(pod.metadata.uid)

    def _undo(self, trial: Trial) -> None:
        for placed in reversed(trial.placed):
            self._cycles.unreserve(self._profile, placed)

    def _permit(self, placed: Placed) -> Outcome:
        """Run Permit for a pod of a group that fits."""
        answer = self._cycles.permit(self._profile, placed)
        if isinstance(answer, Placed):
            return answer
        self._cycles.unreserve(self._profile, placed)
        return refusal(answer, placed.searched)


def _after(status: Status, found: PostFiltered) -> Status:
    """Return the status of a group after PodGroupPostFilter."""
    if found is NOT_FILTERED:
        return status
    return failed_group(found.message) if found.code is Code.ERROR else status.with_reason(found.message)


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


def _tried(name: str, nodes: int, trial: Trial, seconds: float) -> TriedPlacement:
    failures = dict.fromkeys(one.message for one in trial.outcomes if isinstance(one, Failed))
    return TriedPlacement(name, nodes, len(trial.placed), tuple(failures), trial.fits, seconds)


def _placed_pods(placement: Placement, trial: Trial) -> PlacedPods:
    placed = trial.placed
    return PlacedPods(placement, [one.pod for one in placed], lambda: [one.node for one in placed])
