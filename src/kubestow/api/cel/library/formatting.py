"""`format`: replaces clauses such as %s, %d or %.2f by the elements of a list, like cel-go in the locale en_US."""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library.conversions import bytes_to_text, double_to_text
from kubestow.api.cel.library.costs import reading, size_of
from kubestow.api.cel.library.strings import quote
from kubestow.api.cel.library.times import Duration, Timestamp
from kubestow.api.cel.values import TypeValue, Uint, text_of, type_name

LIBRARY = Library()
define = LIBRARY.define

_CLAUSE = r"%(?:(%)|(\.)?([0-9]*)([\s\S])?)"
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NUMBER_NAMES = ("NaN", "Infinity", "-Infinity")
_DIGITS = 6
_MAX_DIGITS = 1_000


@define("format", "string.(list(dyn)) -> string", cost=lambda text, args: reading(text) + size_of(args))
def format_text(text: str, args: list[Any]) -> str:
    used = -1

    def fill(clause: re.Match[str]) -> str:
        nonlocal used
        percent, point, digits, letter = clause.groups()
        if percent:
            return "%"
        used += 1
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        if letter is None and not point:
            raise EvaluationError("unexpected end of string")
        try:
            return _formatter(point, digits, letter)(args[used])
        except _ClauseError as error:
            raise EvaluationError(f"could not parse formatting clause: {error}") from None
        except EvaluationError as error:
            raise EvaluationError(f"error during formatting: {error}") from None

    return re.sub(_CLAUSE, fill, text)


class _ClauseError(Exception):
    """A clause is invalid."""


def _formatter(point: str | None, digits: str, letter: str | None) -> Callable[[Any], str]:
    if point:
        if letter is None:
            raise _ClauseError("error while parsing precision: could not find end of precision specifier")
        if not digits or int(digits[:9]) > _MAX_DIGITS:
            raise _ClauseError("error while parsing precision: error while converting precision to integer")
    elif digits:
        letter = digits[0]
    if letter in ("f", "e"):
        return partial(_fixed, digits=int(digits) if point else _DIGITS) if letter == "f" else _scientific
    simple = _CLAUSES.get(letter or "")
    if simple is None:
        raise _ClauseError(f'unrecognized formatting clause "{letter}"')
    return simple


def _type_error(clause: str, takes: str, value: object) -> EvaluationError:
    return EvaluationError(f"{clause} clause can only be used on {takes}, was given {type_name(value)}")


def _string(value: Any) -> str:
    match value:
        case TypeValue() | str():
            return str(value)
        case bytes():
            return bytes_to_text(value)
        case float():
            return double_to_text(value)
        case list():
            return f"[{', '.join(map(_nested, value))}]"
        case dict():
            entries = sorted((_key(key), _nested(item)) for key, item in value.items())
            return f"{{{', '.join(f'{key}:{item}' for key, item in entries)}}}"
        case None | bool() | int() | Duration() | Timestamp():
            return text_of(value)
    takes = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
    raise _type_error("string", takes, value)


def _key(value: Any) -> str:
    if value.__class__ in (str, bool, int, Uint):
        return _nested(value)
    raise EvaluationError(f"no formatting function for map key of type {type_name(value)}")


def _nested(value: Any) -> str:
    """Format a value in a list or map."""
    match value:
        case TypeValue():
            return str(value)
        case str():
            return quote(value)
        case bytes():
            return f"b{quote(bytes_to_text(value))}"
        case float():
            return f"{value:.6f}" if math.isfinite(value) else quote(double_to_text(value))
        case Duration():
            return f"duration({quote(str(value))})"
        case Timestamp():
            return f"timestamp({quote(str(value))})"
        case None | bool() | int() | list() | dict():
            return _string(value)
    raise EvaluationError(f"no formatting function for {type_name(value)}")


def _number(clause: str, value: Any) -> float:
    if value.__class__ is float:
        return float(value)
    if value.__class__ is str and value in _NUMBER_NAMES:
        return float(value)
    raise _type_error(clause, "doubles", value)


def _special(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _fixed(value: Any, digits: int) -> str:
    number = _number("fixed-point", value)
    return f"{number:,.{digits}f}" if math.isfinite(number) else _special(number)


def _scientific(value: Any) -> str:
    number = _number("scientific", value)
    if not math.isfinite(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.{_DIGITS}e}".partition("e")
    return f"{mantissa}\u202f\u00d7\u202f10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"


def _integer(clause: str, takes: str, classes: tuple[type, ...], spec: str, value: Any) -> str:
    if value.__class__ not in classes:
        raise _type_error(clause, takes, value)
    return format(value, spec)


def _hex(value: Any) -> str:
    if value.__class__ in (str, bytes):
        return (value.encode() if isinstance(value, str) else bytes(value)).hex()
    return _integer("hex", "integers, byte buffers, and strings", (int, Uint), "x", value)


_CLAUSES: dict[str, Callable[[Any], str]] = {
    "s": _string,
    "d": partial(_integer, "decimal", "integers", (int, Uint), "d"),
    "b": partial(_integer, "binary", "integers and bools", (int, Uint, bool), "b"),
    "o": partial(_integer, "octal", "integers", (int, Uint), "o"),
    "x": _hex,
    "X": lambda value: _hex(value).upper(),
}
