"""What it would take for a pod to land on a certain node instead.

A node that refuses the pod: the single changes after which it would not, or else what is needed together. A node that
would do but scores less: by how much, and by whose scores. In the end the changed world is scored, to know whether the
pod would really go there; if it might go elsewhere, it is pinned besides.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.topology import HOSTNAME_LABEL
from kubestow.insight.decisions.schema import Rejected
from kubestow.insight.explain.changes import POD, Change, as_one, changed
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.together import enough_together
from kubestow.insight.explain.world import ExplainError, World
from kubestow.insight.explain.would_fit import Search, Suggestion
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import unresolvable

_NAMED = 5


class Landing(Suggestion, frozen=True, omit_defaults=True):
    """A change after which the node would do."""

    chosen: str | None = None
    """Where the pod would go then; None if no node can be chosen, because scoring fails."""
    ties: int = 0
    """How many others score the same as the node then, and none more: it is any one of these."""

    def sends_to(self, node: str) -> bool:
        """Whether the pod would go to the node for certain."""
        return self.chosen == node and not self.ties


class Against(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a node has against a pod."""

    node: str
    rejected: Rejected | None = None
    total: int | None = None
    behind: int = 0
    """By how much the node's score is below the best."""
    behindBy: dict[str, int] = {}
    """The same by plugin, and by `extenders`, against a node of the highest score; negative: this node is better."""
    changes: tuple[Landing, ...] = ()
    """Single changes: those that send the pod there first, then the smallest first."""
    together: tuple[str, ...] = ()
    """Where no single change is enough to send it there for certain: changes that are, together."""


def against(run: DryRun, node: str) -> Against:
    """Raises ExplainError if there is no such node."""
    world, pod = run.world, run.pod.pod
    if world.cluster.node(node) is None:
        raise ExplainError(f"there is no node {node}")
    result = run.results().get(node)
    if result is not None and result.total is not None and run.gated is None:
        best = run.results()[run.best[0]]
        assert best.total is not None
        mine, others = result.plugins or {}, best.plugins or {}
        by = {name: others[name] - mine.get(name, 0) for name in others if others[name] != mine.get(name, 0)}
        if best.extenders != result.extenders:
            by["extenders"] = best.extenders - result.extenders
        pinned = () if run.chosen == node else _landings(world, pod, node, [_pinned(world, pod, node)])
        changes = tuple(one for one in pinned if one.sends_to(node))
        return Against(node, None, result.total, best.total - result.total, by, changes)
    rejected = _as_a_whole(run) if result is None or result.rejected is None else result.rejected
    single = [one.change for one in Search(world, pod, node).ranked()]
    several = [] if single else enough_together(world, pod, node)
    if len(several) == 1:
        single, several = several, []
    changes = _landings(world, pod, node, single)
    together = () if any(one.sends_to(node) for one in changes) else _sent(world, pod, node, single, several)
    return Against(node, rejected, changes=changes, together=together)


def _as_a_whole(run: DryRun) -> Rejected | None:
    """Who kept the pod from a node that nobody refused: it is held back, or nodes were not even looked at."""
    evaluation = run.evaluation
    if run.gated is not None:
        return Rejected.of(run.gated)
    if evaluation.rejected is None and evaluation.narrowed_by:
        left_out = unresolvable(evaluation.left_out_reason)
        return Rejected.of(left_out._replace(plugin=", ".join(evaluation.narrowed_by)))
    return None if evaluation.rejected is None else Rejected.of(evaluation.rejected)


def _pinned(world: World, pod: Pod, node: str) -> Change:
    found = world.cluster.node(node)
    assert found is not None
    host = found.metadata.labels.get(HOSTNAME_LABEL, node)
    spec = replace(pod.spec, nodeSelector={**pod.spec.nodeSelector, HOSTNAME_LABEL: host})
    return Change(POD, f"node selector {HOSTNAME_LABEL}={host} added", 0.3, pod=replace(pod, spec=spec))


def _landings(world: World, pod: Pod, node: str, changes: Sequence[Change]) -> tuple[Landing, ...]:
    """What comes of changes, those after which the pod goes to the node for certain before the others."""
    found = [_landing(world, pod, node, change) for change in changes]
    return tuple(sorted(found, key=lambda landing: not landing.sends_to(node)))


def _landing(world: World, pod: Pod, node: str, change: Change) -> Landing:
    with changed(world, change):
        run = DryRun(world, PodInfo(pod if change.pod is None else change.pod))
        feasible, best, chosen = sorted(run.feasible), set(run.best), run.chosen
    ties = len(best) - 1 if {chosen, node} <= best else 0
    return Landing(change.side, change.words, len(feasible), tuple(feasible[:_NAMED]), chosen=chosen, ties=ties)


def _sent(world: World, pod: Pod, node: str, single: list[Change], several: list[Change]) -> tuple[str, ...]:
    """Changes that send the pod to a node, where no single one is sure to: if need be, it is pinned there.

    Of the single ones, the smallest that will do. Where not even that sends it there, those that open the node.
    """
    for steps in [several] if several else [[change] for change in single]:
        opening = as_one(steps)
        with changed(world, opening):
            pinned = _pinned(world, pod if opening.pod is None else opening.pod, node)
        for way in (steps, [*steps, pinned]):
            if _landing(world, pod, node, as_one(way)).sends_to(node):
                return _words(way)
    return _words(several)


def _words(changes: Sequence[Change]) -> tuple[str, ...]:
    """Each once: what stands in several places, such as a condition in two terms, is dropped from all of them."""
    return tuple(dict.fromkeys(change.words for change in changes))
