"""Field selectors, such as `spec.nodeName=,status.phase!=Failed`: a list of (in)equalities, all of which must hold."""

import re
from collections.abc import Callable
from typing import NamedTuple

from kubestow.api.labels import SelectorError

# A backslash escapes the next character.
_TERM = re.compile(r"(?:[^\\,]|\\.?)+", re.DOTALL)
_OPERATOR = re.compile(r"!=|==|=")
_VALUE = re.compile(r"(?:[^\\,=]|\\[\\,=])*", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"[\\,=]")


class FieldTerm(NamedTuple):
    """A field that must, or must not, equal a value."""

    field: str
    value: str
    equal: bool

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{_SPECIAL.sub(lambda found: chr(92) + found[0], self.value)}"


class FieldSelector(NamedTuple):
    """Terms that must all hold; without terms it selects everything."""

    terms: tuple[FieldTerm, ...]

    def matches(self, read: Callable[[str], str]) -> bool:
        """Return whether an object is selected; `read` returns the value of one of its fields."""
        return all((read(term.field) == term.value) is term.equal for term in self.terms)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def parse_fields(text: str) -> FieldSelector:
    """Parse the field selector of a query; any field names are accepted. Raises SelectorError."""
    return FieldSelector(tuple(_parse_term(text, term) for term in sorted(_TERM.findall(text))))


def _parse_term(text: str, term: str) -> FieldTerm:
    operator = _OPERATOR.search(term)
    if operator is None:
        raise SelectorError(f"field selector {text!r}: {term!r} has none of the operators = == !=")
    value = term[operator.end() :]
    if not _VALUE.fullmatch(value):
        raise SelectorError(
            f"field selector {text!r}: in {value!r} each backslash, comma and equals sign must be escaped with a "
            "backslash, and no other character"
        )
    return FieldTerm(term[: operator.start()], _ESCAPE.sub(r"\1", value), operator[0] != "!=")
