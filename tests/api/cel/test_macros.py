"""Macros: loops over lists and maps with one variable or two, bindings, optional values."""

import pytest

from kubestow.api.cel.values import NONE, Optional
from support.cel.expressions import compile_error, evaluate, failure


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1, 2, 3].all(x, x > 0)", True),
        ("[1, 2, 3].all(x, x > 1)", False),
        ("[].all(x, x > 1)", True),
        ("[1, 2, 3].exists(x, x > 2)", True),
        ("[].exists(x, true)", False),
        ("[1, 2, 2].exists_one(x, x == 1)", True),
        ("[1, 2, 2].exists_one(x, x == 2)", False),
        ("[1, 2, 3].map(x, x * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2, 3].filter(x, x % 2 == 1)", [1, 3]),
        ("{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])", True),
        ("{'a': 1, 'b': 2}.exists(k, k == 'b')", True),
        ("{'a': 1, 'b': 2}.map(k, k + '!')", ["a!", "b!"]),
        ("{'a': 1, 'b': 2}.filter(k, k == 'b')", ["b"]),
        ("{'a': 1}.exists_one(k, true)", True),
        ("[[1], [2]].map(x, x.map(y, y + 1))", [[2], [3]]),
        ("[1, 2].map(x, [10, 20].map(y, x * y))", [[10, 20], [20, 40]]),
        ("[1].map(x, [2].map(x, x))", [[2]]),
        ("[1, 2].map(x, x).filter(x, x > 1).map(x, 'a')", ["a"]),
        ("[1, 2, 3].all(i, v, v == i + 1)", True),
        ("[1, 2, 3].exists(i, v, i == 2 && v == 3)", True),
        ("[1, 1].existsOne(i, v, i == v)", True),
        ("[1, 1].exists_one(i, v, v == 1)", False),
        ("{'a': 1}.all(k, v, k == 'a' && v == 1)", True),
        ("[5, 6].transformList(i, v, i + v)", [5, 7]),
        ("[5, 6].transformList(i, v, i > 0, v)", [6]),
        ("{'a': 1, 'b': 2}.transformList(k, v, k)", ["a", "b"]),
        ("[5, 6].transformMap(i, v, v * 2)", {0: 10, 1: 12}),
        ("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v)", {"b": 2}),
        ("{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, {v: k})", {"x": "a", "y": "b"}),
        ("{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, k == 'a', {v: k})", {"x": "a"}),
        ("[1].transformMapEntry(i, v, {})", {}),
        ("[3, 1, 2].sortBy(x, -x)", [3, 2, 1]),
        ("['bb', 'a'].sortBy(x, size(x))", ["a", "bb"]),
    ],
)
def test_loops(source: str, value: object) -> None:
    """Elements of lists, keys of maps; with two variables, indexes and elements, or keys and values."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1, 0].all(x, 1 / x == 1 && false)", False),
        ("[0, 2].all(x, 4 / x > 2)", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[1, 0].exists(x, 1 / x == 1)", True),
    ],
)
def test_quantifiers_absorb_errors_like_logical_operators(source: str, value: bool) -> None:
    """An element that determines the result absorbs the error of another."""
    assert evaluate(source) is value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[0, 1].all(x, 1 / x == 1)", "division by zero"),
        ("[0, 2].exists(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].exists_one(x, 1 / x == 1)", "division by zero"),
        ("[0].map(x, 1 / x)", "division by zero"),
        ("[0].filter(x, 1 / x == 1)", "division by zero"),
        ("[1].all(x, dyn(x))", "no such overload"),
        ("[1].filter(x, dyn(x))", "no such overload"),
        ("dyn(1).all(x, true)", "got 'types.Int', expected iterable type"),
        ("dyn('a').exists(x, true)", "got 'types.String', expected iterable type"),
        ("dyn(semver('1.0.0')).map(x, true)", "got 'cel.Semver', expected iterable type"),
        ("dyn(1.0).all(i, v, true)", "unsupported comprehension range type: types.Double"),
        ("[1, 1].transformMapEntry(i, v, {v: i})", "insert failed: key 1 already exists"),
        ("[1].transformMapEntry(i, v, dyn(1))", "no such overload"),
    ],
)
def test_errors_of_loops(source: str, message: str) -> None:
    """Errors in bodies, and invalid ranges."""
    assert failure(source) == message


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("cel.bind(x, 2, x * x)", 4),
        ("cel.bind(x, 2, cel.bind(y, x + 1, x * y))", 6),
        ("cel.bind(x, 1, cel.bind(x, x + 1, x))", 2),
        ("[1, 2].map(e, cel.bind(x, e * 10, [x].map(y, x + y)))", [[20], [40]]),
        ("cel.bind(x, 1 / 0, true)", True),
        ("cel.bind(x, 1 / 0, x == 1 || true)", True),
        ("cel.bind(x, [1, 2], x.exists(y, y in x))", True),
        ("cel.bind(x, 1 / 0, [1].exists(y, x == y || true))", True),
    ],
)
def test_bindings(source: str, value: object) -> None:
    """The error of a variable that is not read is ignored, as in cel-go."""
    assert evaluate(source) == value


def test_a_binding_without_value_is_an_error_where_it_is_used() -> None:
    """The error is the same at each use."""
    assert failure("cel.bind(x, 1 / 0, x == 1 || x == 2)") == "division by zero"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("optional.of(1).hasValue()", True),
        ("optional.none().hasValue()", False),
        ("optional.of(1).value()", 1),
        ("optional.of(1).orValue(2)", 1),
        ("optional.none().orValue(2)", 2),
        ("optional.none().or(optional.of(3)).value()", 3),
        ("optional.of(1).or(optional.of(1 / 0)).value()", 1),
        ("optional.of(1).orValue(1 / 0)", 1),
        ("optional.ofNonZeroValue(0).hasValue()", False),
        ("optional.ofNonZeroValue('').hasValue()", False),
        ("optional.ofNonZeroValue([]).hasValue()", False),
        ("optional.ofNonZeroValue(null).hasValue()", False),
        ("optional.ofNonZeroValue(duration('0s')).hasValue()", False),
        ("optional.ofNonZeroValue(5).value()", 5),
        ("{'a': 1}.?a.value()", 1),
        ("{'a': 1}.?b.hasValue()", False),
        ("{'a': 1}[?'b'].orValue(7)", 7),
        ("[1, 2][?1].value()", 2),
        ("[1, 2][?5].hasValue()", False),
        ("{'a': {'b': 1}}.?a.b.value()", 1),
        ("{'a': {'b': 1}}.?a.?c.orValue(2)", 2),
        ("{'a': {'b': dyn(1)}}.?x.b.c.hasValue()", False),
        ("{'a': [5]}.?a[0].value()", 5),
        ("has({'a': {}}.?a.b)", False),
        ("has({'a': {'b': 1}}.?a.b)", True),
        ("dyn(1).?a.hasValue()", False),
        ("[?optional.of(1), ?optional.none(), 3]", [1, 3]),
        ("{?'a': optional.of(1), ?'b': optional.none()}", {"a": 1}),
        ("optional.of(2).optMap(x, x * 2).value()", 4),
        ("optional.none().optMap(x, x * 2).hasValue()", False),
        ("optional.of({'a': 1}).optFlatMap(m, m.?a).value()", 1),
        ("optional.of({'a': 1}).optFlatMap(m, m.?b).hasValue()", False),
        ("[1, 2].first().value()", 1),
        ("[1, 2].last().value()", 2),
        ("[].first().hasValue()", False),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("[optional.of(1), optional.none()].unwrapOpt()", [1]),
        ("type(optional.none()) == optional_type", True),
        ("dyn(5).orValue(6)", 5),
    ],
)
def test_optional_values(source: str, value: object) -> None:
    """A chain is optional from its first optional part; unused values are not evaluated."""
    assert evaluate(source) == value


def test_optional_values_as_results() -> None:
    """An optional is a value."""
    assert evaluate("optional.none()") is NONE
    result = evaluate("optional.of(1)")
    assert isinstance(result, Optional)
    assert str(result) == "optional(1)"
    assert str(NONE) == "optional.none()"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("optional.none().value()", "optional.none() dereference"),
        ("[?dyn(1)]", "cannot initialize optional list element from non-optional value 1"),
        ("{?'a': dyn(1)}", "cannot initialize optional entry 'a' from non-optional value 1"),
        ("dyn([1]).unwrapOpt()", "value 1 is not optional"),
        ("dyn(1).hasValue()", "no such overload: hasValue(int)"),
    ],
)
def test_errors_of_optional_values(source: str, message: str) -> None:
    """Messages are those of cel-go."""
    assert failure(source) == message


def test_many_optional_steps_are_fast() -> None:
    """The time of compiling and evaluating a chain is linear in its length."""
    assert evaluate("optional.of(1)" + ".optMap(x, x + 1)" * 100 + ".value()") == 101


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "1.all(x, true)",
            "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("[1].exists(x, 'a')", "expected type 'bool' but found 'string'"),
        ("[1].filter(x, x)", "found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'"),
        ("[1].exists_one(x, x)", "found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        (
            "[1].transformMapEntry(i, v, 1)",
            "found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), int)'",
        ),
        ("[1].existsOne(x, true)", "undeclared reference to 'existsOne' (in container '')"),
        ("[1].map(x, y)", "undeclared reference to 'y' (in container '')"),
        ("[1].map(x, x) == [x]", "undeclared reference to 'x' (in container '')"),
        ("cel.bind(x, 1, y)", "undeclared reference to 'y' (in container '')"),
        ("optional.of(1).optMap(x, x + 'a')", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("[?1]", "expected type 'optional_type(int)' but found 'int'"),
    ],
)
def test_macros_are_type_checked(source: str, message: str) -> None:
    """Variables are declared inside only, conditions are bools."""
    assert message in compile_error(source)
