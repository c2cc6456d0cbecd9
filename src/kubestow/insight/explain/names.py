"""The nearest existing names for one that does not exist."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from heapq import nlargest
from os.path import commonprefix

_MOST_SIMILAR = 3
_SIMILARITY = 0.7
"""The least similarity of a name, as a ratio."""
_SHORTEST = 3
"""The fewest letters of names that differ in one."""
_SYNONYMS = ({"true", "yes", "on", "enabled", "1"}, {"false", "no", "off", "disabled", "0"})
_LISTED = 5
_COMPARED = 200
"""Maximum number of names that are compared letter by letter."""
_NEARLY = 0.1
"""How much less similar than the nearest name others may be."""


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the existing names that differ in case only; else those most similar to one that does not exist."""
    return _nearest(name, tuple(known))


# Combinations of changes ask about the same names again and again.
@lru_cache(maxsize=100)
def _nearest(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = {other: other.casefold() for other in known if other and other != name}
    same = [other for other, folded in names.items() if folded == name.casefold()]
    same = same or [other for words in _SYNONYMS for other in names if {other, name.casefold()} <= words]
    if same:
        return tuple(same)
    wanted, candidates = name.casefold(), sorted(set(names.values()))
    if len(candidates) > _COMPARED:
        candidates = nlargest(_COMPARED, candidates, key=lambda other: _shared_ends(other, wanted))
    close = get_close_matches(wanted, candidates, _MOST_SIMILAR, _SIMILARITY)
    close += [other for other in candidates if other not in close and _is_one_letter_off(other, wanted)]
    ratios = {folded: SequenceMatcher(None, folded, wanted).ratio() for folded in close}
    best = max(ratios.values(), default=0.0)
    ranked = sorted(
        (folded for folded in close if ratios[folded] >= best - _NEARLY), key=lambda one: (-ratios[one], one)
    )
    return tuple(other for folded in ranked for other, its in names.items() if its == folded)[:_MOST_SIMILAR]


def _shared_ends(one: str, other: str) -> int:
    """Return the length of the common beginning and end, which a spelling mistake leaves."""
    pairs = (one, other), (one[::-1], other[::-1])
    return sum(len(commonprefix(pair)) for pair in pairs)  # noqa: RUF071 these are names, not paths


def absent(what: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the sentence that something does not exist, with the nearest names that do, or some of them."""
    several = sorted(set(known))
    similar = nearest(name, several)
    more = f" and {len(several) - _LISTED} more" if len(several) > _LISTED else ""
    end = did_you_mean(similar) or (f"; existing: {', '.join(several[:_LISTED])}{more}" if several else "")
    return f"there is no {what} {name}{where}{end}"


def _is_one_letter_off(one: str, other: str) -> bool:
    """Return whether names differ in one letter, or in the order of two: short ones have a low ratio then."""
    missing = max(len(one), len(other)) - _shared_ends(one, other)
    return min(len(one), len(other)) >= _SHORTEST and (missing <= 1 or (missing == 2 and sorted(one) == sorted(other)))


def did_you_mean(similar: Sequence[str]) -> str:
    """Return the question about similar names, or an empty string."""
    return f"; did you mean {' or '.join(similar)}?" if similar else ""
