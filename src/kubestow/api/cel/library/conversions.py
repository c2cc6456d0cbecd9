"""Conversions between types, named after the target types; `type` and `dyn`."""

import math
import re
from decimal import Decimal

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library.costs import reading
from kubestow.api.cel.library.operators import checked_int, checked_uint
from kubestow.api.cel.values import INT_MAX, INT_MIN, UINT_MAX, TypeValue, Uint, type_name

LIBRARY = Library()
define = LIBRARY.define

# Patterns are compiled on first use: few expressions convert texts.
_INT = r"[+-]?[0-9]{1,100}"
_UINT = r"[0-9]{1,100}"
_DOUBLE = r"(?ai)[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)"
_HEX_DOUBLE = r"(?ai)[+-]?0x(?:[0-9a-f]+(?:\.[0-9a-f]*)?|\.[0-9a-f]+)p[+-]?[0-9]+"
_MAX_NUMBER_LENGTH = 1_000
_BOOLEANS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True)
_BOOLEANS |= dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False)


def conversion_error(value: object, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{target}'")


for _name in ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"):
    define(_name, f"({_name}) -> {_name}")(lambda value: value)
define("dyn", "(A) -> dyn")(lambda value: value)
define("type", "(A) -> type(A)")(lambda value: TypeValue(type_name(value)))
define("bytes", "(string) -> bytes", cost=reading)(str.encode)
define("double", "(int) -> double", "(uint) -> double")(float)
define("int", "(uint) -> int")(lambda number: checked_int(int(number)))
define("uint", "(int) -> uint")(checked_uint)
define("string", "(bool) -> string")(lambda value: "true" if value else "false")
define("string", "(int) -> string", "(uint) -> string", "(ip) -> string", "(cidr) -> string")(str)
define("string", "(duration) -> string", "(timestamp) -> string")(str)


@define("bool", "(string) -> bool")
def to_bool(text: str) -> bool:
    if text not in _BOOLEANS:
        raise conversion_error(text, "bool")
    return _BOOLEANS[text]


@define("double", "(string) -> double")
def to_double(text: str) -> float:
    if len(text) > _MAX_NUMBER_LENGTH:
        raise conversion_error(text, "double")
    if re.fullmatch(_DOUBLE, text):
        value = float(text)
        if math.isfinite(value) or "n" in text.lower():
            return value
    elif re.fullmatch(_HEX_DOUBLE, text):
        try:
            return float.fromhex(text)
        except OverflowError:
            pass
    raise conversion_error(text, "double")


@define("int", "(double) -> int")
def double_to_int(number: float) -> int:
    if not INT_MIN < number < INT_MAX:
        raise EvaluationError("integer overflow")
    return int(number)


@define("int", "(string) -> int")
def text_to_int(text: str) -> int:
    value = int(text) if re.fullmatch(_INT, text) else INT_MAX + 1
    if not INT_MIN <= value <= INT_MAX:
        raise conversion_error(text, "int")
    return value


@define("uint", "(double) -> uint")
def double_to_uint(number: float) -> Uint:
    if not 0 <= number < UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)


@define("uint", "(string) -> uint")
def text_to_uint(text: str) -> Uint:
    value = int(text) if re.fullmatch(_UINT, text) else UINT_MAX + 1
    if value > UINT_MAX:
        raise conversion_error(text, "uint")
    return Uint(value)


@define("string", "(bytes) -> string", cost=reading)
def bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


@define("string", "(double) -> string")
def double_to_text(number: float) -> str:
    """Format like Go's %g: the shortest exact decimal, with an exponent if it is large or small."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    magnitude = len(digits) + int(exponent) - 1
    if number and not -4 <= magnitude < 6:
        fraction = "".join(map(str, digits[1:]))
        point = "." if fraction else ""
        return f"{'-' * sign}{digits[0]}{point}{fraction}e{'-' if magnitude < 0 else '+'}{abs(magnitude):02}"
    return plain(number)


def plain(number: float) -> str:
    """Return the shortest exact decimal of a number, without an exponent."""
    return f"{Decimal(repr(number)):f}".removesuffix(".0")
