"""Node selectors: the nodes on which a pod, a volume or a device may be used.

A node selector is a list of terms, one of which must match; a term is a list of requirements on labels and on the
node's name, all of which must hold. A term without requirements matches no node. An invalid term matches no node
either, and is an error only if no other term matches: `errors` lists its problems for callers that reject it.

The requirements are public (`terms`), so that an evaluator can check all nodes column by column.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from kubestow.api.label_syntax import aggregate, invalid, unsupported
from kubestow.api.labels import (
    API_OPERATORS,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    requirement_problems,
    selector_from_set,
)
from kubestow.api.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubestow.api.pod import Pod, PreferredSchedulingTerm

NODE_NAME_FIELD = "metadata.name"

_LABEL_OPERATORS = {**API_OPERATORS, "Gt": Operator.GREATER, "Lt": Operator.LESS}
_FIELD_OPERATORS = {"In": Operator.EQUALS, "NotIn": Operator.NOT_EQUALS}


class NodeTerm(msgspec.Struct, frozen=True):
    """Requirements on a node, all of which must hold."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    """Requirements on the node's fields, of which there is one: `metadata.name`."""
    errors: tuple[str, ...] = ()
    """Problems of an invalid term, which matches no node."""

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name meets the term."""
        if self.errors:
            return False
        for requirement in self.labels:
            if not requirement.matches(labels):
                return False
        return not self.fields or not name or all(field.matches({NODE_NAME_FIELD: name}) for field in self.fields)


class NodeTerms(msgspec.Struct, frozen=True):
    """Terms, one of which must match."""

    terms: tuple[NodeTerm, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """The problems of all terms."""
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node meets one of the terms."""
        return any(term.matches(labels, name) for term in self.terms)

    def checked(self) -> "NodeTerms":
        """Return the terms. Raises SelectorError if one is invalid."""
        if errors := self.errors:
            raise SelectorError(aggregate(errors))
        return self


class PreferredTerm(msgspec.Struct, frozen=True):
    """A term and the weight that it adds to the score of a node that meets it."""

    weight: int
    term: NodeTerm


class RequiredNodeAffinity(msgspec.Struct, frozen=True):
    """The nodes that a pod accepts: with all labels of its nodeSelector, and one term of its required node affinity."""

    selector: Selector | None
    terms: NodeTerms | None

    @property
    def is_everything(self) -> bool:
        """Whether the pod accepts any node."""
        return self.selector is None and self.terms is None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether the pod may run on a node with these labels and this name."""
        if self.selector is not None and not self.selector.matches(labels):
            return False
        return self.terms is None or self.terms.matches(labels, name)


_NO_AFFINITY = RequiredNodeAffinity(None, None)


def compile_node_selector(selector: NodeSelector, path: str = "") -> NodeTerms:
    """Compile a node selector, invalid terms included; `path` is its field, for messages."""
    below = f"{path}.nodeSelectorTerms" if path else "nodeSelectorTerms"
    return NodeTerms(
        tuple(
            compile_term(term, f"{below}[{i}]")
            for i, term in enumerate(selector.nodeSelectorTerms)
            if term.matchExpressions or term.matchFields
        )
    )


def compile_preferred(terms: Sequence[PreferredSchedulingTerm], path: str = "") -> tuple[PreferredTerm, ...]:
    """Compile the preferred terms that have a weight and a requirement. Raises SelectorError."""
    compiled = tuple(
        PreferredTerm(preferred.weight, compile_term(preferred.preference, f"{path}[{i}]"))
        for i, preferred in enumerate(terms)
        if preferred.weight and (preferred.preference.matchExpressions or preferred.preference.matchFields)
    )
    errors = [error for preferred in compiled for error in preferred.term.errors]
    if errors:
        raise SelectorError(aggregate(errors))
    return compiled


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Compile the nodeSelector and the required node affinity of a pod."""
    spec = pod.spec
    required = None
    if spec.affinity is not None and spec.affinity.nodeAffinity is not None:
        required = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    if required is None and not spec.nodeSelector:
        return _NO_AFFINITY
    return _required_affinity(tuple(spec.nodeSelector.items()), required)


@lru_cache(maxsize=1024)
def _required_affinity(labels: tuple[tuple[str, str], ...], required: NodeSelector | None) -> RequiredNodeAffinity:
    """Compile once for all pods of a controller."""
    return RequiredNodeAffinity(
        selector_from_set(dict(labels)) if labels else None,
        compile_node_selector(required) if required is not None else None,
    )


def compile_term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    """Compile a term, which may be invalid; `path` is its field, for messages."""
    errors: list[str] = []
    labels = tuple(
        _label_requirement(expression, f"{path}.matchExpressions[{i}]", errors)
        for i, expression in enumerate(term.matchExpressions)
    )
    fields = tuple(
        _field_requirement(expression, f"{path}.matchFields[{i}]", errors)
        for i, expression in enumerate(term.matchFields)
    )
    if errors:
        return NodeTerm(errors=tuple(errors))
    return NodeTerm(tuple(r for r in labels if r), tuple(r for r in fields if r))


def _label_requirement(expression: NodeSelectorRequirement, path: str, errors: list[str]) -> Requirement | None:
    operator = _LABEL_OPERATORS.get(expression.operator)
    if operator is None:
        errors.append(unsupported(f"{path}.operator", expression.operator, list(_LABEL_OPERATORS)))
        return None
    problems = requirement_problems(expression.key, operator, expression.values, path)
    errors += problems
    return None if problems else Requirement(expression.key, operator, expression.values)


def _field_requirement(expression: NodeSelectorRequirement, path: str, errors: list[str]) -> Requirement | None:
    operator = _FIELD_OPERATORS.get(expression.operator)
    if operator is None:
        errors.append(unsupported(f"{path}.operator", expression.operator, list(_FIELD_OPERATORS)))
        return None
    if len(expression.values) != 1:
        errors.append(invalid(f"{path}.values", expression.values, "must have one element"))
        return None
    return Requirement(expression.key, operator, expression.values)
