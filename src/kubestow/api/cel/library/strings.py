"""CEL's extension for strings: substrings, replacing, splitting and joining. Positions are in characters."""

from typing import Any

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library.costs import TRAVERSAL, copying, reading, traversing
from kubestow.api.cel.values import text_of

LIBRARY = Library()
define = LIBRARY.define

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_SPACE += "\u2028\u2029\u202f\u205f\u3000"
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
_QUOTED = str.maketrans(
    {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\""}
)


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


@define("charAt", "string.(int) -> string")
def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


@define("indexOf", "string.(string) -> int", "string.(string, int) -> int", cost=traversing)
def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


@define("lastIndexOf", "string.(string) -> int", "string.(string, int) -> int", cost=traversing)
def last_index_of(text: str, part: str, start: int | None = None) -> int:
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise _out_of_range(start)
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


define("lowerAscii", "string.() -> string", cost=reading)(
    lambda text: text.lower() if text.isascii() else text.translate(_LOWER)
)
define("upperAscii", "string.() -> string", cost=reading)(
    lambda text: text.upper() if text.isascii() else text.translate(_UPPER)
)
define("trim", "string.() -> string", cost=reading)(lambda text: text.strip(_SPACE))


def _replacing(text: str, old: str, new: str, limit: int = -1) -> float:
    times = text.count(old) if limit < 0 else min(text.count(old), limit)
    return copying(text) + times * len(new) * 2 * TRAVERSAL


@define("replace", "string.(string, string) -> string", "string.(string, string, int) -> string", cost=_replacing)
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, max(limit, -1))


@define("split", "string.(string) -> list(string)", "string.(string, int) -> list(string)", cost=copying)
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


@define("substring", "string.(int) -> string", "string.(int, int) -> string", cost=reading)
def substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end or 0):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _joining(parts: list[Any], separator: str = "") -> float:
    return 1 + (sum(len(part) for part in parts if part.__class__ is str) + len(separator) * len(parts)) * 2 * TRAVERSAL


@define("join", "list(string).() -> string", "list(string).(string) -> string", cost=_joining)
def join(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if part.__class__ is not str:
            raise EvaluationError(f"join: invalid input: {text_of(part)}")
    return separator.join(parts)


@define("strings.quote", "(string) -> string", cost=reading)
def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'
