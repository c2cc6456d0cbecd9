"""Label selectors: requirements on an object's labels, all of which must hold.

A selector is compiled once, from the API's LabelSelector, a map of labels, or the text of a query, and then matched
against many objects. Equality requirements, the most frequent in clusters, are checked first and without reading an
operator. Selectors are values: equal and hashable by content, so that counts can be kept per selector.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Final

from kubestow.api.label_syntax import aggregate, invalid, parse_int64
from kubestow.api.meta import LabelSelector
from kubestow.api.name_formats import LABEL_VALUE, key_problems


class SelectorError(ValueError):
    """A selector is invalid; the message names the field."""


class Operator(Enum):
    """The operator of a requirement; the value is its spelling in a query."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = "gt"
    LESS = "lt"


ONE_OF = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)
NONE_OF = (Operator.NOT_EQUALS, Operator.NOT_IN)
_SETS = (Operator.IN, Operator.NOT_IN)
_EXISTENCE = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_COMPARISONS = (Operator.GREATER, Operator.LESS)

API_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


class Requirement:
    """A requirement on one label. `values` are sorted, so that equal requirements are equal objects."""

    __slots__ = ("_hash", "bound", "key", "operator", "values")

    def __init__(self, key: str, operator: Operator, values: Iterable[str] = ()) -> None:
        self.key: Final = key
        self.operator: Final = operator
        self.values: Final = tuple(sorted(values))
        self.bound: Final = (parse_int64(self.values[0]) or 0) if operator in _COMPARISONS else 0
        """The number that Gt and Lt compare the label with."""
        self._hash = hash((key, operator, self.values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement."""
        operator = self.operator
        if operator in ONE_OF:
            return labels.get(self.key) in self.values
        if operator in NONE_OF:
            return labels.get(self.key) not in self.values
        if operator is Operator.EXISTS:
            return self.key in labels
        if operator is Operator.DOES_NOT_EXIST:
            return self.key not in labels
        number = parse_int64(labels.get(self.key, ""))
        if number is None:
            return False
        return number > self.bound if operator is Operator.GREATER else number < self.bound

    def __str__(self) -> str:
        operator, values = self.operator, ",".join(self.values)
        if operator is Operator.EXISTS:
            return self.key
        if operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if operator in _SETS:
            return f"{self.key} {operator.value} ({values})"
        sign = {Operator.GREATER: ">", Operator.LESS: "<"}.get(operator, operator.value)
        return f"{self.key}{sign}{values}"

    def __repr__(self) -> str:
        return f"<Requirement {self}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Requirement)
            and self.key == other.key
            and self.operator is other.operator
            and self.values == other.values
        )

    def __hash__(self) -> int:
        return self._hash


def requirement(key: str, operator: Operator, values: Sequence[str], path: str = "") -> Requirement:
    """Validate and return a requirement. Raises SelectorError, which names fields below `path`."""
    problems = requirement_problems(key, operator, values, path)
    if problems:
        raise SelectorError(aggregate(problems))
    return Requirement(key, operator, values)


def requirement_problems(key: str, operator: Operator, values: Sequence[str], path: str) -> list[str]:
    """Return the problems of a requirement; each names its field below `path`."""
    below = f"{path}." if path else ""
    problems = []
    if found := key_problems(key):
        problems.append(invalid(f"{below}key", key, "; ".join(found)))
    at = f"{below}values"
    if operator in _SETS:
        if not values:
            problems.append(invalid(at, values, "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in _EXISTENCE:
        if values:
            problems.append(invalid(at, values, "values set must be empty for exists and does not exist"))
    elif operator in _COMPARISONS:
        if len(values) != 1:
            problems.append(invalid(at, values, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for i, value in enumerate(values):
            if parse_int64(value) is None:
                problems.append(invalid(f"{at}[{i}]", value, "for 'Gt', 'Lt' operators, the value must be an integer"))
    elif len(values) != 1:
        problems.append(invalid(at, values, "exact-match compatibility requires one single value"))
    for i, value in enumerate(values):
        if found := LABEL_VALUE.problems(value):
            problems.append(invalid(f"{at}[{i}][{key}]", value, "; ".join(found)))
    return problems


class Selector:
    """Requirements that must all hold. Without requirements it selects everything; `NOTHING` selects nothing."""

    __slots__ = ("_equal", "_hash", "_others", "requirements", "selects_nothing")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selects_nothing: bool = False) -> None:
        self.requirements: Final = tuple(sorted(requirements, key=attrgetter("key")))
        self.selects_nothing: Final = selects_nothing
        exact = [r.operator in ONE_OF and len(r.values) == 1 for r in self.requirements]
        self._equal = tuple(
            (r.key, r.values[0]) for r, is_exact in zip(self.requirements, exact, strict=True) if is_exact
        )
        self._others = tuple(r for r, is_exact in zip(self.requirements, exact, strict=True) if not is_exact)
        self._hash = hash((self.requirements, selects_nothing))

    @property
    def is_everything(self) -> bool:
        """Whether the selector matches any labels."""
        return not self.requirements and not self.selects_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is selected."""
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        for other in self._others:
            if not other.matches(labels):
                return False
        return not self.selects_nothing

    def and_also(self, *requirements: Requirement) -> "Selector":
        """Return this selector with further requirements."""
        return self if self.selects_nothing else Selector((*self.requirements, *requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"<Selector {'NOTHING' if self.selects_nothing else str(self) or 'EVERYTHING'}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Selector)
            and self._hash == other._hash
            and self.requirements == other.requirements
            and self.selects_nothing == other.selects_nothing
        )

    def __hash__(self) -> int:
        return self._hash


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(selects_nothing=True)


def compile_selector(selector: LabelSelector | None) -> Selector:
    """Compile the API's selector; None selects nothing, an empty one everything. Raises SelectorError."""
    if selector is None:
        return NOTHING
    if not selector.matchLabels and not selector.matchExpressions:
        return EVERYTHING
    requirements = [requirement(key, Operator.EQUALS, (value,)) for key, value in selector.matchLabels.items()]
    for expression in selector.matchExpressions:
        operator = API_OPERATORS.get(expression.operator)
        if operator is None:
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(requirement(expression.key, operator, expression.values))
    return Selector(requirements)


def selector_from_set(labels: Mapping[str, str]) -> Selector:
    """Return the selector of objects with all these labels; unchecked, as for a Service's or a node's selector."""
    return Selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


_LEXEME = r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>]+))"
_QUERY_OPERATORS = {
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}
_END = ""


def parse_selector(text: str) -> Selector:
    """Parse the selector of a query such as `app=web,tier in (a,b),!debug`. Raises SelectorError."""
    return _QueryParser(text).selector()


class _QueryParser:
    """A recursive descent parser of query texts. A token is a sign or a word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = [sign or word for sign, word in re.findall(_LEXEME, text)]
        self.position = 0

    def selector(self) -> Selector:
        requirements: list[Requirement] = []
        while self.next_token() != _END:
            requirements.append(self.requirement())
            if self.next_token() == _END:
                break
            self.expect(",")
            if self.next_token() != "!" and not self.at_word():
                raise self.unexpected("a label key after ','")
        return Selector(requirements)

    def requirement(self) -> Requirement:
        negated = self.next_token() == "!"
        if negated:
            self.take()
        key = self.word("a label key or '!'")
        if self.next_token() in (_END, ","):
            return requirement(key, Operator.DOES_NOT_EXIST if negated else Operator.EXISTS, ())
        operator = _QUERY_OPERATORS.get(self.next_token())
        if operator is None or negated:
            raise self.unexpected(f"',' or the end after !{key}" if negated else "one of = == != in notin > <")
        self.take()
        values = self.value_set() if operator in _SETS else [self.exact_value()]
        return requirement(key, operator, values)

    def exact_value(self) -> str:
        return "" if self.next_token() in (_END, ",") else self.word("a value")

    def value_set(self) -> list[str]:
        self.expect("(")
        values = {self.take() if self.at_word() else ""}
        while self.next_token() != ")":
            self.expect(",")
            values.add(self.take() if self.at_word() else "")
        self.take()
        return sorted(values)

    def next_token(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else _END

    def at_word(self) -> bool:
        return self.next_token() != _END and self.next_token()[0] not in "=!(),<>"

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def word(self, expected: str) -> str:
        if not self.at_word():
            raise self.unexpected(expected)
        return self.take()

    def expect(self, token: str) -> None:
        if self.next_token() != token:
            raise self.unexpected(f"'{token}'")
        self.take()

    def unexpected(self, expected: str) -> SelectorError:
        found = self.next_token() or "the end"
        return SelectorError(f"label selector {self.text!r}: found '{found}', expected {expected}")
