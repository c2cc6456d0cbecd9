"""What would have to change for a pod to fit: the smallest single changes, each tried with the engine that decides.

First every constraint of the pod is taken away by itself. Where that opens nodes, they lack nothing else, so it is
worth looking for less: a constraint loosened, a request lowered to what is left, one of the nodes changed to meet it.
Then come changes of the cluster. Whatever is suggested was made in the world, and the pod fitted.
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.insight.explain import amounts
from kubestow.insight.explain.changes import NODE, POD, Change, in_time, judged, opened
from kubestow.insight.explain.cluster_changes import (
    claims_freed,
    devices_freed,
    nodes_added,
    preempted,
    victims_gone,
    volumes_elsewhere,
)
from kubestow.insight.explain.crowds import crowd_gone
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.obstacles import Obstacle, gates, obstacles, taints, tolerating_all, untolerated
from kubestow.insight.explain.shared_labels import shared_labels
from kubestow.insight.explain.world import World
from kubestow.scheduler.framework.results import PostFilterResult

_RANKED_AT_NODES = 200
_TOLD_ALIKE = 30
_TOO_MANY_PODS = ("Too many pods",)
_NAMED_NODES = 5
_NOTHING = Change(POD, "nothing changed", 0.0)


class Suggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change after which the pod fits."""

    side: str
    """What is changed: `pod`, `node` or `cluster`."""
    change: str
    opens: int
    """How many nodes would do then."""
    nodes: tuple[str, ...]
    """Some of them."""
    alike: int = 0
    """For a change of a node: how many nodes, this one included, lack only that."""


class Found(NamedTuple):
    """A change, and the nodes that would do after it."""

    change: Change
    nodes: list[str]
    alike: int = 0

    def told(self) -> Suggestion:
        nodes = tuple(self.nodes[:_NAMED_NODES])
        return Suggestion(self.change.side, self.change.words, len(self.nodes), nodes, self.alike)


def would_fit_if(run: DryRun) -> list[Suggestion]:
    """Single changes that let a pod fit that fits nowhere, smallest first."""
    return [found.told() for found in Search(run.world, run.pod.pod, preemption=run.judged.post_filter).ranked()]


class Search:
    """Tries changes for one pod."""

    def __init__(self, world: World, pod: Pod, target: str = "", preemption: PostFilterResult | None = None) -> None:
        """`preemption` is what PostFilter said, if that is known: finding victims may take long."""
        self._world = world
        self._pod = pod
        self._target = target
        self._preemption = preemption

    def ranked(self) -> list[Found]:
        """What helps, the smallest change first; of two changes of the same size, the one that opens more nodes."""
        found = {one.change.words: one for one in self._found()}
        return sorted(found.values(), key=lambda one: (one.change.size, -len(one.nodes), one.change.words))

    def _found(self) -> Iterator[Found]:
        if self._opened(_NOTHING):
            # An extender, which is not asked about changes, refuses it: whatever was changed would seem to help.
            return
        for change in gates(self._pod):
            yield from self._tried(change)
        yield from self._requests()
        yield from self._pod_counts()
        yield from self._tolerations()
        for obstacle in obstacles(self._world, self._pod, ()):
            yield from self._without(obstacle)
        for obstacle in shared_labels(self._world, self._pod):
            yield from self._at_nodes(obstacle, self._opened(obstacle.without))
        for change in self._cluster_changes():
            yield from self._tried(change)
        if not self._target:
            yield from self._first(_alone(nodes_added(self._world, [self._pod])))

    def _cluster_changes(self) -> Iterator[Change]:
        world, pod = self._world, self._pod
        victims = list(self._victims())
        yield from victims
        fewest = min((len(one.gone) for one in victims), default=sys.maxsize)
        for change in crowd_gone(world, pod, self._target, self._opened):
            if len(change.gone) < fewest:
                yield change
        yield from claims_freed(world, pod)
        yield from islice(devices_freed(world, pod, self._opened), _TOLD_ALIKE)
        yield from volumes_elsewhere(world, pod, self._opened)

    def _victims(self) -> Iterator[Change]:
        """Whom preemption would choose."""
        world, pod, known = self._world, self._pod, self._preemption
        if known is not None and known.victims:
            yield preempted(known)
        elif known is None or pod.spec.preemptionPolicy == "Never":
            yield from victims_gone(world, pod, self._target)
        elif pod.status.nominatedNodeName:
            # It makes no room as long as those are there whom it has evicted.
            yield from victims_gone(world, pod, pod.status.nominatedNodeName)
            yield from victims_gone(world, pod, "")

    def _opened(self, change: Change) -> list[str]:
        nodes = opened(self._world, self._pod, change)
        return [name for name in nodes if name == self._target] if self._target else nodes

    def _tried(self, change: Change) -> Iterator[Found]:
        nodes = self._opened(change)
        if nodes:
            yield Found(change, nodes)

    def _first(self, changes: Iterable[tuple[Change, int]]) -> Iterator[Found]:
        """The first that helps of some changes, each with how many nodes are alike."""
        found = (Found(change, nodes, alike) for change, alike in in_time(changes) if (nodes := self._opened(change)))
        yield from islice(found, 1)

    def _tolerations(self) -> Iterator[Found]:
        """Of nodes that open where every taint is tolerated, and that have taints of but one key."""
        nodes = self._nodes(self._opened(tolerating_all(self._pod)))
        single = [node for node in nodes if len(untolerated(node, self._pod)) == 1]
        names = [node.metadata.name for node in single]
        # Where nodes count for spread only if they are tolerated, one taint less may help, but not its toleration.
        found = (
            list(self._without(obstacle)) or list(self._at_nodes(obstacle, names))
            for obstacle in in_time(taints(single, self._pod))
        )
        yield from chain.from_iterable(islice(filter(None, found), _TOLD_ALIKE))

    def _without(self, obstacle: Obstacle) -> Iterator[Found]:
        nodes = self._opened(obstacle.without)
        if nodes:
            yield Found(obstacle.without, nodes)
            loosened = obstacle.loosened(self._nodes(nodes), lambda change: bool(self._opened(change)))
            yield from self._first(_alone(loosened))
            yield from self._at_nodes(obstacle, nodes)

    def _at_nodes(self, obstacle: Obstacle, nodes: list[str]) -> Iterator[Found]:
        """One of the nodes that lack nothing but what an obstacle wants gets it."""
        lacking = [node for node in self._nodes(nodes) if next(obstacle.at_node(node), None) is not None]
        changes = (change for node in lacking for change in obstacle.at_node(node))
        smallest = sorted(islice(changes, _RANKED_AT_NODES), key=lambda change: change.size)
        yield from self._first((change, len(lacking)) for change in chain(smallest, changes))

    def _nodes(self, names: list[str]) -> list[Node]:
        return [node for name in names if (node := self._world.cluster.node(name)) is not None]

    def _requests(self) -> Iterator[Found]:
        for request in amounts.requests_of(self._pod):
            without = amounts.without(self._pod, request)
            nodes = self._opened(without)
            if not nodes:
                continue
            assert without.pod is not None
            evaluation = judged(self._world, without.pod)
            beside = None if evaluation is None else evaluation.nominated
            lowered = list(self._first(_alone(amounts.lowered(self._world, self._pod, request, nodes, beside))))
            yield from lowered or [Found(without, nodes)]
            yield from self._first(amounts.raised(self._world, request, nodes, beside))

    def _pod_counts(self) -> Iterator[Found]:
        """Nodes that have as many pods as they may."""
        evaluation = judged(self._world, self._pod)
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
        roomier = [change for name in full if (change := amounts.one_more_pod(self._world, name)) is not None]
        # All at once first, to know which of them lack nothing else.
        everywhere = Change(NODE, "", 1.0, nodes=tuple(node for one in roomier for node in one.nodes))
        nodes = opened(self._world, self._pod, everywhere)
        helpful = [one for one in roomier if one.nodes[0].metadata.name in nodes]
        yield from self._first((change, len(helpful)) for change in helpful)


def _alone(changes: Iterable[Change]) -> Iterator[tuple[Change, int]]:
    """Changes that are not of nodes."""
    return ((change, 0) for change in changes)
