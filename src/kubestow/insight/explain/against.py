"""Finds the changes after which a pod would be scheduled on a given node.

If the node rejects the pod: single changes that make it feasible, or else a combination of changes. If the node is
feasible with a lower score: the difference, by plugin. The changed world is scored again to find out whether the pod
would be scheduled on the node; if not for certain, a node selector is added.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.insight.decisions.schema import Rejected
from kubestow.insight.explain.causes import Cause, causes_of
from kubestow.insight.explain.changes import POD, Change, changed, combine_changes
from kubestow.insight.explain.commands import commands_for
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.names import absent
from kubestow.insight.explain.together import enough_together
from kubestow.insight.explain.world import ExplainError, World
from kubestow.insight.explain.would_fit import Suggestion, found_changes
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import unresolvable

_NAMED = 5


class OpeningChange(Suggestion, frozen=True, omit_defaults=True):
    """A change after which the node is feasible."""

    chosen: str | None = None
    """The node that is chosen after the change; None if no node can be chosen, because scoring fails."""
    ties: int = 0
    """Number of other nodes with the same score, if this is the highest one: the choice among them is random."""

    def places_on(self, node: str) -> bool:
        """Return whether the pod would be scheduled on the node for certain."""
        return self.chosen == node and not self.ties


class Against(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a pod is not scheduled on a node, and which changes would help."""

    node: str
    rejected: Rejected | None = None
    total: int | None = None
    behind: int = 0
    """Difference between the highest score and the score of the node."""
    behindBy: dict[str, int] = {}
    """Differences by plugin, and `extenders`, to a node with the highest score; negative: this node is better."""
    changes: tuple[OpeningChange, ...] = ()
    """Single changes: first those that send the pod to the node, then by size."""
    together: tuple[str, ...] = ()
    """If no single change sends the pod to the node for certain: a combination of changes that does."""


def against(run: DryRun, node: str, causes: Iterable[Cause] | None = None) -> Against:
    """Return why a pod is not scheduled on a node. Raises ExplainError if the node does not exist.

    `causes`: what stands in the way of the pod, if known.
    """
    world, pod = run.world, run.pod.pod
    if world.cluster.node(node) is None:
        raise ExplainError(absent("node", node, world.cluster.nodes.row_of))
    result = run.results().get(node)
    if result is not None and result.total is not None and run.gated is None:
        best = run.results()[run.best[0]]
        assert best.total is not None
        mine, others = result.plugins or {}, best.plugins or {}
        by = {name: others[name] - mine.get(name, 0) for name in others if others[name] != mine.get(name, 0)}
        if best.extenders != result.extenders:
            by["extenders"] = best.extenders - result.extenders
        pinned = () if run.chosen == node else _opening_changes(world, pod, node, [_pinned(world, pod, node)])
        changes = tuple(one for one in pinned if one.places_on(node))
        return Against(node, None, result.total, best.total - result.total, by, changes)
    rejected = _pod_rejection(run) if result is None or result.rejected is None else result.rejected
    single = [one.change for one in found_changes(run, causes_of(run) if causes is None else causes, node)]
    several = [] if single else enough_together(world, pod, node)
    if len(several) == 1:
        single, several = several, []
    changes = _opening_changes(world, pod, node, single)
    together = () if any(one.places_on(node) for one in changes) else _sent(world, pod, node, single, several)
    return Against(node, rejected, changes=changes, together=together)


def _pod_rejection(run: DryRun) -> Rejected | None:
    """Return why the pod as a whole was rejected: it is gated, or PreFilter rejected it or excluded the node."""
    evaluation = run.evaluation
    if run.gated is not None:
        return Rejected.of(run.gated)
    if evaluation.rejected is None and evaluation.narrowed_by:
        excluded = unresolvable(evaluation.left_out_reason)
        return Rejected.of(excluded._replace(plugin=", ".join(evaluation.narrowed_by)))
    return None if evaluation.rejected is None else Rejected.of(evaluation.rejected)


def _pinned(world: World, pod: Pod, node: str) -> Change:
    found = world.cluster.node(node)
    assert found is not None
    host = found.metadata.labels.get(HOSTNAME_LABEL, node)
    spec = replace(pod.spec, nodeSelector={**pod.spec.nodeSelector, HOSTNAME_LABEL: host})
    return Change(POD, f"node selector {HOSTNAME_LABEL}={host} added", 0.3, pod=replace(pod, spec=spec))


def _opening_changes(world: World, pod: Pod, node: str, changes: Sequence[Change]) -> tuple[OpeningChange, ...]:
    """Return the results of changes, first those after which the pod is scheduled on the node for certain."""
    found = [_opening_change(world, pod, node, change) for change in changes]
    return tuple(sorted(found, key=lambda landing: not landing.places_on(node)))


def _opening_change(world: World, pod: Pod, node: str, change: Change) -> OpeningChange:
    with changed(world, change):
        run = DryRun(world, PodInfo(pod if change.pod is None else change.pod))
        feasible, best, chosen = sorted(run.feasible), set(run.best), run.chosen
    ties = len(best) - 1 if {chosen, node} <= best else 0
    commands = commands_for(world, pod, change)
    some = tuple(feasible[:_NAMED])
    return OpeningChange(change.side, change.text, len(feasible), some, 0, commands, chosen=chosen, ties=ties)


def _sent(world: World, pod: Pod, node: str, single: list[Change], several: list[Change]) -> tuple[str, ...]:
    """Return a combination of changes that sends the pod to a node: the smallest change, or several, and a selector.

    If nothing sends the pod there, return the changes that make the node feasible.
    """
    for steps in [several] if several else [[change] for change in single]:
        opening = combine_changes(steps)
        with changed(world, opening):
            pinned = _pinned(world, pod if opening.pod is None else opening.pod, node)
        for way in (steps, [*steps, pinned]):
            if _opening_change(world, pod, node, combine_changes(way)).places_on(node):
                return _texts(way)
    return _texts(several)


def _texts(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the distinct texts of changes; a condition in several terms is removed from all of them."""
    return tuple(dict.fromkeys(change.text for change in changes))
