"""The constraints of a pod by the label of nodes that they are about: in selector, affinity and spread.

A spread constraint is about the labels of selector and node affinity as well, unless it says otherwise: it counts only
the nodes that have them.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kubestow.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.pod import Affinity, NodeAffinity, Pod, PodAffinity, PodSpec, Toleration

_DO_NOT_SCHEDULE = "DoNotSchedule"
_IGNORE = "Ignore"


def conditions(pod: Pod) -> Iterator[NodeSelectorRequirement]:
    """What the node selector and the node affinity want of labels."""
    for key, value in pod.spec.nodeSelector.items():
        yield NodeSelectorRequirement(key, "In", (value,))
    for term in _terms(pod.spec.affinity):
        yield from term.matchExpressions


def keys(pod: Pod) -> Counter[str]:
    """The labels that constraints name, and how many constraints each."""
    named = Counter(one.key for one in conditions(pod))
    wanted = list(named)
    for constraint in pod.spec.topologySpreadConstraints:
        if constraint.whenUnsatisfiable == _DO_NOT_SCHEDULE:
            named[constraint.topologyKey] += 1
            named.update(wanted if constraint.nodeAffinityPolicy != _IGNORE else ())
    affinity = pod.spec.affinity
    for rules in () if affinity is None else (affinity.podAffinity, affinity.podAntiAffinity):
        terms = () if rules is None else rules.requiredDuringSchedulingIgnoredDuringExecution
        named.update(term.topologyKey for term in terms)
    return named


def without(pod: Pod, key: str) -> Pod:
    """The pod without what it wants of a label."""
    spec = _keeping(pod.spec, lambda other: other != key)
    if any(one.key == key for one in conditions(pod)):
        spread = tuple(one for one in spec.topologySpreadConstraints if one.nodeAffinityPolicy == _IGNORE)
        spec = replace(spec, topologySpreadConstraints=spread)
    return replace(pod, spec=spec)


def only(pod: Pod, key: str) -> Pod:
    """The pod with nothing but what it wants of a label: it needs no room, and tolerates everything."""
    spec = PodSpec(
        schedulerName=pod.spec.schedulerName,
        nodeSelector=pod.spec.nodeSelector,
        affinity=pod.spec.affinity,
        topologySpreadConstraints=pod.spec.topologySpreadConstraints,
        tolerations=(Toleration(operator="Exists"),),
    )
    return replace(pod, spec=_keeping(spec, lambda other: other == key))


def _keeping(spec: PodSpec, keep: Callable[[str], bool]) -> PodSpec:
    """A spec with the constraints on some labels only."""
    return replace(
        spec,
        nodeSelector={key: value for key, value in spec.nodeSelector.items() if keep(key)},
        affinity=None if spec.affinity is None else _keeping_terms(spec.affinity, keep),
        topologySpreadConstraints=tuple(one for one in spec.topologySpreadConstraints if keep(one.topologyKey)),
    )


def _keeping_terms(affinity: Affinity, keep: Callable[[str], bool]) -> Affinity:
    terms = tuple(
        replace(term, matchExpressions=tuple(one for one in term.matchExpressions if keep(one.key)))
        for term in _terms(affinity)
    )
    # One of the terms is enough, and nothing is left of it to be met.
    is_met = NodeSelectorTerm() in terms
    required = NodeSelector(terms) if terms and not is_met else None
    return replace(
        affinity,
        nodeAffinity=replace(
            affinity.nodeAffinity or NodeAffinity(), requiredDuringSchedulingIgnoredDuringExecution=required
        ),
        podAffinity=_keeping_domains(affinity.podAffinity, keep),
        podAntiAffinity=_keeping_domains(affinity.podAntiAffinity, keep),
    )


def _keeping_domains(rules: PodAffinity | None, keep: Callable[[str], bool]) -> PodAffinity | None:
    if rules is None:
        return None
    terms = rules.requiredDuringSchedulingIgnoredDuringExecution
    kept = tuple(term for term in terms if keep(term.topologyKey))
    return replace(rules, requiredDuringSchedulingIgnoredDuringExecution=kept)


def _terms(affinity: Affinity | None) -> list[NodeSelectorTerm]:
    """The terms of the node affinity that a node can meet: one without conditions matches none."""
    rules = None if affinity is None else affinity.nodeAffinity
    required = None if rules is None else rules.requiredDuringSchedulingIgnoredDuringExecution
    return [] if required is None else [term for term in required.nodeSelectorTerms if term != NodeSelectorTerm()]
