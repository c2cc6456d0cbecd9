"""What would have to change for a pod group to fit: single changes, each made in the world and the whole group tried.

Of the group: a lower minCount, no topology constraint. Of its pods, if they are alike: a request lowered as little as
is enough. Of pods and nodes: whatever would help the first pod by itself. Of the cluster: as few more nodes of a kind
as are enough.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import GangPolicy, PodGroup
from kubestow.insight.explain import amounts
from kubestow.insight.explain.amounts import Request
from kubestow.insight.explain.changes import CLUSTER, POD, Change, changed, opened, smallest
from kubestow.insight.explain.cluster_changes import node_like, nodes_added
from kubestow.insight.explain.group_run import GroupRun, tried
from kubestow.insight.explain.would_fit import Search
from kubestow.scheduler.framework.results import Code

GROUP = "group"
_MOST_OF_PODS = 12
_MANY = " (of every pod)"
_HALVINGS = 12
_MOST_KINDS = 4
_MOST_PODS_TRIED = 30_000


class GroupSuggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change after which the group fits."""

    side: str
    """What is changed: the `group`, its `pod`s, a `node` or the `cluster`."""
    change: str
    placed: int
    """How many of its pods would have a node then."""


def group_would_fit_if(run: GroupRun) -> list[GroupSuggestion]:
    """Single changes that let a group fit that does not, smallest first."""
    search = _Search(run)
    found = {one.words: (one, placed) for one in search.changes() if (placed := search.placed(one))}
    ranked = sorted(found.values(), key=lambda one: (one[0].size, -one[1], one[0].words))
    return [GroupSuggestion(change.side, change.words, placed) for change, placed in ranked]


class _Search:
    """Tries changes for one group, until as many pods have been tried as anybody would wait for."""

    def __init__(self, run: GroupRun) -> None:
        self._run = run
        self._left = _MOST_PODS_TRIED

    def changes(self) -> Iterator[Change]:
        """What may help."""
        run, group = self._run, self._run.group
        enough = run.scheduled + run.best
        if 0 < enough < group.min_count:
            policy = replace(group.spec.schedulingPolicy, gang=GangPolicy(enough))
            words = f"minCount lowered from {group.min_count} to {enough}"
            yield _of_group(group, words, (group.min_count - enough) / group.min_count, schedulingPolicy=policy)
        if run.lacks:
            return
        if group.topology_key:
            yield _of_group(group, f"topology constraint {group.topology_key} dropped", 0.6, schedulingConstraints=None)
        for change in self._of_pods():
            many = _MANY if change.side == POD and len(run.pods) > 1 else ""
            yield change._replace(words=f"{change.words}{many}")
        trials = 2 * len(run.pods).bit_length() + 1
        different = run.pods[:1] if _are_alike(run.pods) else run.pods
        for change in islice(nodes_added(run.world, different), _MOST_KINDS):
            if self._left >= trials * len(run.pods):
                yield from self._enough_nodes(change)

    def _of_pods(self) -> Iterator[Change]:
        run, first = self._run, self._run.pods[0]
        are_alike = _are_alike(run.pods)
        requests = amounts.requests_of(first)
        of_requests = {amounts.without(first, request).words for request in requests}
        for found in Search(run.world, first).ranked()[:_MOST_OF_PODS]:
            if found.change.pod is None or (are_alike and found.change.words not in of_requests):
                yield found.change
        for request in requests if are_alike else ():
            yield from self._enough_less(request)

    def _enough_less(self, request: Request) -> Iterator[Change]:
        """The most of a resource that each pod may ask for: as free room tells it, or else halfway again and again."""
        run, first = self._run, self._run.pods[0]
        dropped = amounts.without(first, request)
        if not self.placed(dropped):
            return
        least = max(run.group.min_count - run.scheduled, 1)
        rooms = self._free_by_placement(request.resource, opened(run.world, first, dropped))
        most = max((_largest_share(room, least, request.amount) for room in rooms), default=0)
        low, high, amount, found = 0, most + 1, most, dropped
        for _ in range(_HALVINGS):
            amount = amounts.whole(request.resource, amount)
            if not low < amount < min(high, request.amount):
                break
            change = amounts.lowered_to(first, request, amount)
            if self.placed(change):
                low, found = amount, change
            else:
                high = amount
            amount = (low + high) // 2
        yield found

    def _free_by_placement(self, resource: str, nodes: list[str]) -> Iterator[list[int]]:
        world, key = self._run.world, self._run.group.topology_key
        rooms: dict[str, list[int]] = {}
        for name, left in amounts.free(world, resource, nodes, None) if nodes else ():
            node = world.cluster.node(name)
            value = node.metadata.labels.get(key, "") if node is not None and key else ""
            rooms.setdefault(value, []).append(left)
        only = self._run.only
        return (room for value, room in rooms.items() if (bool(value) or not key) and only in ("", value))

    def _enough_nodes(self, one: Change) -> Iterator[Change]:
        """The fewest nodes of a kind that let the group in: twice as many each time, then halfway between."""
        like = one.words.removeprefix("a node like ").removesuffix(" added")

        def more(count: int) -> Change:
            nodes = tuple(node_like(one.nodes[0], f"{one.nodes[0].metadata.name}-{number}") for number in range(count))
            words = one.words if count == 1 else f"{count} nodes like {like} added"
            return Change(CLUSTER, words, 0.9 + count / 1000, nodes=nodes)

        most, least, enough = len(self._run.pods), 0, 1
        while not self.placed(more(enough)):
            if enough >= most:
                return
            least, enough = enough, min(enough * 2, most)
        yield more(smallest(least, enough, lambda count: self.placed(more(count)) > 0))

    def placed(self, change: Change) -> int:
        """How many pods would have a node after a change that lets the group in; 0 if it does not."""
        run = self._run
        self._left -= len(run.pods)
        if self._left < 0:
            return 0
        pods = run.pods if change.pod is None else [replace(pod, spec=change.pod.spec) for pod in run.pods]
        group = next((obj for obj in change.objects if isinstance(obj, PodGroup)), run.group)
        with changed(run.world, change):
            outcome = tried(run.world, group, pods, run.only)
        will_do = outcome.code is Code.SUCCESS and group.min_count <= run.scheduled + len(pods)
        return max((one.placed for one in outcome.tried), default=0) if will_do else 0


def _of_group(group: PodGroup, words: str, size: float, **spec: object) -> Change:
    return Change(GROUP, words, size, objects=(replace(group, spec=replace(group.spec, **spec)),))


def _are_alike(pods: list[Pod]) -> bool:
    return all(pod.spec == pods[0].spec for pod in pods)


def _largest_share(room: list[int], least: int, most: int) -> int:
    """The largest share, up to some amount, of which free room on nodes holds so many; 0 if there is none."""
    return smallest(0, most + 1, lambda share: sum(max(left, 0) // share for left in room) < least) - 1
