"""Finds pods of lower priority, on any node, that block a pod in a whole topology domain.

They block it by anti-affinity (theirs or its own) or by their number, through a spread constraint; or by affinity: they
run where the pod does not fit, and without them it could be the first of its group. Preemption evaluates the pods of
one node at a time, and does not find blocking pods on other nodes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from kubestow.api.labels import compile_selector
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.insight.explain.changes import Change, FeasibleAfter, evaluate, smallest, until_time_limit
from kubestow.insight.explain.cluster_changes import removal
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.pods import PodInfo

_DO_NOT_SCHEDULE = "DoNotSchedule"
_MOST_REMOVED = 100
"""Maximum number of pods that a suggestion removes."""
_LAST_RESORT = 0.95

Domain = tuple[str, str]
"""A label's key and value."""


def blockers_removed(world: World, pod: Pod, target: str, feasible_after: FeasibleAfter) -> Iterator[Change]:
    """Remove the blocking pods from the domains with the fewest of them; only those of `target` if it is set."""
    evaluation = evaluate(world, pod)
    if evaluation is None or evaluation.verdicts is None or not evaluation.has_adapting_states:
        return
    cluster, table, verdicts = world.cluster, world.cluster.nodes, evaluation.verdicts
    counted = np.flatnonzero(evaluation.counted_rows)
    if not np.intersect1d(counted, cluster.rows_with_lower_priority(evaluation.pod.priority)).size:
        return
    blockers = _Blockers(world, evaluation.pod)
    for row in counted.tolist():
        node = table.nodes[row]
        if node is not None:
            blockers.add(node, table.pods[row].values())
    rejected = (
        table.nodes[verdicts.rows[position]]
        for rejection, positions in verdicts.kinds()
        if rejection.plugin in evaluation.profile.adapting
        for position in positions.tolist()
    )
    places = {blockers.domains_of(node) for node in rejected if node is not None and target in ("", node.metadata.name)}
    for domains in until_time_limit(sorted(places, key=lambda domains: (blockers.size(domains), domains))):
        change = blockers.cleared(domains, feasible_after)
        if change is not None:
            yield change
            return
    if blockers.attracting:
        yield blockers.removed(blockers.attracting)._replace(size=_LAST_RESORT)


class _Blockers:
    """The pods that constraints of a pod to place are about, by domain."""

    def __init__(self, world: World, pod: PodInfo) -> None:
        self._cluster = world.cluster
        self._pod = pod
        self._namespace_labels = world.cluster.listers.namespace_labels(pod.namespace)
        self._spread = [
            (compile_selector(one.labelSelector), one.topologyKey)
            for one in pod.pod.spec.topologySpreadConstraints
            if one.whenUnsatisfiable == _DO_NOT_SCHEDULE
        ]
        self._unwanted: defaultdict[Domain, list[PodInfo]] = defaultdict(list)
        """Pods that anti-affinity excludes; all of them must be removed."""
        self._spreading: defaultdict[Domain, list[PodInfo]] = defaultdict(list)
        """Pods that a spread constraint counts; some of them may have to be removed."""
        self._counts: Counter[Domain] = Counter()
        """Number of pods, including those that must not be removed."""
        self._kept: set[Domain] = set()
        """Domains of pods that anti-affinity excludes and that must not be removed."""
        self._attracting: list[PodInfo] = []
        """Pods that the affinity of the pod requires."""

    def add(self, node: Node, pods: Iterable[PodInfo]) -> None:
        """Add the pods on a node."""
        labels = node.metadata.labels
        for other in pods:
            is_removable = other.priority < self._pod.priority
            if self._is_attracting(other):
                self._attracting.append(other)
            apart, spread = (self._keys_apart(other), self._unwanted), (self._keys_spread(other), self._spreading)
            for keys, by_domain in (apart, spread):
                for domain in ((key, labels[key]) for key in keys if key in labels):
                    self._counts[domain] += 1
                    if is_removable:
                        by_domain[domain].append(other)
                    elif by_domain is self._unwanted:
                        self._kept.add(domain)

    @property
    def attracting(self) -> list[PodInfo]:
        """The pods that the affinity of the pod requires, if all of them may be removed."""
        are_removable = all(other.priority < self._pod.priority for other in self._attracting)
        return self._attracting if are_removable and len(self._attracting) <= _MOST_REMOVED else []

    def _is_attracting(self, other: PodInfo) -> bool:
        terms, labels = self._pod.terms.required, self._cluster.listers.namespace_labels(other.namespace)
        return bool(terms) and all(term.matches(other.namespace, other.labels, labels) for term in terms)

    def _keys_apart(self, other: PodInfo) -> Iterator[str]:
        """Yield the topology keys in which the two pods must not share a domain."""
        pod, ours = self._pod, self._pod.terms.required_anti
        if ours:
            labels = self._cluster.listers.namespace_labels(other.namespace)
            yield from (term.topology_key for term in ours if term.matches(other.namespace, other.labels, labels))
        for term in other.terms.required_anti:
            if term.matches(pod.namespace, pod.labels, self._namespace_labels):
                yield term.topology_key

    def _keys_spread(self, other: PodInfo) -> Iterator[str]:
        """Yield the topology keys of spread constraints that count the other pod."""
        if other.namespace == self._pod.namespace and not other.terminating:
            yield from (key for selector, key in self._spread if selector.matches(other.labels))

    def domains_of(self, node: Node) -> tuple[Domain, ...]:
        """Return the domains of a node that have such pods."""
        return tuple(domain for domain in sorted(node.metadata.labels.items()) if domain in self._counts)

    def size(self, domains: tuple[Domain, ...]) -> int:
        return sum(self._counts[domain] for domain in domains)

    def cleared(self, domains: tuple[Domain, ...], feasible_after: FeasibleAfter) -> Change | None:
        """Remove the smallest sufficient number of pods from domains; None if removing all does not help."""
        if not self._kept.isdisjoint(domains):
            return None
        unwanted = {pod.uid: pod for domain in domains for pod in self._unwanted[domain]}
        spreading = {pod.uid: pod for domain in domains for pod in self._spreading[domain]}
        shares = Counter(pod.uid for domain in domains for pod in self._spreading[domain])
        # Fewer pods suffice if they are in several of the domains; then the least important first.
        others = sorted(
            (pod for pod in spreading.values() if pod.uid not in unwanted),
            key=lambda pod: (-shares[pod.uid], pod.priority, pod.key),
        )
        pods = [*sorted(unwanted.values(), key=lambda pod: pod.key), *others][:_MOST_REMOVED]
        most, too_few = len(pods), max(len(unwanted), 1) - 1
        if most <= too_few or not feasible_after(self.removed(pods)):
            return None
        count = smallest(too_few, most, lambda count: bool(feasible_after(self.removed(pods[:count]))))
        return self.removed(pods[:count])

    def removed(self, pods: list[PodInfo]) -> Change:
        """Return the removal of pods from their nodes."""
        nodes = (self._cluster.node_name_of(pod.uid) for pod in pods)
        return removal(pods, sorted({name for name in nodes if name is not None}))
