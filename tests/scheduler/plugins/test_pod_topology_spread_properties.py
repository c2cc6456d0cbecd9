"""PodTopologySpread on random clusters, compared with a slow implementation by node and pod."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.labels import compile_selector
from kubestow.api.node import Node
from kubestow.api.node_selector import required_node_affinity
from kubestow.api.pod import Pod, TopologySpreadConstraint
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import SKIP
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.pod_topology_spread import PodTopologySpread
from support.plugins.selectors import (
    HOSTNAME,
    ZONE,
    check_changes,
    check_rows_independent,
    cluster_of,
    live_rows,
    node_sets,
    placed_pods,
    pod,
    pod_labels,
    rejections,
    scores,
    selectors,
)

SKEWED = "Unschedulable: node(s) didn't match pod topology spread constraints"
UNLABELLED = (
    "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
)

constraints = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 3),
        "topologyKey": st.sampled_from([ZONE, HOSTNAME, "disk"]),
        "labelSelector": selectors,
    },
    optional={
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        "matchLabelKeys": st.just(["tier"]),
    },
)


@st.composite
def situations(draw: st.DrawFn, action: str) -> tuple[Cluster, Pod]:
    """Draw a cluster, and a pod with one to three constraints."""
    nodes = draw(node_sets())
    own = [{**c, "whenUnsatisfiable": action} for c in draw(st.lists(constraints, min_size=1, max_size=3))]
    waiting = pod(
        "waiting",
        draw(pod_labels),
        topologySpreadConstraints=own,
        nodeSelector=draw(st.sampled_from([{}, {"disk": "ssd"}])),
        tolerations=draw(st.sampled_from([[], [{"key": "dedicated", "operator": "Exists"}]])),
    )
    return cluster_of(*nodes, *draw(placed_pods(nodes))), waiting


def plugin_for(cluster: Cluster) -> PodTopologySpread:
    return PodTopologySpread(PodTopologySpreadArgs(), offline_handle(cluster))


class Slow:
    """The rules, for one node and one pod at a time."""

    def __init__(self, cluster: Cluster, waiting: Pod) -> None:
        self.cluster = cluster
        self.waiting = waiting
        self.constraints = waiting.spec.topologySpreadConstraints
        self.nodes = [node for node in cluster.nodes.nodes if node is not None]

    def selects(self, constraint: TopologySpreadConstraint, labels: dict[str, str]) -> bool:
        own = self.waiting.metadata.labels
        alike = all(labels.get(key) == own[key] for key in constraint.matchLabelKeys if key in own)
        return alike and compile_selector(constraint.labelSelector).matches(labels)

    def is_empty(self, constraint: TopologySpreadConstraint) -> bool:
        """Return whether the selector is empty, which counts no pod."""
        matched = any(key in self.waiting.metadata.labels for key in constraint.matchLabelKeys)
        return compile_selector(constraint.labelSelector).is_everything and not matched

    def pods_on(self, node: Node, constraint: TopologySpreadConstraint) -> int:
        if self.is_empty(constraint):
            return 0
        pods = self.cluster.nodes.pods[self.cluster.nodes.row_of[node.metadata.name]].values()
        return sum(
            not info.terminating
            and info.namespace == self.waiting.metadata.namespace
            and self.selects(constraint, info.labels)
            for info in pods
        )

    def counts_in(self, node: Node, constraint: TopologySpreadConstraint) -> bool:
        if any(other.topologyKey not in node.metadata.labels for other in self.constraints):
            return False
        affinity = required_node_affinity(self.waiting)
        if constraint.nodeAffinityPolicy != "Ignore" and not affinity.matches(node.metadata.labels, node.metadata.name):
            return False
        repels = any(taint.effect == "NoSchedule" for taint in node.spec.taints) and not self.waiting.spec.tolerations
        return not (constraint.nodeTaintsPolicy == "Honor" and repels)

    def domains(self, constraint: TopologySpreadConstraint) -> Counter[str]:
        found: Counter[str] = Counter()
        for node in self.nodes:
            if self.counts_in(node, constraint):
                found[node.metadata.labels[constraint.topologyKey]] += self.pods_on(node, constraint)
        return found

    def rejections(self) -> dict[str, str]:
        rejected = {}
        for node in self.nodes:
            for constraint in self.constraints:
                reason = self.rejection(node, constraint)
                if reason:
                    rejected[node.metadata.name] = reason
                    break
        return rejected

    def rejection(self, node: Node, constraint: TopologySpreadConstraint) -> str:
        if constraint.topologyKey not in node.metadata.labels:
            return UNLABELLED
        domains = self.domains(constraint)
        least = min(domains.values()) if len(domains) >= (constraint.minDomains or 1) else 0
        own = self.selects(constraint, self.waiting.metadata.labels)
        there = domains.get(node.metadata.labels[constraint.topologyKey], 0)
        return SKEWED if there + own - least > constraint.maxSkew else ""

    def scores(self, candidates: list[Node]) -> dict[str, tuple[int, int]]:
        keys = [constraint.topologyKey for constraint in self.constraints]
        scored = [node for node in candidates if all(key in node.metadata.labels for key in keys)]
        raw = {}
        for node in scored:
            total = 0.0
            for constraint in self.constraints:
                key = constraint.topologyKey
                if key == HOSTNAME:
                    there, size = self.pods_on(node, constraint), len(scored)
                else:
                    there = self.domains(constraint).get(node.metadata.labels[key], 0)
                    size = len({other.metadata.labels[key] for other in scored})
                total += there * math.log(size + 2) + (constraint.maxSkew - 1)
            raw[node.metadata.name] = math.floor(total + 0.5)
        result = {node.metadata.name: (0, 0) for node in candidates}
        for name, value in raw.items():
            highest, lowest = max(raw.values()), min(raw.values())
            result[name] = (value, 100 if highest == 0 else 100 * (highest + lowest - value) // highest)
        return result


@given(situations("DoNotSchedule"))
def test_hard_constraints_reject_by_the_rules(situation: tuple[Cluster, Pod]) -> None:
    """Skew, minDomains, inclusion policies and matchLabelKeys, for any labels and pods."""
    cluster, waiting = situation
    assert rejections(plugin_for(cluster), cluster, waiting) == Slow(cluster, waiting).rejections()


@given(situations("ScheduleAnyway"), st.data())
def test_soft_constraints_score_by_the_rules(situation: tuple[Cluster, Pod], data: st.DataObject) -> None:
    """Counts per domain, weighted by the number of domains among the feasible nodes."""
    cluster, waiting = situation
    rows = data.draw(st.lists(st.sampled_from(live_rows(cluster).tolist()), min_size=1, unique=True).map(sorted))
    candidates = [node for row in rows if (node := cluster.nodes.nodes[row]) is not None]
    expected = Slow(cluster, waiting).scores(candidates)
    assert scores(plugin_for(cluster), cluster, waiting, rows) == expected


@given(situations("DoNotSchedule"), st.data())
def test_results_do_not_depend_on_other_rows(situation: tuple[Cluster, Pod], data: st.DataObject) -> None:
    """The verdict on a node is the same for any subset of rows."""
    check_rows_independent(plugin_for(situation[0]), *situation, data)


@given(situations("DoNotSchedule"), st.data())
def test_a_state_after_changes_is_the_state_of_the_changed_cluster(
    situation: tuple[Cluster, Pod], data: st.DataObject
) -> None:
    """`with_changes` rejects the same nodes as changing the cluster.

    Two differences of kube-scheduler are excluded: changes count terminating pods, and pods of an empty selector.
    """
    cluster, waiting = situation
    plugin, info = plugin_for(cluster), PodInfo(waiting)
    slow = Slow(cluster, waiting)
    state = plugin.pre_filter(info)
    row = data.draw(st.sampled_from(live_rows(cluster).tolist()))
    removable = [placed for placed in cluster.nodes.pods[row].values() if not placed.terminating]
    removed = data.draw(st.lists(st.sampled_from(removable), unique_by=id)) if removable else []
    node_name = cluster.nodes.names[row]
    added = [
        PodInfo(pod(f"new{number}", data.draw(pod_labels), on=node_name))
        for number in range(data.draw(st.integers(0, 3)))
    ]
    if state is SKIP or any(slow.is_empty(constraint) for constraint in slow.constraints):
        return
    check_changes(plugin, cluster, waiting, state, row, removed, added)
