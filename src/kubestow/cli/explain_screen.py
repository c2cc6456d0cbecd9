"""An explanation as one screen of 80 columns: what happened, why not elsewhere, scores, and what would help.

Colours are there to be stripped: `click.echo` leaves them out where there is no terminal.
"""

import textwrap
from collections.abc import Iterator, Sequence

import click
from msgspec import UNSET

from kubestow.decisions.schema import SCHEDULED, Decision, NodeResult, Rejected
from kubestow.explaining.explanation import Explanation

WIDTH = 80
_GROUPS = 8
_SHOWN_NODES = 3
_NAME_WIDTH = 24
_SCORE_COLUMN = 32


def lines_of(explanation: Explanation, node: str = "", *, wide: bool = False) -> str:
    """The screen, without a line break at its end; about one node only, if one is named."""
    decision = explanation.decision
    sections = [list(_headline(explanation))]
    if node:
        sections.append(list(_one_node(decision, node)))
    elif wide:
        sections += [list(_all_rejected(decision)), list(_all_scored(decision))]
    else:
        sections += [
            list(_why_not(decision)),
            list(_scores(decision)),
            list(_preemption(decision)),
        ]
    return "\n\n".join("\n".join(section) for section in sections if section)


# What happened


def _headline(explanation: Explanation) -> Iterator[str]:
    decision = explanation.decision
    dry = explanation.source == "dry run"
    pod = click.style(decision.pod, bold=True)
    if decision.outcome == SCHEDULED:
        went = "would go to" if dry else "went to"
        yield f"Pod {pod} {went} {click.style(str(decision.chosen), fg='green', bold=True)}{_choice(decision)}"
    elif decision.queue.history and decision.queue.history[-1].queue == "gated":
        yield f"Pod {pod} is {click.style('held back', fg='yellow', bold=True)} by {decision.queue.history[-1].plugin}."
    elif decision.outcome == "error":
        yield f"Scheduling pod {pod} {click.style('failed', fg='red', bold=True)}."
    else:
        fits = "would fit nowhere" if dry else "is pending: it fits nowhere"
        yield f"Pod {pod} {click.style(fits, fg='red', bold=True)}{_looked_at(decision)}."
    if decision.message:
        yield from _wrapped(decision.message, "  ")


def _choice(decision: Decision) -> str:
    choice = decision.choice
    if choice is None:
        return "."
    if choice.reason == "only":
        return f": the only one of {_nodes(decision.nodeCount)} that will do."
    if choice.reason == "nominated":
        return ": room was made for it there."
    best = "the best" if choice.reason == "score" else f"one of the {len(choice.best)} best"
    return f": {best} of {decision.feasible} that will do, of {_nodes(decision.nodeCount)}."


def _looked_at(decision: Decision) -> str:
    return f" on {_nodes(decision.nodeCount)}" if decision.nodeCount else ""


# Why not elsewhere


def _why_not(decision: Decision) -> Iterator[str]:
    groups = _groups(decision)
    left_out = decision.nodeCount - decision.evaluated if decision.preFilter.narrowedTo is not None else 0
    if not groups and not left_out:
        return
    yield _title("Why not elsewhere" if decision.chosen else "Why not")
    for rejected, names in groups[:_GROUPS]:
        yield from _group(rejected, names)
    if len(groups) > _GROUPS:
        rest = groups[_GROUPS:]
        yield f"  {sum(len(names) for _, names in rest):>6}  nodes for {len(rest)} other reasons; see -o wide"
    if left_out:
        by = ", ".join(decision.preFilter.narrowedBy)
        yield from _row(left_out, f"{by}: left out before any node was looked at", "")


def _groups(decision: Decision) -> list[tuple[Rejected, list[str]]]:
    """The nodes by what was said of them, most first."""
    found: dict[Rejected, list[str]] = {}
    for name, result in _results(decision).items():
        if result.rejected is not None:
            found.setdefault(result.rejected, []).append(name)
    return sorted(found.items(), key=lambda group: (-len(group[1]), group[0].plugin, group[0].reasons))


def _group(rejected: Rejected, names: Sequence[str]) -> Iterator[str]:
    plugins = ", ".join((rejected.plugin, *rejected.others)) or "unknown"
    yield from _row(len(names), f"{plugins}: {', '.join(rejected.reasons) or rejected.code}", _examples(names))


def _row(count: int, what: str, examples: str) -> Iterator[str]:
    first, *rest = textwrap.wrap(what, WIDTH - 10) or [""]
    yield f"  {click.style(f'{count:>6}', bold=True)}  {first}"
    for line in rest:
        yield f"{'':10}{line}"
    if examples:
        yield click.style(f"{'':10}{examples}", dim=True)


def _examples(names: Sequence[str]) -> str:
    shown = [shortened(name, _NAME_WIDTH) for name in names[:_SHOWN_NODES]]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


# Scores


def _scores(decision: Decision) -> Iterator[str]:
    scored = _scored(decision)
    plugins = [name for name in decision.weights if any(name in (result.plugins or {}) for _, result in scored)]
    if not scored or not plugins:
        return
    names = [shortened(name, _NAME_WIDTH) for name, _ in scored]
    width = max(8, *(len(name) for name in names)) + 2
    shown = max(1, (WIDTH - _SCORE_COLUMN - 2) // width)
    yield _title("Scores") + f" of the best {min(shown, len(scored))} of {_nodes(len(scored))}, weighted"
    yield f"  {'':{_SCORE_COLUMN}}" + "".join(f"{name:>{width}}" for name in names[:shown])
    for plugin in plugins:
        cells = ((result.plugins or {}).get(plugin) for _, result in scored[:shown])
        label = f"{plugin} (x{decision.weights[plugin]})" if decision.weights[plugin] != 1 else plugin
        yield f"  {shortened(label, _SCORE_COLUMN):<{_SCORE_COLUMN}}" + "".join(
            f"{'-' if cell is None else cell:>{width}}" for cell in cells
        )
    if any(result.extenders for _, result in scored[:shown]):
        yield f"  {'extenders':<{_SCORE_COLUMN}}" + "".join(f"{one.extenders:>{width}}" for _, one in scored[:shown])
    totals = "".join(f"{result.total:>{width}}" for _, result in scored[:shown])
    yield click.style(f"  {'total':<{_SCORE_COLUMN}}{totals}", bold=True)


def _scored(decision: Decision) -> list[tuple[str, NodeResult]]:
    """The nodes that were scored, best first, the chosen one before its equals."""
    found = [(name, result) for name, result in _results(decision).items() if result.total is not None]
    return sorted(found, key=lambda one: (-(one[1].total or 0), one[0] != decision.chosen, one[0]))


# Preemption


def _preemption(decision: Decision) -> Iterator[str]:
    preemption = decision.preemption
    if preemption is None or not (preemption.nominated or preemption.message):
        return
    yield _title("Preemption")
    if preemption.nominated:
        victims = ", ".join(victim.pod for victim in preemption.victims)
        yield from _wrapped(f"makes room on {preemption.nominated}, from which must go: {victims}", "  ")
    else:
        yield from _wrapped(preemption.message.removeprefix("preemption: "), "  ")


# One node, and all of them


def _one_node(decision: Decision, name: str) -> Iterator[str]:
    result = _results(decision).get(name)
    yield _title(f"Node {name}")
    if result is None:
        by = ", ".join(decision.preFilter.narrowedBy)
        yield f"  was left out by {by}." if by else "  was not looked at: enough others had been found."
    elif result.rejected is not None:
        rejected = result.rejected
        yield f"  refused by {', '.join((rejected.plugin, *rejected.others))} ({rejected.code})"
        for reason in rejected.reasons:
            yield from _wrapped(reason, "    ")
    elif result.total is None:
        yield "  would do; nobody needed its score."
    else:
        ranks = [scored for scored, _ in _scored(decision)]
        yield f"  will do; number {ranks.index(name) + 1} of {len(ranks)} by score"
        yield f"  {'':{_SCORE_COLUMN}}{'raw':>16}{'normalised':>12}{'weighted':>12}"
        for plugin, score in (result.plugins or {}).items():
            raw, normalized = result.raw.get(plugin, ""), result.normalized.get(plugin, "")
            yield f"  {plugin:<{_SCORE_COLUMN}}{raw:>16}{normalized:>12}{score:>12}"
        yield click.style(f"  {'total':<{_SCORE_COLUMN}}{'':>28}{result.total:>12}", bold=True)


def _all_rejected(decision: Decision) -> Iterator[str]:
    rows = [
        (name, ",".join((one.plugin, *one.others)), one.code, ", ".join(one.reasons))
        for name, result in _results(decision).items()
        if (one := result.rejected) is not None
    ]
    if rows:
        yield from _table([("NODE", "PLUGIN", "CODE", "REASONS"), *rows])


def _all_scored(decision: Decision) -> Iterator[str]:
    plugins = list(decision.weights)
    rows = [
        (name, str(result.total), *(str((result.plugins or {}).get(plugin, "-")) for plugin in plugins))
        for name, result in _scored(decision)
    ]
    if rows:
        yield from _table([("NODE", "TOTAL", *(plugin.upper() for plugin in plugins)), *rows])


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


# Words


def _results(decision: Decision) -> dict[str, NodeResult]:
    return {} if decision.nodes is UNSET else decision.nodes


def _title(text: str) -> str:
    return click.style(text, bold=True, underline=False)


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _wrapped(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)


def shortened(text: str, width: int) -> str:
    """At most so long: what is left out of the middle is told by two dots."""
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head) :]}"
