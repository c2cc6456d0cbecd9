"""An explanation as one screen of 80 columns: what happened, why not elsewhere, scores, and what would help.

Colours are there to be stripped: `click.echo` leaves them out where there is no terminal.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from msgspec import UNSET

from kubestow.decisions.schema import SCHEDULED, Decision, NodeResult, Rejected
from kubestow.explaining.against import Against
from kubestow.explaining.explanation import Explanation
from kubestow.explaining.would_fit import Suggestion

WIDTH = 80
_GROUPS = 8
_SHOWN_NODES = 3
_NAME_WIDTH = 24
_LONGEST_NAME = 64
_SCORE_COLUMN = 32
_MOST_SCORED = 4
_CUT = ".."
"""Stands for what is left out of a name."""
_SUGGESTIONS = 6
_MOVES = 3
_WHY = {
    "pdbViolations": "the fewest PodDisruptionBudgets violated",
    "highestPriority": "the least important of its victims' most important pods",
    "prioritySum": "the lowest sum of its victims' priorities",
    "victims": "the fewest victims",
    "started": "the latest start of its most important victim",
    "first": "no reason: others are as good",
}
"""What a candidate for preemption had before the others."""
_SIDE = 11


def lines_of(explanation: Explanation, node: str = "", *, wide: bool = False) -> str:
    """The screen, without a line break at its end; about one node only, if one is named."""
    decision = explanation.decision
    sections = [list(_headline(explanation))]
    if node:
        sections.append(list(_one_node(decision, node)))
    if explanation.against is not None:
        sections.append(list(_against(explanation.against)))
    elif wide and not node:
        sections += [
            list(_nowhere(decision)),
            [
                *wrapped(decision.nodesDropped, ""),
                *_all_rejected(decision),
                *_left_out(decision),
                *_room_kept(decision),
            ],
            list(_all_scored(decision)),
            list(_preemption(decision)),
        ]
    elif not node:
        sections += [
            list(_nowhere(decision)),
            list(_why_not(decision)),
            list(_scores(decision)),
            list(_preemption(decision)),
        ]
    if explanation.against is None:
        sections.append(list(_would_fit(explanation, None if wide else _SUGGESTIONS)))
    sections.append([line for note in explanation.notes for line in wrapped(f"Note: {note}", "")])
    return "\n\n".join("\n".join(section) for section in sections if section)


# What happened


def _headline(explanation: Explanation) -> Iterator[str]:
    decision = explanation.decision
    dry = explanation.source == "dry run"
    bold = {decision.pod: {"bold": True}}
    if decision.outcome == SCHEDULED:
        went = f"{'would go' if dry else _went(decision)} to {decision.chosen}."
        yield from sentence(f"Pod {decision.pod} {went}", bold | {str(decision.chosen): {"fg": "green", "bold": True}})
        yield from wrapped(_choice(decision, dry=dry), "  ")
    elif dry and decision.queue.history and decision.queue.history[-1].queue == "gated":
        plugin = decision.queue.history[-1].plugin
        yield from sentence(f"Pod {decision.pod} is held back by {plugin}.", bold | {"held back": {"fg": "yellow"}})
    elif decision.outcome == "error":
        yield from sentence(f"Scheduling pod {decision.pod} failed.", bold | {"failed": {"fg": "red"}})
    elif decision.podGroup and decision.feasible:
        yield from sentence(f"Pod {decision.pod} is pending: it waits for its pod group.", bold)
    elif decision.feasible:
        where = f"on its way to {decision.chosen}" if decision.chosen else "where it was to go"
        by = f" by {', '.join(decision.rejectedBy)}" if decision.rejectedBy else ""
        yield from sentence(
            f"Pod {decision.pod} is pending: it was refused{by} {where}.", bold | {"refused": {"fg": "red"}}
        )
        yield from wrapped(f"{decision.feasible} of {_nodes(decision.evaluated)} looked at would do.", "  ")
    else:
        fits = "would fit nowhere" if dry else "is pending: it fits nowhere"
        said = f"Pod {decision.pod} {fits}{_looked_at(decision)}."
        yield from sentence(said, bold | {"fits nowhere": {"fg": "red"}, "would fit nowhere": {"fg": "red"}})
    said = "" if decision.preemption is None else decision.preemption.message
    yield from wrapped(decision.message.removesuffix(said).rstrip(), "  ")
    yield from _tries(decision)


def _went(decision: Decision) -> str:
    return "went" if decision.binding is None or decision.binding.state == "bound" else "is on its way"


def _tries(decision: Decision) -> Iterator[str]:
    """How often it was tried, and what became of it since."""
    queue, binding = decision.queue, decision.binding
    if queue.attempts:
        often = "once," if queue.attempts == 1 else f"{queue.attempts} times, last"
        yield from wrapped(f"Tried {often} at {to_the_second(decision.time)}.", "  ")
    for move in queue.history[-_MOVES:] if queue.attempts > 1 else ():
        by = f", by {move.plugin}" if move.plugin else ""
        yield from wrapped(f"{to_the_second(move.time)}  {move.queue}: {move.event}{by}", "    ")
    if binding is not None and binding.state != "bound":
        waits = f" for {', '.join(binding.waitsFor)}" if binding.waitsFor else ""
        error = "" if binding.error == decision.message else binding.error
        yield from wrapped(f"Binding: {binding.state}{waits} {error}".rstrip(), "  ")


def _choice(decision: Decision, *, dry: bool) -> str:
    choice, count = decision.choice, _nodes(decision.nodeCount)
    if choice is None:
        return ""
    looked_at = count if decision.evaluated == decision.nodeCount else f"{_nodes(decision.evaluated)} looked at"
    if choice.reason == "only":
        is_cut_short = not decision.preFilter.narrowedBy and decision.placement is None
        return f"It is the only one of {looked_at if is_cut_short else count} that will do."
    if choice.reason == "first":
        return "It is the first that will do; nothing is scored."
    if choice.reason == "nominated":
        return "Room was made for it there."
    will_do = f"{decision.feasible} of {looked_at} will do"
    if choice.reason == "score":
        return f"{will_do}, and it scores highest."
    many = len(choice.best)
    alike = "all of them score the same" if many == decision.feasible else f"{many} of them score highest"
    return f"{will_do}, and {alike}: {'it is any one of these' if dry else 'chance chose among these'}."


def _looked_at(decision: Decision) -> str:
    return f" on {_nodes(decision.nodeCount)}" if decision.nodeCount else ""


# Why not elsewhere


def _nowhere(decision: Decision) -> Iterator[str]:
    """Who refused the pod before any node was looked at."""
    refused = decision.preFilter.rejected
    if refused is not None:
        yield title("Why not")
        yield from row(decision.nodeCount, _refusal(refused), "wherever it goes: no node was looked at")


def _why_not(decision: Decision) -> Iterator[str]:
    groups, left_out = _groups(decision), list(_left_out(decision))
    if decision.preFilter.rejected is not None or not (groups or left_out or decision.nodesDropped):
        return
    yield title("Why not elsewhere" if decision.chosen else "Why not")
    yield from wrapped(decision.nodesDropped, "  ")
    for what, names in groups[:_GROUPS]:
        yield from row(len(names), what, examples(names))
    if len(groups) > _GROUPS:
        rest = groups[_GROUPS:]
        yield f"  {sum(len(names) for _, names in rest):>6}  nodes for {len(rest)} other reasons; see -o wide"
    yield from left_out
    yield from _room_kept(decision)


def _left_out(decision: Decision) -> Iterator[str]:
    """How many nodes nobody looked at."""
    if decision.preFilter.rejected is not None:
        return
    outside = 0 if decision.placement is None else decision.nodeCount - decision.placement.nodes
    left_out = decision.nodeCount - decision.evaluated - outside
    if left_out:
        by = ", ".join(decision.preFilter.narrowedBy)
        left = f"{by}: left out before any node was looked at" if by else f"not looked at: {_cut_short(decision)}"
        yield from row(left_out, left, "")
    if outside:
        yield from row(outside, f"not looked at: {_outside(decision)}", "")


def _room_kept(decision: Decision, node: str = "") -> Iterator[str]:
    """For whom nodes, or one of them, have less room than their pods leave."""
    kept = [one for one in decision.nominated if node in ("", one.node)]
    if kept:
        pods = [one.pod if node else f"{one.pod} on {one.node}" for one in kept[:_SHOWN_NODES]]
        more = f" and {len(kept) - len(pods)} more" if len(kept) > len(pods) else ""
        yield from wrapped(f"room is kept for nominated pods: {', '.join(pods)}{more}", "  ")


def _cut_short(decision: Decision) -> str:
    if decision.choice is not None and decision.choice.reason == "nominated":
        return "its nominated node was looked at first, and will do"
    if decision.choice is not None and decision.choice.reason == "first":
        return "one that will do is enough where nothing is scored"
    return "the attempt failed" if decision.outcome == "error" else "enough others had been found"


def _outside(decision: Decision) -> str:
    where = "" if decision.placement is None else decision.placement.name
    return f"outside {where}, where its pod group was tried"


def _groups(decision: Decision) -> list[tuple[str, list[str]]]:
    """The nodes by what is told of them, most first."""
    found: dict[str, list[str]] = {}
    for name, result in _results(decision).items():
        if result.rejected is not None:
            found.setdefault(_refusal(result.rejected), []).append(name)
    return sorted(found.items(), key=lambda group: (-len(group[1]), group[0]))


def _refusal(rejected: Rejected) -> str:
    plugins = ", ".join((rejected.plugin, *rejected.others)) or "unknown"
    return f"{plugins}: {', '.join(rejected.reasons) or rejected.code}"


def row(count: int, what: str, below: str) -> Iterator[str]:
    """A number, what there are so many of, and more about it below."""
    first, *rest = wrapped(what, "", WIDTH - 10)
    yield f"  {click.style(f'{count:>6}', bold=True)}  {first}"
    for line in rest:
        yield f"{'':10}{line}"
    yield from (click.style(line, dim=True) for line in wrapped(below, f"{'':10}"))


def examples(names: Sequence[str]) -> str:
    """The first of some names, and how many there are besides."""
    shown = _told_apart(names[:_SHOWN_NODES])
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


# Scores


def _scores(decision: Decision) -> Iterator[str]:
    scored = _scored(decision)
    plugins = [name for name in decision.weights if any((result.plugins or {}).get(name) for _, result in scored)]
    if not scored or not plugins:
        return
    names = _headings([name for name, _ in scored[:_MOST_SCORED]])
    width = max(8, *(len(name) for name in names)) + 2
    shown = max(1, (WIDTH - _SCORE_COLUMN - 2) // width)
    yield title("Scores") + f" of the best {min(shown, len(scored))} of {_nodes(len(scored))}, weighted"
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


def _headings(names: Sequence[str]) -> list[str]:
    """The names of columns: the longer they are, the fewer have room, so a domain that all of them have is left out."""
    domain = names[0][len(names[0].partition(".")[0]) :]
    if len(names) > 1 and len(domain) > len(_CUT) and all(name.endswith(domain) for name in names):
        names = [name.removesuffix(domain) + _CUT for name in names]
    return [shortened(name, _NAME_WIDTH) for name in names]


def _scored(decision: Decision) -> list[tuple[str, NodeResult]]:
    """The nodes that were scored, best first, the chosen one before its equals."""
    found = [(name, result) for name, result in _results(decision).items() if result.total is not None]
    return sorted(found, key=lambda one: (-(one[1].total or 0), one[0] != decision.chosen, one[0]))


# Preemption


def _preemption(decision: Decision) -> Iterator[str]:
    preemption = decision.preemption
    if preemption is None or not (preemption.nominated or preemption.message):
        return
    refused = decision.preFilter.rejected
    if refused is not None and refused.code == "UnschedulableAndUnresolvable":
        # There is no room that could be made.
        return
    yield title("Preemption")
    if preemption.nominated:
        victims = ", ".join(victim.pod for victim in preemption.victims)
        yield from wrapped(f"makes room on {preemption.nominated}, from which must go: {victims}", "  ")
        if preemption.pdbViolations:
            budgets = "PodDisruptionBudget" if preemption.pdbViolations == 1 else "PodDisruptionBudgets"
            yield f"  against {preemption.pdbViolations} {budgets}"
        if len(preemption.candidates) > 1:
            why = _WHY.get(preemption.why, preemption.why)
            yield from wrapped(f"chosen among {len(preemption.candidates)} nodes for {why}", "  ")
    else:
        yield from wrapped(preemption.message.removeprefix("preemption: "), "  ")


# What would help


def _would_fit(explanation: Explanation, most: int | None) -> Iterator[str]:
    suggestions = explanation.would_fit_if
    if not suggestions and not explanation.is_stuck:
        return
    yield title("Would fit if")
    if not suggestions:
        yield "  no single change was found that is enough."
        if explanation.decision.preFilter.rejected is None:
            yield "  --against NODE tells all that it takes on one node."
    for one in suggestions[:most]:
        yield from change_lines(one.side, one.change, _opens(one))
    if most is not None and len(suggestions) > most:
        yield f"  and {len(suggestions) - most} other ways; see -o wide"


def change_lines(side: str, change: str, effect: str) -> Iterator[str]:
    """A change that would help, and what comes of it."""
    first, *rest = wrapped(change, "", WIDTH - _SIDE)
    yield f"  {click.style(f'{side:<{_SIDE - 2}}', fg='cyan')}{first}"
    for line in rest:
        yield f"{'':{_SIDE}}{line}"
    yield from (click.style(line, dim=True) for line in wrapped(effect, f"{'':{_SIDE}}"))


def _opens(suggestion: Suggestion) -> str:
    more = suggestion.opens - len(suggestion.nodes[:_SHOWN_NODES])
    names = ", ".join(_told_apart(suggestion.nodes[:_SHOWN_NODES]))
    opens = f"opens {_nodes(suggestion.opens)}: {names}{f' and {more} more' if more > 0 else ''}"
    others = suggestion.alike - 1
    alike = "1 more node lacks" if others == 1 else f"{others} more nodes lack"
    return f"{opens}; {alike} only this" if others > 0 else opens


def _against(against: Against) -> Iterator[str]:
    yield title(f"To land on {against.node}")
    if against.rejected is not None:
        rejected = against.rejected
        yield from wrapped(f"it is refused by {rejected.plugin}: {', '.join(rejected.reasons)}", "  ")
    elif against.total is not None and against.behind:
        by = ", ".join(f"{plugin} {score:+}" for plugin, score in against.behindBy.items())
        yield from wrapped(
            f"it would do, but the best scores {against.behind} more than its {against.total}: {by}", "  "
        )
    elif against.total is not None:
        yield "  it would do, and none is better."
    for landing in against.changes[:_SUGGESTIONS]:
        if landing.ties:
            score = "scores" if landing.ties == 1 else "score"
            effect = f"it may go there: {_others(landing.ties)} {score} the same"
        elif landing.chosen == against.node:
            effect = "it would go there"
        elif landing.chosen is None:
            effect = "the node would do"
        else:
            effect = f"the node would do, but {landing.chosen} scores higher"
        yield from change_lines(landing.side, landing.change, effect)
    if against.together:
        yield "  no single change is enough; all of these are:"
        for words in against.together:
            yield from (
                f"  - {line}" if not number else f"    {line}" for number, line in enumerate(textwrap.wrap(words, 76))
            )
    elif not against.changes and against.total is None:
        yield "  nothing was found that would help."


# One node, and all of them


def _one_node(decision: Decision, name: str) -> Iterator[str]:
    result = _results(decision).get(name)
    yield title(f"Node {name}")
    if result is None:
        by, refused = ", ".join(decision.preFilter.narrowedBy), decision.preFilter.rejected
        enough = _cut_short(decision)
        if decision.placement is not None:
            enough = _outside(decision) + ("" if decision.evaluated >= decision.placement.nodes else f", or {enough}")
        if refused is not None:
            yield from wrapped(f"was not looked at: {refused.plugin} refuses the pod wherever it goes.", "  ")
        elif decision.nodesDropped:
            yield from wrapped(f"{decision.nodesDropped}.", "  ")
        else:
            yield from wrapped(f"was left out by {by}." if by else f"was not looked at: {enough}.", "  ")
    elif result.rejected is not None:
        rejected = result.rejected
        yield from wrapped(f"refused by {', '.join((rejected.plugin, *rejected.others))} ({rejected.code})", "  ")
        for reason in rejected.reasons:
            yield from wrapped(reason, "    ")
        yield from _room_kept(decision, name)
    elif result.total is None:
        yield "  would do; nobody needed its score."
    else:
        totals = [scored.total or 0 for _, scored in _scored(decision)]
        higher, same = sum(total > result.total for total in totals), totals.count(result.total) - 1
        like = f", as {_others(same)}" if same else ""
        yield f"  will do; number {higher + 1} of {len(totals)} by score{like}"
        yield f"  {'':{_SCORE_COLUMN}}{'raw':>16}{'normalised':>12}{'weighted':>12}"
        for plugin, score in (result.plugins or {}).items():
            raw, normalized = result.raw.get(plugin, ""), result.normalized.get(plugin, "")
            yield f"  {shortened(plugin, _SCORE_COLUMN - 1):<{_SCORE_COLUMN}}{raw:>16}{normalized:>12}{score:>12}"
        if result.extenders:
            yield f"  {'extenders':<{_SCORE_COLUMN}}{'':>28}{result.extenders:>12}"
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
    scored, plugins = _scored(decision), list(decision.weights)
    rows = [
        (name, str(result.total), *(str((result.plugins or {}).get(plugin, "-")) for plugin in plugins))
        for name, result in scored
    ]
    head: tuple[str, ...] = ("NODE", "TOTAL", *(plugin.upper() for plugin in plugins))
    if any(result.extenders for _, result in scored):
        head = (*head, "EXTENDERS")
        rows = [(*row, str(result.extenders)) for row, (_, result) in zip(rows, scored, strict=True)]
    if rows:
        yield from _table([head, *rows])


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


# Words


def _results(decision: Decision) -> dict[str, NodeResult]:
    return {} if decision.nodes is UNSET else decision.nodes


def title(text: str) -> str:
    """What a section begins with."""
    return click.style(text, bold=True)


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _others(count: int) -> str:
    return "1 other" if count == 1 else f"{count} others"


def to_the_second(time: str) -> str:
    """A time, in fewer words."""
    return f"{time.partition('.')[0].removesuffix('Z')}Z"


def sentence(text: str, styles: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence in which some words stand out."""
    for line in wrapped(text, ""):
        for words, style in styles.items():
            line = line.replace(words, click.style(words, **style))
        yield line


def wrapped(text: str, indent: str, width: int = WIDTH) -> Iterator[str]:
    """Lines that a terminal has room for."""
    # Names with hyphens stay whole, to be found and copied.
    wrapper = textwrap.TextWrapper(
        width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    yield from wrapper.wrap(text)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Names shortened, but only if they differ then, too."""
    short = [shortened(name, _NAME_WIDTH) for name in names]
    return short if len(set(short)) == len(names) else [shortened(name, _LONGEST_NAME) for name in names]


def shortened(text: str, width: int) -> str:
    """At most so long: two dots stand for what is left out before the end."""
    if len(text) <= width:
        return text
    tail = (width - len(_CUT)) // 3
    return f"{text[: width - len(_CUT) - tail]}{_CUT}{text[-tail:]}"
