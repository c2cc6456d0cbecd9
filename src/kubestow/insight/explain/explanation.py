"""The explanation of a pod or a pod group: the decision, its source, and the changes that would help."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.priority import pod_priority
from kubestow.api.timestamps import format_time
from kubestow.insight.decisions.schema import ERROR, SCHEDULED, UNSCHEDULABLE, VERSION, Decision, GroupDecision, Queue
from kubestow.insight.explain.against import Against, against
from kubestow.insight.explain.causes import Cause, causes_of
from kubestow.insight.explain.causes.pod_groups import topology_causes
from kubestow.insight.explain.changes import combine_changes
from kubestow.insight.explain.commands import commands_for
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.group_run import GroupRun
from kubestow.insight.explain.group_would_fit import GroupSuggestion, group_would_fit_if
from kubestow.insight.explain.obstacles import scheduler_changes
from kubestow.insight.explain.together import left_over, nearest_together
from kubestow.insight.explain.world import ExplainError, NoProfileError, World
from kubestow.insight.explain.would_fit import Found, Suggestion, found_changes
from kubestow.scheduler.cluster.pods import PodInfo


class Together(msgspec.Struct, frozen=True):
    """Changes that suffice at once, if no single change does."""

    node: str
    changes: tuple[str, ...]
    commands: tuple[str, ...] = ()


class Explanation(NamedTuple):
    """A decision about a pod, with its source and the changes that would help."""

    decision: Decision
    source: str
    """`dry run`, or `scheduler` for a decision that the scheduler has recorded."""
    would_fit_if: tuple[Suggestion, ...] = ()
    against: Against | None = None
    notes: tuple[str, ...] = ()
    """Remarks on how the explanation was made, for the reader."""

    is_stuck: bool = False
    """Whether changes were tried, and none of them helps."""
    causes: tuple[Cause, ...] = ()
    together: Together | None = None

    def has_node(self, node: str) -> bool:
        """Return whether a node was evaluated."""
        return node in self.decision.by_node

    def for_node(self, node: str) -> Self:
        """Return the explanation limited to one node. Raises ExplainError if the node certainly did not exist."""
        decision, nodes = self.decision, self.decision.by_node
        if node not in nodes and nodes and decision.evaluated == decision.nodeCount:
            raise ExplainError(f"node {node} did not exist when pod {decision.pod} was evaluated")
        return self._replace(decision=replace(decision, nodes={node: nodes[node]} if node in nodes else {}))

    def without_times(self) -> Self:
        """Return the explanation of a dry run without times; that of a recorded decision unchanged."""
        if self.source != "dry run":
            return self
        return self._replace(decision=replace(self.decision, time="", queue=Queue()))

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of the first suggestion that needs nothing else."""
        every = [one.commands for one in self.would_fit_if]
        every += [() if self.together is None else self.together.commands]
        complete = (commands for commands in every if commands and not any(one.startswith("#") for one in commands))
        return next(complete, next(filter(None, every), ()))

    def tree(self) -> dict[str, Any]:
        """Return the explanation as JSON objects: the fields of the decision, and those of the explanation."""
        more: dict[str, Any] = {
            "source": self.source,
            "causes": cause_trees(self.causes),
            "wouldFitIf": self.would_fit_if,
        }
        more |= {"together": self.together, "against": self.against, "notes": self.notes}
        return _tree(self.decision, more)


class GroupExplanation(NamedTuple):
    """A decision about a pod group, with its source and the changes that would help."""

    decision: GroupDecision
    source: str
    would_fit_if: tuple[GroupSuggestion, ...] = ()
    notes: tuple[str, ...] = ()
    against: str = ""
    """Name of the only placement that was evaluated; empty if all were."""
    is_stuck: bool = False
    """Whether changes were tried, and none of them helps."""
    causes: tuple[Cause, ...] = ()
    """What stands in the way of the first pod of the group."""

    def for_node(self, node: str) -> Self:
        """Raise ExplainError: only explanations of pods can be limited to a node."""
        pod = next(iter(self.decision.members), "NAMESPACE/POD")
        raise ExplainError(f"--node applies to pods: use a pod of the group, kubestow explain {pod} --node {node}")

    def without_times(self) -> Self:
        """Return the explanation of a dry run without times; that of a recorded decision unchanged."""
        return self if self.source != "dry run" else self._replace(decision=replace(self.decision, time=""))

    def tree(self) -> dict[str, Any]:
        """Return the explanation as JSON objects."""
        more: dict[str, Any] = {"source": self.source, "against": self.against, "causes": cause_trees(self.causes)}
        more |= {"wouldFitIf": self.would_fit_if, "notes": self.notes}
        return _tree(self.decision, more)


def cause_trees(causes: Iterable[Cause]) -> list[dict[str, Any]]:
    """Return causes as JSON objects."""
    return [{"plugin": one.plugin, "text": one.text, "similar": one.similar} for one in causes]


def _tree(decision: Decision | GroupDecision, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a decision, and those of `more` that are not empty."""
    tree: dict[str, Any] = msgspec.to_builtins(decision)
    return tree | {name: msgspec.to_builtins(value) for name, value in more.items() if value}


def explain_group_run(run: GroupRun, against: str = "", notes: tuple[str, ...] = ()) -> GroupExplanation:
    """Explain a dry run of a pod group; `against` names a placement, or a node in it, to try. Raises ExplainError."""
    decision, notes = run.decision(), notes + run.notes
    if against:
        run = run.against(against)
        elsewhere = decision.placement if decision.placement != run.only else ""
        notes += (f"without --against it would be scheduled in {elsewhere}.",) if elsewhere else ()
        decision = run.decision()
    if decision.outcome == SCHEDULED:
        return GroupExplanation(decision, "dry run", (), notes, run.only)
    causes = tuple(topology_causes(run.world, run.group))
    causes += tuple(causes_of(DryRun(run.world, PodInfo(run.pods[0]), only_filters=True)))
    would_fit = tuple(group_would_fit_if(run, causes))
    is_stuck = decision.outcome == UNSCHEDULABLE and not would_fit
    return GroupExplanation(decision, "dry run", would_fit, notes, run.only, is_stuck, causes)


def explain_without_profile(world: World, pod: Pod, error: NoProfileError, notes: tuple[str, ...] = ()) -> Explanation:
    """Explain a pod whose scheduler has no profile, but one with a similar name. Raises the error if there is none."""
    runs = [(one, DryRun(world, PodInfo(one.pod))) for one in scheduler_changes(pod, error.similar) if one.pod]
    if not runs:
        raise error
    found = tuple(Found(change, run.feasible).suggestion(world, pod) for change, run in runs if run.fits)
    message, priority = str(error).partition(": ")[2], pod_priority(pod)
    decision = Decision(
        version=VERSION,
        pod=pod.key,
        outcome=UNSCHEDULABLE,
        chosen=None,
        message=message,
        nodes={},
        uid=pod.metadata.uid,
        time=format_time(world.now),
        priority=priority,
    )
    causes = (Cause("", message, tuple(error.similar)),)
    if found:
        return Explanation(decision, "dry run", found, None, notes, causes=causes)
    # With the profile, something else is in the way.
    change, run = runs[0]
    others = explained(run)
    node, steps = ("", ()) if others.together is None else (others.together.node, others.together.changes)
    for one in others.would_fit_if[:1]:
        node, steps = one.nodes[0], (one.change,)
    together = Together(node, (change.text, *steps)) if steps else None
    return Explanation(decision, "dry run", (), None, notes, True, (*causes, *others.causes), together)


def explained(run: DryRun, node: str = "", notes: tuple[str, ...] = ()) -> Explanation:
    """Explain a dry run with the changes that would help, or send the pod to `node`. Raises ExplainError."""
    decision = run.decision()
    notes += run.world.notes_on_writes()
    causes = tuple(causes_of(run))
    if decision.outcome == ERROR and not decision.nodes:
        # No node was evaluated, so changes cannot be compared.
        return Explanation(decision, "dry run", notes=notes, causes=causes)
    if node:
        return Explanation(decision, "dry run", against=against(run, node, causes), notes=notes, causes=causes)
    found = () if decision.chosen else found_changes(run, causes)
    is_stuck = decision.outcome == UNSCHEDULABLE and decision.nodeCount > 0 and not found
    together = None
    if is_stuck:
        where, several = nearest_together(run)
        if several:
            commands = commands_for(run.world, run.pod.pod, combine_changes(several))
            together = Together(where, tuple(dict.fromkeys(one.text for one in several)), commands)
        else:
            # What no change removes comes first, also if other causes hide it.
            causes = tuple({one.text: one for one in (*left_over(run), *causes)}.values())
    would_fit = tuple(one.suggestion(run.world, run.pod.pod) for one in found)
    return Explanation(decision, "dry run", would_fit, None, notes, is_stuck, causes, together)
