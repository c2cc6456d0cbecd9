"""Causes in other pods: those that affinity, anti-affinity and spread are about, and those that hold host ports."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from kubestow.api.labels import compile_selector
from kubestow.api.meta import LabelSelector, controller_of
from kubestow.api.natural_order import natural
from kubestow.api.pod import PodAffinity, PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm
from kubestow.insight.explain.causes.cause import NEAR, Cause, Scene, counted, domain_noun, listed
from kubestow.insight.explain.changes import CLUSTER, Change
from kubestow.insight.explain.names import did_you_mean, nearest
from kubestow.insight.explain.obstacles import format_selector, pod_change, replaced
from kubestow.scheduler.cluster.affinity_terms import Term, TermKind
from kubestow.scheduler.cluster.pods import PodInfo

_FEW = 4
"""Maximum number of domains and nodes that are shown with their pods."""
_INTER_POD = "InterPodAffinity"
_SPREAD = "PodTopologySpread"
_MOST_REMOVED = 10

Domains = dict[str, list[PodInfo]]
"""Pods by the value of a topology key."""
_PodOnNode = tuple[PodInfo, Mapping[str, str]]
Alternative = tuple[str, PodAffinityTerm]
"""What is changed, and the term after it."""


def neighbour_causes(scene: Scene) -> Iterator[Cause]:
    """Yield the pods that stand in the way of the pod."""
    if _INTER_POD in scene.rejecting:
        yield from _existing_anti_affinity(scene)
        yield from _anti_affinity(scene)
        yield from _affinity(scene)
    if _SPREAD in scene.rejecting:
        yield from _spread(scene)
    if "NodePorts" in scene.rejecting:
        yield from _ports(scene)


def _on_rows(scene: Scene, rows: Iterable[int], is_wanted: Callable[[PodInfo], bool]) -> Iterator[_PodOnNode]:
    """Yield the wanted pods of some rows with the labels of their nodes."""
    for row in rows:
        node = scene.table.nodes[row]
        if node is not None:
            yield from ((pod, node.metadata.labels) for pod in _on(scene, row) if is_wanted(pod))


def _matches(scene: Scene, term: Term, namespace: str, labels: Mapping[str, str]) -> bool:
    return term.matches(namespace, labels, scene.listers.namespace_labels(namespace))


def _by_domain(scene: Scene, term: Term) -> Domains:
    """Return the pods that a term selects, by domain."""
    found: defaultdict[str, list[PodInfo]] = defaultdict(list)
    kinds = scene.cluster.matches.kinds()
    rows = {row for name, labels, its in kinds if _matches(scene, term, name, labels) for row in its}
    for pod, labels in _on_rows(scene, sorted(rows), lambda pod: _matches(scene, term, pod.namespace, pod.labels)):
        if term.topology_key in labels:
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
    pending = sum(len(pods) for (_, _, uid), pods in scene.world.pending_kinds.items() if uid == owner.uid)
    placed = (pod.pod for _, pod in scene.cluster.placed_pods())
    same = (one for one in placed if (its := controller_of(one.metadata)) is not None and its.uid == owner.uid)
    return counted(1 + pending + sum(1 for _ in same), "replica")


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
    found: defaultdict[str, defaultdict[str, dict[str, PodInfo]]] = defaultdict(lambda: defaultdict(dict))
    for carried, counts in scene.cluster.carried.matching(scene.info, labels):
        term, key = carried.term, carried.term.topology_key
        if carried.kind is not TermKind.REQUIRED_ANTI:
            continue
        rows = np.flatnonzero(counts.by_row(scene.table.size)).tolist()
        for other, its in _on_rows(scene, rows, lambda pod, term=term: term in pod.terms.required_anti):  # type: ignore[misc]
            if key in its:
                found[key][its[key]][other.uid] = other
    for key, by_value in found.items():
        domains = {value: [*by_value[value].values()] for value in sorted(by_value, key=natural)}
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
    kinds = [(namespace, labels, rows) for namespace, labels, rows in scene.cluster.matches.kinds()]
    spaces = {one.metadata.name for one in scene.listers.namespaces} or {
        scene.info.namespace,
        *(namespace for namespace, _, _ in kinds),
    }
    for name in term.namespaces:
        if name not in spaces:
            similar = nearest(name, spaces)
            return f"there is no namespace {name}{did_you_mean(similar)}", [
                (f"namespace {name} changed to {near}", replace(term, namespaces=_swapped(term.namespaces, name, near)))
                for near in similar
            ]
    labels = {name: scene.listers.namespace_labels(name) for name in spaces}
    if term.namespaceSelector is not None and not any(compiled.names(name, of) for name, of in labels.items()):
        others = [
            (f"namespace selector {what}", replace(term, namespaceSelector=other))
            for what, other in _nearest_selectors(term.namespaceSelector, [*labels.values()])
        ]
        wanted = f"namespace selector {format_selector(term.namespaceSelector)} selects no namespace"
        return wanted + did_you_mean([what.rpartition(" ")[2] for what, _ in others]), others
    inside: list[Mapping[str, str]] = []
    outside: Counter[str] = Counter()
    for name, its, rows in kinds:
        if compiled.names(name, scene.listers.namespace_labels(name)):
            inside.append(its)
        elif compiled.selector.matches(its):
            outside[name] += sum(1 for _ in _on_rows(scene, rows, lambda pod, its=its: pod.labels == its))  # type: ignore[misc]
    rows = {row for name, its, of in kinds if _matches(scene, compiled, name, its) for row in of}
    if rows:
        on = sorted((scene.table.names[row] for row in rows), key=natural)
        return f"pods match, but their nodes have no label {key}: {listed(on, 3)}", []
    where = f"namespace {', '.join(sorted(compiled.namespaces))}" if compiled.namespaces else "the selected namespaces"
    text = f"no pod with a node in {where} matches"
    # The pod itself counts if it is the first one.
    if compiled.names(scene.info.namespace, scene.listers.namespace_labels(scene.info.namespace)):
        inside.append(scene.info.labels)
    ways = [
        (what, replace(term, labelSelector=other)) for what, other in _nearest_selectors(term.labelSelector, inside)
    ]
    if ways:
        return text + did_you_mean([what.rpartition(" ")[2] for what, _ in ways]), ways
    if outside:
        nearby = [f"{name} ({counted(count, 'pod')})" for name, count in outside.most_common()]
        added = replace(term, namespaces=(*sorted(compiled.namespaces), *outside))
        return f"{text}; such pods are in namespace {listed(nearby)}", [
            (f"namespace {listed([*outside])} added", added)
        ]
    pending = [
        key
        for (name, its, _), keys in scene.world.pending_kinds.items()
        if _matches(scene, compiled, name, dict(its))
        for key in keys
    ]
    verb = "is" if len(pending) == 1 else "are"
    return text + (f"; {listed(sorted(pending), 3)} would, but {verb} pending" if pending else ""), []


def _swapped(names: tuple[str, ...], name: str, other: str) -> tuple[str, ...]:
    return tuple(other if one == name else one for one in names)


def _nearest_selectors(
    selector: LabelSelector | None, known: Sequence[Mapping[str, str]]
) -> Iterator[tuple[str, LabelSelector]]:
    """Yield selectors that select some of the known labels, with a label in the place of one that none has."""
    if selector is None:
        return
    expressions = selector.matchExpressions
    conditions = [(-1, key, value) for key, value in selector.matchLabels.items()]
    conditions += [(i, one.key, "") for i, one in enumerate(expressions) if one.operator == "Exists"]
    conditions += [
        (i, one.key, value) for i, one in enumerate(expressions) if one.operator == "In" for value in one.values
    ]
    keys = {key for labels in known for key in labels}
    for index, key, value in conditions:
        values = {labels[key] for labels in known if key in labels}
        is_key = index >= 0 and expressions[index].operator == "Exists"
        if value in values or (is_key and values):
            continue
        for near in [(key, one) for one in nearest(value, values)] or [(one, value) for one in nearest(key, keys)]:
            if index < 0:
                pairs = dict(near if one == key else (one, kept) for one, kept in selector.matchLabels.items())
                other = replace(selector, matchLabels=pairs)
            else:
                swapped = replace(expressions[index], key=near[0], values=() if is_key else (near[1],))
                other = replace(selector, matchExpressions=replaced(expressions, index, swapped))
            compiled = compile_selector(other)
            if any(compiled.matches(labels) for labels in known):
                yield f"{_label(key, value)} changed to {_label(*near)}", other


def _label(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


# Spread


def _spread(scene: Scene) -> Iterator[Cause]:
    """Yield the hard constraints, with the numbers of pods that the plugin has counted."""
    written = scene.pod.spec.topologySpreadConstraints
    own = [one for one in written if one.whenUnsatisfiable == "DoNotSchedule"]
    for number, spread in enumerate(scene.run.evaluation.states.get(_SPREAD) or ()):
        constraint, key = spread.constraint, spread.constraint.key
        its = own[number] if own else TopologySpreadConstraint(topologyKey=key)
        what = f"spread of pods {format_selector(its.labelSelector)} by {key}" if own else f"default spread by {key}"

        def changed(text: str, what: str = what, its: TopologySpreadConstraint = its, **fields: object) -> Change:
            constraints = tuple(replace(one, **fields) if one is its else one for one in written)
            return pod_change(scene.pod, f"{what}: {text}", NEAR, topologySpreadConstraints=constraints)

        if not scene.values(key):
            similar = nearest(key, scene.keys())
            changes = tuple(changed(f"key changed to {near}", topologyKey=near) for near in similar if own)
            text = f"{what}: no node has the label {key}{did_you_mean(similar)}"
            yield Cause(_SPREAD, text, similar, changes)
            continue
        present = spread.domains.present
        ids = range(1, len(spread.domains.counts)) if present is None else np.flatnonzero(present).tolist()
        names = scene.table.label_values(key)
        counts = {names[one]: int(spread.domains.counts[one]) for one in ids}
        ordered = sorted(counts.items(), key=lambda one: (one[1], natural(one[0])))
        pods = listed([f"{value} has {count}" for value, count in ordered], _FEW) or f"no {domain_noun(key)} counts"
        text = f"{what}: {pods}; maxSkew {constraint.max_skew}"
        changes = ()
        if len(counts) < constraint.min_domains:
            domains = counted(len(counts), domain_noun(key))
            text += f"; with {domains} and minDomains {constraint.min_domains}, the least counts as 0"
            fewer = changed(f"minDomains lowered from {its.minDomains} to {len(counts)}", minDomains=len(counts))
            changes = (fewer,) if own and counts else ()
        kinds = spread.rejections
        allowed = [names[one] for one in ids if kinds is None or not kinds[one]]
        allowed.sort(key=natural)
        yield Cause(_SPREAD, f"{text}; {_elsewhere(scene, key, allowed)}" if allowed else text, (), changes)


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
