"""Limits: every expression that would take too long or is nested too deeply is an error."""

import pytest

from kubestow.api.cel import CelError, CompileError, EvaluationError
from support.cel.expressions import compiled, evaluate

TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
LONG = "'" + "a" * 900 + "'"
EXCEEDED = "operation cancelled: actual cost limit exceeded"


def nested(macro: str, depth: int, body: str) -> str:
    """Return nested calls of a macro, each over ten elements."""
    for level in range(depth):
        body = f"{TEN}.{macro}(x{level}, {body})"
    return body


def bound(first: str, step: str, steps: int, result: str) -> str:
    """Return nested bindings, in which `{v}` stands for the previous variable."""
    for number in range(steps, 0, -1):
        result = f"cel.bind(a{number}, {step.replace('{v}', f'a{number - 1}')}, {result})"
    return f"cel.bind(a0, {first}, {result})"


@pytest.mark.parametrize(
    "source",
    [
        nested("all", 7, "int('1'.find('[0-9]*')) < 100"),
        nested("exists", 7, "false"),
        nested("exists_one", 7, "false") + " == false",
        nested("map", 6, TEN) + ".size() == 1",
        "lists.range(90000).filter(x, true).size() == 1",
        "lists.range(500000).transformMap(i, v, v).size() == 1",
        "lists.range(9223372036854775807).size() == 1",
        "lists.range(300000).sort().size() == 1",
        "lists.range(300000).distinct().size() == 1",
        "sets.contains(lists.range(5000), lists.range(5000))",
        "lists.range(80000).sortBy(x, -x).size() == 1",
        bound("[1, 2]", "{v} + {v}", 40, "a40.size() == 1"),
        bound("'ab'", "{v} + {v}", 40, "a40.size() == 1"),
        bound("b'ab'", "{v} + {v}", 40, "a40.size() == 1"),
        bound("'ab'", "{v}.replace('', {v})", 20, "a20.size() == 1"),
        bound("['ab', 'cd']", "[{v}.join({v}.join()), {v}.join()]", 20, "a20.size() == 1"),
        bound("'ab'", "'%s%s'.format([{v}, {v}])", 40, "a40.size() == 1"),
        f"{LONG}.replace('a', {LONG}).replace('a', {LONG}).size() == 1",
        f"{LONG}.replace('', {LONG}).replace('', {LONG}).size() == 1",
        bound("[1, 2, 3, 4]", "[{v}, {v}, {v}, {v}]", 40, "dyn(a40) == dyn(a39)"),
        bound("[1, 2, 3, 4]", "[{v}, {v}, {v}, {v}]", 40, "dyn(a40) in [dyn(a40)]"),
        bound("[1, 2, 3, 4]", "[{v}, {v}, {v}, {v}]", 40, "dyn(a40).flatten(40).size() == 1"),
        bound("[1, 2, 3, 4]", "[{v}, {v}, {v}, {v}]", 40, "'%s'.format([dyn(a40)]).size() == 1"),
        bound("[1, 2, 3, 4]", "[{v}, {v}, {v}, {v}]", 40, "[a40, a40].distinct().size() == 1"),
        bound("[1, 2, 3, 4]", "[{v}, {v}, {v}, {v}]", 40, "[a40].indexOf(a40) == 0"),
        bound("[1, 2, 3, 4]", "[{v}, {v}, {v}, {v}]", 40, "sets.contains([a40], [a40])"),
        bound("{1: 2}", "{1: {v}, 2: {v}}", 40, "dyn(a40) == dyn(a39)"),
        bound("'ab'", "{v} + {v}", 17, nested("all", 3, "a17.startsWith('b') || true")),
        bound("'ab'", "{v} + {v}", 17, f"cel.bind(b, a17 + 'c', {nested('all', 3, 'a17 < b || a17 == b')})"),
        bound("'ab'", "{v} + {v}", 17, "a17.contains(a16 + 'c')"),
    ],
)
def test_expensive_expressions_exceed_the_budget(source: str) -> None:
    """Nested loops and values that double: the budget is spent before the work is done."""
    with pytest.raises(EvaluationError, match=EXCEEDED):
        compiled(source).evaluate()


def test_an_exceeded_budget_is_never_absorbed() -> None:
    """Unlike other errors."""
    with pytest.raises(EvaluationError, match=EXCEEDED):
        evaluate(f"({nested('all', 7, 'true')}) || true")
    with pytest.raises(EvaluationError, match=EXCEEDED):
        evaluate(f"[1].exists(y, {nested('all', 7, 'true')} || 1 / 0 == 0)")


def test_expressions_within_the_budget_are_evaluated() -> None:
    """Such as a hundred thousand rounds."""
    assert evaluate(nested("all", 5, "true")) is True
    assert evaluate("lists.range(10000).map(x, x * 2).sum()") == 99_990_000
    assert evaluate("lists.range(100000).exists(x, x == 99999)") is True


@pytest.mark.parametrize(
    "source",
    [
        "(" * 4_000 + "1" + ")" * 4_000,
        "[" * 4_000 + "]" * 4_000,
        "{1:" * 2_000 + "1" + "}" * 2_000,
        "!(" * 3_000 + "true" + ")" * 3_000,
        "-(" * 3_000 + "1" + ")" * 3_000,
        "dyn(" * 2_000 + "1" + ")" * 2_000,
        "true ? true : " * 700 + "true",
        "1" + "+1" * 4_000,
        "1" + "<1" * 4_000,
        "{}" + ".a" * 4_000,
        "[]" + "[0]" * 3_000,
        "''" + ".size()" * 1_000,
        "[1].map(x, " * 800 + "x" + ")" * 800,
        "has(" * 2_000,
        "(" * 10_000,
        "(((" + "1+(" * 3_000,
    ],
)
def test_deep_nesting_is_an_error_not_a_crash(source: str) -> None:
    """Parser, checker and generator have a limit."""
    with pytest.raises(CompileError):
        compiled(source)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("(" * 150 + "1" + ")" * 150, 1),
        ("!(" * 100 + "true" + ")" * 100, True),
        ("1" + "+1" * 249, 250),
        ("||".join(["false"] * 1_400), False),
        ("&&".join(["true"] * 1_400), True),
        ("!" * 10_000 + "true", True),
        ("[" + ",".join(["1"] * 4_900) + "].size()", 4_900),
        ("[1].map(x, " * 60 + "x" + ")" * 60 + ".size()", 1),
    ],
)
def test_long_expressions_compile(source: str, value: object) -> None:
    """As in cel-go: chains of `&&` and `||` are limited only by the length of the text."""
    assert evaluate(source) == value


def test_values_nested_too_deeply_are_an_error() -> None:
    """Values can be nested deeper than any expression; comparing them raises an error."""
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]
    other: list[object] = []
    for _ in range(50_000):
        other = [other]
    with pytest.raises(EvaluationError, match="nested too deeply"):
        compiled("x == y", x=None, y=None).evaluate(deep, other)


@pytest.mark.parametrize("size", [2_000, 60_000])
def test_conversions_of_long_texts_are_fast(size: int) -> None:
    """The time of each conversion is linear in its text."""
    functions = ["int", "uint", "double", "isQuantity", "isSemver", "isIP", "isCIDR", "isURL", "duration", "timestamp"]
    formats = ["dns1123Subdomain", "qualifiedName", "labelValue", "uuid", "byte", "datetime", "uri"]
    sources = [f"{name}(x)" for name in functions] + [f"format.{name}().validate(x)" for name in formats]
    endings = ["0" * size + "!", "1" * size, "1." * size, "1h" * size, "a:" * size, "a-" * size + "!", "A/" * size]
    for source in sources:
        for text in endings:
            try:
                compiled(source, x=None).evaluate(text)
            except CelError:
                pass
