"""Finds a combination of changes that makes a node feasible if no single change does.

All possible changes for the node are applied, and then undone again as long as the rest suffices: first those of the
capacity of the node, which no command makes, then the largest.
If all changes do not suffice, all without labels may. What the pod names and does not exist is corrected first.
Other objects are only changed if that does not suffice: claims freed, volumes moved, pods of lower priority removed.
Changes may hinder each other, so that all of them do not suffice; then every two of them are tried.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, combinations, islice
from typing import NamedTuple

import numpy as np

from kubestow.api.devices import ResourceClaim
from kubestow.api.node import Node
from kubestow.api.node_selector import compile_node_selector
from kubestow.api.pod import Pod
from kubestow.insight.explain import amounts
from kubestow.insight.explain.causes import Cause, causes_of
from kubestow.insight.explain.changes import Change, changed, is_feasible_on, until_time_limit
from kubestow.insight.explain.cluster_changes import claims_freed, devices_freed, victims_removed, volumes_moved
from kubestow.insight.explain.domain_blockers import blockers_removed
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.obstacles import gates, obstacles
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.cluster.pods import PodInfo

_MOST_CLAIMS = 10
_MOST_ALIKE = 2
_MOST_CORRECTIONS = 6
_MOST_ROUNDS = 3
_LARGEST_CORRECTION = 0.5
IsEnough = Callable[[Sequence[str]], bool]
"""Returns whether the node is feasible after some steps."""


class _Applied(NamedTuple):
    """The changes that were applied, and the pod after them."""

    steps: list[Change]
    pod: Pod


def enough_together(world: World, pod: Pod, node: str, corrections: Sequence[Change] | None = None) -> list[Change]:
    """Return a minimal list of changes that make a node feasible if they are applied in this order.

    The list is empty if neither all possible changes nor two of them suffice. `corrections`: changes to try
    first; None: those that `corrections_of` returns.
    """
    return _Search(world, pod, node, corrections_of(world, pod) if corrections is None else corrections).found()


def corrections_of(world: World, pod: Pod) -> list[Change]:
    """Return changes that remove one cause after the other; of those of a cause, the most effective."""
    steps: list[Change] = []
    with ExitStack() as stack:
        run = _filtered(world, pod)
        causes = causes_of(run)
        while len(steps) < _MOST_CORRECTIONS:
            known = _severity(run, causes)
            found: list[tuple[tuple[bool, int], int, Change]] = []
            for cause in causes:
                for change in (one for one in cause.changes if one.size <= _LARGEST_CORRECTION):
                    with changed(world, change):
                        after = _filtered(world, pod if change.pod is None else change.pod)
                        left = causes_of(after)
                    if all(one.text != cause.text for one in left) and _severity(after, left) <= known:
                        found.append((_severity(after, left), len(found), change))
                if found:
                    break
            if not found:
                break
            step = min(found)[2]
            stack.enter_context(changed(world, step))
            pod = pod if step.pod is None else step.pod
            steps.append(step)
            run = _filtered(world, pod)
            causes = causes_of(run)
    return steps


def _filtered(world: World, pod: Pod) -> DryRun:
    return DryRun(world, PodInfo(pod), only_filters=True)


def _severity(run: DryRun, causes: Sequence[Cause]) -> tuple[bool, int]:
    """Return whether the pod is rejected as a whole, and the number of causes."""
    return run.gated is not None or run.evaluation.rejected is not None, len(causes)


def nearest_together(run: DryRun) -> tuple[str, list[Change]]:
    """Return the node that needs the fewest changes at once, and these changes; an empty list if none suffices.

    Of the nodes that are rejected for the same reasons, only the first few are tried.
    """
    world, pod = run.world, run.pod.pod
    corrections = corrections_of(world, pod)
    with ExitStack() as stack:
        corrected = pod
        for change in corrections:
            stack.enter_context(changed(world, change))
            corrected = change.pod or corrected
        # Nodes that are rejected for different reasons once what does not exist is corrected.
        tried = _different_nodes(_filtered(world, corrected)) if corrections else []
    tried = list(dict.fromkeys([*tried, *_different_nodes(run)]))
    best: tuple[str, list[Change]] = ("", [])
    for node in until_time_limit(tried):
        found = enough_together(world, pod, node, corrections)
        if found and (not best[1] or _weight(found) < _weight(best[1])):
            best = node, found
    return best


def left_over(run: DryRun) -> list[Cause]:
    """Return what stands in the way of a pod after all changes for the most promising node."""
    world, pod = run.world, run.pod.pod
    nodes = _different_nodes(run)
    return _Search(world, pod, nodes[0], corrections_of(world, pod)).left() if nodes else []


def _different_nodes(run: DryRun) -> list[str]:
    """Return some of the nodes with the same result: feasible ones, then those that passed most filters.

    Nodes are feasible if the pod is gated.
    """
    verdicts, table = run.evaluation.verdicts, run.world.cluster.nodes
    order = {hook.name: number for number, hook in enumerate(run.profile.filter)}
    kinds = [] if verdicts is None else sorted(verdicts.kinds(), key=lambda kind: -order.get(kind[0].plugin, 0))
    alike = [] if verdicts is None else [verdicts.feasible(), *(verdicts.rows[positions] for _, positions in kinds)]
    if not any(len(rows) for rows in alike):
        # The pod as a whole is rejected.
        alike = [np.flatnonzero(table.live[: table.size])]
    return [table.names[row] for rows in alike for row in rows[:_MOST_ALIKE].tolist()]


def _weight(several: Sequence[Change]) -> tuple[int, float]:
    return len(several), sum(one.size for one in several)


def _labels(world: World, change: Change) -> bool:
    """Return whether a change modifies labels of a node."""
    return any(old.metadata.labels != new.metadata.labels for old, new in _nodes(world, change))


def _enlarges(world: World, change: Change) -> bool:
    """Return whether a change modifies the capacity of a node, for which there is no command."""
    return any(old.status.allocatable != new.status.allocatable for old, new in _nodes(world, change))


def _nodes(world: World, change: Change) -> Iterator[tuple[Node, Node]]:
    """Yield the nodes that a change modifies, before and after it."""
    for new in change.nodes:
        old = world.cluster.node(new.metadata.name)
        if old is not None:
            yield old, new


class _Search:
    """Searches a combination of changes for one node."""

    def __init__(self, world: World, pod: Pod, node: str, corrections: Sequence[Change]) -> None:
        self._world = world
        self._pod = pod
        self._node = node
        self._corrections = [change.text for change in corrections]
        self._known: dict[tuple[str, ...], Change | None] = {}
        """The step with the last of these texts, after those with the others were applied."""

    def found(self) -> list[Change]:
        world, pod, node, first = self._world, self._pod, self._node, self._corrections
        # What comes last is left out first.
        steps = sorted(_steps(world, pod, node), key=lambda change: (_enlarges(world, change), change.size))
        # A label may move the node into a domain that excludes the pod.
        ways = [[change.text for change in some] for some in (steps, [one for one in steps if not _labels(world, one)])]
        ways = [*([*first, *way] for way in ways), *(ways if first else ())]
        for texts in ways:
            if self._is_enough(None, texts):
                return self._least(None, texts)
        around = list(dict.fromkeys(change.text for change in chain(_missing(world, pod), _around(world, pod, node))))
        everywhere = [[*way, *around] for way in ways]
        for texts in everywhere:
            if self._is_enough(None, texts):
                return self._least(None, texts)
        for texts in everywhere:
            for removal in self._removals(texts):
                if self._is_enough(removal, [*texts, removal.text]):
                    return self._least(removal, [*texts, removal.text])
        for texts in everywhere:
            for _ in range(_MOST_ROUNDS):
                more = [text for text in self._revealed(texts) if text not in texts]
                texts = [*texts, *more]
                if more and self._is_enough(None, texts):
                    return self._least(None, texts)
                if not more:
                    break
        for two in combinations(dict.fromkeys(everywhere[0]), 2):
            if self._is_enough(None, two):
                return self._least(None, list(two))
        return []

    def left(self) -> list[Cause]:
        """Return the causes after all changes."""
        world, pod, node = self._world, self._pod, self._node
        steps = [*_steps(world, pod, node), *_missing(world, pod), *_around(world, pod, node)]
        with self._applied([*self._corrections, *dict.fromkeys(one.text for one in steps)]) as applied:
            return causes_of(_filtered(world, applied.pod))

    def _revealed(self, texts: Sequence[str]) -> list[str]:
        """Return the changes for the causes that others have hidden before some steps were applied."""
        with self._applied(texts) as applied:
            return list(dict.fromkeys(one.text for one in _missing(self._world, applied.pod)))

    def _removals(self, texts: Sequence[str]) -> list[Change]:
        """Return removals of pods of lower priority that may be necessary after other changes."""
        world, node = self._world, self._node
        with self._applied(texts) as applied:

            def on_node(change: Change) -> list[str]:
                with changed(world, change):
                    its = applied.pod if change.pod is None else change.pod
                    return [node] if is_feasible_on(world, its, node) else []

            return [*victims_removed(world, applied.pod, node), *blockers_removed(world, applied.pod, node, on_node)]

    def _is_enough(self, removal: Change | None, texts: Sequence[str]) -> bool:
        with self._applied(texts, removal) as applied:
            return is_feasible_on(self._world, applied.pod, self._node)

    def _least(self, removal: Change | None, texts: list[str]) -> list[Change]:
        """Return a minimal subset of sufficient changes that still suffices."""
        is_enough = partial(self._is_enough, removal)
        fewer = _needed([], texts, [], is_enough)
        while len(fewer) < len(texts):
            # A change may block others: without it, changes that were necessary may not be necessary any more.
            texts, fewer = fewer, _needed([], fewer, [], is_enough)
        with self._applied(texts, removal) as applied:
            return applied.steps

    @contextmanager
    def _applied(self, texts: Sequence[str], removal: Change | None = None) -> Iterator[_Applied]:
        """Apply the steps with these texts, each found in the world after the previous steps; undo them on exit."""
        world, pod, node, steps = self._world, self._pod, self._node, list[Change]()
        removals = () if removal is None else (removal,)
        with ExitStack() as stack:
            for text in texts:
                key = (*(one.text for one in steps), text)
                if key not in self._known:
                    known = chain(_steps(world, pod, node), _around(world, pod, node), removals, _missing(world, pod))
                    self._known[key] = next((one for one in known if one.text == text), None)
                step = self._known[key]
                if step is not None:
                    stack.enter_context(changed(world, step))
                    pod = pod if step.pod is None else step.pod
                    steps.append(step)
            yield _Applied(steps, pod)


def _needed(before: list[str], steps: list[str], after: list[str], is_enough: IsEnough) -> list[str]:
    """Return the steps without which the others do not suffice; the last steps are left out first."""
    if not steps or is_enough([*before, *after]):
        return []
    if len(steps) == 1:
        return steps
    middle = len(steps) // 2
    last = _needed([*before, *steps[:middle]], steps[middle:], after, is_enough)
    return [*_needed(before, steps[:middle], [*last, *after], is_enough), *last]


def _steps(world: World, pod: Pod, node: str) -> Iterator[Change]:
    """Yield the possible changes of a pod and a node; requests are lowered as little as necessary."""
    found = world.cluster.node(node)
    assert found is not None
    yield from gates(pod)
    for request in amounts.requests_of(pod):
        yield from amounts.lowered(world, pod, request, [node], None) or [amounts.without(pod, request)]
        yield from (change for change, _ in amounts.raised(world, request, [node], None))
    for obstacle in obstacles(world, pod, [found]):
        yield obstacle.without
        yield from obstacle.at_node(found)
    more = amounts.one_more_pod(world, node)
    if more is not None:
        yield more


def _around(world: World, pod: Pod, node: str) -> Iterator[Change]:
    """Yield the possible changes of other objects; pods of lower priority are only removed as a last resort."""
    found, claims = world.cluster.node(node), world.cluster.listers.resource_claims
    assert found is not None

    def may_help(change: Change) -> list[str]:
        """Return the node, unless the change only frees claims whose devices the node cannot access."""
        held = [claims.get(key_of(obj)) for obj in change.objects if isinstance(obj, ResourceClaim)]
        return [node] if not held or any(one is not None and _is_for(one, found) for one in held) else []

    yield from claims_freed(world, pod)
    yield from islice(devices_freed(world, pod, may_help), _MOST_CLAIMS)
    yield from volumes_moved(world, pod, may_help)


def _missing(world: World, pod: Pod) -> Iterator[Change]:
    """Yield the changes that replace or create what the pod names and does not exist."""
    yield from (change for cause in causes_of(_filtered(world, pod)) for change in cause.changes)


def _is_for(claim: ResourceClaim, node: Node) -> bool:
    """Return whether a node can access the devices that are allocated to a claim."""
    allocation = claim.status.allocation
    selector = None if allocation is None else allocation.nodeSelector
    return selector is None or compile_node_selector(selector).matches(node.metadata.labels, node.metadata.name)
