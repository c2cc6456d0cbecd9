"""Functions for texts: conversions, the string extension, formatting, regular expressions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.cel.values import Uint
from support.cel.expressions import compile_error, evaluate, failure, late


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("int('42')", 42),
        ("int('-9223372036854775808')", -(2**63)),
        ("int('+7')", 7),
        ("int(4.9)", 4),
        ("int(-4.9)", -4),
        ("int(7u)", 7),
        ("int(7)", 7),
        ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
        ("int(duration('2s'))", 2 * 10**9),
        ("uint('42')", Uint(42)),
        ("uint(4.9)", Uint(4)),
        ("uint(7)", Uint(7)),
        ("double('1.5')", 1.5),
        ("double('1e3')", 1000.0),
        ("double('-.5')", -0.5),
        ("double('0x1p-2')", 0.25),
        ("double('Infinity')", math.inf),
        ("double('-inf')", -math.inf),
        ("double(3)", 3.0),
        ("double(3u)", 3.0),
        ("bool('true')", True),
        ("bool('F')", False),
        ("bool(true)", True),
        ("bytes('é')", b"\xc3\xa9"),
        ("bytes(b'a')", b"a"),
        ("string(b'a')", "a"),
        ("string(true)", "true"),
        ("string(-5)", "-5"),
        ("string(5u)", "5"),
        ("string('a')", "a"),
        ("string(1.5)", "1.5"),
        ("string(2.0)", "2"),
        ("string(100000.0)", "100000"),
        ("string(1234567.0)", "1.234567e+06"),
        ("string(-1.5e-7)", "-1.5e-07"),
        ("string(0.0001)", "0.0001"),
        ("string(1e300)", "1e+300"),
        ("string(double('NaN'))", "NaN"),
        ("string(1.0 / 0.0)", "+Inf"),
        ("string(-1.0 / 0.0)", "-Inf"),
        ("string(0.0)", "0"),
        ("dyn(1)", 1),
    ],
)
def test_conversions(source: str, value: object) -> None:
    """Numbers are parsed and formatted like in Go."""
    result = evaluate(source)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int('')", "type conversion error from 'string' to 'int'"),
        ("int('1.5')", "type conversion error from 'string' to 'int'"),
        ("int(' 1')", "type conversion error from 'string' to 'int'"),
        ("int('1_0')", "type conversion error from 'string' to 'int'"),
        ("int('9223372036854775808')", "type conversion error from 'string' to 'int'"),
        ("int(9223372036854775808u)", "integer overflow"),
        ("int(1e19)", "integer overflow"),
        ("int(double('NaN'))", "integer overflow"),
        ("uint('-1')", "type conversion error from 'string' to 'uint'"),
        ("uint('18446744073709551616')", "type conversion error from 'string' to 'uint'"),
        ("uint(-1)", "unsigned integer overflow"),
        ("uint(1e20)", "unsigned integer overflow"),
        ("double('abc')", "type conversion error from 'string' to 'double'"),
        ("double('1e999')", "type conversion error from 'string' to 'double'"),
        ("double('0x1p9999')", "type conversion error from 'string' to 'double'"),
        ("double('1x')", "type conversion error from 'string' to 'double'"),
        ("bool('yes')", "type conversion error from 'string' to 'bool'"),
        ("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("int(dyn(null))", "no such overload: int(null_type)"),
        ("string(dyn([1]))", "no such overload: string(list)"),
    ],
)
def test_conversions_that_fail(source: str, message: str) -> None:
    """Invalid and too large numbers; for a literal, the error is raised at compile time."""
    assert failure(late(source)) == message
    assert compile_error(source) == f"program instantiation failed: {message}"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_round_trips(number: float) -> None:
    """string and double are inverse."""
    assert evaluate("double(string(x)) == x", x=number) is True


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'abc'.charAt(1)", "b"),
        ("'abc'.charAt(3)", ""),
        ("'añb'.charAt(1)", "ñ"),
        ("'abcabc'.indexOf('c')", 2),
        ("'abcabc'.indexOf('c', 3)", 5),
        ("'abc'.indexOf('x')", -1),
        ("'abc'.indexOf('')", 0),
        ("'abc'.indexOf('', 2)", 2),
        ("'abc'.indexOf('a', 9)", -1),
        ("'abcabc'.lastIndexOf('c')", 5),
        ("'abcabc'.lastIndexOf('c', 4)", 2),
        ("'abcabc'.lastIndexOf('abc', 5)", 3),
        ("'abc'.lastIndexOf('')", 3),
        ("'abc'.lastIndexOf('x')", -1),
        ("'abc'.lastIndexOf('a', 9)", -1),
        ("'AÄb'.lowerAscii()", "aÄb"),
        ("'aäB'.upperAscii()", "AäB"),
        ("'ABC'.lowerAscii()", "abc"),
        ("'abc'.upperAscii()", "ABC"),
        ("'aaa'.replace('a', 'b')", "bbb"),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'aaa'.replace('a', 'b', 0)", "aaa"),
        ("'aaa'.replace('a', 'b', -5)", "bbb"),
        ("'ab'.replace('', '-')", "-a-b-"),
        ("'a,b,c'.split(',')", ["a", "b", "c"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'a,b'.split(',', 0)", []),
        ("'a,b'.split(',', -1)", ["a", "b"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("''.split(',')", [""]),
        ("'abc'.substring(1)", "bc"),
        ("'abc'.substring(1, 2)", "b"),
        ("'abc'.substring(3)", ""),
        ("' \\t\\u3000a \\n'.trim()", "a"),
        ("'\\u001ca'.trim()", "\x1ca"),
        ("['a', 'b'].join()", "ab"),
        ("['a', 'b'].join('-')", "a-b"),
        ("[].join('-')", ""),
        (r"""strings.quote('a"\n\t\\')""", r'"a\"\n\t\\"'),
        ("'abc'.contains('b')", True),
        ("'abc'.startsWith('ab')", True),
        ("'abc'.endsWith('ab')", False),
        ("size('añb')", 3),
        ("'añb'.size()", 3),
        ("size(b'ab')", 2),
    ],
)
def test_texts(source: str, value: object) -> None:
    """Positions are in characters."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'abc'.charAt(4)", "index out of range: 4"),
        ("'abc'.charAt(-1)", "index out of range: -1"),
        ("'abc'.indexOf('a', -1)", "index out of range: -1"),
        ("'abc'.lastIndexOf('a', -1)", "index out of range: -1"),
        ("'abc'.substring(4)", "index out of range: 4"),
        ("'abc'.substring(-1)", "index out of range: -1"),
        ("'abc'.substring(0, 4)", "index out of range: 4"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("[dyn('a'), dyn(1)].join()", "join: invalid input: 1"),
    ],
)
def test_positions_out_of_range(source: str, message: str) -> None:
    """Messages are those of cel-go."""
    assert failure(source) == message


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'%s and %s'.format(['a', 'b'])", "a and b"),
        ("'%s-%d'.format(['a', 1])", "a-1"),
        ("'%d%%'.format([5])", "5%"),
        ("'%d'.format([5u])", "5"),
        ("'%s'.format([1.5])", "1.5"),
        ("'%s'.format([null])", "null"),
        ("'%s'.format([true])", "true"),
        ("'%s'.format([b'a'])", "a"),
        ("'%s'.format([int])", "int"),
        ("'%s'.format([duration('90s')])", "90s"),
        ("'%s'.format([timestamp('2020-01-01T00:00:00Z')])", "2020-01-01T00:00:00Z"),
        ("'%s'.format([[1, 2]])", "[1, 2]"),
        ("'%s'.format([['a', 'b']])", '["a", "b"]'),
        ("'%s'.format([{'b': 1.5, 'a': 2.0}])", '{"a":2.000000, "b":1.500000}'),
        ("'%s'.format([[duration('1s')]])", '[duration("1s")]'),
        ("'%s'.format([[timestamp(0)]])", '[timestamp("1970-01-01T00:00:00Z")]'),
        ("'%s'.format([[b'a']])", '[b"a"]'),
        ("'%s'.format([[int]])", "[int]"),
        ("'%s'.format([[null]])", "[null]"),
        ("'%s'.format([[1.0 / 0.0]])", '["+Inf"]'),
        ("'%f'.format([2.71828])", "2.718280"),
        ("'%.2f'.format([1234.567])", "1,234.57"),
        ("'%f'.format(['NaN'])", "NaN"),
        ("'%f'.format(['Infinity'])", "∞"),
        ("'%e'.format([1052.032911275])", "1.052033\u202f\u00d7\u202f10⁰³"),
        ("'%e'.format(['-Infinity'])", "-∞"),
        ("'%b %b %b'.format([dyn(5), dyn(5u), dyn(true)])", "101 101 1"),
        ("'%o'.format([8])", "10"),
        ("'%x %X'.format([30, 30])", "1e 1E"),
        ("'%x %x'.format([dyn('hi'), dyn(b'\\xff')])", "6869 ff"),
        ("''.format([])", ""),
    ],
)
def test_formatting(source: str, value: str) -> None:
    """The output is that of cel-go's strings extension, version 2, in the locale en_US."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("'%s'.format([])", "index 0 out of range"),
        ("'%'.format([1])", "unexpected end of string"),
        ("'%q'.format([1])", 'could not parse formatting clause: unrecognized formatting clause "q"'),
        ("'%5d'.format([1])", 'could not parse formatting clause: unrecognized formatting clause "5"'),
        ("'%.f'.format([1.0])", "could not parse formatting clause: error while parsing precision: error while"),
        ("'%.2'.format([1.0])", "could not parse formatting clause: error while parsing precision: could not find"),
        ("'%.999999f'.format([1.0])", "could not parse formatting clause: error while parsing precision"),
        (
            "'%d'.format(['a'])",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%f'.format([1])", "error during formatting: fixed-point clause can only be used on doubles, was given int"),
        ("'%e'.format([1])", "error during formatting: scientific clause can only be used on doubles, was given int"),
        ("'%b'.format(['a'])", "binary clause can only be used on integers and bools, was given string"),
        ("'%o'.format(['a'])", "octal clause can only be used on integers, was given string"),
        ("'%x'.format([1.0])", "hex clause can only be used on integers, byte buffers, and strings, was given double"),
        (
            "'%s'.format([quantity('1')])",
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps",
        ),
        ("'%s'.format([[quantity('1')]])", "no formatting function for kubernetes.Quantity"),
        ("'%s'.format([{dyn(1.5): 1}])", "no formatting function for map key of type double"),
    ],
)
def test_formatting_that_fails(source: str, message: str) -> None:
    """An invalid clause, and a value of the wrong type for a clause."""
    assert message in failure(source)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'abc'.matches('^a.c$')", True),
        ("'xabcx'.matches('abc')", True),
        ("matches('abc', 'b')", True),
        ("'abc'.matches('B')", False),
        ("'ABC'.matches('(?i)b')", True),
        ("'é'.matches('^.$')", True),
        (r"'a1'.matches('^[[:alpha:]]\\d$')", True),
        (r"'٣'.matches('\\d')", False),
        (r"'é'.matches('\\pL')", True),
        ("'aaa'.matches('^(a|aa)+$')", True),
        ("'123'.find('[0-9]+')", "123"),
        ("'abc 123'.find('[0-9]+')", "123"),
        ("'abc'.find('[0-9]+')", ""),
        ("'1 22 333'.findAll('[0-9]+')", ["1", "22", "333"]),
        ("'1 22 333'.findAll('[0-9]+', 2)", ["1", "22"]),
        ("'1 22 333'.findAll('[0-9]+', 0)", []),
        ("'axxb'.findAll('x*')", ["", "xx", ""]),
        ("'abc'.findAll('x')", []),
    ],
)
def test_regular_expressions(source: str, value: object) -> None:
    """The syntax is that of RE2; a match may be anywhere in the text."""
    assert evaluate(source) == value


@pytest.mark.parametrize("pattern", ["(", "a{1001}", r"(?=a)", r"(a)\\1", r"\\C", "*"])
def test_invalid_patterns(pattern: str) -> None:
    """RE2 has neither lookahead nor back-references; a pattern that is not constant is an error at run time."""
    assert failure("'a'.matches(p)", p=pattern.replace("\\\\", "\\")).startswith("error parsing regexp: ")
    assert failure(f"'a'.find('{pattern}' + '')").startswith("Illegal regex: error parsing regexp: ")
    assert failure(f"'a'.findAll('{pattern}' + '')").startswith("Illegal regex: error parsing regexp: ")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a(", "missing closing ): `a(`"),
        ("[", "missing closing ]: `[`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(?q)", "invalid or unsupported Perl syntax: `(?q`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("a\\\\", "trailing backslash at end of expression: ``"),
        ("[b-a]", "invalid character class range: `b-a`"),
    ],
)
def test_invalid_constant_patterns(pattern: str, problem: str) -> None:
    """They are reported when the expression is compiled, with Go's messages."""
    wanted = f"program instantiation failed: error parsing regexp: {problem}"
    assert compile_error(f"'a'.find('{pattern}')") == wanted
    assert compile_error(f"'a'.findAll('{pattern}', 1)") == wanted
    assert compile_error(f"'a'.matches(dyn('{pattern}'))") == wanted


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a+)+$", "(a|aa)+b", "(.*)*x"])
def test_patterns_that_are_slow_in_other_engines(pattern: str) -> None:
    """The time of RE2 is linear in the text."""
    assert evaluate("(x + '!').matches(p)", x="a" * 5_000, p=pattern) is False
