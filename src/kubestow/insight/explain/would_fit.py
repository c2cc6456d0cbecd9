"""Finds the smallest single changes after which a pod fits, by trying them with the scheduler's own engine.

First, every constraint of the pod is removed by itself. If nodes become feasible, they lack nothing else, so smaller
changes are tried: a loosened constraint, a request lowered to the free capacity, one of the nodes changed to meet the
constraint. Then changes of the cluster are tried. Every suggestion was applied to the world, and the pod fitted.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.insight.explain import amounts
from kubestow.insight.explain.causes import Cause, causes_of
from kubestow.insight.explain.changes import NODE, POD, Change, evaluate, feasible_after, until_time_limit
from kubestow.insight.explain.cluster_changes import (
    claims_freed,
    devices_freed,
    nodes_added,
    preempted,
    victims_removed,
    volumes_moved,
)
from kubestow.insight.explain.commands import commands_for
from kubestow.insight.explain.domain_blockers import blockers_removed
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.obstacles import Obstacle, gates, obstacles, taints, tolerating_all, untolerated
from kubestow.insight.explain.shared_labels import shared_labels
from kubestow.insight.explain.world import World
from kubestow.scheduler.framework.results import PostFilterResult

_RANKED_AT_NODES = 200
_MOST_OF_A_KIND = 30
_TOO_MANY_PODS = ("Too many pods",)
_NAMED_NODES = 5
_NOTHING = Change(POD, "nothing changed", 0.0)


class Suggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change after which the pod fits."""

    side: str
    """What is changed: `pod`, `node` or `cluster`."""
    change: str
    opens: int
    """Number of nodes that are feasible after the change."""
    nodes: tuple[str, ...]
    """Some of these nodes."""
    alike: int = 0
    """For a change of a node: number of nodes, including this one, that lack only that."""
    commands: tuple[str, ...] = ()
    """The kubectl commands for the change; lines that start with # describe what no command does."""


class Found(NamedTuple):
    """A change that helps, and the nodes that are feasible after it."""

    change: Change
    nodes: list[str]
    alike: int = 0

    def suggestion(self, world: World, pod: Pod) -> Suggestion:
        """Return the change as a suggestion for a pod of a world."""
        nodes, commands = tuple(self.nodes[:_NAMED_NODES]), commands_for(world, pod, self.change)
        return Suggestion(self.change.side, self.change.text, len(self.nodes), nodes, self.alike, commands)


def would_fit_if(run: DryRun, causes: Iterable[Cause] | None = None) -> list[Suggestion]:
    """Return single changes after which an unschedulable pod fits, smallest first.

    `causes`: what stands in the way of the pod, if known.
    """
    found = found_changes(run, causes_of(run) if causes is None else causes)
    return [one.suggestion(run.world, run.pod.pod) for one in found]


def found_changes(run: DryRun, causes: Iterable[Cause], target: str = "", enough: int = 0) -> list[Found]:
    """Return single changes after which an unschedulable pod fits, smallest first; `target`: for this node only.

    `enough`: the number of changes that the caller needs; 0 for all.
    """
    more = tuple(change for cause in causes for change in cause.changes)
    preemption = None if target else run.evaluation_run.post_filter
    return Search(run.world, run.pod.pod, target, preemption, more, enough).ranked()


class Search:
    """Tries changes for one pod."""

    def __init__(
        self,
        world: World,
        pod: Pod,
        target: str = "",
        preemption: PostFilterResult | None = None,
        more: Sequence[Change] = (),
        enough: int = 0,
    ) -> None:
        """`target`: only this node counts. `preemption`: the result of PostFilter if known; finding victims is slow.

        `more`: other changes to try. `enough`: if it is not 0, no node is added if other changes are as many, and nodes
        to change are sought among the first.
        """
        self._world = world
        self._pod = pod
        self._target = target
        self._preemption = preemption
        self._more = more
        self._enough = enough

    def ranked(self) -> list[Found]:
        """Return the changes that help, smallest first; of equally large changes, first those that open more nodes."""
        found = {one.change.text: one for one in self._found()}
        return sorted(found.values(), key=lambda one: (one.change.size, -len(one.nodes), one.change.text))

    def _found(self) -> Iterator[Found]:
        if self._feasible_after(_NOTHING):
            # An extender rejects the pod. Extenders are not called about changes, so every change would seem to help.
            return
        count = 0
        for found in self._without_nodes():
            count += 1
            yield found
        if not self._target and not 0 < self._enough <= count:
            yield from self._first(_uncounted(nodes_added(self._world, [self._pod])))

    def _without_nodes(self) -> Iterator[Found]:
        for change in chain(gates(self._pod), self._more):
            yield from self._tried(change)
        yield from self._requests()
        yield from self._pod_counts()
        yield from self._tolerations()
        for obstacle in obstacles(self._world, self._pod, ()):
            yield from self._without(obstacle)
        for obstacle in shared_labels(self._world, self._pod):
            yield from self._at_nodes(obstacle, self._feasible_after(obstacle.without))
        for change in self._cluster_changes():
            yield from self._tried(change)

    def _cluster_changes(self) -> Iterator[Change]:
        world, pod = self._world, self._pod
        victims = list(self._victims())
        yield from victims
        fewest = min((len(one.removed) for one in victims), default=sys.maxsize)
        for change in blockers_removed(world, pod, self._target, self._feasible_after):
            if len(change.removed) < fewest:
                yield change
        yield from claims_freed(world, pod)
        yield from islice(devices_freed(world, pod, self._feasible_after), _MOST_OF_A_KIND)
        yield from volumes_moved(world, pod, self._feasible_after)

    def _victims(self) -> Iterator[Change]:
        """Remove the victims that preemption would choose."""
        world, pod, known = self._world, self._pod, self._preemption
        if known is not None and known.victims:
            yield preempted(known)
        elif known is None or pod.spec.preemptionPolicy == "Never":
            yield from victims_removed(world, pod, self._target)
        elif pod.status.nominatedNodeName:
            # The pod does not preempt while its earlier victims are terminating.
            yield from victims_removed(world, pod, pod.status.nominatedNodeName)
            yield from victims_removed(world, pod, "")

    def _feasible_after(self, change: Change) -> list[str]:
        nodes = feasible_after(self._world, self._pod, change)
        return [name for name in nodes if name == self._target] if self._target else nodes

    def _tried(self, change: Change) -> Iterator[Found]:
        nodes = self._feasible_after(change)
        if nodes:
            yield Found(change, nodes)

    def _first(self, changes: Iterable[tuple[Change, int]]) -> Iterator[Found]:
        """Yield the first change that helps; each comes with the number of nodes that lack only that."""
        tried = ((change, alike, self._feasible_after(change)) for change, alike in until_time_limit(changes))
        yield from islice((Found(change, nodes, alike) for change, alike, nodes in tried if nodes), 1)

    def _tolerations(self) -> Iterator[Found]:
        """Try the taints of nodes that are feasible with every taint tolerated, and that have taints of one key."""
        nodes = self._nodes(self._feasible_after(tolerating_all(self._pod)))
        single = [node for node in nodes if len(untolerated(node, self._pod)) == 1]
        names = [node.metadata.name for node in single]
        # If a spread constraint only counts tolerated nodes, removing a taint may help where tolerating it does not.
        found = (
            list(self._without(obstacle)) or list(self._at_nodes(obstacle, names))
            for obstacle in until_time_limit(taints(single, self._pod))
        )
        yield from chain.from_iterable(islice(filter(None, found), _MOST_OF_A_KIND))

    def _without(self, obstacle: Obstacle) -> Iterator[Found]:
        nodes = self._feasible_after(obstacle.without)
        if nodes:
            yield Found(obstacle.without, nodes)
            loosened = obstacle.loosened(self._nodes(nodes), lambda change: bool(self._feasible_after(change)))
            yield from self._first(_uncounted(loosened))
            yield from self._at_nodes(obstacle, nodes)

    def _at_nodes(self, obstacle: Obstacle, nodes: list[str]) -> Iterator[Found]:
        """Change one of the nodes that lack nothing else so that it meets the constraint."""
        some = nodes[:_RANKED_AT_NODES] if self._enough else nodes
        lacking = [node for node in self._nodes(some) if next(obstacle.at_node(node), None) is not None]
        changes = (change for node in lacking for change in obstacle.at_node(node))
        smallest = sorted(islice(changes, _RANKED_AT_NODES), key=lambda change: change.size)
        yield from self._first((change, len(lacking)) for change in chain(smallest, changes))

    def _nodes(self, names: list[str]) -> list[Node]:
        return [node for name in names if (node := self._world.cluster.node(name)) is not None]

    def _requests(self) -> Iterator[Found]:
        for request in amounts.requests_of(self._pod):
            without = amounts.without(self._pod, request)
            nodes = self._feasible_after(without)
            if not nodes:
                continue
            assert without.pod is not None
            evaluation = evaluate(self._world, without.pod)
            nominated = None if evaluation is None else evaluation.nominated
            lowered = amounts.lowered(self._world, self._pod, request, nodes, nominated)
            if request.resource in self._world.cluster.devices.classes:
                fewer = amounts.lowered_stepwise(self._pod, request, lambda one: bool(self._feasible_after(one)))
                lowered = [] if fewer is None else [fewer]
            yield from list(self._first(_uncounted(lowered))) or [Found(without, nodes)]
            yield from self._first(amounts.raised(self._world, request, nodes, nominated))

    def _pod_counts(self) -> Iterator[Found]:
        """Raise the pod limit of nodes that have reached it."""
        evaluation = evaluate(self._world, self._pod)
        if evaluation is None or evaluation.verdicts is None:
            return
        names, verdicts = self._world.cluster.nodes.names, evaluation.verdicts
        full = [
            names[verdicts.rows[position]]
            for rejection, positions in verdicts.kinds()
            if rejection.reasons == _TOO_MANY_PODS
            for position in positions.tolist()
        ]
        if self._target:
            full = [name for name in full if name == self._target]
        raised = [change for name in full if (change := amounts.one_more_pod(self._world, name)) is not None]
        # Apply all of them first, to find the nodes that lack nothing else.
        everywhere = Change(NODE, "", 1.0, nodes=tuple(node for one in raised for node in one.nodes))
        nodes = feasible_after(self._world, self._pod, everywhere)
        helpful = [one for one in raised if one.nodes[0].metadata.name in nodes]
        yield from self._first((change, len(helpful)) for change in helpful)


def _uncounted(changes: Iterable[Change]) -> Iterator[tuple[Change, int]]:
    """Return changes that are not about nodes, with a count of 0."""
    return ((change, 0) for change in changes)
