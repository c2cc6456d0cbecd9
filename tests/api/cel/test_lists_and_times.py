"""Functions for lists, sets, timestamps and durations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api.cel.values import Uint
from support.cel.expressions import evaluate, failure, late


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("[1, 2, 2].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("['a', 'b'].isSorted()", True),
        ("[].isSorted()", True),
        ("[1, 2].sum()", 3),
        ("[1u, 2u].sum()", Uint(3)),
        ("[0.5, 1.5].sum()", 2.0),
        ("[duration('1s'), duration('1m')].sum() == duration('61s')", True),
        ("dyn([0.5, 1.5]).sum()", 2.0),
        ("([1].filter(x, false) + dyn([0.5])).sum()", 0.5),
        ("dyn([]).sum()", 0),
        ("[3, 1, 2].min()", 1),
        ("[3, 1, 2].max()", 3),
        ("['b', 'a'].min()", "a"),
        ("[timestamp(1), timestamp(0)].max() == timestamp(1)", True),
        ("[1, 2, 1].indexOf(1)", 0),
        ("[1, 2, 1].lastIndexOf(1)", 2),
        ("[1].indexOf(2)", -1),
        ("[1].lastIndexOf(2)", -1),
        ("[semver('1.0.0')].indexOf(semver('1.0.0'))", 0),
        ("[1, 2, 3, 4].slice(1, 3)", [2, 3]),
        ("[1].slice(0, 0)", []),
        ("[[1], [2, 3]].flatten()", [1, 2, 3]),
        ("dyn([[[1]], [[2]]]).flatten(2)", [1, 2]),
        ("[[[1]], [[2]]].flatten()", [[1], [2]]),
        ("[[1]].flatten(0)", [[1]]),
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("[].sort()", []),
        ("[b'b', b'a'].sort()", [b"a", b"b"]),
        ("lists.range(3)", [0, 1, 2]),
        ("lists.range(-1)", []),
        ("[1, 2].reverse()", [2, 1]),
        ("[1, 2, 1].distinct()", [1, 2]),
        ("[dyn(1), dyn(1.0), dyn(true)].distinct()", [1, True]),
        ("sets.contains([1, 2, 3], [3, 1])", True),
        ("sets.contains([1], [2])", False),
        ("sets.contains([1], [])", True),
        ("sets.equivalent([1, 2], [2, 1, 1])", True),
        ("sets.equivalent([1], [1, 2])", False),
        ("sets.intersects([1, 2], [2, 3])", True),
        ("sets.intersects([1], [])", False),
        ("sets.intersects([[1]], [[1]])", True),
    ],
)
def test_lists_and_sets(source: str, value: object) -> None:
    """Kubernetes' functions and CEL's extensions."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("[9223372036854775807, 1].sum()", "integer overflow"),
        ("[18446744073709551615u, 1u].sum()", "unsigned integer overflow"),
        ("[dyn(1), dyn('a')].sum()", "no such overload"),
        ("([1].filter(x, false) + dyn([0.5])).sum() + 1", "no such overload"),
        ("([1].filter(x, false) + dyn(['a'])).max() + 1", "no such overload"),
        ("[].min()", "min called on empty list"),
        ("[].max()", "max called on empty list"),
        ("[dyn(1), dyn('a')].max()", "no such overload"),
        ("[1].slice(-1, 0)", "cannot slice(-1, 0), negative indexes not supported"),
        ("[1].slice(1, 0)", "cannot slice(1, 0), start index must be less than or equal to end index"),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
        ("[[1]].flatten(-1)", "level must be non-negative"),
        ("[dyn(1), dyn('a')].sort()", "list elements must have the same type"),
        ("[dyn([1]), dyn([2])].sort()", "list elements must be comparable"),
    ],
)
def test_errors_of_list_functions(source: str, message: str) -> None:
    """Messages are those of the library."""
    assert failure(source) == message


@given(st.lists(st.integers(-5, 5), max_size=8))
def test_sorting_and_distinct_equal_those_of_python(numbers: list[int]) -> None:
    """For any list."""
    assert evaluate("x.sort()", x=numbers) == sorted(numbers)
    assert evaluate("x.distinct()", x=numbers) == list(dict.fromkeys(numbers))
    assert evaluate("x.sortBy(y, -y)", x=numbers) == sorted(numbers, key=lambda number: -number)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("string(duration('1h30m'))", "5400s"),
        ("string(duration('1.5s'))", "1.5s"),
        ("string(duration('-1ms'))", "-0.001s"),
        ("string(duration('0'))", "0s"),
        ("string(duration('1us1ns'))", "0.000001001s"),
        ("duration('1m') == duration('60s')", True),
        ("duration('1m') > duration('59s')", True),
        ("duration('1h').getHours()", 1),
        ("duration('-90m').getHours()", -1),
        ("duration('90s').getMinutes()", 1),
        ("duration('1m1s').getSeconds()", 61),
        ("duration('1.234s').getMilliseconds()", 1234),
        ("duration(duration('1s')) - duration('2s') == duration('-1s')", True),
        ("string(timestamp('2023-07-14T10:30:45.123Z'))", "2023-07-14T10:30:45.123Z"),
        ("string(timestamp('2023-07-14T10:30:45+02:00'))", "2023-07-14T10:30:45+02:00"),
        ("string(timestamp('0001-01-01T00:00:00Z'))", "0001-01-01T00:00:00Z"),
        ("string(timestamp('9999-12-31T23:59:59.999999999Z'))", "9999-12-31T23:59:59.999999999Z"),
        ("timestamp('2023-01-01T00:00:00+01:00') == timestamp('2022-12-31T23:00:00Z')", True),
        ("timestamp(60) == timestamp('1970-01-01T00:01:00Z')", True),
        ("timestamp(timestamp(1)) < timestamp(2)", True),
        ("timestamp(0) + duration('1m') == timestamp(60)", True),
        ("duration('1m') + timestamp(0) == timestamp(60)", True),
        ("timestamp(60) - duration('1m') == timestamp(0)", True),
        ("timestamp(60) - timestamp(0) == duration('1m')", True),
        ("timestamp('2023-07-14T10:30:45.123Z').getFullYear()", 2023),
        ("timestamp('2023-07-14T10:30:45.123Z').getMonth()", 6),
        ("timestamp('2023-07-14T10:30:45.123Z').getDayOfYear()", 194),
        ("timestamp('2023-07-14T10:30:45.123Z').getDayOfMonth()", 13),
        ("timestamp('2023-07-14T10:30:45.123Z').getDate()", 14),
        ("timestamp('2023-07-16T10:30:45.123Z').getDayOfWeek()", 0),
        ("timestamp('2023-07-14T10:30:45.123Z').getHours()", 10),
        ("timestamp('2023-07-14T10:30:45.123Z').getMinutes()", 30),
        ("timestamp('2023-07-14T10:30:45.123Z').getSeconds()", 45),
        ("timestamp('2023-07-14T10:30:45.123Z').getMilliseconds()", 123),
        ("timestamp('2023-01-01T05:30:00Z').getFullYear('-08:00')", 2022),
        ("timestamp('2023-01-01T05:30:00Z').getHours('05:45')", 11),
        ("timestamp('2023-01-01T05:30:00Z').getMinutes('-00:15')", 15),
        ("timestamp('2023-01-01T05:30:00Z').getHours('UTC')", 5),
    ],
)
def test_times(source: str, value: object) -> None:
    """To the nanosecond, from the year 1 to 9999, in any zone."""
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("duration(dyn('1x'))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("duration(dyn(''))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("duration(dyn('9999999999h'))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("duration(dyn(5))", "type conversion error from 'int' to 'google.protobuf.Duration'"),
        (
            "timestamp(dyn('2023-13-01T00:00:00Z'))",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        ("timestamp(dyn('2023-01-01'))", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        (
            "timestamp(dyn('2023-01-01T00:00:00+25:00'))",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        ("timestamp(dyn('0000-01-01T00:00:00Z'))", "timestamp overflow"),
        ("timestamp(dyn(253402300800))", "timestamp overflow"),
        ("timestamp(253402300799) + duration('1s')", "timestamp overflow"),
        ("duration('2562047h') + duration('1h')", "duration overflow"),
        ("timestamp('9999-12-31T00:00:00Z') - timestamp('0001-01-01T00:00:00Z')", "duration overflow"),
        ("timestamp(0).getHours('Nowhere/Land')", "unknown time zone Nowhere/Land"),
        ("timestamp(0).getHours('../etc/passwd')", "unknown time zone ../etc/passwd"),
        ("timestamp(0).getHours('x:y')", "unknown time zone x:y"),
        ("timestamp('9999-12-31T23:00:00Z').getHours('02:00')", "timestamp overflow"),
    ],
)
def test_invalid_times(source: str, message: str) -> None:
    """Out of range, or not a time."""
    assert failure(late(source) if "(dyn(" in source else source) == message


@given(st.datetimes())
def test_a_timestamp_round_trips(moment: object) -> None:
    """string and timestamp are inverse."""
    text = f"{moment:%Y-%m-%dT%H:%M:%S.%f}".rjust(26, "0") + "Z"
    assert evaluate("timestamp(string(timestamp(x))) == timestamp(x)", x=text) is True
