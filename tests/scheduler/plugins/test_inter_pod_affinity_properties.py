"""InterPodAffinity on random clusters, compared with a slow implementation by node and pod."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.pod import Pod
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.scheduler.cluster.affinity_terms import Term
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import SKIP
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from support.plugins.selectors import (
    HOSTNAME,
    NAMESPACES,
    ZONE,
    check_changes,
    check_rows_independent,
    cluster_of,
    live_rows,
    namespace,
    node_sets,
    placed_pods,
    pod,
    pod_labels,
    rejections,
    scores,
    selectors,
)

AFFINITY = "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules"
ANTI = "Unschedulable: node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI = "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules"

_namespace_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"team": "red"}},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
    ]
)
terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from([ZONE, HOSTNAME, "disk"]), "labelSelector": selectors},
    optional={
        "namespaces": st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True),
        "namespaceSelector": _namespace_selectors,
    },
)
_weighted = st.builds(lambda term, weight: {"weight": weight, "podAffinityTerm": term}, terms, st.integers(1, 100))
_pod_affinities = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(_weighted, max_size=2),
    },
)
affinities = st.fixed_dictionaries({}, optional={"podAffinity": _pod_affinities, "podAntiAffinity": _pod_affinities})


@st.composite
def situations(draw: st.DrawFn) -> tuple[Cluster, Pod]:
    """Draw a cluster whose pods have terms, with two of three namespaces known, and a pod with terms."""
    nodes = draw(node_sets())
    teams = [namespace("default", {"team": "red"}), namespace("other", {"team": "blue"})]
    waiting = pod("waiting", draw(pod_labels), namespace=draw(st.sampled_from(NAMESPACES)), affinity=draw(affinities))
    return cluster_of(*teams, *nodes, *draw(placed_pods(nodes, affinities))), waiting


def plugin_for(cluster: Cluster, **args: Any) -> InterPodAffinity:
    return InterPodAffinity(InterPodAffinityArgs(**args), offline_handle(cluster))


class Slow:
    """The rules, for one node and one pod at a time."""

    def __init__(self, cluster: Cluster, waiting: Pod) -> None:
        self.cluster = cluster
        self.waiting = PodInfo(waiting)
        self.own = self.waiting.terms
        self.placed = [
            (other, node.metadata.labels)
            for node, pods in zip(cluster.nodes.nodes, cluster.nodes.pods, strict=True)
            if node is not None
            for other in pods.values()
        ]

    def own_matches(self, term: Term, other: PodInfo) -> bool:
        """Evaluate a namespace selector on the namespaces that exist; an empty one selects the others, too."""
        listed, selector = self.cluster.listers.namespaces.get(other.namespace), term.namespace_selector
        if listed is None and not (selector is not None and selector.is_everything):
            return other.namespace in term.namespaces and term.selector.matches(other.labels)
        return term.matches(other.namespace, other.labels, {} if listed is None else listed.metadata.labels)

    def matches_waiting(self, term: Term) -> bool:
        labels = self.cluster.listers.namespace_labels(self.waiting.namespace)
        return term.matches(self.waiting.namespace, self.waiting.labels, labels)

    def is_near(self, other: PodInfo) -> bool:
        return all(self.own_matches(term, other) for term in self.own.required)

    def rejections(self) -> dict[str, str]:
        nodes = [node for node in self.cluster.nodes.nodes if node is not None]
        found = {node.metadata.name: self.rejection(node.metadata.labels) for node in nodes}
        return {name: reason for name, reason in found.items() if reason}

    def rejection(self, labels: dict[str, str]) -> str:
        if not self.satisfies_affinity(labels):
            return AFFINITY
        for other, there in self.placed:
            for term in self.own.required_anti:
                if self.own_matches(term, other) and same_domain(term.topology_key, labels, there):
                    return ANTI
        for other, there in self.placed:
            for term in other.terms.required_anti:
                if self.matches_waiting(term) and same_domain(term.topology_key, labels, there):
                    return EXISTING_ANTI
        return ""

    def satisfies_affinity(self, labels: dict[str, str]) -> bool:
        keys = [term.topology_key for term in self.own.required]
        if any(key not in labels for key in keys):
            return False
        near = [there for other, there in self.placed if self.is_near(other)] if keys else []
        if all(any(same_domain(key, labels, there) for there in near) for key in keys):
            return True
        no_match = not any(key in there for there in near for key in keys)
        return no_match and self.is_near(self.waiting)

    def scores(self, rows: list[int], hard_weight: int) -> dict[str, tuple[int, int]] | None:
        worth: Counter[tuple[str, str]] = Counter()
        for other, there in self.placed:
            found = [(t.term, t.weight) for t in self.own.preferred if self.own_matches(t.term, other)]
            found += [(t.term, -t.weight) for t in self.own.preferred_anti if self.own_matches(t.term, other)]
            if hard_weight:
                found += [(t, hard_weight) for t in other.terms.required if self.matches_waiting(t)]
            found += [(t.term, t.weight) for t in other.terms.preferred if self.matches_waiting(t.term)]
            found += [(t.term, -t.weight) for t in other.terms.preferred_anti if self.matches_waiting(t.term)]
            for term, weight in found:
                if term.topology_key in there:
                    worth[term.topology_key, there[term.topology_key]] += weight
        if not worth:
            return None
        raw = {}
        for row in rows:
            node = self.cluster.nodes.nodes[row]
            assert node is not None
            raw[node.metadata.name] = sum(worth.get(pair, 0) for pair in node.metadata.labels.items())
        lowest, span = min(raw.values()), max(raw.values()) - min(raw.values())
        return {n: (value, int(100.0 * ((value - lowest) / span)) if span else 0) for n, value in raw.items()}


def same_domain(key: str, one: dict[str, str], other: dict[str, str]) -> bool:
    return key in one and key in other and one[key] == other[key]


@given(situations())
def test_required_terms_reject_by_the_rules(situation: tuple[Cluster, Pod]) -> None:
    """Affinity, anti-affinity, the anti-affinity of placed pods, namespaces and their selectors."""
    cluster, waiting = situation
    assert rejections(plugin_for(cluster), cluster, waiting) == Slow(cluster, waiting).rejections()


@given(situations(), st.sampled_from([0, 1, 10]), st.data())
def test_preferred_terms_score_by_the_rules(
    situation: tuple[Cluster, Pod], hard_weight: int, data: st.DataObject
) -> None:
    """The pod's own preferences, and those of placed pods."""
    cluster, waiting = situation
    rows = data.draw(st.lists(st.sampled_from(live_rows(cluster).tolist()), min_size=1, unique=True).map(sorted))
    plugin = plugin_for(cluster, hardPodAffinityWeight=hard_weight)
    assert scores(plugin, cluster, waiting, rows) == Slow(cluster, waiting).scores(rows, hard_weight)


@given(situations(), st.data())
def test_results_do_not_depend_on_other_rows(situation: tuple[Cluster, Pod], data: st.DataObject) -> None:
    """The verdict on a node is the same for any subset of rows."""
    check_rows_independent(plugin_for(situation[0]), *situation, data)


@given(situations(), st.data())
def test_a_state_after_changes_is_the_state_of_the_changed_cluster(
    situation: tuple[Cluster, Pod], data: st.DataObject
) -> None:
    """`with_changes` rejects the same nodes as changing the cluster."""
    cluster, waiting = situation
    plugin, info = plugin_for(cluster), PodInfo(waiting)
    state: Any = plugin.pre_filter(info)
    if state is SKIP:
        return
    row = data.draw(st.sampled_from(live_rows(cluster).tolist()))
    placed = list(cluster.nodes.pods[row].values())
    removed = data.draw(st.lists(st.sampled_from(placed), unique_by=id)) if placed else []
    added = [
        PodInfo(pod(f"new{number}", data.draw(pod_labels), on=cluster.nodes.names[row], affinity=data.draw(affinities)))
        for number in range(data.draw(st.integers(0, 3)))
    ]
    check_changes(plugin, cluster, waiting, state, row, removed, added)
