"""The constraints of a pod by the node label that they use: node selector, affinity and topology spread.

A spread constraint also uses the labels of node selector and node affinity, unless its nodeAffinityPolicy is Ignore: it
only counts the nodes that match them.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kubestow.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.pod import Affinity, NodeAffinity, Pod, PodAffinity, PodSpec, Toleration

_DO_NOT_SCHEDULE = "DoNotSchedule"
_IGNORE = "Ignore"


def conditions(pod: Pod) -> Iterator[NodeSelectorRequirement]:
    """Yield the label conditions of node selector and node affinity."""
    for key, value in pod.spec.nodeSelector.items():
        yield NodeSelectorRequirement(key, "In", (value,))
    for term in _terms(pod.spec.affinity):
        yield from term.matchExpressions


def keys(pod: Pod) -> Counter[str]:
    """Return the labels that constraints use, with the number of constraints for each."""
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
    """Return the pod without its constraints on a label."""
    spec = _keeping(pod.spec, lambda other: other != key)
    if any(one.key == key for one in conditions(pod)):
        spread = tuple(one for one in spec.topologySpreadConstraints if one.nodeAffinityPolicy == _IGNORE)
        spec = replace(spec, topologySpreadConstraints=spread)
    return replace(pod, spec=spec)


def only(pod: Pod, key: str) -> Pod:
    """Return the pod with only its constraints on a label, without requests, and with every taint tolerated."""
    spec = PodSpec(
        schedulerName=pod.spec.schedulerName,
        nodeSelector=pod.spec.nodeSelector,
        affinity=pod.spec.affinity,
        topologySpreadConstraints=pod.spec.topologySpreadConstraints,
        tolerations=(Toleration(operator="Exists"),),
    )
    return replace(pod, spec=_keeping(spec, lambda other: other == key))


def _keeping(spec: PodSpec, keep: Callable[[str], bool]) -> PodSpec:
    """Return the spec with only its constraints on the labels to keep."""
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
    # One matching term is enough, and a term without conditions left is met.
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
    """Return the terms of the node affinity that a node can meet; an empty term matches no node."""
    rules = None if affinity is None else affinity.nodeAffinity
    required = None if rules is None else rules.requiredDuringSchedulingIgnoredDuringExecution
    return [] if required is None else [term for term in required.nodeSelectorTerms if term != NodeSelectorTerm()]
