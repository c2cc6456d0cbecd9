"""Pods of lower priority, on any node, that keep a pod from a whole domain of a topology.

It wants to be away from them, or they from it, or they are too many for its spread; or it wants to be with them where
there is no room, and would be the first of its kind without them. Preemption looks at the pods of one node at a time,
and does not find those on others.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from kubestow.api.labels import compile_selector
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.insight.explain.changes import Change, Opened, in_time, judged, smallest
from kubestow.insight.explain.cluster_changes import departure
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.pods import PodInfo

_DO_NOT_SCHEDULE = "DoNotSchedule"
_MOST_GONE = 100
"""To send away more pods than that is no small change."""
_LAST_RESORT = 0.95

Domain = tuple[str, str]
"""A label's key and value."""


def crowd_gone(world: World, pod: Pod, target: str, opened: Opened) -> Iterator[Change]:
    """Who would have to go from the domains of a node, of the target if there is one: where they are fewest."""
    evaluation = judged(world, pod)
    if evaluation is None or evaluation.verdicts is None or not evaluation.has_adapting_states:
        return
    cluster, table, verdicts = world.cluster, world.cluster.nodes, evaluation.verdicts
    counted = np.flatnonzero(evaluation.counted_rows)
    if not np.intersect1d(counted, cluster.rows_with_less_important(evaluation.pod.priority)).size:
        return
    crowds = _Crowds(world, evaluation.pod)
    for row in counted.tolist():
        node = table.nodes[row]
        if node is not None:
            crowds.add(node, table.pods[row].values())
    refused = (
        table.nodes[verdicts.rows[position]]
        for rejection, positions in verdicts.kinds()
        if rejection.plugin in evaluation.profile.adapting
        for position in positions.tolist()
    )
    places = {crowds.domains_of(node) for node in refused if node is not None and target in ("", node.metadata.name)}
    for domains in in_time(sorted(places, key=lambda domains: (crowds.size(domains), domains))):
        change = crowds.cleared(domains, opened)
        if change is not None:
            yield change
            return
    if crowds.company:
        yield crowds.gone(crowds.company)._replace(size=_LAST_RESORT)


class _Crowds:
    """The pods that matter to one that is to be placed, by domain."""

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
        """All of them must go."""
        self._spreading: defaultdict[Domain, list[PodInfo]] = defaultdict(list)
        """Some of them must go, perhaps."""
        self._counts: Counter[Domain] = Counter()
        """How many pods matter, those included that may not be asked to go."""
        self._kept: set[Domain] = set()
        """Domains of pods that are unwanted, and as important."""
        self._company: list[PodInfo] = []
        """Pods that it wants to be with."""

    def add(self, node: Node, pods: Iterable[PodInfo]) -> None:
        """Pods on a node."""
        labels = node.metadata.labels
        for other in pods:
            may_go = other.priority < self._pod.priority
            if self._is_company(other):
                self._company.append(other)
            apart, spread = (self._keys_apart(other), self._unwanted), (self._keys_spread(other), self._spreading)
            for keys, crowd in (apart, spread):
                for domain in ((key, labels[key]) for key in keys if key in labels):
                    self._counts[domain] += 1
                    if may_go:
                        crowd[domain].append(other)
                    elif crowd is self._unwanted:
                        self._kept.add(domain)

    @property
    def company(self) -> list[PodInfo]:
        """The pods that it wants to be with, if all of them may go."""
        may_go = all(other.priority < self._pod.priority for other in self._company)
        return self._company if may_go and len(self._company) <= _MOST_GONE else []

    def _is_company(self, other: PodInfo) -> bool:
        terms, labels = self._pod.terms.required, self._cluster.listers.namespace_labels(other.namespace)
        return bool(terms) and all(term.matches(other.namespace, other.labels, labels) for term in terms)

    def _keys_apart(self, other: PodInfo) -> Iterator[str]:
        """The topologies in which the two may not share a domain."""
        pod, ours = self._pod, self._pod.terms.required_anti
        if ours:
            labels = self._cluster.listers.namespace_labels(other.namespace)
            yield from (term.topology_key for term in ours if term.matches(other.namespace, other.labels, labels))
        for term in other.terms.required_anti:
            if term.matches(pod.namespace, pod.labels, self._namespace_labels):
                yield term.topology_key

    def _keys_spread(self, other: PodInfo) -> Iterator[str]:
        """The topologies over which the two are spread."""
        if other.namespace == self._pod.namespace and not other.terminating:
            yield from (key for selector, key in self._spread if selector.matches(other.labels))

    def domains_of(self, node: Node) -> tuple[Domain, ...]:
        """The domains of a node that have pods that matter."""
        return tuple(domain for domain in sorted(node.metadata.labels.items()) if domain in self._counts)

    def size(self, domains: tuple[Domain, ...]) -> int:
        return sum(self._counts[domain] for domain in domains)

    def cleared(self, domains: tuple[Domain, ...], opened: Opened) -> Change | None:
        """As few pods gone from domains as are enough."""
        if not self._kept.isdisjoint(domains):
            return None
        unwanted = {pod.uid: pod for domain in domains for pod in self._unwanted[domain]}
        spreading = {pod.uid: pod for domain in domains for pod in self._spreading[domain]}
        shares = Counter(pod.uid for domain in domains for pod in self._spreading[domain])
        # Of those that are in several of the domains fewer must go; and the least important go first.
        others = sorted(
            (pod for pod in spreading.values() if pod.uid not in unwanted),
            key=lambda pod: (-shares[pod.uid], pod.priority, pod.key),
        )
        gone = [*sorted(unwanted.values(), key=lambda pod: pod.key), *others][:_MOST_GONE]
        most, too_few = len(gone), max(len(unwanted), 1) - 1
        if most <= too_few or not opened(self.gone(gone)):
            return None
        return self.gone(gone[: smallest(too_few, most, lambda count: bool(opened(self.gone(gone[:count]))))])

    def gone(self, pods: list[PodInfo]) -> Change:
        """Pods gone, told with the nodes that they are on."""
        nodes = (self._cluster.node_name_of(pod.uid) for pod in pods)
        return departure(pods, sorted({name for name in nodes if name is not None}))
