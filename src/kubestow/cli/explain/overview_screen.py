"""The overview of pending pods as text: a few lines for each group, those that have waited longest first."""

from collections.abc import Iterator

from kubestow.api.timestamps import parse_time
from kubestow.cli.explain.lines import WIDTH, wrapped
from kubestow.cli.terminal import style
from kubestow.insight.explain.overview import LetIn, PendingGroup, PendingOverview, Remedy

_LINES = 20
"""Number of lines for groups, so that all fits a terminal of 24 lines."""
_LINES_OF_CAUSE = 2
_INDENT = f"{'':15}"
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def overview_lines_of(overview: PendingOverview, *, wide: bool = False) -> str:
    """Return the screen without a final line break; `wide`: with all groups and complete causes."""
    now = parse_time(overview.time)
    lines = [*_headline(overview, now), ""]
    shown = 0
    for group in overview.groups:
        more = list(_group(group, now, wide=wide))
        if not wide and shown and len(lines) + len(more) > _LINES:
            break
        lines += more
        shown += 1
    rest = overview.groups[shown:]
    if rest:
        count = sum(group.count for group in rest)
        lines.append(f"and {count} more pods in {len(rest)} groups; see -o wide")
    helpful = [one for one in overview.oneMoreNode if one.pods] or list(overview.oneMoreNode[:1])
    for number, one in enumerate(helpful):
        lines += [*([] if number else [""]), *_let_in(one, len(overview.oneMoreNode))]
    lines += [line for note in overview.notes for line in ("", *wrapped(f"Note: {note}", ""))]
    return "\n".join(lines).rstrip("\n")


def _headline(overview: PendingOverview, now: float) -> Iterator[str]:
    groups = overview.groups
    if not groups:
        yield "No pod is pending."
        return
    owners = len({group.owner for group in groups})
    of = f" of {owners} owners" if owners > 1 else ""
    longest = format_age(now - min(parse_time(group.since) for group in groups))
    which = f"{overview.pending} pods are pending{of}, the longest" if overview.pending > 1 else "1 pod is pending,"
    yield style(f"{which} for {longest}.", bold=True)


def _group(group: PendingGroup, now: float, *, wide: bool) -> Iterator[str]:
    age = format_age(now - parse_time(group.since))
    yield f"{style(f'{group.count:>5}', bold=True)}  {age:>6}  {style(group.owner, bold=True)}"
    cause = list(wrapped(f"{group.cause}", _INDENT))
    if not wide and len(cause) > _LINES_OF_CAUSE:
        cause = [*cause[: _LINES_OF_CAUSE - 1], f"{cause[_LINES_OF_CAUSE - 1][: WIDTH - 3]}..."]
    yield from cause
    if group.remedy is not None:
        remedy = list(wrapped(f"-> {group.remedy.change}{_helps(group, group.remedy)}", _INDENT))
        yield from (style(line, fg="cyan") for line in remedy)


def _helps(group: PendingGroup, remedy: Remedy) -> str:
    if group.count == 1 and not remedy.helpsOthers:
        return ""
    count = f"at least {remedy.helps}" if remedy.atLeast else str(remedy.helps)
    others = f", and {remedy.helpsOthers} of others" if remedy.helpsOthers else ""
    return f" (helps {count} of {group.count}{others})"


def _let_in(one: LetIn, kinds: int) -> Iterator[str]:
    if not one.pods:
        yield f"One more node like {one.like if kinds == 1 else 'any other'} would let in none of them."
        return
    alike = f", of which there are {one.nodes}," if one.nodes > 1 else ""
    which = ", ".join(f"{count} of {owner}" for owner, count in one.owners.items())
    yield from wrapped(f"One more node like {one.like}{alike} would let in {one.pods}: {which}.", "")


def format_age(seconds: float) -> str:
    """Return a duration with one unit, or two if it is short: 3d, 4h12m, 55s."""
    left = max(int(seconds), 0)
    for index, (unit, size) in enumerate(_UNITS):
        if left >= size:
            whole, rest = divmod(left, size)
            smaller = rest // _UNITS[index + 1][1] if index + 1 < len(_UNITS) else 0
            return f"{whole}{unit}" + (f"{smaller}{_UNITS[index + 1][0]}" if smaller and whole < 10 else "")
    return "0s"
