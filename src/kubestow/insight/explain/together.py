"""Changes that open a node if all of them are made, where no single one does.

All that can be changed for the node is, and then left out again, the largest first, as long as the rest is enough. If
all is not enough, all but labels may be. Around the pod and the node something is changed only if these two are not
enough: claims freed, volumes elsewhere, and pods of lower priority gone.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from kubestow.api.devices import ResourceClaim
from kubestow.api.node import Node
from kubestow.api.node_selector import compile_node_selector
from kubestow.api.pod import Pod
from kubestow.insight.explain import amounts
from kubestow.insight.explain.changes import Change, changed, fitting, opened
from kubestow.insight.explain.cluster_changes import claims_freed, devices_freed, victims_gone, volumes_elsewhere
from kubestow.insight.explain.crowds import crowd_gone
from kubestow.insight.explain.obstacles import gates, obstacles
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.listers import key_of

_MOST_CLAIMS = 10
Enough = Callable[[Sequence[str]], bool]
"""Whether the node will do after some steps."""


class _Made(NamedTuple):
    """What was done, and the pod after that."""

    steps: list[Change]
    pod: Pod


def enough_together(world: World, pod: Pod, node: str) -> list[Change]:
    """Changes that open a node if all of them are made in this order, none too many.

    Nothing, if all there are would not be enough.
    """
    steps = sorted(_steps(world, pod, node), key=lambda change: change.size)
    # A label may bring the node to where the pod must not be.
    ways = [[change.words for change in some] for some in (steps, [one for one in steps if not _labels(world, one)])]
    around = [change.words for change in _around(world, pod, node)]
    for words in (*ways, *([*way, *around] for way in ways)):
        if _is_enough(world, pod, node, None, words):
            return _least(world, pod, node, None, words)
    for words in ([*way, *around] for way in ways):
        for departure in _departures(world, pod, node, words):
            everything = [*words, departure.words]
            if _is_enough(world, pod, node, departure, everything):
                return _least(world, pod, node, departure, everything)
    return []


def _labels(world: World, change: Change) -> bool:
    """Whether it changes labels of a node."""
    before = [world.cluster.node(one.metadata.name) for one in change.nodes]
    pairs = zip(before, change.nodes, strict=True)
    return any(old is not None and old.metadata.labels != new.metadata.labels for old, new in pairs)


def _departures(world: World, pod: Pod, node: str, words: Sequence[str]) -> list[Change]:
    """Pods of lower priority that may have to go, once other changes are made."""
    with _made(world, pod, node, words) as made:

        def opens(change: Change) -> list[str]:
            return [name for name in opened(world, made.pod, change) if name == node]

        return [*victims_gone(world, made.pod, node), *crowd_gone(world, made.pod, node, opens)]


def _is_enough(world: World, pod: Pod, node: str, departure: Change | None, words: Sequence[str]) -> bool:
    with _made(world, pod, node, words, departure) as made:
        return node in fitting(world, made.pod)


def _least(world: World, pod: Pod, node: str, departure: Change | None, words: list[str]) -> list[Change]:
    """Those of changes that are enough without which they are not."""
    is_enough = partial(_is_enough, world, pod, node, departure)
    fewer = _needed([], words, [], is_enough)
    while len(fewer) < len(words):
        # A change may be in the way of others: what was needed beside it may not be any more.
        words, fewer = fewer, _needed([], fewer, [], is_enough)
    with _made(world, pod, node, words, departure) as made:
        return made.steps


def _needed(before: list[str], steps: list[str], after: list[str], is_enough: Enough) -> list[str]:
    """Those of some steps without which the others are not enough; what comes last is left out first."""
    if not steps or is_enough([*before, *after]):
        return []
    if len(steps) == 1:
        return steps
    middle = len(steps) // 2
    last = _needed([*before, *steps[:middle]], steps[middle:], after, is_enough)
    return [*_needed(before, steps[:middle], [*last, *after], is_enough), *last]


@contextmanager
def _made(world: World, pod: Pod, node: str, words: Sequence[str], departure: Change | None = None) -> Iterator[_Made]:
    """The world after some of a node's steps, each made as it is in the world that those before it have left."""
    steps: list[Change] = []
    departures = () if departure is None else (departure,)
    with ExitStack() as stack:
        for wanted in words:
            known = chain(_steps(world, pod, node), _around(world, pod, node), departures)
            step = next((one for one in known if one.words == wanted), None)
            if step is not None:
                stack.enter_context(changed(world, step))
                pod = pod if step.pod is None else step.pod
                steps.append(step)
        yield _Made(steps, pod)


def _steps(world: World, pod: Pod, node: str) -> Iterator[Change]:
    """What can be changed of a pod and a node; the pod is changed only as much as it must be."""
    there = world.cluster.node(node)
    assert there is not None
    yield from gates(pod)
    for request in amounts.requests_of(pod):
        yield from amounts.lowered(world, pod, request, [node], None) or [amounts.without(pod, request)]
        yield from (change for change, _ in amounts.raised(world, request, [node], None))
    for obstacle in obstacles(world, pod, [there]):
        yield obstacle.without
        yield from obstacle.at_node(there)
    more = amounts.one_more_pod(world, node)
    if more is not None:
        yield more


def _around(world: World, pod: Pod, node: str) -> Iterator[Change]:
    """What can be changed of others, but for pods of lower priority: these are looked for when nothing else is left."""
    there, claims = world.cluster.node(node), world.cluster.listers.resource_claims
    assert there is not None

    def opened(change: Change) -> list[str]:
        """The node, unless it is about claims that are for others only."""
        held = [claims.get(key_of(obj)) for obj in change.objects if isinstance(obj, ResourceClaim)]
        return [node] if not held or any(one is not None and _is_for(one, there) for one in held) else []

    yield from claims_freed(world, pod)
    yield from islice(devices_freed(world, pod, opened), _MOST_CLAIMS)
    yield from volumes_elsewhere(world, pod, opened)


def _is_for(claim: ResourceClaim, node: Node) -> bool:
    """Whether the devices that a claim has are to be had from a node."""
    allocation = claim.status.allocation
    selector = None if allocation is None else allocation.nodeSelector
    return selector is None or compile_node_selector(selector).matches(node.metadata.labels, node.metadata.name)
