"""Label selectors: conditions on an object's labels, all of which must hold.

A selector is compiled once, from the API's LabelSelector, a map of labels, or the text of a query, and then matched
against many objects. Equality conditions, the bulk of what clusters hold, are checked first and without looking at an
operator. Selectors are values: equal and hashable by content, so that counts can be kept per selector.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Final

from kubestow.api.label_syntax import aggregate, invalid, key_problems, parse_int64, value_problems
from kubestow.api.meta import LabelSelector


class SelectorError(ValueError):
    """A selector that means nothing; the message names the field."""


class Operator(Enum):
    """How a label is compared; the value is the operator's sign in a query."""

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
    """One condition on one label. `values` are sorted, so that equal conditions are equal objects."""

    __slots__ = ("_hash", "bound", "key", "operator", "values")

    def __init__(self, key: str, operator: Operator, values: Iterable[str] = ()) -> None:
        self.key: Final = key
        self.operator: Final = operator
        self.values: Final = tuple(sorted(values))
        self.bound: Final = (parse_int64(self.values[0]) or 0) if operator in _COMPARISONS else 0
        """What Gt and Lt compare with."""
        self._hash = hash((key, operator, self.values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet the condition."""
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
    """A checked requirement; raises SelectorError, naming fields below `path`."""
    problems = requirement_problems(key, operator, values, path)
    if problems:
        raise SelectorError(aggregate(problems))
    return Requirement(key, operator, values)


def requirement_problems(key: str, operator: Operator, values: Sequence[str], path: str) -> list[str]:
    """What is wrong with a condition, each problem naming its field below `path`."""
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
        if found := value_problems(value):
            problems.append(invalid(f"{at}[{i}][{key}]", value, "; ".join(found)))
    return problems


class Selector:
    """Requirements that must all hold. Without any it selects everything; `NOTHING` selects nothing."""

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
        """Whether it selects whatever it is given."""
        return not self.requirements and not self.selects_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        for condition in self._others:
            if not condition.matches(labels):
                return False
        return not self.selects_nothing

    def and_also(self, *requirements: Requirement) -> "Selector":
        """This selector with further conditions."""
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
    """The API's selector; None selects nothing, an empty one everything. Raises SelectorError."""
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
    """Selects objects that have all these labels; unchecked, as for a Service's or a node's selector."""
    return Selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())


_WORD = r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>]+))"
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
    """The selector of a query such as `app=web,tier in (a,b),!debug`; raises SelectorError."""
    return _Query(text).selector()


class _Query:
    """A reader of query texts: a list of tokens and a position. Signs and words are told apart by their spelling."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = [sign or word for sign, word in re.findall(_WORD, text)]
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

    def word(self, wanted: str) -> str:
        if not self.at_word():
            raise self.unexpected(wanted)
        return self.take()

    def expect(self, token: str) -> None:
        if self.next_token() != token:
            raise self.unexpected(f"'{token}'")
        self.take()

    def unexpected(self, wanted: str) -> SelectorError:
        found = self.next_token() or "the end"
        return SelectorError(f"label selector {self.text!r}: found '{found}', expected {wanted}")
