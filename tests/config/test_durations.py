"""Durations in Go's notation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.config.durations import Duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("10s", 10_000_000_000),
        ("1h2m", 3_720_000_000_000),
        ("100ms", 100_000_000),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("-1m30s", -90_000_000_000),
        ("+3us", 3_000),
        ("3µs", 3_000),
        ("3μs", 3_000),
        ("1.0000000019s", 1_000_000_001),
        ("2562047h47m16.854775807s", 2**63 - 1),
    ],
)
def test_the_notation_of_go_is_parsed(text: str, nanoseconds: int) -> None:
    """Sums of decimal numbers with units, an optional sign, and a plain zero are durations."""
    assert Duration.parse(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "-", "10", "s", ".s", "1d", "10 s", "1s ", "--1s", "1e3s", "s10", "+"])
def test_other_notations_are_rejected(text: str) -> None:
    """The message about a missing or unknown unit, or any other text, has an example."""
    with pytest.raises(ValueError, match="is not a duration; write for example"):
        Duration.parse(text)


def test_more_than_64_bits_are_rejected() -> None:
    """The unit of the limit is nanoseconds."""
    with pytest.raises(ValueError, match="too long"):
        Duration.parse("2562047h47m16.854775808s")


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (15_000_000_000, "15s"),
        (600_000_000_000, "10m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (3_661_000_000_001, "1h1m1.000000001s"),
        (-1_000_000_000, "-1s"),
    ],
)
def test_durations_are_formatted_like_in_go(nanoseconds: int, text: str) -> None:
    """The largest unit that fits is first, and no smaller unit is omitted."""
    assert str(Duration(nanoseconds)) == text


@settings(deadline=None)
@given(st.integers(min_value=-(2**63 - 1), max_value=2**63 - 1))
def test_durations_round_trip(nanoseconds: int) -> None:
    """Formatting is exact."""
    assert Duration.parse(str(Duration(nanoseconds))) == nanoseconds


def test_seconds_are_a_float() -> None:
    """`seconds` is the duration in seconds."""
    assert Duration.parse("1m0.25s").seconds == 60.25
