"""Runs the PodGroupPostFilter plugins in order, until one finds victims or that preemption cannot help."""

from msgspec.structs import replace

from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.group_outcome import PostFiltered, Trial
from kubestow.scheduler.cycle.group_preemption import GroupPreemption, Try
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.extenders.extender import Conversation
from kubestow.scheduler.framework.handle import Nominator
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.placements import GroupVictims, TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection

_PREEMPTION = "pod group preemption: "
_ONGOING = f"{_PREEMPTION}ongoing preemption on nominated nodes"


class GroupPostFilter:
    """Searches for a way to place a group that does not fit."""

    def __init__(
        self, profile: Profile, group: TriedGroup, cluster: Cluster, cycles: SchedulingCycles, nominator: Nominator
    ) -> None:
        self._profile = profile
        self._group = group
        self._cluster = cluster
        self._cycles = cycles
        self._nominator = nominator

    def run(self, trial: Trial, try_group: Try) -> Conversation[PostFiltered]:
        """Run the plugins after a trial that failed; the messages of those that could not help are joined."""
        caller = self._profile.caller
        start = caller.started()
        messages: list[str] = []
        result = PostFiltered(Code.UNSCHEDULABLE)
        for hook in self._profile.pod_group_post_filter:
            result = yield from self._filter_with(hook, trial, try_group)
            if result.code in (Code.SUCCESS, Code.UNRESOLVABLE):
                break
            if result.code is not Code.UNSCHEDULABLE:
                problem = f'error in "{hook.name}" PodGroupPostFilter plugins: {result.message}'
                result = replace(result, code=Code.ERROR, message=problem)
                break
            if result.message:
                messages.append(result.message)
        else:
            result = replace(result, message=", ".join(messages))
        caller.record_point("PodGroupPostFilter", result.code, start)
        return result

    def _filter_with(self, hook: Hook, trial: Trial, try_group: Try) -> Conversation[PostFiltered]:
        states = {
            pod.uid: outcome.states[hook.name]
            for leaf, of_leaf in trial.by_group(self._group)
            for pod, outcome in zip(leaf.pods, of_leaf.outcomes, strict=False)
            if hook.name in outcome.states
        }
        start = self._profile.caller.started()
        try:
            answer: GroupVictims | Rejection = self._profile.caller.call(hook, replace(self._group, states=states))
        except PluginError as error:
            return PostFiltered(Code.ERROR, str(error.__cause__ or error))
        if isinstance(answer, Rejection):
            found = PostFiltered(answer.code, answer.message)
        elif answer.is_ongoing:
            nodes = {pod.uid: pod.pod.status.nominatedNodeName for pod in self._group.pods}
            found = PostFiltered(Code.SUCCESS, _ONGOING, nodes=nodes)
        else:
            found = yield from self._preempt(answer, try_group)
        # A group that may not preempt, or waits for its victims, is not evaluated; one without possible victims is.
        is_evaluated = answer.code is Code.UNRESOLVABLE if isinstance(answer, Rejection) else not answer.is_ongoing
        seconds = self._profile.caller.started() - start if is_evaluated else None
        return replace(found, plugin=hook.name, attempted=found.code, seconds=seconds)

    def _preempt(self, answer: GroupVictims, try_group: Try) -> Conversation[PostFiltered]:
        preemption = GroupPreemption(self._profile, self._cluster, self._cycles, self._nominator, answer.units)
        trial, units = yield from preemption.run(try_group)
        if not trial.fits:
            return PostFiltered(trial.status.code, f"{_PREEMPTION}{trial.status.message}")
        victims = tuple(pod for unit in units for pod in unit.pods)
        return PostFiltered(
            Code.SUCCESS,
            f"{_PREEMPTION}found a placement for podgroup, preempting {len(victims)} victims",
            victims,
            disruptions=sum(unit.in_group for unit in units),
            budgets_broken=sum(unit.budgets_broken for unit in units),
            nodes={one.pod.uid: one.node for one in trial.placed},
        )
