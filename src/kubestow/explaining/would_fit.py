"""What would have to change for a pod to fit: the smallest single changes, each tried with the engine that decides.

First every constraint of the pod is taken away by itself. Where that opens nodes, they lack nothing else, so it is
worth looking for less: a constraint loosened, a request lowered to what is left, one of the nodes changed to meet it.
Then come changes of the cluster. Whatever is suggested was made in the world, and the pod fitted.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from kubestow.explaining import amounts
from kubestow.explaining.changes import NODE, POD, Change, judged, opened
from kubestow.explaining.cluster_changes import claims_freed, departure, nodes_added, victims_gone, volumes_elsewhere
from kubestow.explaining.dry_run import DryRun
from kubestow.explaining.obstacles import Obstacle, gates, obstacles
from kubestow.explaining.world import World
from kubestow.framework.results import PostFilterResult
from kubestow.model.pod import Pod

_NODES_LOOKED_AT = 100
_TRIED_AT_NODES = 12
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
    return [found.told() for found in Search(run.world, run.pod.pod, preemption=run.preemption).ranked()]


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
        cluster = self._world.cluster
        nodes = [cluster.node(self._target)] if self._target else cluster.nodes.nodes
        for obstacle in obstacles(self._world, self._pod, nodes):
            yield from self._without(obstacle)
        for change in self._cluster_changes():
            yield from self._tried(change)
        if not self._target:
            yield from self._first(_alone(nodes_added(self._world)))

    def _cluster_changes(self) -> Iterator[Change]:
        world, pod, known = self._world, self._pod, self._preemption
        if known is not None and known.victims:
            yield departure(known)
        elif known is None or pod.spec.preemptionPolicy == "Never":
            yield from victims_gone(world, pod, self._target)
        elif pod.status.nominatedNodeName:
            # It makes no room as long as those are there whom it has evicted.
            yield from victims_gone(world, pod, pod.status.nominatedNodeName)
            yield from victims_gone(world, pod, "")
        yield from claims_freed(world, pod)
        yield from volumes_elsewhere(world, pod, self._target)

    def _opened(self, change: Change) -> list[str]:
        nodes = opened(self._world, self._pod, change)
        return [name for name in nodes if name == self._target] if self._target else nodes

    def _tried(self, change: Change, alike: int = 0) -> Iterator[Found]:
        nodes = self._opened(change)
        if nodes:
            yield Found(change, nodes, alike)

    def _first(self, changes: Iterable[tuple[Change, int]]) -> Iterator[Found]:
        """The first that helps of some changes, each with how many nodes are alike."""
        for change, alike in changes:
            found = next(self._tried(change, alike), None)
            if found is not None:
                yield found
                return

    def _without(self, obstacle: Obstacle) -> Iterator[Found]:
        nodes = self._opened(obstacle.without)
        if not nodes:
            return
        yield Found(obstacle.without, nodes)
        there = [node for name in nodes if (node := self._world.cluster.node(name)) is not None]
        yield from self._first(_alone(obstacle.loosened(there, lambda change: bool(self._opened(change)))))
        lacking = [node for node in there if next(obstacle.at_node(node), None) is not None]
        at_nodes = (change for node in lacking[:_NODES_LOOKED_AT] for change in obstacle.at_node(node))
        smallest = sorted(at_nodes, key=lambda change: change.size)[:_TRIED_AT_NODES]
        yield from self._first((change, len(lacking)) for change in smallest)

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
        yield from self._first((change, len(helpful)) for change in helpful[:_TRIED_AT_NODES])


def _alone(changes: Iterable[Change]) -> Iterator[tuple[Change, int]]:
    """Changes that are not of nodes."""
    return ((change, 0) for change in changes)
