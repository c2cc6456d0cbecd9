"""Formatting of `kubestow explain` for a terminal: wrapped text, rows, tables, and shortened names.

Lines contain styles, for `click.echo` in guarded output.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from kubestow.cli.terminal import style
from kubestow.insight.explain.causes import Cause

WIDTH = 80
HEIGHT = 24
"""The size of a terminal."""
SHOWN_NAMES = 3
_NAME_WIDTH = 24
_LONGEST_NAME = 64
_CUT = ".."
"""Replaces the omitted part of a name."""
_SIDE = 11
_CAUSES = 4
_FEWEST_WAYS = 2


def wrapped(text: str, indent: str, width: int = WIDTH) -> Iterator[str]:
    """Yield lines that fit the width."""
    # Names with hyphens are not broken, to be searched and copied.
    wrapper = textwrap.TextWrapper(
        width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    yield from wrapper.wrap(text)


def sentence(text: str, styles: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a sentence with styled words."""
    words = re.compile("|".join(map(re.escape, sorted(styles, key=len, reverse=True))))
    for line in wrapped(text, ""):
        yield words.sub(lambda found: style(found[0], **styles[found[0]]), line)


def title(text: str) -> str:
    """Return the title of a section."""
    return style(text, bold=True)


def row(count: int, what: str, below: str) -> Iterator[str]:
    """Yield a count, its description, and details below it."""
    first, *rest = wrapped(what, "", WIDTH - 10)
    yield f"  {style(f'{count:>6}', bold=True)}  {first}"
    for line in rest:
        yield f"{'':10}{line}"
    yield from (style(line, dim=True) for line in wrapped(below, f"{'':10}"))


def change_lines(side: str, change: str, effect: str) -> Iterator[str]:
    """Yield a change that would help, and its effect."""
    first, *rest = wrapped(change, "", WIDTH - _SIDE)
    yield f"  {style(f'{side:<{_SIDE - 2}}', fg='cyan')}{first}"
    for line in rest:
        yield f"{'':{_SIDE}}{line}"
    yield from (style(line, dim=True) for line in wrapped(effect, f"{'':{_SIDE}}"))


def cause_lines(causes: Sequence[Cause], most: int | None = _CAUSES) -> Iterator[str]:
    """Yield the section of what stands in the way; nothing without causes."""
    if not causes:
        return
    yield title("In the way")
    for cause in causes[:most]:
        first, *rest = wrapped(cause.text, "    ")
        yield f"  - {first.lstrip()}"
        yield from rest
    if most is not None and len(causes) > most:
        yield f"  and {len(causes) - most} more; see -o wide"


def some_ways(ways: Sequence[Sequence[str]], room: int | None) -> Iterator[str]:
    """Yield the lines of suggestions that fit in some lines, but at least of the first two; of all without a limit."""
    count = len(ways)
    if room is not None and sum(map(len, ways)) >= room:
        lengths = accumulate(map(len, ways))
        count = max(_FEWEST_WAYS, sum(length < room - 1 for length in lengths))
    for lines in ways[:count]:
        yield from lines
    if len(ways) > count:
        left = len(ways) - count
        yield f"  and {left} other way{'s' if left > 1 else ''}; see -o wide"


def nothing_helps(causes: Sequence[Cause], reason: str) -> Iterator[str]:
    """Yield that no change was found, and what stands in the way: the first cause, or the reason of a rejection."""
    what = causes[0].text if causes else reason.removesuffix(".")
    yield from wrapped(f"no change is enough, and no two changes at once. In the way: {what}.", "  ")


def table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


# Numbers, times and names


def format_node_count(count: int) -> str:
    """Return a number of nodes as text."""
    return f"{count} node" if count == 1 else f"{count} nodes"


def format_other_count(count: int) -> str:
    """Return a number of others as text."""
    return "1 other" if count == 1 else f"{count} others"


def to_the_second(time: str) -> str:
    """Return a time without fractions of a second."""
    return f"{time.partition('.')[0].removesuffix('Z')}Z"


def examples(names: Sequence[str]) -> str:
    """Return the first names, and the number of further ones."""
    shown = distinct_short_names(names[:SHOWN_NAMES])
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


def headings(names: Sequence[str]) -> list[str]:
    """Return short names of columns, without a domain that all of them share, so that more columns fit."""
    domain = names[0][len(names[0].partition(".")[0]) :]
    if len(names) > 1 and len(domain) > len(_CUT) and all(name.endswith(domain) for name in names):
        names = [name.removesuffix(domain) + _CUT for name in names]
    return [shortened(name, _NAME_WIDTH) for name in names]


def distinct_short_names(names: Sequence[str]) -> list[str]:
    """Return short names if they stay distinct, otherwise longer ones."""
    short = [shortened(name, _NAME_WIDTH) for name in names]
    return short if len(set(short)) == len(names) else [shortened(name, _LONGEST_NAME) for name in names]


def shortened(text: str, width: int) -> str:
    """Return the text with at most `width` characters; two dots replace the omitted part."""
    if len(text) <= width:
        return text
    tail = (width - len(_CUT)) // 3
    return f"{text[: width - len(_CUT) - tail]}{_CUT}{text[-tail:]}"
