"""Quantities: the numbers of the Kubernetes API, such as "250m", "1.5Gi" or "2e3".

A quantity is parsed into an integer and a power of ten, without floating point; amounts finer than a nano-unit are
rounded up to one. `nano` is the exact amount, for adding and comparing; `value` and `milli` are the amounts that
Kubernetes computes with: whole units and thousandths, rounded up.

Kubernetes keeps short numbers in 64 bits and long ones in arbitrary precision, and the two differ in edge cases: on
overflow, in rounding negative numbers, in the texts that are kept as written. `value`, `milli` and `canonical` return
the same results in these cases.

The public functions are cached, as a cluster repeats a few texts many times.
"""

import re
from enum import Enum
from functools import lru_cache

import msgspec

from kubestow.api.meta import RawQuantity

NANO_PER_UNIT = 10**9
NANO_PER_MILLI = 10**6
INT64_MAX = 2**63 - 1

_CACHED_TEXTS = 16_384
_INT64_DIGITS = 18
_NANO = -9
_LARGEST_EXPONENT = 1_000


class QuantityError(ValueError):
    """A text is not a quantity; the message quotes it and gives the reason."""


class _Style(Enum):
    """The notation of a quantity, which its canonical text keeps."""

    DECIMAL = "M"
    EXPONENT = "e6"
    BINARY = "Mi"


class _Parsed(msgspec.Struct, frozen=True):
    """A number: digits * 10**exponent."""

    digits: int
    exponent: int
    short: bool
    """Whether Kubernetes keeps it in 64 bits."""
    style: _Style
    text: str | None
    """The text itself if it is canonical."""


_FORM = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL_EXPONENT = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENT.items()}
_BINARY_EXPONENT = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIX = ["", *_BINARY_EXPONENT]


@lru_cache(maxsize=_CACHED_TEXTS, typed=True)
def nano(raw: RawQuantity) -> int:
    """Return the exact amount in nano-units; finer amounts are rounded away from zero."""
    parsed = _parse(_text_of(raw))
    # Beyond the bound the number is larger than any that it is compared with; a larger one only costs memory.
    return parsed.digits * int(10 ** (min(parsed.exponent, _LARGEST_EXPONENT) - _NANO))


@lru_cache(maxsize=_CACHED_TEXTS, typed=True)
def value(raw: RawQuantity) -> int:
    """Return the amount in whole units, rounded up, as an int64."""
    return _scaled(_parse(_text_of(raw)), 0)


@lru_cache(maxsize=_CACHED_TEXTS, typed=True)
def milli(raw: RawQuantity) -> int:
    """Return the amount in thousandths, rounded up, as an int64."""
    return _scaled(_parse(_text_of(raw)), -3)


def is_int64(raw: RawQuantity) -> bool:
    """Return whether Kubernetes can return the quantity as an int64: it has 64 bits and no fraction."""
    parsed = _parse(_text_of(raw))
    fits = parsed.exponent <= _INT64_DIGITS and abs(parsed.digits) * 10 ** max(parsed.exponent, 0) <= INT64_MAX
    return parsed.short and parsed.exponent >= 0 and (fits or parsed.digits == 0)


@lru_cache(maxsize=_CACHED_TEXTS, typed=True)
def canonical(raw: RawQuantity) -> str:
    """Return the text that Kubernetes writes for the quantity."""
    parsed = _parse(_text_of(raw))
    if parsed.text is not None:
        return parsed.text
    return _canonical_text(parsed.digits, parsed.exponent, parsed.style)


def format_nano(amount: int, *, binary: bool = False) -> str:
    """Return the canonical text of an amount in nano-units; `binary` suffixes are used for whole amounts only."""
    return _canonical_text(amount, _NANO, _Style.BINARY if binary else _Style.DECIMAL)


def format_nano_like(raw: RawQuantity, amount: int) -> str:
    """Return the canonical text of an amount in nano-units, in the notation of another quantity."""
    return _canonical_text(amount, _NANO, _parse(_text_of(raw)).style)


def units_up(amount: int) -> int:
    """Convert nano-units to whole units, rounded up."""
    return -(-amount // NANO_PER_UNIT)


def millis_up(amount: int) -> int:
    """Convert nano-units to thousandths of a unit, rounded up."""
    return -(-amount // NANO_PER_MILLI)


def _text_of(raw: RawQuantity) -> str:
    return raw if isinstance(raw, str) else repr(raw)


def _parse(text: str) -> _Parsed:
    form = _FORM.fullmatch(text) if text else None
    if form is None:
        raise QuantityError(f"quantity {text!r}: not a number with an optional suffix such as m, Mi, G or e3")
    sign, whole, fraction, suffix = form[1], form[2] or "0", form[3] or "", form[4]
    exponent, style = _read_suffix(text, suffix)

    if style is _Style.BINARY:
        spare_digits = 14 - len(whole) - exponent * 3 // 10 if not fraction else -1
        scale, factor = 0, 1 << exponent
    else:
        spare_digits = _INT64_DIGITS - len(whole) - len(fraction)
        scale, factor = exponent - len(fraction), 1
    digits = int(whole + fraction)
    negative = sign == "-"
    if spare_digits >= 0 and scale >= _NANO:
        kept = _is_canonical(whole + fraction, scale, style)
        return _Parsed(-digits * factor if negative else digits * factor, scale, True, style, text if kept else None)

    if not any(c.isdigit() for c in text[: form.start(4)]):
        raise QuantityError(f"quantity {text!r}: no digits before the suffix")
    if exponent > _LARGEST_EXPONENT:
        raise QuantityError(f"quantity {text!r}: the exponent is too large")
    digits, scale = _to_nano(digits * factor, (0 if style is _Style.BINARY else exponent) - len(fraction))
    if style is _Style.BINARY:
        if digits > INT64_MAX * NANO_PER_UNIT:
            digits, scale = INT64_MAX, 0
        elif digits < NANO_PER_UNIT:
            style = _Style.DECIMAL
    return _Parsed(-digits if negative else digits, scale, False, style, None)


def _read_suffix(text: str, suffix: str) -> tuple[int, _Style]:
    """Return the exponent of a suffix: to base two for binary suffixes, to base ten for the others."""
    if suffix in _DECIMAL_EXPONENT:
        return _DECIMAL_EXPONENT[suffix], _Style.DECIMAL
    if suffix in _BINARY_EXPONENT:
        return _BINARY_EXPONENT[suffix], _Style.BINARY
    if suffix[0] in "eE":
        try:
            exponent = int(suffix[1:])
        except ValueError:
            pass
        else:
            if -(2**63) <= exponent < 2**63:
                return _wrapped(exponent, 32), _Style.EXPONENT
    known = "n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and exponents like e3"
    raise QuantityError(f"quantity {text!r}: unknown suffix {suffix!r}; known are {known}")


def _is_canonical(digits: str, scale: int, style: _Style) -> bool:
    if style is _Style.BINARY:
        return int(digits) % 8 != 0
    return scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _to_nano(digits: int, exponent: int) -> tuple[int, int]:
    """Return a non-negative number with exponent -9, rounded up."""
    shift = exponent - _NANO
    if shift >= 0:
        return digits * 10**shift, _NANO
    if -shift > len(str(digits)):  # far below a nano-unit: do not compute the power
        return min(digits, 1), _NANO
    return -(-digits // 10**-shift), _NANO


def _scaled(parsed: _Parsed, scale: int) -> int:
    """Return the number in units of 10**scale, rounded up, as an int64."""
    digits, shift = parsed.digits, parsed.exponent - scale
    if shift < 0:
        divisor: int = 10**-shift
        if parsed.short:
            rounded = -(-abs(digits) // divisor)
            return rounded if digits >= 0 else -rounded
        if digits > INT64_MAX:
            return _wrapped(-(-digits // divisor), 64)
        # Kubernetes divides the low 64 bits towards zero and adds one, for negative numbers too.
        low = _wrapped(digits, 64)
        quotient, remainder = divmod(abs(low), divisor)
        return (quotient if low >= 0 else -quotient) + (remainder != 0)
    if digits == 0:
        return 0
    if parsed.short and shift not in (0, 1, 2, 3, 6, 9):
        # Kubernetes multiplies step by step and returns 0 on overflow.
        product = digits * 10**shift if shift <= _INT64_DIGITS else INT64_MAX + 1
        return product if -INT64_MAX <= product <= INT64_MAX else 0
    return _wrapped(digits * 10**shift, 64)


def _wrapped(number: int, bits: int) -> int:
    """Wrap a number to two's complement of `bits` bits."""
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _canonical_text(digits: int, exponent: int, style: _Style) -> str:
    """Return the text with the largest suffix that leaves a whole number."""
    if digits == 0:
        return "0"
    if style is _Style.BINARY:
        units, rest = divmod(digits * 10 ** max(exponent, 0), 10 ** max(-exponent, 0))
        if not rest and abs(units) >= 1024:
            power = 0
            while units % 1024 == 0:
                units //= 1024
                power += 1
            return f"{units}{_BINARY_SUFFIX[power]}"
    while digits % 10 == 0:
        digits //= 10
        exponent += 1
    digits *= 10 ** (exponent % 3)
    exponent -= exponent % 3
    if style is _Style.EXPONENT:
        return f"{digits}e{exponent}" if exponent else str(digits)
    # Kubernetes has no suffix beyond E and writes none.
    return f"{digits}{_DECIMAL_SUFFIX.get(exponent, '')}"
