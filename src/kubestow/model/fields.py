"""Field selectors, such as `spec.nodeName=,status.phase!=Failed`: equality of a few fields, all of which must hold."""

import re
from collections.abc import Callable
from typing import NamedTuple

from kubestow.model.labels import SelectorError
from kubestow.model.pod import Pod

POD_FIELDS: dict[str, Callable[[Pod], str]] = {
    "metadata.name": lambda pod: pod.metadata.name,
    "metadata.namespace": lambda pod: pod.metadata.namespace,
    "spec.nodeName": lambda pod: pod.spec.nodeName,
    "spec.restartPolicy": lambda pod: pod.spec.restartPolicy,
    "spec.schedulerName": lambda pod: pod.spec.schedulerName,
    "spec.hostNetwork": lambda pod: "true" if pod.spec.hostNetwork else "false",
    "status.phase": lambda pod: pod.status.phase,
    "status.nominatedNodeName": lambda pod: pod.status.nominatedNodeName,
}
"""The fields that pods are selected by, and how to read them."""

# A backslash makes the character after it part of the value.
_TERM = re.compile(r"(?:[^\\,]|\\.?)+", re.DOTALL)
_OPERATOR = re.compile(r"!=|==|=")
_VALUE = re.compile(r"(?:[^\\,=]|\\[\\,=])*", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"[\\,=]")


class FieldTerm(NamedTuple):
    """One field that must, or must not, have a value."""

    field: str
    value: str
    equal: bool

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{_SPECIAL.sub(lambda found: chr(92) + found[0], self.value)}"


class FieldSelector(NamedTuple):
    """Terms that must all hold; without any it selects everything."""

    terms: tuple[FieldTerm, ...]

    def matches(self, read: Callable[[str], str]) -> bool:
        """Whether an object is selected; `read` returns the value of one of its fields."""
        return all((read(term.field) == term.value) is term.equal for term in self.terms)

    def matches_pod(self, pod: Pod) -> bool:
        """Whether a pod is selected; the selector is one that `parse_pod_fields` returned."""
        return all((POD_FIELDS[term.field](pod) == term.value) is term.equal for term in self.terms)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def parse_fields(text: str) -> FieldSelector:
    """The field selector of a query, on whatever fields; raises SelectorError."""
    return FieldSelector(tuple(_parse_term(text, term) for term in sorted(_TERM.findall(text))))


def parse_pod_fields(text: str) -> FieldSelector:
    """A field selector on pods; raises SelectorError for fields that pods are not selected by."""
    selector = parse_fields(text)
    for term in selector.terms:
        if term.field not in POD_FIELDS:
            known = ", ".join(sorted(POD_FIELDS))
            raise SelectorError(f"field selector {text!r}: {term.field!r} is not supported for pods; known are {known}")
    return selector


def _parse_term(text: str, term: str) -> FieldTerm:
    operator = _OPERATOR.search(term)
    if operator is None:
        raise SelectorError(f"field selector {text!r}: {term!r} has none of the operators = == !=")
    value = term[operator.end() :]
    if not _VALUE.fullmatch(value):
        raise SelectorError(
            f"field selector {text!r}: in {value!r} a backslash may stand before another one, a comma or an equals "
            "sign, and only there, and those must have one"
        )
    return FieldTerm(term[: operator.start()], _ESCAPE.sub(r"\1", value), operator[0] != "!=")
