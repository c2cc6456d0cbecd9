"""The syntax of expressions: literals, escapes, precedence, and syntax errors."""

import pytest

from kubestow.api.cel import CompileError
from kubestow.api.cel.values import Uint
from support.cel.expressions import compile_error, evaluate


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("0x1F", 31),
        ("-0x10", -16),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("5u", Uint(5)),
        ("0xFFu", Uint(255)),
        ("18446744073709551615U", Uint(2**64 - 1)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-2.5E-1", -0.25),
        ("true", True),
        ("false", False),
        ("null", None),
        ("'it'", "it"),
        ('"it"', "it"),
        ("'''a 'quoted'\nline'''", "a 'quoted'\nline"),
        ('"""x"""', "x"),
        ('""', ""),
        (r'"\a\b\f\n\r\t\v\\\'\"\?\`"', "\a\b\f\n\r\t\v\\'\"?`"),
        (r'"\x41\X42\103\u00e9\U0001F600"', "ABC\u00e9\U0001f600"),
        (r'r"\n"', r"\n"),
        (r"R'''\x'''", r"\x"),
        ("b'abc'", b"abc"),
        ("B'\\xff\\377\u00e9'", b"\xff\xff\xc3\xa9"),
        (r'br"\x"', rb"\x"),
        ("'''a\r\nb'''", "a\nb"),
        ("1 // a comment\n + 2", 3),
        ("[1, 2, 3,]", [1, 2, 3]),
        ("[,]", []),
        ("{'a': 1,}", {"a": 1}),
        ("{,}", {}),
    ],
)
def test_a_literal_is_its_value(source: str, value: object) -> None:
    """Every kind of literal and every escape."""
    result = evaluate(source)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 - 2 - 1", 4),
        ("100 / 10 / 2", 5),
        ("7 % 4 * 2", 6),
        ("1 - -1", 2),
        ("1-1", 0),
        ("--1", 1),
        ("---1", -1),
        ("!!true", True),
        ("!true || true", True),
        ("1 + 1 == 2 && 2 < 3", True),
        ("true || false && false", True),
        ("1 in [1] && true", True),
        ("false ? 1 : true ? 2 : 3", 2),
        ("(true ? false : true) ? 1 : 2", 2),
        ("true || true ? 1 : 2", 1),
        ("-[1][0]", -1),
        ("!{'a': false}.a", True),
        ("{'a': {'b': [5]}}.a.b[0]", 5),
        (".size('abc')", 3),
    ],
)
def test_operators_bind_as_in_c(source: str, value: object) -> None:
    """Operators of equal precedence are applied from left to right."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 +",
        "(1",
        "[1",
        "{1}",
        "{'a' 1}",
        "a b",
        "1.",
        "a.5",
        "f(1,)",
        "f(,)",
        "'unclosed",
        "'\n'",
        r"'\q'",
        r"'\400'",
        r"'\x4'",
        "#",
        "a @ b",
        "&& true",
        "a.in",
        "a.true",
        "-!true",
        "?!",
        "true ? 1",
        "1 ? 2 : ",
        "\ufeff1",
        "'\\ud800'",
        "b'\\u0041'",
    ],
)
def test_syntax_errors_do_not_compile(source: str) -> None:
    """Each is a CompileError with a position."""
    assert compile_error(source).startswith("compilation failed: ERROR: <input>:")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("9223372036854775808", "1:1: invalid int literal"),
        ("-9223372036854775809", "1:2: invalid int literal"),
        ("18446744073709551616u", "1:1: invalid uint literal"),
        ("1e400", "1:1: invalid double literal"),
        (r"'\ud800'", "1:1: invalid unicode code point"),
        (r"b'\u0041'", "1:1: unable to unescape string"),
        ("for", "1:1: reserved identifier: for"),
        ("while(1)", "1:1: reserved identifier: while"),
        ("{}.`a`", "1:4: unsupported syntax: '`'"),
        ("Thing{a: 1}", "1:6: undeclared reference to 'Thing' (in container '')"),
        ("1 +", "1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true',"),
        ("[1", "1:3: Syntax error: mismatched input '<EOF>' expecting ']'"),
        ("1 1", "1:3: Syntax error: mismatched input '1' expecting <EOF>"),
        ("a.all(1, true)", "1:7: argument must be a simple name"),
        ("a.map(1, true)", "1:7: argument is not an identifier"),
        ("a.all(__result__, true)", "1:7: iteration variable overwrites accumulator variable"),
        ("a.all(x, x, true)", "1:10: duplicate variable name: x"),
        ("has(a)", "1:5: invalid argument to has() macro"),
        ("cel.bind(1, 2, 3)", "1:10: cel.bind() variable names must be simple identifiers"),
        ("a.optMap(1, 2)", "1:10: optMap() variable name must be a simple identifier"),
        ("'x'.sortBy(e, e)", "1:1: sortBy can only be applied to a list"),
    ],
)
def test_messages_are_those_of_cel_go(source: str, message: str) -> None:
    """Line, column and message are equal."""
    assert f"ERROR: <input>:{message}" in compile_error(source)


def test_the_message_marks_the_position_in_the_line() -> None:
    """The mark below the column is as wide as its character."""
    assert compile_error("true &&\n\t'é' == foo").split("\n") == [
        "compilation failed: ERROR: <input>:2:9: undeclared reference to 'foo' (in container '')",
        " |  'é' == foo",
        " | ..\uff0e.....^",
    ]


@pytest.mark.parametrize("name", ["package", "namespace", "as", "function"])
def test_reserved_words_may_name_fields(name: str) -> None:
    """They are reserved as variables only."""
    assert evaluate(f"{{'{name}': 1}}.{name}") == 1


def test_an_expression_of_more_than_10_kib_is_rejected() -> None:
    """The limit is in bytes."""
    assert evaluate("'" + "a" * 10_238 + "'") == "a" * 10_238
    with pytest.raises(CompileError, match="has 10241 bytes; at most 10240 are allowed"):
        evaluate("'" + "a" * 10_239 + "'")
    with pytest.raises(CompileError, match="bytes; at most 10240"):
        evaluate("'" + "é" * 6_000 + "'")
