"""What it would take for a pod to land on a certain node instead.

A node that refuses the pod: the single changes after which it would not, or else what is needed together, which is all
that can be changed, less what can be left out, the largest first. A node that would do but scores less: by how much,
and by whose scores. In the end the changed world is scored, to know whether the pod would really go there.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
from msgspec.structs import replace

from kubestow.cluster.pods import PodInfo
from kubestow.decisions.schema import Rejected
from kubestow.explaining import amounts
from kubestow.explaining.changes import POD, Change, changed, fitting
from kubestow.explaining.dry_run import DryRun, dry_run
from kubestow.explaining.obstacles import gates, obstacles
from kubestow.explaining.world import ExplainError, World
from kubestow.explaining.would_fit import Search, Suggestion
from kubestow.framework.results import unresolvable
from kubestow.model.pod import Pod
from kubestow.model.topology import HOSTNAME_LABEL

_SCORED = 5


class Landing(Suggestion, frozen=True, omit_defaults=True):
    """A change after which the node would do."""

    chosen: str | None = None
    """Where the pod would go then; None if that was not tried."""
    ties: int = 0
    """How many others score the same as the node then, and none more: it is any one of these."""


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
    """Single changes, smallest first."""
    together: tuple[str, ...] = ()
    """Where no single change is enough: changes that are, together."""


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
        changes = tuple(_landings(world, pod, node, [_pinned(world, pod, node)])) if run.chosen != node else ()
        return Against(node, None, result.total, best.total - result.total, by, changes)
    found = [one.change for one in Search(world, pod, node).ranked()]
    rejected = _as_a_whole(run) if result is None or result.rejected is None else result.rejected
    together = () if found else _together(world, pod, node)
    return Against(node, rejected, changes=tuple(_landings(world, pod, node, found)), together=together)


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


def _landings(world: World, pod: Pod, node: str, changes: list[Change]) -> Iterator[Landing]:
    for number, change in enumerate(changes):
        with changed(world, change):
            run = dry_run(world, PodInfo(pod if change.pod is None else change.pod))
            chosen = run.chosen if number < _SCORED else None
            ties = len(run.best) - 1 if {chosen, node} <= set(run.best) else 0
            feasible = sorted(run.feasible)
        yield Landing(change.side, change.words, len(feasible), tuple(feasible[:_SCORED]), chosen=chosen, ties=ties)


def _together(world: World, pod: Pod, node: str) -> tuple[str, ...]:
    """Changes that open a node if all of them are made, none too many; nothing if all there are would not be enough."""
    words = [change.words for change in _steps(world, pod, node)]
    if not _opens(world, pod, node, words):
        return ()
    for largest in reversed(words):
        fewer = [one for one in words if one != largest]
        if _opens(world, pod, node, fewer):
            words = fewer
    return tuple(words)


def _opens(world: World, pod: Pod, node: str, words: list[str]) -> bool:
    """Whether a node will do after some of its steps, each made in the world that those before it have left."""
    with ExitStack() as stack:
        for wanted in words:
            step = next((one for one in _steps(world, pod, node) if one.words == wanted), None)
            if step is not None:
                stack.enter_context(changed(world, step))
                pod = pod if step.pod is None else step.pod
        return node in fitting(world, pod)


def _steps(world: World, pod: Pod, node: str) -> list[Change]:
    """What can be changed for one node, smallest first; the pod is changed only as much as it must be."""
    found = list(gates(pod))
    there = world.cluster.node(node)
    assert there is not None
    for request in amounts.requests_of(pod):
        found += amounts.lowered(world, pod, request, [node], None) or [amounts.without(pod, request)]
        found += [change for change, _ in amounts.raised(world, request, [node], None)]
    for obstacle in obstacles(world, pod, [there]):
        found += [obstacle.without, *obstacle.at_node(there)]
    more = amounts.one_more_pod(world, node)
    found += [] if more is None else [more]
    return sorted(found, key=lambda change: change.size)
