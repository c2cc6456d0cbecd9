"""Operators: arithmetic without overflow, comparison across types, absorption of errors, indexes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.cel import EvaluationError
from kubestow.api.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint
from support.cel.expressions import evaluate, failure

INTS = st.integers(INT_MIN, INT_MAX) | st.sampled_from([INT_MIN, INT_MIN + 1, -1, 0, 1, INT_MAX - 1, INT_MAX])
UINTS = st.integers(0, UINT_MAX) | st.sampled_from([0, 1, UINT_MAX - 1, UINT_MAX])
OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b)),
    "%": lambda a, b: int(math.copysign(1, a)) * (abs(a) % abs(b)),
}


def result_or_message(source: str) -> object:
    try:
        return evaluate(source)
    except EvaluationError as error:
        return str(error)


@given(left=INTS, right=INTS, operator=st.sampled_from(list(OPERATIONS)), dynamic=st.booleans())
def test_ints_are_exact_or_an_error(left: int, right: int, operator: str, dynamic: bool) -> None:
    """A result beyond 64 bits is an overflow, never another number."""
    wrapped = f"dyn({left})" if dynamic else f"({left})"
    result = result_or_message(f"{wrapped} {operator} ({right})")
    if operator in "/%" and right == 0:
        assert result == {"/": "division by zero", "%": "modulus by zero"}[operator]
        return
    expected = OPERATIONS[operator](left, right)
    if not INT_MIN <= expected <= INT_MAX or (operator == "%" and left == INT_MIN and right == -1):
        assert result == "integer overflow"
    else:
        assert result == expected


@given(left=UINTS, right=UINTS, operator=st.sampled_from(list(OPERATIONS)))
def test_uints_are_exact_or_an_error(left: int, right: int, operator: str) -> None:
    """A result beyond 64 bits or below 0 is an overflow."""
    result = result_or_message(f"{left}u {operator} {right}u")
    if operator in "/%" and right == 0:
        assert result == {"/": "division by zero", "%": "modulus by zero"}[operator]
        return
    expected = left // right if operator == "/" else OPERATIONS[operator](left, right)
    if 0 <= expected <= UINT_MAX:
        assert (result, type(result)) == (expected, Uint)
    else:
        assert result == "unsigned integer overflow"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1.5 + 2.0", 3.5),
        ("1.0 / 0.0", math.inf),
        ("-1.0 / 0.0", -math.inf),
        ("1.0 / -0.0", -math.inf),
        ("1e308 * 10.0", math.inf),
        ("-(2.5)", -2.5),
        ("'a' + 'b'", "ab"),
        ("b'a' + b'b'", b"ab"),
        ("[1] + [2]", [1, 2]),
        ("dyn([1]) + dyn(['a'])", [1, "a"]),
        ("-dyn(5)", -5),
        ("!dyn(true)", False),
    ],
)
def test_other_arithmetic(source: str, value: object) -> None:
    """Doubles follow IEEE 754; texts, bytes and lists are joined."""
    assert evaluate(source) == value


def test_not_a_number() -> None:
    """NaN equals nothing, and cannot be ordered."""
    assert math.isnan(evaluate("0.0 / 0.0"))
    assert evaluate("0.0 / 0.0 == 0.0 / 0.0") is False
    assert evaluate("[0.0 / 0.0] == [0.0 / 0.0]") is False
    assert failure("0.0 / 0.0 < 1.0") == "NaN values cannot be ordered"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 == 1", True),
        ("dyn(1) == 1u", True),
        ("dyn(1) == 1.0", True),
        ("dyn(1u) != 1.5", True),
        ("dyn(true) == 1", False),
        ("dyn(1) == true", False),
        ("[dyn(true)] == [dyn(1)]", False),
        ("{'a': dyn(1)} == {'a': dyn(1.0)}", True),
        ("{'a': 1} == {'b': 1}", False),
        ("{true: 1} == dyn({1: 1})", False),
        ("[1, 2] == [1, 2]", True),
        ("[1] == [1, 2]", False),
        ("'1' == dyn(1)", False),
        ("null == dyn(null)", True),
        ("dyn(1) == null", False),
        ("b'a' == dyn('a')", False),
        ("type(1) == int", True),
        ("type(1) == type(1.0)", False),
        ("type(type) == type", True),
        ("dyn(semver('1.0.0')) != 'x'", True),
        ("'x' == dyn(semver('1.0.0'))", False),
        ("optional.of(1) == optional.of(1)", True),
        ("optional.of(1) == optional.none()", False),
    ],
)
def test_equality(source: str, value: bool) -> None:
    """Numbers are equal across types, a bool is not a number, other values are equal within their type."""
    assert evaluate(source) is value


def test_kubernetes_values_are_not_comparable_with_other_types() -> None:
    """As in cel-go: an error in `==`, a difference in `!=`."""
    assert failure("dyn(semver('1.0.0')) == '1.0.0'") == "no such overload"
    assert failure("dyn(quantity('1')) == 1") == "no such overload"
    assert evaluate("dyn(semver('1.0.0')) == null") is False


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 < 2", True),
        ("1 < 1u", False),
        ("1u <= 1.0", True),
        ("dyn(-1) < dyn(0u)", True),
        ("1.5 > 1", True),
        ("'a' < 'b'", True),
        ("'a' >= '\U0001f600'", False),
        ("b'a' <= b'a'", True),
        ("false < true", True),
        ("dyn('b') > dyn('a')", True),
        ("18446744073709551615u > 9223372036854775807", True),
    ],
)
def test_order(source: str, value: bool) -> None:
    """Numbers across types, texts by code point, false before true."""
    assert evaluate(source) is value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("dyn(1) + 'a'", "no such overload"),
        ("dyn(1) + 1u", "no such overload"),
        ("dyn(true) + dyn(true)", "no such overload: _+_"),
        ("dyn({}) < dyn({})", "no such overload: _<_"),
        ("dyn([1]) > 1", "no such overload: _>_"),
        ("dyn(semver('1.0.0')) > 1", "no such overload: _>_"),
        ("dyn('a') > 1", "no such overload"),
        ("dyn(true) < 1", "no such overload"),
        ("dyn('a') - dyn('b')", "no such overload"),
        ("-dyn('a')", "no such overload"),
        ("-dyn(true)", "no such overload"),
        ("-dyn([1])", "no such overload: -_"),
        ("!dyn(1)", "no such overload"),
        ("size(dyn(1))", "no such overload: size"),
        ("dyn(1).size()", "no such overload: size"),
        ("dyn(1).contains('a')", "no such overload"),
        ("dyn(1).matches('a')", "no such overload: matches"),
        ("dyn('a').charAt(dyn('a'))", "no such overload: charAt(string, string)"),
        ("1 in dyn(1)", "no such overload"),
        ("dyn(1) ? 1 : 2", "no such overload"),
    ],
)
def test_operands_of_the_wrong_type_are_an_error(source: str, message: str) -> None:
    """Messages are those of cel-go, which depend on whether the left operand supports the operator."""
    assert failure(source) == message


ERROR = "(1 / 0 == 0)"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (f"false && {ERROR}", False),
        (f"{ERROR} && false", False),
        (f"{ERROR} && true && false", False),
        (f"true || {ERROR}", True),
        (f"{ERROR} || true", True),
        (f"{ERROR} || {ERROR} || true", True),
        (f"!({ERROR} && false)", True),
        (f"({ERROR} && false) || true", True),
        (f"({ERROR} || true) && !({ERROR} && false)", True),
        (f"[1, 2].exists(x, {ERROR} || true)", True),
        ("dyn(1) || true", True),
        ("false && dyn('x')", False),
    ],
)
def test_a_term_absorbs_an_error_in_another(source: str, value: bool) -> None:
    """`false` determines `&&` and `true` determines `||`, on either side of an error."""
    assert evaluate(source) is value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"{ERROR} && true", "division by zero"),
        (f"true && {ERROR}", "division by zero"),
        (f"false || {ERROR}", "division by zero"),
        (f"{ERROR} || 1 % 0 == 0", "division by zero"),
        ("true && dyn(1)", "no such overload"),
        ("dyn(1) || false", "no such overload"),
        (f"{ERROR} ? 1 : 2", "division by zero"),
        (f"[{ERROR}].size() == 0", "division by zero"),
    ],
)
def test_the_first_error_is_raised(source: str, message: str) -> None:
    """Nothing else absorbs errors."""
    assert failure(source) == message


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1, 2][1]", 2),
        ("[1, 2][dyn(1.0)]", 2),
        ("[1, 2][dyn(1u)]", 2),
        ("{'a': 1}['a']", 1),
        ("{'a': 1}.a", 1),
        ("{1: 'x'}[1]", "x"),
        ("dyn({1: 'x'})[1u]", "x"),
        ("dyn({1: 'x'})[1.0]", "x"),
        ("{true: 'x'}[true]", "x"),
        ("2 in [1, 2]", True),
        ("'a' in {'a': 1}", True),
        ("1 in dyn({1u: 1})", True),
        ("dyn(1.0) in [1, 2]", True),
        ("dyn(true) in [1]", False),
        ("dyn([1]) in [[1]]", True),
        ("dyn(true) in {1: 1}", False),
        ("dyn([1]) in {1: 1}", False),
        ("'x' in ['a', 'b']", False),
        ("dyn(type(1)) in ['int']", False),
        ("[[dyn(1)], [dyn('a')]].all(x, x.all(y, y == 1 || y == 'a'))", True),
        ("dyn(1) in ['a', 'b']", False),
        ("has({'a': 1}.a)", True),
        ("has({'a': 1}.b)", False),
        ("has({'a': {'b': 1}}.a.b)", True),
        ("1 / 0 in []", False),
    ],
)
def test_indexes_fields_and_membership(source: str, value: object) -> None:
    """Keys and indexes are found by any number that equals them."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[1][1]", "index out of bounds: 1"),
        ("[1][-1]", "index out of bounds: -1"),
        ("dyn([1])['a']", "unsupported index type 'string' in list"),
        ("dyn([1])[0.5]", "unsupported index value 0.5 in list"),
        ("{'a': 1}.b", "no such key: b"),
        ("{'a': 1}['b']", "no such key: b"),
        ("dyn({true: 1})[1]", "no such key: 1"),
        ("dyn({1: 1})[true]", "no such key: true"),
        ("{'a': 1}[dyn([1])]", "no such key: [...]"),
        ("dyn(1).a", "no such key: a"),
        ("dyn('a')[0]", "no such key: 0"),
        ("has(dyn({}).a.b)", "no such key: a"),
        ("{dyn([1]): 1}", "unsupported key type"),
    ],
)
def test_missing_items_are_an_error(source: str, message: str) -> None:
    """The message has the key or the index."""
    assert failure(source) == message
