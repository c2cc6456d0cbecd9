"""Causes in other pods: those that affinity, anti-affinity and spread are about, and those that hold host ports."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kubestow.api.labels import compile_selector
from kubestow.api.meta import controller_of
from kubestow.api.natural_order import natural
from kubestow.api.node_selector import required_node_affinity
from kubestow.api.pod import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from kubestow.insight.explain.causes.cause import (
    NEAR,
    Cause,
    Scene,
    counted,
    did_you_mean,
    domain_noun,
    listed,
    nearest,
)
from kubestow.insight.explain.changes import CLUSTER, Change
from kubestow.insight.explain.obstacles import format_selector, pod_change, replaced
from kubestow.scheduler.cluster.affinity_terms import Term
from kubestow.scheduler.cluster.pods import PodInfo

_FEW = 4
"""Maximum number of domains and nodes that are shown with their pods."""
_INTER_POD = "InterPodAffinity"
_MOST_REMOVED = 10

Domains = dict[str, list[PodInfo]]
"""Pods by the value of a topology key."""
Alternative = tuple[str, PodAffinityTerm]
"""What is changed, and the term after it."""


def neighbour_causes(scene: Scene) -> Iterator[Cause]:
    """Yield the pods that stand in the way of the pod."""
    if _INTER_POD in scene.rejecting:
        yield from _existing_anti_affinity(scene)
        yield from _anti_affinity(scene)
        yield from _affinity(scene)
    if "PodTopologySpread" in scene.rejecting:
        yield from _spread(scene)
    if "NodePorts" in scene.rejecting:
        yield from _ports(scene)


def _placed(scene: Scene) -> Iterator[tuple[PodInfo, dict[str, str]]]:
    """Yield each pod on a node with the labels of the node."""
    nodes = scene.table.nodes
    for row, pod in scene.cluster.placed_pods():
        node = nodes[row]
        if node is not None:
            yield pod, node.metadata.labels


def _matches(scene: Scene, term: Term, pod: PodInfo) -> bool:
    return term.matches(pod.namespace, pod.labels, scene.listers.namespace_labels(pod.namespace))


def _by_domain(scene: Scene, term: Term) -> Domains:
    """Return the pods that a term selects, by domain."""
    found: defaultdict[str, list[PodInfo]] = defaultdict(list)
    for pod, labels in _placed(scene):
        if term.topology_key in labels and _matches(scene, term, pod):
            found[labels[term.topology_key]].append(pod)
    return dict(sorted(found.items(), key=lambda one: natural(one[0])))


def _holders(domains: Domains) -> str:
    """Return each domain with its pods, if there are few; otherwise the owners of the pods."""
    if len(domains) <= _FEW:
        return "; ".join(f"{name} has {listed([pod.key for pod in pods], 2)}" for name, pods in domains.items())
    owners: Counter[str] = Counter()
    for pod in (pod for pods in domains.values() for pod in pods):
        owner = controller_of(pod.pod.metadata)
        owners[pod.key if owner is None else f"pods of {owner.kind} {pod.namespace}/{owner.name}"] += 1
    return listed([owner if count == 1 else f"{count} {owner}" for owner, count in owners.most_common()], 3)


# Anti-affinity


def _anti_affinity(scene: Scene) -> Iterator[Cause]:
    affinity = scene.pod.spec.affinity
    rules = None if affinity is None else affinity.podAntiAffinity
    if affinity is None or rules is None:
        return
    raw = rules.requiredDuringSchedulingIgnoredDuringExecution
    for index, (term, its) in enumerate(zip(scene.info.terms.required_anti, raw, strict=True)):
        key = term.topology_key
        taken, every = _by_domain(scene, term), scene.values(key)
        noun = domain_noun(key)
        who = f"anti-affinity to pods {format_selector(its.labelSelector)} by {key}"
        if not every:
            continue
        if taken:
            free = [value for value in every if value not in taken]
            which = f"{len(taken)} of {counted(len(every), noun)}"
            where = "every " + noun if not free else which
            text = f"{who}: {where} has one already ({_holders(taken)})"
            if free:
                text += f"; {_elsewhere(scene, key, free)}"
            replicas = _replicas(scene)
            text += f"; {counted(len(every), noun)}, {replicas}" if replicas else ""
            yield Cause(_INTER_POD, text, (), (_preferred(scene, rules, index, f"{who} made preferred"),))


def _replicas(scene: Scene) -> str:
    """Return the number of pods of the same controller, this one included; empty if there is none."""
    owner = controller_of(scene.pod.metadata)
    if owner is None:
        return ""
    others = (one for one in scene.world.pods() if one.metadata.uid != scene.pod.metadata.uid)
    same = (one for one in others if (its := controller_of(one.metadata)) is not None and its.uid == owner.uid)
    return counted(1 + sum(1 for _ in same), "replica")


def _preferred(scene: Scene, rules: PodAffinity, index: int, text: str) -> Change:
    terms = rules.requiredDuringSchedulingIgnoredDuringExecution
    soft = (*rules.preferredDuringSchedulingIgnoredDuringExecution, WeightedPodAffinityTerm(100, terms[index]))
    changed = replace(
        rules,
        requiredDuringSchedulingIgnoredDuringExecution=replaced(terms, index),
        preferredDuringSchedulingIgnoredDuringExecution=soft,
    )
    assert scene.pod.spec.affinity is not None
    return pod_change(scene.pod, text, 0.5, affinity=replace(scene.pod.spec.affinity, podAntiAffinity=changed))


def _elsewhere(scene: Scene, key: str, values: Sequence[str]) -> str:
    """Return why the nodes of other domains reject the pod."""
    wanted = set(values)
    names = [node.metadata.name for node in scene.nodes() if node.metadata.labels.get(key) in wanted]
    reason = scene.reasons_on(names)
    return f"{listed(list(values), 3)} {'is' if len(values) == 1 else 'are'} ruled out otherwise: {reason}"


def _existing_anti_affinity(scene: Scene) -> Iterator[Cause]:
    """Yield the pods whose own anti-affinity keeps the pod away."""
    labels = scene.listers.namespace_labels(scene.pod.metadata.namespace)
    found: defaultdict[str, defaultdict[str, list[PodInfo]]] = defaultdict(lambda: defaultdict(list))
    for other, its in _placed(scene):
        for term in other.terms.required_anti:
            key = term.topology_key
            if key in its and term.matches(scene.info.namespace, scene.info.labels, labels):
                found[key][its[key]].append(other)
    for key, by_value in found.items():
        domains = dict(sorted(by_value.items(), key=lambda one: natural(one[0])))
        where = f"{len(domains)} of {counted(len(scene.values(key)), domain_noun(key))}"
        text = f"the anti-affinity of existing pods keeps it away from {where} ({_holders(domains)})"
        fewest = sorted(domains.items(), key=lambda one: len(one[1]))[:_FEW]
        changes = tuple(pods_removed(pods) for _, pods in fewest if len(pods) <= _MOST_REMOVED)
        yield Cause(_INTER_POD, text, (), changes)


def pods_removed(pods: Sequence[PodInfo]) -> Change:
    """Remove pods of any priority."""
    text = f"pod{'s' if len(pods) > 1 else ''} {listed([pod.key for pod in pods])} removed"
    return Change(CLUSTER, text, 0.65 + 0.02 * len(pods), removed=tuple(pods))


# Affinity


def _affinity(scene: Scene) -> Iterator[Cause]:
    affinity = scene.pod.spec.affinity
    rules = None if affinity is None else affinity.podAffinity
    if affinity is None or rules is None:
        return
    raw = rules.requiredDuringSchedulingIgnoredDuringExecution
    for index, (term, its) in enumerate(zip(scene.info.terms.required, raw, strict=True)):
        there, key = _by_domain(scene, term), term.topology_key
        who = f"affinity to pods {format_selector(its.labelSelector)} by {key}"
        if there:
            names = [node.metadata.name for node in scene.nodes() if node.metadata.labels.get(key) in there]
            reason = scene.reasons_on(names)
            yield Cause(_INTER_POD, f"{who}: {_holders(there)}; {counted(len(names), 'node')} there: {reason}")
            continue
        text, others = _nearest_terms(scene, its, term)
        changes = []
        for what, other in others:
            several = replace(rules, requiredDuringSchedulingIgnoredDuringExecution=replaced(raw, index, other))
            changed = f"{who}: {what}"
            changes.append(pod_change(scene.pod, changed, NEAR, affinity=replace(affinity, podAffinity=several)))
        yield Cause(_INTER_POD, f"{who}: {text}", tuple(what for what, _ in others), tuple(changes))


def _nearest_terms(scene: Scene, term: PodAffinityTerm, compiled: Term) -> tuple[str, list[Alternative]]:
    """Return what no pod or node has, and nearly equal terms that may select pods."""
    key = compiled.topology_key
    if not scene.values(key):
        near_keys = nearest(key, scene.keys())
        text = f"no node has the label {key}{did_you_mean(near_keys)}"
        return text, [(f"key changed to {near}", replace(term, topologyKey=near)) for near in near_keys]
    spaces = {one.metadata.name for one in scene.listers.namespaces} or {pod.namespace for pod, _ in _placed(scene)}
    for name in term.namespaces:
        if name not in spaces:
            similar = nearest(name, spaces)
            return f"there is no namespace {name}{did_you_mean(similar)}", [
                (f"namespace {name} changed to {near}", replace(term, namespaces=_swapped(term.namespaces, name, near)))
                for near in similar
            ]
    inside: list[PodInfo] = []
    outside: Counter[str] = Counter()
    for pod, _ in _placed(scene):
        if compiled.names(pod.namespace, scene.listers.namespace_labels(pod.namespace)):
            inside.append(pod)
        elif compiled.selector.matches(pod.labels):
            outside[pod.namespace] += 1
    where = f"namespace {', '.join(sorted(compiled.namespaces))}" if compiled.namespaces else "the selected namespaces"
    text = f"no pod with a node in {where} matches"
    ways = list(_nearest_labels(term, inside))
    if ways:
        return text + did_you_mean([what.rpartition(" ")[2] for what, _ in ways]), ways
    if outside:
        nearby = [f"{name} ({counted(count, 'pod')})" for name, count in outside.most_common()]
        added = replace(term, namespaces=(*sorted(compiled.namespaces), *outside))
        return f"{text}; such pods are in namespace {listed(nearby)}", [
            (f"namespace {listed([*outside])} added", added)
        ]
    return text, []


def _swapped(names: tuple[str, ...], name: str, other: str) -> tuple[str, ...]:
    return tuple(other if one == name else one for one in names)


def _nearest_labels(term: PodAffinityTerm, pods: Sequence[PodInfo]) -> Iterator[Alternative]:
    """Yield terms with a label that pods have, in the place of one that none has."""
    selector = term.labelSelector
    if selector is None:
        return
    keys = {label for pod in pods for label in pod.labels}
    for key, value in selector.matchLabels.items():
        values = {pod.labels[key] for pod in pods if key in pod.labels}
        if value in values:
            continue
        labels = [(key, near) for near in nearest(value, values)] or [(near, value) for near in nearest(key, keys)]
        for near in labels:
            pairs = dict(near if one == key else (one, kept) for one, kept in selector.matchLabels.items())
            other = replace(selector, matchLabels=pairs)
            if any(compile_selector(other).matches(pod.labels) for pod in pods):
                yield f"{key}={value} changed to {near[0]}={near[1]}", replace(term, labelSelector=other)


# Spread


def _spread(scene: Scene) -> Iterator[Cause]:
    required = required_node_affinity(scene.pod)
    for constraint in scene.pod.spec.topologySpreadConstraints:
        key = constraint.topologyKey
        if constraint.whenUnsatisfiable != "DoNotSchedule":
            continue
        values = scene.values(key)
        what = f"spread of pods {format_selector(constraint.labelSelector)} by {key}"
        if not values:
            similar = nearest(key, scene.keys())
            several = [
                tuple(
                    replace(one, topologyKey=near) if one is constraint else one
                    for one in scene.pod.spec.topologySpreadConstraints
                )
                for near in similar
            ]
            changes = tuple(
                pod_change(scene.pod, f"{what}: key changed to {near}", NEAR, topologySpreadConstraints=constraints)
                for near, constraints in zip(similar, several, strict=True)
            )
            text = f"{what}: no node has the label {key}{did_you_mean(similar)}"
            yield Cause("PodTopologySpread", text, similar, changes)
            continue
        counts = dict.fromkeys(
            (
                node.metadata.labels[key]
                for node in scene.nodes()
                if key in node.metadata.labels
                and (
                    constraint.nodeAffinityPolicy == "Ignore"
                    or required.matches(node.metadata.labels, node.metadata.name)
                )
            ),
            0,
        )
        selector = compile_selector(constraint.labelSelector)
        for pod, labels in _placed(scene):
            if labels.get(key) in counts and pod.namespace == scene.info.namespace and selector.matches(pod.labels):
                counts[labels[key]] += 1
        ordered = sorted(counts.items(), key=lambda one: (one[1], natural(one[0])))
        least = [value for value, count in ordered if count == ordered[0][1]]
        pods = listed([f"{value} has {count}" for value, count in ordered], _FEW)
        text = f"{what}: {pods}; maxSkew {constraint.maxSkew}"
        yield Cause("PodTopologySpread", f"{text}; {_elsewhere(scene, key, least)}")


# Ports


def _ports(scene: Scene) -> Iterator[Cause]:
    for port in scene.info.ports:
        rows = sorted(scene.table.ports.rows_in_conflict([port]))
        holders = {
            scene.table.names[row]: [
                pod for pod in _on(scene, row) if any(port.conflicts_with(its) for its in pod.ports)
            ]
            for row in rows
        }
        if not holders:
            continue
        where = "every node" if len(rows) == len(scene.rows) else f"{len(rows)} of {counted(len(scene.rows), 'node')}"
        by_node = "; ".join(f"{name} by {listed([pod.key for pod in pods], 2)}" for name, pods in holders.items())
        who = by_node if len(holders) <= _FEW else _holders(holders)
        text = f"host port {port.port}/{port.protocol} is taken on {where}: {who}"
        yield Cause("NodePorts", text)


def _on(scene: Scene, row: int) -> Iterable[PodInfo]:
    return scene.table.pods[row].values()
