"""Causes in the labels, names, taints and resources of nodes: what the pod names, and no node has."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from kubestow.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint
from kubestow.api.node_selector import compile_node_selector, required_node_affinity
from kubestow.api.pod import Container, Pod, Toleration
from kubestow.api.tolerations import REPELLING, tolerates
from kubestow.insight.explain.causes.cause import NEAR, Cause, Scene, counted, listed
from kubestow.insight.explain.causes.devices import devices_there
from kubestow.insight.explain.changes import NODE, Change
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.insight.explain.obstacles import format_condition, meeting, pod_change, replaced, with_terms
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.node_matching import node_terms_match, required_affinity_match
from kubestow.scheduler.plugins.node_declared_features import required_features

_AFFINITY = "NodeAffinity"
_SYSTEM_TAINTS = "node.kubernetes.io/"
_FEW = 4

Label = tuple[str, str]
"""A key and a value."""


def place_causes(scene: Scene) -> Iterator[Cause]:
    """Yield what the pod wants of a node and no node has."""
    if len(scene.rows):
        yield from _node_name(scene)
        yield from _labels(scene)
        yield from _enforced(scene)
        yield from _tolerations(scene)
        yield from _resources(scene)
        yield from _features(scene)


def _node_name(scene: Scene) -> Iterator[Cause]:
    name, names = scene.pod.spec.nodeName, scene.table.row_of
    if name and name not in names:
        similar = nearest(name, names)
        changes = tuple(pod_change(scene.pod, f"nodeName changed to {one}", NEAR, nodeName=one) for one in similar)
        yield Cause("NodeName", f"there is no node {name}{did_you_mean(similar)}", similar, changes)


# Labels


def _labels(scene: Scene) -> Iterator[Cause]:
    required = required_node_affinity(scene.pod)
    if required.is_everything or required_affinity_match(scene.table, scene.rows, required).any():
        return
    found = [*_selector(scene), *_affinity(scene)]
    if NodeSelectorTerm() in _terms(scene.pod):
        found.append(Cause(_AFFINITY, "a term of the node affinity has no conditions, so it matches no node"))
    yield from found
    conditions = [NodeSelectorRequirement(key, "In", (value,)) for key, value in scene.pod.spec.nodeSelector.items()]
    terms = _terms(scene.pod)
    conditions += terms[0].matchExpressions if len(terms) == 1 else ()
    fields = terms[0].matchFields if len(terms) == 1 else ()
    if not found and len(conditions) + len(fields) > 1:
        counts = [(_matching(scene, one, of_names=one in fields), one) for one in (*conditions, *fields)]
        parts = [f"{counted(count, 'node')} {format_condition(one)}" for count, one in counts]
        yield Cause(_AFFINITY, f"no node meets all conditions on labels: {'; '.join(parts)}")


def _enforced(scene: Scene) -> Iterator[Cause]:
    """Yield what the profile requires of nodes and none has."""
    for hook in scene.run.profile.filter if _AFFINITY in scene.rejecting else ():
        required: NodeSelector | None = getattr(hook.plugin, "enforced", None)
        matching = compile_node_selector(required or NodeSelector((NodeSelectorTerm(),)))
        if required is None or any(
            matching.matches(node.metadata.labels, node.metadata.name) for node in scene.nodes()
        ):
            continue
        terms = [
            " and ".join(map(format_condition, (*one.matchExpressions, *one.matchFields)))
            for one in required.nodeSelectorTerms
        ]
        single = [one.matchExpressions[0] for one in required.nodeSelectorTerms if len(one.matchExpressions) == 1]
        changes = [change for one in single for node in scene.nodes()[:_FEW] for change in meeting(one)(node)]
        text = f"addedAffinity of profile {scene.run.profile.name} requires {' or '.join(terms)}, which no node has"
        yield Cause(_AFFINITY, text, (), tuple(changes))


def _terms(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    affinity = pod.spec.affinity
    rules = None if affinity is None else affinity.nodeAffinity
    required = None if rules is None else rules.requiredDuringSchedulingIgnoredDuringExecution
    return () if required is None else required.nodeSelectorTerms


def _matching(scene: Scene, condition: NodeSelectorRequirement, *, of_names: bool = False) -> int:
    """Return the number of nodes that meet a condition."""
    one = (condition,)
    term = NodeSelectorTerm(matchFields=one) if of_names else NodeSelectorTerm(matchExpressions=one)
    compiled = compile_node_selector(NodeSelector((term,)))
    return int(np.count_nonzero(node_terms_match(scene.table, scene.rows, compiled)))


def _selector(scene: Scene) -> Iterator[Cause]:
    selector = scene.pod.spec.nodeSelector
    for key, value in selector.items():
        condition = NodeSelectorRequirement(key, "In", (value,))
        if _matching(scene, condition):
            continue
        text, similar = _missing(scene, condition)
        changes = []
        for near in similar:
            pairs = (near if one == key else (one, kept) for one, kept in selector.items())
            changed = f"node selector {key}={value} changed to {_label(near)}"
            changes.append(pod_change(scene.pod, changed, NEAR, nodeSelector=dict(pairs)))
        yield Cause(_AFFINITY, text, _names(condition, similar), tuple(changes))


def _affinity(scene: Scene) -> Iterator[Cause]:
    terms = _terms(scene.pod)
    for number, term in enumerate(terms):
        for of_names, field in enumerate(("matchExpressions", "matchFields")):
            kept: tuple[NodeSelectorRequirement, ...] = getattr(term, field)
            for index, condition in enumerate(kept):
                if _matching(scene, condition, of_names=bool(of_names)):
                    continue
                text, similar = _missing_node(scene, condition) if of_names else _missing(scene, condition)
                changes = []
                for key, value in similar:
                    values = condition.values if condition.operator != "In" or key != condition.key else (value,)
                    other = replace(condition, key=key, values=values)
                    if condition.operator == "In" and value not in values:
                        other = replace(other, values=(value,))
                    several = replace(term, **{field: replaced(kept, index, other)})
                    changed = f"node affinity {format_condition(condition)} changed to {format_condition(other)}"
                    changes.append(with_terms(scene.pod, changed, NEAR, replaced(terms, number, several)))
                yield Cause(_AFFINITY, text, _names(condition, similar), tuple(changes))


def _missing_node(scene: Scene, condition: NodeSelectorRequirement) -> tuple[str, list[Label]]:
    wanted = ", ".join(condition.values)
    similar = [near for value in condition.values for near in nearest(value, scene.table.row_of)]
    return f"there is no node {wanted}{did_you_mean(similar)}", [(condition.key, value) for value in similar]


def _missing(scene: Scene, condition: NodeSelectorRequirement) -> tuple[str, list[Label]]:
    """Return what no node has, and the nearest labels that nodes have."""
    key, wanted = condition.key, format_condition(condition)
    if condition.operator == "In" and len(condition.values) == 1:
        wanted = f"{key}={condition.values[0]}"
    values = scene.values(key)
    if not values:
        keys = scene.keys()
        near_keys = nearest(key, keys)
        similar = [label for near in near_keys for label in _with_key(scene, near, condition)]
        names = [f"{near} ({counted(keys[near], 'node')})" for near in near_keys]
        return f"no node has the label {key}{did_you_mean(names)}", similar
    if condition.operator in ("Gt", "Lt"):
        bound = max if condition.operator == "Gt" else min
        numbers = [int(value) for value in values if value.lstrip("-").isdecimal()]
        end = f"; the {'largest' if bound is max else 'smallest'} value is {bound(numbers)}" if numbers else ""
        return f"no node has {wanted}{end}", []
    if condition.operator in ("NotIn", "DoesNotExist"):
        return f"every node has the label {key}, which {wanted} excludes; nodes have {_tally(values)}", []
    near_values = list(dict.fromkeys(near for value in condition.values for near in nearest(value, values)))
    if not near_values:
        return f"no node has {wanted}; nodes have {_tally(values)}", []
    ones = [f"{counted(values[near], 'node')} {'has' if values[near] == 1 else 'have'} {near}" for near in near_values]
    question = "did you mean that?" if len(ones) == 1 else "did you mean one of them?"
    return f"no node has {wanted}; {', '.join(ones)}: {question}", [(key, near) for near in near_values]


def _with_key(scene: Scene, key: str, condition: NodeSelectorRequirement) -> Iterator[Label]:
    """Yield labels with another key that meet a condition, or nearly do."""
    values = scene.values(key)
    if condition.operator != "In":
        yield key, ""
        return
    met = [value for value in condition.values if value in values]
    for value in met or [near for wanted in condition.values for near in nearest(wanted, values)]:
        yield key, value


def _label(label: Label) -> str:
    return f"{label[0]}={label[1]}"


def _names(condition: NodeSelectorRequirement, similar: list[Label]) -> tuple[str, ...]:
    return tuple(value if key == condition.key else _label((key, value)).removesuffix("=") for key, value in similar)


def _tally(values: Counter[str]) -> str:
    return listed([f"{value or '(empty)'} ({count})" for value, count in values.most_common()])


# Taints, resources, features


def _tolerations(scene: Scene) -> Iterator[Cause]:
    """Yield tolerations that match no taint of any node, but nearly match one that rejects the pod."""
    if not {"TaintToleration", "NodeUnschedulable"} & scene.rejecting:
        return
    pod, tolerations = scene.pod, scene.pod.spec.tolerations
    taints = scene.world.of_nodes(_taints)
    missing = {taint: n for taint, n in taints.items() if not any(tolerates(one, taint, True) for one in tolerations)}
    for index, toleration in enumerate(tolerations):
        key = toleration.key
        if not key or key.startswith(_SYSTEM_TAINTS) or any(tolerates(toleration, taint, True) for taint in taints):
            continue
        similar = [
            taint for taint in missing if taint.key == key or taint.key in nearest(key, {t.key for t in missing})
        ]
        texts = [_taint(taint) for taint in similar]
        changes = []
        for taint in similar:
            other = Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)
            changed = f"toleration of {_toleration(toleration)} changed to {_taint(taint)}"
            changes.append(pod_change(pod, changed, NEAR, tolerations=replaced(tolerations, index, other)))
        if similar:
            text = f"the toleration of {_toleration(toleration)} matches no taint of a node"
            nodes = [f"{_taint(taint)} ({counted(missing[taint], 'node')})" for taint in similar]
            yield Cause("TaintToleration", text + did_you_mean(nodes), tuple(texts), tuple(changes))


def _taints(world: World) -> Counter[Taint]:
    nodes = (node for node in world.cluster.nodes.nodes if node is not None)
    return Counter(taint for node in nodes for taint in node.spec.taints if taint.effect in REPELLING)


def _taint(taint: Taint) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _toleration(toleration: Toleration) -> str:
    value = f"={toleration.value}" if toleration.value else ""
    return f"{toleration.key}{value}{f':{toleration.effect}' if toleration.effect else ''}"


def _resources(scene: Scene) -> Iterator[Cause]:
    offered: Counter[str] = Counter()
    wanted = [name for name, amount in scene.info.requests.amounts.items() if amount > 0]
    if "NodeResourcesFit" not in scene.rejecting and "DynamicResources" not in scene.rejecting:
        return
    for name in wanted:
        if "/" not in name or (name in scene.table.resource_index and _offers(scene, name)):
            continue
        backing = scene.cluster.devices.classes
        if name in backing:
            text = f"{name} is of device class {backing[name].metadata.name}: {devices_there(scene)}"
            yield Cause("DynamicResources", text)
            continue
        if not offered:
            offered.update(one for node in scene.nodes() for one in node.status.allocatable)
            offered.update(one.spec.extendedResourceName or "" for one in scene.listers.device_classes)
        similar = nearest(name, [one for one in offered if "/" in one])
        changes = tuple(_renamed(scene.pod, name, near) for near in similar)
        of = {one: f"device class {backing[one].metadata.name}" for one in similar if one in backing}
        names = [f"{near} ({of.get(near) or counted(offered[near], 'node')})" for near in similar]
        yield Cause("NodeResourcesFit", f"no node has the resource {name}{did_you_mean(names)}", similar, changes)


def _offers(scene: Scene, name: str) -> bool:
    return bool(scene.table.allocatable[scene.table.resource_index[name], scene.rows].any())


def _renamed(pod: Pod, name: str, other: str) -> Change:
    def renamed(container: Container) -> Container:
        both = container.resources
        requests = {other if one == name else one: amount for one, amount in both.requests.items()}
        limits = {other if one == name else one: amount for one, amount in both.limits.items()}
        return replace(container, resources=replace(both, requests=requests, limits=limits))

    parts = {field: tuple(map(renamed, getattr(pod.spec, field))) for field in ("containers", "initContainers")}
    return pod_change(pod, f"request of {name} changed to {other}", NEAR, **parts)


def _features(scene: Scene) -> Iterator[Cause]:
    if "NodeDeclaredFeatures" not in scene.rejecting:
        return
    for feature in sorted(required_features(scene.pod)):
        lacking = [node for node in scene.nodes() if feature not in node.status.declaredFeatures]
        changes = []
        for node in lacking[:_FEW]:
            declared = replace(node.status, declaredFeatures=(*node.status.declaredFeatures, feature))
            text = f"node {node.metadata.name} updated to declare {feature}"
            changes.append(Change(NODE, text, 0.6, nodes=(replace(node, status=declared),)))
        if lacking:
            text = f"the pod requires the node feature {feature}, which is missing on {counted(len(lacking), 'node')}"
            names = listed([node.metadata.name for node in lacking])
            yield Cause("NodeDeclaredFeatures", f"{text}: {names}", (), tuple(changes))
