"""Quantities: parsing, rounding, canonical form, and comparison with fractions."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.api import quantity
from kubestow.api.quantity import QuantityError, canonical, milli, nano, value

FACTORS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}


@pytest.mark.parametrize(
    ("text", "units", "thousandths", "written"),
    [
        ("0", 0, 0, "0"),
        ("100m", 1, 100, "100m"),
        ("1500m", 2, 1500, "1500m"),
        ("0.5", 1, 500, "500m"),
        (".5", 1, 500, "500m"),
        ("1.", 1, 1000, "1."),
        ("+1", 1, 1000, "+1"),
        ("1.5Gi", 1610612736, 1610612736000, "1536Mi"),
        ("1024", 1024, 1024000, "1024"),
        ("1000", 1000, 1000000, "1k"),
        ("8Ki", 8192, 8192000, "8Ki"),
        ("1e3", 1000, 1000000, "1e3"),
        ("100e3", 100000, 100000000, "100e3"),
        ("1.5e2", 150, 150000, "150"),
        ("12e-4", 1, 2, "1200e-6"),
        ("1n", 1, 1, "1n"),
        ("0.1n", 1, 1, "1n"),
        ("-1500m", -2, -1500, "-1500m"),
        ("-0", 0, 0, "0"),
        ("0.5Ki", 512, 512000, "512"),
        ("0.0001Ki", 1, 103, "102400u"),
        ("9223372036854775807", 2**63 - 1, -1000, "9223372036854775807"),
    ],
)
def test_values_equal_those_of_kubernetes(text: str, units: int, thousandths: int, written: str) -> None:
    """Value and milli-value are rounded up; a canonical text is kept."""
    assert (value(text), milli(text), canonical(text)) == (units, thousandths, written)


@pytest.mark.parametrize(("raw", "units"), [(2, 2), (1.5, 2), (1e18, 10**18), (0, 0), (0.1, 1)])
def test_plain_numbers_are_parsed_like_their_text(raw: float, units: int) -> None:
    """A manifest may contain a number instead of a text."""
    assert value(raw) == units


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a number"),
        (" 1", "not a number"),
        ("1.2.3", "not a number"),
        ("abc", "not a number"),
        ("1_000", "not a number"),
        ("\N{FULLWIDTH DIGIT ONE}", "not a number"),
        ("1K", "unknown suffix 'K'"),
        ("1e", "unknown suffix 'e'"),
        ("--1", "unknown suffix '-1'"),
        ("1e99999999999999999999", "unknown suffix"),
        ("Ei", "no digits"),
        ("1234567890123456789e2000", "exponent is too large"),
    ],
)
def test_invalid_quantities_are_rejected(text: str, reason: str) -> None:
    """The error quotes the text and gives the reason."""
    for read in (value, milli, nano, canonical):
        with pytest.raises(QuantityError, match=reason) as error:
            read(text)
        assert repr(text) in str(error.value)


def test_extreme_exponents_are_cheap() -> None:
    """Numbers beyond all limits are parsed quickly."""
    assert value("1e2147483647") == 0
    assert nano("1e2147483647") > nano("8Ei")
    assert nano("1e-2147483648") == 1
    assert nano("-1e-2147483648") == -1


decimals = st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9]{0,6})?", fullmatch=True)


@given(decimals, st.sampled_from(sorted(FACTORS)))
def test_amounts_equal_fractions(number: str, suffix: str) -> None:
    """The exact amount is the fraction, rounded away from zero to a nano-unit."""
    exact = Fraction(number.rstrip(".") if number.endswith(".") else number) * FACTORS[suffix] * 10**9
    expected = ceil(abs(exact)) * (-1 if exact < 0 else 1)
    assert nano(number + suffix) == expected


@given(decimals.filter(lambda text: text[0] != "-"), st.sampled_from(sorted(FACTORS)))
def test_value_and_milli_round_up(number: str, suffix: str) -> None:
    """Value and milli-value of amounts in range are the exact amount rounded up."""
    exact = nano(number + suffix)
    if exact < 2**53 * 10**6:
        assert value(number + suffix) == ceil(Fraction(exact, 10**9)) == quantity.units_up(exact)
        assert milli(number + suffix) == ceil(Fraction(exact, 10**6)) == quantity.millis_up(exact)


@given(decimals, st.sampled_from(sorted(FACTORS)))
def test_canonical_text_round_trips(number: str, suffix: str) -> None:
    """Formatting keeps the amount, and a formatted text does not change."""
    written = canonical(number + suffix)
    assert nano(written) == nano(number + suffix)
    assert canonical(written) == written


@given(st.text(max_size=12))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    """Every text is a quantity or raises QuantityError."""
    try:
        assert isinstance(nano(text), int)
    except QuantityError:
        with pytest.raises(QuantityError):
            canonical(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("0", True),
        ("5", True),
        ("-5", True),
        ("50k", True),
        ("40Gi", True),
        ("9223372036854775", True),
        ("0E", True),
        ("1.0", False),
        ("1000m", False),
        ("1.5Gi", False),
        ("9E", True),
        ("10E", False),
        ("99999999999999999999", False),
    ],
)
def test_which_quantities_are_int64s(text: str, answer: bool) -> None:
    """Those that Kubernetes keeps in 64 bits and that are written without fraction."""
    assert quantity.is_int64(text) is answer
