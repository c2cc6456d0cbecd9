"""Pod affinity terms, compiled: rules and preferences about other pods in the same topology domain."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import msgspec

from kubestow.api.labels import Selector, compile_selector
from kubestow.api.pod import Affinity, PodAffinity, PodAffinityTerm


class Term(msgspec.Struct, frozen=True):
    """One term of a pod; hashable, so that equal terms of many pods are counted together."""

    namespaces: frozenset[str]
    namespace_selector: Selector | None
    selector: Selector
    topology_key: str

    def names(self, namespace: str, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term selects pods in a namespace with these labels."""
        return namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        )

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term selects a pod with these labels, in a namespace with these labels."""
        return self.names(namespace, namespace_labels) and self.selector.matches(labels)


class WeightedTerm(NamedTuple):
    term: Term
    weight: int


class TermKind(IntEnum):
    REQUIRED = 0
    REQUIRED_ANTI = 1
    PREFERRED = 2
    PREFERRED_ANTI = 3


class CarriedTerm(msgspec.Struct, frozen=True):
    """A term as carried by pods; the weight is that of a preferred term, else 0."""

    kind: TermKind
    term: Term
    weight: int


class AffinityTerms(msgspec.Struct, frozen=True):
    """All terms of a pod, by kind."""

    required: tuple[Term, ...] = ()
    required_anti: tuple[Term, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    preferred_anti: tuple[WeightedTerm, ...] = ()
    carried: tuple[CarriedTerm, ...] = ()
    """The same terms in one list."""


NO_TERMS = AffinityTerms()

_compiled: dict[tuple[str, bytes], AffinityTerms] = {}
_COMPILED_LIMIT = 10_000


def affinity_terms(namespace: str, affinity: Affinity | None) -> AffinityTerms:
    """Compile a pod's terms; pods of one controller share the result. Raises SelectorError."""
    if affinity is None or (affinity.podAffinity is None and affinity.podAntiAffinity is None):
        return NO_TERMS
    key = (namespace, msgspec.json.encode((affinity.podAffinity, affinity.podAntiAffinity)))
    found = _compiled.get(key)
    if found is None:
        if len(_compiled) >= _COMPILED_LIMIT:
            _compiled.clear()
        found = _compiled[key] = _compile(namespace, affinity)
    return found


def _compile(namespace: str, affinity: Affinity) -> AffinityTerms:
    required, preferred = _terms_of(namespace, affinity.podAffinity)
    required_anti, preferred_anti = _terms_of(namespace, affinity.podAntiAffinity)
    carried = (
        *(CarriedTerm(TermKind.REQUIRED, term, 0) for term in required),
        *(CarriedTerm(TermKind.REQUIRED_ANTI, term, 0) for term in required_anti),
        *(CarriedTerm(TermKind.PREFERRED, term, weight) for term, weight in preferred),
        *(CarriedTerm(TermKind.PREFERRED_ANTI, term, weight) for term, weight in preferred_anti),
    )
    return AffinityTerms(required, required_anti, preferred, preferred_anti, carried)


def _terms_of(namespace: str, affinity: PodAffinity | None) -> tuple[tuple[Term, ...], tuple[WeightedTerm, ...]]:
    if affinity is None:
        return (), ()
    required = tuple(_term(namespace, t) for t in affinity.requiredDuringSchedulingIgnoredDuringExecution)
    preferred = tuple(
        WeightedTerm(_term(namespace, weighted.podAffinityTerm), weighted.weight)
        for weighted in affinity.preferredDuringSchedulingIgnoredDuringExecution
    )
    return required, preferred


def _term(namespace: str, term: PodAffinityTerm) -> Term:
    namespaces = frozenset(term.namespaces)
    if not namespaces and term.namespaceSelector is None:
        namespaces = frozenset((namespace,))
    return Term(
        namespaces,
        None if term.namespaceSelector is None else compile_selector(term.namespaceSelector),
        compile_selector(term.labelSelector),
        term.topologyKey,
    )
