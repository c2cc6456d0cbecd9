"""Finds single changes after which a pod group fits. Each is applied to the world, and the whole group is evaluated.

Changes of the group: a lower minCount, no topology constraint. Of its pods, if their specs are equal: a request lowered
as little as necessary. Of pods and nodes: every change that helps the first pod alone. Of the cluster: the smallest
sufficient number of additional nodes of a kind.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.pod_groups import GangPolicy, PodGroup
from kubestow.insight.explain import amounts
from kubestow.insight.explain.amounts import Request
from kubestow.insight.explain.causes import Cause
from kubestow.insight.explain.changes import CLUSTER, POD, Change, changed, combine_changes, feasible_after, smallest
from kubestow.insight.explain.cluster_changes import node_like, nodes_added
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.group_run import GroupRun, evaluate_group
from kubestow.insight.explain.together import nearest_together
from kubestow.insight.explain.would_fit import Search
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import Code

GROUP = "group"
_MOST_OF_PODS = 12
_EVERY_POD = " (of every pod)"
_MOST_BISECTIONS = 12
_MOST_KINDS = 4
_MOST_PODS_TRIED = 30_000


class GroupSuggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change after which the group fits."""

    side: str
    """What is changed: the `group`, its `pod`s, a `node` or the `cluster`."""
    change: str
    placed: int
    """Number of its pods that have a node after the change."""


def group_would_fit_if(run: GroupRun, causes: Iterable[Cause] = ()) -> list[GroupSuggestion]:
    """Return single changes after which an unschedulable group fits, smallest first.

    `causes`: what stands in the way of its first pod.
    """
    search = _Search(run, [change for cause in causes for change in cause.changes])
    tried = list(search.changes())
    found = {one.text: (one, placed) for one in tried if (placed := search.placed(one))}
    if not found:
        pairs = ((one, placed) for one in search.pairs(tried) if (placed := search.placed(one)))
        found = {one.text: (one, placed) for one, placed in islice(pairs, 1)}
    ranked = sorted(found.values(), key=lambda one: (one[0].size, -one[1], one[0].text))
    return [GroupSuggestion(change.side, change.text, placed) for change, placed in ranked]


class _Search:
    """Tries changes for one group, up to a total number of evaluated pods."""

    def __init__(self, run: GroupRun, more: Sequence[Change]) -> None:
        """`more`: other changes of the first pod to try."""
        self._run = run
        self._more = more
        self._left = _MOST_PODS_TRIED

    def changes(self) -> Iterator[Change]:
        """Yield the changes to try."""
        run, group = self._run, self._run.group
        of_group = [one for one in self._more if any(isinstance(obj, PodGroup) for obj in one.objects)]
        if run.waits:
            yield from of_group
            return
        enough = run.scheduled + run.best
        if 0 < enough < group.min_count:
            policy = replace(group.spec.schedulingPolicy, gang=GangPolicy(enough))
            text = f"minCount lowered from {group.min_count} to {enough}"
            yield _of_group(group, text, (group.min_count - enough) / group.min_count, schedulingPolicy=policy)
        if run.lacks:
            yield _of_group(group, f"{run.lacks} more pods like {run.pods[0].key} created", 0.2)
            return
        yield from of_group
        if group.topology_key:
            yield _of_group(group, f"topology constraint {group.topology_key} removed", 0.6, schedulingConstraints=None)
        for change in self._of_pods():
            suffix = _EVERY_POD if change.side == POD and len(run.pods) > 1 else ""
            yield change._replace(text=f"{change.text}{suffix}")
        trials = 2 * len(run.pods).bit_length() + 1
        different = run.pods[:1] if _have_equal_specs(run.pods) else run.pods
        for change in islice(nodes_added(run.world, different), _MOST_KINDS):
            if self._left >= trials * len(run.pods):
                yield from self._enough_nodes(change)

    def pairs(self, tried: Sequence[Change]) -> Iterator[Change]:
        """Yield every two changes, of which at most one is of the pods, and those that the first pod needs at once."""
        run = self._run
        for two in combinations(tried, 2):
            if not all(one.pod for one in two):
                yield combine_changes(two)
        together = combine_changes(nearest_together(DryRun(run.world, PodInfo(run.pods[0]), only_filters=True))[1])
        if together.text and (together.pod is None or _have_equal_specs(run.pods)):
            yield together

    def _of_pods(self) -> Iterator[Change]:
        run, first = self._run, self._run.pods[0]
        have_equal_specs = _have_equal_specs(run.pods)
        requests = amounts.requests_of(first)
        of_requests = {amounts.without(first, request).text for request in requests}
        for found in Search(run.world, first, more=self._more).ranked()[:_MOST_OF_PODS]:
            if found.change.pod is None or (have_equal_specs and found.change.text not in of_requests):
                yield found.change
        for request in requests if have_equal_specs else ():
            yield from self._lowered(request)

    def _lowered(self, request: Request) -> Iterator[Change]:
        """Lower a request of every pod as little as necessary, by bisection from the largest share of free capacity."""
        run, first = self._run, self._run.pods[0]
        removed = amounts.without(first, request)
        if not self.placed(removed):
            return
        least = max(run.group.min_count - run.scheduled, 1)
        free = self._free_by_placement(request.resource, feasible_after(run.world, first, removed))
        most = max((_largest_share(on_nodes, least, request.amount) for on_nodes in free), default=0)
        low, high, amount, found = 0, most + 1, most, removed
        for _ in range(_MOST_BISECTIONS):
            amount = amounts.rounded_down(request.resource, amount)
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
        free: dict[str, list[int]] = {}
        for name, left in amounts.free(world, resource, nodes, None) if nodes else ():
            node = world.cluster.node(name)
            value = node.metadata.labels.get(key, "") if node is not None and key else ""
            free.setdefault(value, []).append(left)
        only = self._run.only
        return (on_nodes for value, on_nodes in free.items() if (bool(value) or not key) and only in ("", value))

    def _enough_nodes(self, one: Change) -> Iterator[Change]:
        """Add the smallest sufficient number of nodes of a kind, found by doubling and then by bisection."""
        like = one.text.removeprefix("a node like ").removesuffix(" added")

        def more(count: int) -> Change:
            nodes = tuple(node_like(one.nodes[0], f"{one.nodes[0].metadata.name}-{number}") for number in range(count))
            text = one.text if count == 1 else f"{count} nodes like {like} added"
            return Change(CLUSTER, text, 0.9 + count / 1000, nodes=nodes)

        most, least, enough = len(self._run.pods), 0, 1
        while not self.placed(more(enough)):
            if enough >= most:
                return
            least, enough = enough, min(enough * 2, most)
        yield more(smallest(least, enough, lambda count: self.placed(more(count)) > 0))

    def placed(self, change: Change) -> int:
        """Return the number of pods that have a node after a change; 0 if the group does not fit."""
        run = self._run
        self._left -= len(run.pods)
        if self._left < 0:
            return 0
        pods = run.pods if change.pod is None else [replace(pod, spec=change.pod.spec) for pod in run.pods]
        group = next((obj for obj in change.objects if isinstance(obj, PodGroup)), run.group)
        if run.lacks and group.min_count > run.scheduled + len(pods):
            # The change is to create the missing pods.
            pods = [*pods, *(_copy(pods[0], number) for number in range(run.lacks))]
        with changed(run.world, change):
            outcome = evaluate_group(run.world, group, pods, run.only)
        fits = outcome.code is Code.SUCCESS and group.min_count <= run.scheduled + len(pods)
        return max((one.placed for one in outcome.tried), default=0) if fits else 0


def _of_group(group: PodGroup, text: str, size: float, **spec: object) -> Change:
    return Change(GROUP, text, size, objects=(replace(group, spec=replace(group.spec, **spec)),))


def _copy(pod: Pod, number: int) -> Pod:
    name = f"{pod.metadata.name}-new-{number}"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=name))


def _have_equal_specs(pods: list[Pod]) -> bool:
    return all(pod.spec == pods[0].spec for pod in pods)


def _largest_share(free: list[int], count: int, most: int) -> int:
    """Return the largest amount, up to `most`, that fits `count` times into the free capacity of nodes."""
    return smallest(0, most + 1, lambda share: sum(max(left, 0) // share for left in free) < count) - 1
