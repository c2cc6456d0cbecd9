"""Finds the constraints that keep a pod from nodes: each with the pod without it, and nodes changed to meet it.

If the pod fits without a constraint, the nodes that become feasible lack nothing else, so each of them is also feasible
once it meets the constraint.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from kubestow.api.meta import LabelSelector, LabelSelectorRequirement
from kubestow.api.node import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint
from kubestow.api.pod import Affinity, Container, NodeAffinity, Pod, PodAffinity, Toleration, TopologySpreadConstraint
from kubestow.api.tolerations import tolerates
from kubestow.api.topology import (
    HOSTNAME_LABEL,
    LEGACY_REGION_LABEL,
    LEGACY_ZONE_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
)
from kubestow.insight.explain import label_keys
from kubestow.insight.explain.changes import NODE, POD, Change, feasible_nodes, smallest
from kubestow.insight.explain.world import World

T = TypeVar("T")

STATE_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_CORDONED = "node.kubernetes.io/unschedulable"
_HARD = ("NoSchedule", "NoExecute")
_MOST_DOMAINS = 10
_SHOWN_VALUES = 5
_LARGEST_SKEW = 1 << 20
_DO_NOT_SCHEDULE = "DoNotSchedule"
_HONOR = "Honor"
_FACT_LABELS = frozenset(
    (
        *(HOSTNAME_LABEL, ZONE_LABEL, REGION_LABEL, LEGACY_ZONE_LABEL, LEGACY_REGION_LABEL),
        *("kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/instance-type"),
    )
)
"""Labels that describe the type and the place of a node: another value would be false."""
_FALSE_LABEL_SIZE = 0.95


def _no_changes(_node: Node) -> Iterator[Change]:
    return iter(())


IsEnough = Callable[[Change], bool]
"""Returns whether any node is feasible after a change."""


class Obstacle(NamedTuple):
    """A constraint of the pod."""

    without: Change
    """The pod without the constraint."""
    at_node: Callable[[Node], Iterator[Change]] = _no_changes
    """Changes of a node that lacks nothing else."""
    loosened: Callable[[Sequence[Node], IsEnough], Iterator[Change]] = lambda _nodes, _is_enough: iter(())
    """Smaller changes of the pod, for the nodes that are feasible without the constraint."""


def obstacles(world: World, pod: Pod, nodes: Iterable[Node | None]) -> Iterator[Obstacle]:
    """Yield every constraint that is one field of the pod, or a taint of one of the nodes without a toleration."""
    yield from taints(nodes, pod)
    yield from _node_selector(pod)
    yield from _node_affinity(pod)
    yield from _pod_affinity(world, pod)
    yield from _spread(world, pod)
    yield from _ports(pod)
    if pod.spec.nodeName:
        yield Obstacle(pod_change(pod, f"nodeName {pod.spec.nodeName} removed", 0.5, nodeName=""))


def replaced(items: tuple[T, ...], index: int, *instead: T) -> tuple[T, ...]:
    return (*items[:index], *instead, *items[index + 1 :])


def pod_change(pod: Pod, text: str, size: float, **fields: object) -> Change:
    return Change(POD, text, size, pod=replace(pod, spec=replace(pod.spec, **fields)))


# Taints


def taints(nodes: Iterable[Node | None], pod: Pod) -> Iterator[Obstacle]:
    """Yield the taints of nodes that the pod does not tolerate, the most frequent ones first."""
    missing = Counter(_toleration(same_key) for node in nodes for same_key in untolerated(node, pod).values())
    for toleration, _ in missing.most_common():
        yield _untolerated(pod, toleration)


def untolerated(node: Node | None, pod: Pod) -> dict[str, list[Taint]]:
    """Return the taints of a node that the pod does not tolerate, by key: one toleration is enough for each key."""
    by_key: dict[str, list[Taint]] = {}
    for taint in () if node is None else _repelling(node):
        if not any(tolerates(one, taint, True) for one in pod.spec.tolerations):
            by_key.setdefault(taint.key, []).append(taint)
    return by_key


def tolerating_all(pod: Pod) -> Change:
    """Tolerate every taint, and remove the spread constraints that only count nodes with tolerated taints."""
    spread = tuple(one for one in pod.spec.topologySpreadConstraints if one.nodeTaintsPolicy != _HONOR)
    everything = (Toleration(operator="Exists"),)
    return pod_change(pod, "every taint tolerated", 1.0, tolerations=everything, topologySpreadConstraints=spread)


def _repelling(node: Node) -> list[Taint]:
    """Return the taints that reject pods, including the taint that a cordoned node gets."""
    taints = [taint for taint in node.spec.taints if taint.effect in _HARD]
    if node.spec.unschedulable and not any(taint.key == _CORDONED for taint in taints):
        taints.append(Taint(_CORDONED, "", "NoSchedule"))
    return taints


def _toleration(taints: Sequence[Taint]) -> Toleration:
    if len(taints) > 1:
        return Toleration(key=taints[0].key, operator="Exists")
    (taint,) = taints
    if not taint.value:
        return Toleration(key=taint.key, operator="Exists", effect=taint.effect)
    return Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)


def _untolerated(pod: Pod, toleration: Toleration) -> Obstacle:
    what = toleration.key + (f"={toleration.value}" if toleration.value else "")
    what += f":{toleration.effect}" if toleration.effect else ""
    # Taints of the system are about the state of the node: it is repaired rather than tolerated.
    is_state = toleration.key.startswith(STATE_TAINTS)
    size = 0.5 if is_state else 0.3

    def at_node(node: Node) -> Iterator[Change]:
        name = node.metadata.name
        kept = tuple(taint for taint in node.spec.taints if not tolerates(toleration, taint, True))
        if toleration.key == _CORDONED and node.spec.unschedulable:
            spec = replace(node.spec, taints=kept, unschedulable=False)
            yield Change(NODE, f"node {name} uncordoned", 0.25, nodes=(replace(node, spec=spec),))
        elif len(kept) < len(node.spec.taints):
            spec = replace(node.spec, taints=kept)
            how = (
                f"node {name} repaired, so that it has no taint {what}"
                if is_state
                else f"taint {what} removed from node {name}"
            )
            yield Change(NODE, how, 0.25 if is_state else 0.45, nodes=(replace(node, spec=spec),))

    tolerations = (*pod.spec.tolerations, toleration)
    return Obstacle(pod_change(pod, f"toleration of {what} added", size, tolerations=tolerations), at_node)


# Node selector and node affinity


def _node_selector(pod: Pod) -> Iterator[Obstacle]:
    for key, value in pod.spec.nodeSelector.items():
        rest = {other: kept for other, kept in pod.spec.nodeSelector.items() if other != key}
        condition = NodeSelectorRequirement(key, "In", (value,))
        without = pod_change(pod, f"node selector {key}={value} removed", 0.5, nodeSelector=rest)
        yield Obstacle(without, meeting(condition))


def _node_affinity(pod: Pod) -> Iterator[Obstacle]:
    affinity = pod.spec.affinity
    rules = None if affinity is None else affinity.nodeAffinity
    required = None if rules is None else rules.requiredDuringSchedulingIgnoredDuringExecution
    if required is None:
        return
    terms = required.nodeSelectorTerms
    removed = with_terms(pod, "node affinity removed", 0.7, None)
    for number, term in enumerate(terms):
        conditions = [("matchExpressions", i, one) for i, one in enumerate(term.matchExpressions)]
        conditions += [("matchFields", i, one) for i, one in enumerate(term.matchFields)]
        for field, index, condition in conditions:
            kept = getattr(term, field)
            fewer = replace(term, **{field: replaced(kept, index)})
            text = f"node affinity {format_condition(condition)} removed"
            # A term without conditions matches no node. So without its last condition, the whole affinity is removed,
            # which is a larger change if there are other terms.
            rest = replaced(terms, number, fewer) if len(conditions) > 1 else None
            without = removed if rest is None and len(terms) > 1 else with_terms(pod, text, 0.5, rest)
            loosened = _widened(pod, terms, number, field, index, condition)
            yield Obstacle(without, meeting(condition) if field == "matchExpressions" else _no_changes, loosened)
    if sum(len(term.matchExpressions) + len(term.matchFields) for term in terms) != 1:
        yield Obstacle(removed)


def with_terms(pod: Pod, text: str, size: float, terms: tuple[NodeSelectorTerm, ...] | None) -> Change:
    affinity = pod.spec.affinity or Affinity()
    node_affinity = affinity.nodeAffinity or NodeAffinity()
    selector = None if terms is None else NodeSelector(terms)
    changed = replace(node_affinity, requiredDuringSchedulingIgnoredDuringExecution=selector)
    return pod_change(pod, text, size, affinity=replace(affinity, nodeAffinity=changed))


def _widened(
    pod: Pod,
    terms: tuple[NodeSelectorTerm, ...],
    number: int,
    field: str,
    index: int,
    condition: NodeSelectorRequirement,
) -> Callable[[Sequence[Node], IsEnough], Iterator[Change]]:
    """Return a function that adds a value to a condition on a label's values: the most frequent value of nodes."""

    def loosened(nodes: Sequence[Node], _is_enough: IsEnough) -> Iterator[Change]:
        if condition.operator != "In" or field != "matchExpressions":
            return
        values = Counter(node.metadata.labels[condition.key] for node in nodes if condition.key in node.metadata.labels)
        for value, _ in values.most_common(1):
            wider = replace(condition, values=(*condition.values, value))
            kept = terms[number].matchExpressions
            term = replace(terms[number], matchExpressions=replaced(kept, index, wider))
            text = f"node affinity {condition.key} In {_values(condition)}: value {value} added"
            yield with_terms(pod, text, 0.3, replaced(terms, number, term))

    return loosened


def meeting(condition: NodeSelectorRequirement) -> Callable[[Node], Iterator[Change]]:
    """Return a function that adds, changes or removes a node's label so that the node meets a condition."""

    def at_node(node: Node) -> Iterator[Change]:
        key, name, labels = condition.key, node.metadata.name, node.metadata.labels
        value = _value_for(condition)
        size = _FALSE_LABEL_SIZE if key in _FACT_LABELS else 0.4
        if value == labels.get(key):
            return
        if value is None:
            rest = {other: kept for other, kept in labels.items() if other != key}
            yield Change(NODE, f"label {key} removed from node {name}", size, nodes=(_labelled(node, rest),))
        else:
            is_set = key in labels
            text = (
                f"label {key} of node {name} set to {value}" if is_set else f"label {key}={value} added to node {name}"
            )
            yield Change(NODE, text, size if is_set else 0.35, nodes=(_labelled(node, {**labels, key: value}),))

    return at_node


def _value_for(condition: NodeSelectorRequirement) -> str | None:
    """Return a label value that meets a condition; None if the label must be removed."""
    operator, values = condition.operator, condition.values
    if operator in ("Gt", "Lt") and values and values[0].lstrip("-").isdecimal():
        return str(int(values[0]) + (1 if operator == "Gt" else -1))
    if operator == "In" and values:
        return values[0]
    return "true" if operator == "Exists" else None


def _labelled(node: Node, labels: Mapping[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels=dict(labels)))


def format_condition(condition: NodeSelectorRequirement | LabelSelectorRequirement) -> str:
    values = f" {_values(condition)}" if condition.values else ""
    return f"{condition.key} {condition.operator}{values}"


def _values(condition: NodeSelectorRequirement | LabelSelectorRequirement) -> str:
    """Return the first values of a condition, and the number of the others."""
    more = len(condition.values) - _SHOWN_VALUES
    return ", ".join(condition.values[:_SHOWN_VALUES]) + (f" and {more} more" if more > 0 else "")


# Pods: affinity, spread


def _pod_affinity(world: World, pod: Pod) -> Iterator[Obstacle]:
    affinity = pod.spec.affinity
    for field, prefix in (("podAffinity", "affinity to"), ("podAntiAffinity", "anti-affinity to")):
        rules: PodAffinity | None = None if affinity is None else getattr(affinity, field)
        if affinity is None or rules is None:
            continue
        terms = rules.requiredDuringSchedulingIgnoredDuringExecution
        for index, term in enumerate(terms):
            fewer = replace(rules, requiredDuringSchedulingIgnoredDuringExecution=replaced(terms, index))
            text = f"{prefix} pods {format_selector(term.labelSelector)} by {term.topologyKey} removed"
            without = pod_change(pod, text, 0.55, affinity=replace(affinity, **{field: fewer}))
            yield Obstacle(without, in_domain(world, pod, term.topologyKey))


def _spread(world: World, pod: Pod) -> Iterator[Obstacle]:
    constraints = pod.spec.topologySpreadConstraints
    for index, constraint in enumerate(constraints):
        if constraint.whenUnsatisfiable == _DO_NOT_SCHEDULE:
            rest = replaced(constraints, index)
            without = pod_change(pod, f"{_format_spread(constraint)} removed", 0.6, topologySpreadConstraints=rest)
            yield Obstacle(without, in_domain(world, pod, constraint.topologyKey), _skewed(pod, index))


def _skewed(pod: Pod, index: int) -> Callable[[Sequence[Node], IsEnough], Iterator[Change]]:
    """Return a function that raises maxSkew to the smallest sufficient value."""
    constraints = pod.spec.topologySpreadConstraints
    constraint = constraints[index]

    def by(more: int) -> Change:
        wider = replace(constraint, maxSkew=constraint.maxSkew + more)
        several = replaced(constraints, index, wider)
        text = f"{_format_spread(constraint)}: maxSkew raised from {constraint.maxSkew} to {wider.maxSkew}"
        return pod_change(pod, text, min(0.25 + 0.05 * more, 0.5), topologySpreadConstraints=several)

    def loosened(_nodes: Sequence[Node], is_enough: IsEnough) -> Iterator[Change]:
        enough = 1
        while not is_enough(by(enough)):
            enough *= 2
            if enough > _LARGEST_SKEW:
                return
        yield by(smallest(enough // 2, enough, lambda more: is_enough(by(more))))

    return loosened


def _format_spread(constraint: TopologySpreadConstraint) -> str:
    return f"topology spread of pods {format_selector(constraint.labelSelector)} by {constraint.topologyKey}"


def in_domain(world: World, pod: Pod, key: str) -> Callable[[Node], Iterator[Change]]:
    """Return a function that adds a topology label to a node without it: with the value of other nodes or a new one."""

    @cache
    def values() -> list[str]:
        """Return values of the label: first domains that match the pod's constraints, the largest first."""
        nodes = (world.cluster.node(name) for name in feasible_nodes(world, label_keys.only(pod, key)))
        matching = Counter(
            node.metadata.labels[key] for node in nodes if node is not None and key in node.metadata.labels
        )
        known = (*(value for value, _ in matching.most_common()), *world.cluster.nodes.label_values(key)[1:])
        return list(dict.fromkeys(known))[:_MOST_DOMAINS]

    def at_node(node: Node) -> Iterator[Change]:
        name, labels = node.metadata.name, node.metadata.labels
        if key in labels:
            return
        for value in dict.fromkeys((*values(), name)):
            text = f"label {key}={value} added to node {name}"
            yield Change(NODE, text, 0.35, nodes=(_labelled(node, {**labels, key: value}),))

    return at_node


def format_selector(selector: LabelSelector | None) -> str:
    if selector is None:
        return "(none)"
    parts = [f"{key}={value}" for key, value in selector.matchLabels.items()]
    parts += map(format_condition, selector.matchExpressions)
    return ",".join(parts) or "(all)"


# Ports


def _ports(pod: Pod) -> Iterator[Obstacle]:
    for field in ("containers", "initContainers"):
        containers: tuple[Container, ...] = getattr(pod.spec, field)
        for index, container in enumerate(containers):
            for number, port in enumerate(container.ports):
                if port.hostPort:
                    ports = replaced(container.ports, number, replace(port, hostPort=0))
                    several = replaced(containers, index, replace(container, ports=ports))
                    text = f"host port {port.hostPort}/{port.protocol} removed"
                    yield Obstacle(pod_change(pod, text, 0.5, **{field: several}))


def scheduler_changes(pod: Pod, names: Iterable[str]) -> list[Change]:
    """Return changes of the pod to other schedulers."""
    return [pod_change(pod, f"schedulerName changed to {name}", 0.05, schedulerName=name) for name in names]


def gates(pod: Pod) -> Iterator[Change]:
    """Remove each scheduling gate."""
    for gate in pod.spec.schedulingGates:
        rest = tuple(one for one in pod.spec.schedulingGates if one is not gate)
        yield pod_change(pod, f"scheduling gate {gate.name} removed", 0.1, schedulingGates=rest)
