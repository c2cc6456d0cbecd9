"""Regular expressions: `matches`, `find` and `findAll`, with RE2, whose running time is linear in the text."""

import re
from functools import lru_cache
from math import ceil
from typing import Any

from kubestow.api.cel.errors import EvaluationError
from kubestow.api.cel.functions import Library
from kubestow.api.cel.library.costs import TRAVERSAL

LIBRARY = Library()
define = LIBRARY.define

_CACHED = 1_024
_MAX_CACHED_LENGTH = 128
_BYTE = r"(?<!\\)(?:\\\\)*\\C"
"""The escape for a single byte, which RE2 has and Go has not."""
_GO_MESSAGES = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}


@lru_cache(maxsize=_CACHED)
def compiled(pattern: str) -> Any:
    """Compile a pattern. Raises ValueError with the message of Go."""
    # Imported here because few expressions have patterns.
    import re2

    if re.search(_BYTE, pattern):
        raise ValueError("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        problem, _, part = text.partition(": ")
        raise ValueError(f"error parsing regexp: {_GO_MESSAGES.get(problem, problem)}: `{part}`") from None


def cost(text: str, pattern: str, *_args: Any) -> float:
    """Return the maximum cost: RE2 reads the text once for each part of the pattern."""
    return ceil((1 + len(text)) * TRAVERSAL) * ceil(len(pattern) * 0.25)


def _search(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


_matches = lru_cache(maxsize=_CACHED)(_search)


def matches(text: str, pattern: str) -> bool:
    """Return whether a part of the text matches; cached for short texts, which many devices share."""
    try:
        return _matches(text, pattern) if len(text) <= _MAX_CACHED_LENGTH else _search(text, pattern)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _illegal_regex(error: ValueError) -> EvaluationError:
    return EvaluationError(f"Illegal regex: {error}")


@define("find", "string.(string) -> string", cost=cost)
def find(text: str, pattern: str) -> str:
    """Return the first part of the text that matches; an empty text if there is none."""
    try:
        match = compiled(pattern).search(text)
    except ValueError as error:
        raise _illegal_regex(error) from None
    return str(match[0]) if match else ""


@define("findAll", "string.(string) -> list(string)", "string.(string, int) -> list(string)", cost=cost)
def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return all parts of the text that match, up to a limit unless it is negative.

    An empty match right after another match does not count.
    """
    try:
        matches_ = compiled(pattern).finditer(text)
    except ValueError as error:
        raise _illegal_regex(error) from None
    found: list[str] = []
    end = -1
    for match in matches_:
        if 0 <= limit <= len(found):
            break
        if match.start() != match.end() or match.start() != end:
            found.append(match[0])
        end = match.end()
    return found
