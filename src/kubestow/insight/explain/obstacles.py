"""What of a pod keeps it from nodes: each constraint, the pod without it, and a node that meets it.

An obstacle is taken away on either side. Where the pod without it fits, the nodes that open lack nothing else, so one
of them that is made to meet it will do as well.
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
from kubestow.insight.explain.changes import NODE, POD, Change, fitting, smallest
from kubestow.insight.explain.world import World

T = TypeVar("T")

_CORDONED = "node.kubernetes.io/unschedulable"
_HARD = ("NoSchedule", "NoExecute")
_MOST_DOMAINS = 10
_SHOWN_VALUES = 5
_LARGEST_SKEW = 1 << 20
_DO_NOT_SCHEDULE = "DoNotSchedule"
_HONOR = "Honor"
_FACTS = frozenset(
    (
        *(HOSTNAME_LABEL, ZONE_LABEL, REGION_LABEL, LEGACY_ZONE_LABEL, LEGACY_REGION_LABEL),
        *("kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/instance-type"),
    )
)
"""Labels that say what a node is, and where: another value would not be true."""
_UNTRUE = 0.95


def _nothing(_node: Node) -> Iterator[Change]:
    return iter(())


Opens = Callable[[Change], bool]
"""Whether a change opens any node."""


class Obstacle(NamedTuple):
    """A constraint of the pod."""

    without: Change
    """The pod without it."""
    at_node: Callable[[Node], Iterator[Change]] = _nothing
    """What can be tried at a node that lacks nothing else."""
    loosened: Callable[[Sequence[Node], Opens], Iterator[Change]] = lambda _nodes, _opens: iter(())
    """Smaller changes of the pod, for the nodes that open without it."""


def obstacles(world: World, pod: Pod, nodes: Iterable[Node | None]) -> Iterator[Obstacle]:
    """Every constraint that is one field of the pod, or a taint of some nodes that it does not tolerate."""
    yield from taints(nodes, pod)
    yield from _node_selector(pod)
    yield from _node_affinity(pod)
    yield from _pod_affinity(world, pod)
    yield from _spread(world, pod)
    yield from _ports(pod)
    if pod.spec.nodeName:
        yield Obstacle(_pod(pod, f"nodeName {pod.spec.nodeName} dropped", 0.5, nodeName=""))


def _swapped(items: tuple[T, ...], index: int, *instead: T) -> tuple[T, ...]:
    return (*items[:index], *instead, *items[index + 1 :])


def _pod(pod: Pod, words: str, size: float, **fields: object) -> Change:
    return Change(POD, words, size, pod=replace(pod, spec=replace(pod.spec, **fields)))


# Taints


def taints(nodes: Iterable[Node | None], pod: Pod) -> Iterator[Obstacle]:
    """What the pod does not tolerate of nodes, what most of them have first."""
    missing = Counter(_toleration(alike) for node in nodes for alike in untolerated(node, pod).values())
    for toleration, _ in missing.most_common():
        yield _untolerated(pod, toleration)


def untolerated(node: Node | None, pod: Pod) -> dict[str, list[Taint]]:
    """The taints that keep the pod from a node, by key: one toleration is enough for all of one."""
    by_key: dict[str, list[Taint]] = {}
    for taint in () if node is None else _repelling(node):
        if not any(tolerates(one, taint, True) for one in pod.spec.tolerations):
            by_key.setdefault(taint.key, []).append(taint)
    return by_key


def tolerating_all(pod: Pod) -> Change:
    """The pod with every taint tolerated, and without the spread constraints that count nodes by what it tolerates."""
    spread = tuple(one for one in pod.spec.topologySpreadConstraints if one.nodeTaintsPolicy != _HONOR)
    everything = (Toleration(operator="Exists"),)
    return _pod(pod, "every taint tolerated", 1.0, tolerations=everything, topologySpreadConstraints=spread)


def _repelling(node: Node) -> list[Taint]:
    """The taints that keep pods away; a cordoned node counts as tainted, as it will be in a moment."""
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
    size = 0.5 if toleration.key == _CORDONED else 0.3

    def at_node(node: Node) -> Iterator[Change]:
        name = node.metadata.name
        kept = tuple(taint for taint in node.spec.taints if not tolerates(toleration, taint, True))
        if toleration.key == _CORDONED and node.spec.unschedulable:
            spec = replace(node.spec, taints=kept, unschedulable=False)
            yield Change(NODE, f"node {name} uncordoned", 0.25, nodes=(replace(node, spec=spec),))
        elif len(kept) < len(node.spec.taints):
            spec = replace(node.spec, taints=kept)
            yield Change(NODE, f"taint {what} removed from node {name}", 0.45, nodes=(replace(node, spec=spec),))

    tolerations = (*pod.spec.tolerations, toleration)
    return Obstacle(_pod(pod, f"toleration of {what} added", size, tolerations=tolerations), at_node)


# Node selector and node affinity


def _node_selector(pod: Pod) -> Iterator[Obstacle]:
    for key, value in pod.spec.nodeSelector.items():
        rest = {other: kept for other, kept in pod.spec.nodeSelector.items() if other != key}
        condition = NodeSelectorRequirement(key, "In", (value,))
        without = _pod(pod, f"node selector {key}={value} dropped", 0.5, nodeSelector=rest)
        yield Obstacle(without, meeting(condition))


def _node_affinity(pod: Pod) -> Iterator[Obstacle]:
    affinity = pod.spec.affinity
    rules = None if affinity is None else affinity.nodeAffinity
    required = None if rules is None else rules.requiredDuringSchedulingIgnoredDuringExecution
    if required is None:
        return
    terms = required.nodeSelectorTerms
    dropped = _with_terms(pod, "node affinity dropped", 0.7, None)
    for number, term in enumerate(terms):
        conditions = [("matchExpressions", i, one) for i, one in enumerate(term.matchExpressions)]
        conditions += [("matchFields", i, one) for i, one in enumerate(term.matchFields)]
        for field, index, condition in conditions:
            kept = getattr(term, field)
            fewer = replace(term, **{field: _swapped(kept, index)})
            said = f"node affinity {_told(condition)} dropped"
            # A term without conditions matches no node. The affinity goes as a whole then: where there are other terms,
            # that is more than the condition.
            rest = _swapped(terms, number, fewer) if len(conditions) > 1 else None
            without = dropped if rest is None and len(terms) > 1 else _with_terms(pod, said, 0.5, rest)
            loosened = _widened(pod, terms, number, field, index, condition)
            yield Obstacle(without, meeting(condition) if field == "matchExpressions" else _nothing, loosened)
    if sum(len(term.matchExpressions) + len(term.matchFields) for term in terms) > 1:
        yield Obstacle(dropped)


def _with_terms(pod: Pod, words: str, size: float, terms: tuple[NodeSelectorTerm, ...] | None) -> Change:
    affinity = pod.spec.affinity or Affinity()
    node_affinity = affinity.nodeAffinity or NodeAffinity()
    selector = None if terms is None else NodeSelector(terms)
    changed = replace(node_affinity, requiredDuringSchedulingIgnoredDuringExecution=selector)
    return _pod(pod, words, size, affinity=replace(affinity, nodeAffinity=changed))


def _widened(
    pod: Pod,
    terms: tuple[NodeSelectorTerm, ...],
    number: int,
    field: str,
    index: int,
    condition: NodeSelectorRequirement,
) -> Callable[[Sequence[Node], Opens], Iterator[Change]]:
    """One more value for a condition on a label's values: the one that most of the nodes have."""

    def loosened(nodes: Sequence[Node], _opens: Opens) -> Iterator[Change]:
        if condition.operator != "In" or field != "matchExpressions":
            return
        values = Counter(node.metadata.labels[condition.key] for node in nodes if condition.key in node.metadata.labels)
        for value, _ in values.most_common(1):
            wider = replace(condition, values=(*condition.values, value))
            kept = terms[number].matchExpressions
            term = replace(terms[number], matchExpressions=_swapped(kept, index, wider))
            said = f"node affinity {condition.key} in {_values(condition)}: {value} allowed, too"
            yield _with_terms(pod, said, 0.3, _swapped(terms, number, term))

    return loosened


def meeting(condition: NodeSelectorRequirement) -> Callable[[Node], Iterator[Change]]:
    """A node gets, or loses, the label that a condition is about."""

    def at_node(node: Node) -> Iterator[Change]:
        key, name, labels = condition.key, node.metadata.name, node.metadata.labels
        value = _value_for(condition)
        size = _UNTRUE if key in _FACTS else 0.4
        if value == labels.get(key):
            return
        if value is None:
            rest = {other: kept for other, kept in labels.items() if other != key}
            yield Change(NODE, f"label {key} removed from node {name}", size, nodes=(_labelled(node, rest),))
        else:
            known = key in labels
            said = (
                f"label {key} of node {name} set to {value}" if known else f"label {key}={value} added to node {name}"
            )
            yield Change(NODE, said, size if known else 0.35, nodes=(_labelled(node, {**labels, key: value}),))

    return at_node


def _value_for(condition: NodeSelectorRequirement) -> str | None:
    """A value that meets a condition; None: the label must go."""
    operator, values = condition.operator, condition.values
    if operator in ("Gt", "Lt") and values and values[0].lstrip("-").isdecimal():
        return str(int(values[0]) + (1 if operator == "Gt" else -1))
    if operator == "In" and values:
        return values[0]
    return "true" if operator == "Exists" else None


def _labelled(node: Node, labels: Mapping[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels=dict(labels)))


def _told(condition: NodeSelectorRequirement | LabelSelectorRequirement) -> str:
    values = f" {_values(condition)}" if condition.values else ""
    return f"{condition.key} {condition.operator}{values}"


def _values(condition: NodeSelectorRequirement | LabelSelectorRequirement) -> str:
    """The first of its values, and how many there are besides."""
    more = len(condition.values) - _SHOWN_VALUES
    return ", ".join(condition.values[:_SHOWN_VALUES]) + (f" and {more} more" if more > 0 else "")


# Pods: affinity, spread


def _pod_affinity(world: World, pod: Pod) -> Iterator[Obstacle]:
    affinity = pod.spec.affinity
    for field, words in (("podAffinity", "affinity to"), ("podAntiAffinity", "anti-affinity to")):
        rules: PodAffinity | None = None if affinity is None else getattr(affinity, field)
        if affinity is None or rules is None:
            continue
        terms = rules.requiredDuringSchedulingIgnoredDuringExecution
        for index, term in enumerate(terms):
            fewer = replace(rules, requiredDuringSchedulingIgnoredDuringExecution=_swapped(terms, index))
            said = f"{words} pods {_selected(term.labelSelector)} by {term.topologyKey} dropped"
            without = _pod(pod, said, 0.55, affinity=replace(affinity, **{field: fewer}))
            yield Obstacle(without, in_domain(world, pod, term.topologyKey))


def _spread(world: World, pod: Pod) -> Iterator[Obstacle]:
    constraints = pod.spec.topologySpreadConstraints
    for index, constraint in enumerate(constraints):
        if constraint.whenUnsatisfiable == _DO_NOT_SCHEDULE:
            rest = _swapped(constraints, index)
            without = _pod(pod, f"{_spreading(constraint)} dropped", 0.6, topologySpreadConstraints=rest)
            yield Obstacle(without, in_domain(world, pod, constraint.topologyKey), _skewed(pod, index))


def _skewed(pod: Pod, index: int) -> Callable[[Sequence[Node], Opens], Iterator[Change]]:
    """The smallest maxSkew that will do."""
    constraints = pod.spec.topologySpreadConstraints
    constraint = constraints[index]

    def by(more: int) -> Change:
        wider = replace(constraint, maxSkew=constraint.maxSkew + more)
        several = _swapped(constraints, index, wider)
        said = f"{_spreading(constraint)}: maxSkew raised from {constraint.maxSkew} to {wider.maxSkew}"
        return _pod(pod, said, min(0.25 + 0.05 * more, 0.5), topologySpreadConstraints=several)

    def loosened(_nodes: Sequence[Node], opens: Opens) -> Iterator[Change]:
        enough = 1
        while not opens(by(enough)):
            enough *= 2
            if enough > _LARGEST_SKEW:
                return
        yield by(smallest(enough // 2, enough, lambda more: opens(by(more))))

    return loosened


def _spreading(constraint: TopologySpreadConstraint) -> str:
    return f"spread of pods {_selected(constraint.labelSelector)} by {constraint.topologyKey}"


def in_domain(world: World, pod: Pod, key: str) -> Callable[[Node], Iterator[Change]]:
    """A node that lacks the label of a topology gets it: with a value that others have, or one of its own."""

    @cache
    def values() -> list[str]:
        """Those of the domains first that are as the pod wants them, and of these the largest."""
        nodes = (world.cluster.node(name) for name in fitting(world, label_keys.only(pod, key)))
        will_do = Counter(
            node.metadata.labels[key] for node in nodes if node is not None and key in node.metadata.labels
        )
        known = (*(value for value, _ in will_do.most_common()), *world.cluster.nodes.label_values(key)[1:])
        return list(dict.fromkeys(known))[:_MOST_DOMAINS]

    def at_node(node: Node) -> Iterator[Change]:
        name, labels = node.metadata.name, node.metadata.labels
        if key in labels:
            return
        for value in dict.fromkeys((*values(), name)):
            said = f"label {key}={value} added to node {name}"
            yield Change(NODE, said, 0.35, nodes=(_labelled(node, {**labels, key: value}),))

    return at_node


def _selected(selector: LabelSelector | None) -> str:
    if selector is None:
        return "(none)"
    parts = [f"{key}={value}" for key, value in selector.matchLabels.items()]
    parts += map(_told, selector.matchExpressions)
    return ",".join(parts) or "(all)"


# Ports


def _ports(pod: Pod) -> Iterator[Obstacle]:
    for field in ("containers", "initContainers"):
        containers: tuple[Container, ...] = getattr(pod.spec, field)
        for index, container in enumerate(containers):
            for number, port in enumerate(container.ports):
                if port.hostPort:
                    ports = _swapped(container.ports, number, replace(port, hostPort=0))
                    several = _swapped(containers, index, replace(container, ports=ports))
                    said = f"host port {port.hostPort}/{port.protocol} dropped"
                    yield Obstacle(_pod(pod, said, 0.5, **{field: several}))


def gates(pod: Pod) -> Iterator[Change]:
    """Each scheduling gate removed."""
    for gate in pod.spec.schedulingGates:
        rest = tuple(one for one in pod.spec.schedulingGates if one is not gate)
        yield _pod(pod, f"scheduling gate {gate.name} removed", 0.1, schedulingGates=rest)
