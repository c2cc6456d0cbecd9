"""An explanation as one screen of 80 columns: what happened, why not elsewhere, scores, and what would help."""

import textwrap
from collections.abc import Iterator, Sequence

from kubestow.cli.explain import nodes as explain_nodes
from kubestow.cli.explain.lines import (
    HEIGHT,
    SHOWN_NAMES,
    cause_lines,
    change_lines,
    distinct_short_names,
    format_node_count,
    format_other_count,
    nothing_helps,
    sentence,
    some_ways,
    title,
    to_the_second,
    wrapped,
)
from kubestow.insight.decisions.schema import SCHEDULED, Decision
from kubestow.insight.explain.against import Against
from kubestow.insight.explain.causes import Cause
from kubestow.insight.explain.explanation import Explanation
from kubestow.insight.explain.would_fit import Suggestion

_SUGGESTIONS = 6
_FEWEST_LINES = 7
"""The lines that suggestions get."""
_MOVES = 3
_WHY = {
    "pdbViolations": "the fewest PodDisruptionBudgets violated",
    "highestPriority": "the least important of its victims' most important pods",
    "prioritySum": "the lowest sum of its victims' priorities",
    "victims": "the fewest victims",
    "started": "the latest start of its most important victim",
    "first": "no reason: others are equal",
}
"""The advantage of the selected candidate for preemption."""


def lines_of(explanation: Explanation, node: str = "", *, wide: bool = False) -> str:
    """Return the screen without a final line break; for one node only, if it is named."""
    decision = explanation.decision
    sections = [list(_headline(explanation))]
    if node:
        sections.append(list(explain_nodes.one_node(decision, node)))
    if explanation.against is not None:
        sections.append(list(cause_lines(explanation.causes)))
        sections.append(list(_against(explanation.against, explanation.causes)))
    elif wide and not node:
        sections += [
            list(cause_lines(explanation.causes, None)),
            list(explain_nodes.rejected_pod(decision)),
            [
                *wrapped(decision.nodesDropped, ""),
                *explain_nodes.all_rejected(decision),
                *explain_nodes.not_evaluated(decision),
                *explain_nodes.reservations(decision),
            ],
            list(explain_nodes.all_scored(decision)),
            list(_preemption(decision)),
        ]
    elif not node:
        sections += [
            list(cause_lines(explanation.causes)),
            list(explain_nodes.rejected_pod(decision)),
            list(explain_nodes.rejection_reasons(decision)),
            list(explain_nodes.scores(decision)),
            list(_preemption(decision)) if not explanation.causes or _has_victims(decision) else [],
        ]
    notes = [line for note in explanation.notes for line in wrapped(f"Note: {note}", "")]
    if explanation.against is None:
        others = [section for section in (*sections, notes) if section]
        if not wide and not node and decision.outcome != SCHEDULED:
            # What is left out last: why nodes were rejected, which the first lines summarize.
            for optional in reversed(sections[2:]):
                if sum(len(section) + 1 for section in others) > HEIGHT - _FEWEST_LINES and optional in others:
                    others.remove(optional)
                    sections.remove(optional)
        room = HEIGHT - sum(len(section) + 1 for section in others)
        sections.append(list(_would_fit(explanation, None if wide else room)))
    sections.append(notes)
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
    elif decision.podGroup and (decision.feasible or not (decision.evaluated or decision.rejectedBy)):
        yield from sentence(f"Pod {decision.pod} is pending: it waits for its pod group.", bold)
    elif decision.feasible:
        where = f"on its way to {decision.chosen}" if decision.chosen else "on its node"
        by = f" by {', '.join(decision.rejectedBy)}" if decision.rejectedBy else ""
        yield from sentence(
            f"Pod {decision.pod} is pending: it was refused{by} {where}.", bold | {"refused": {"fg": "red"}}
        )
        yield from wrapped(
            f"{decision.feasible} of {format_node_count(decision.evaluated)} evaluated were feasible.", "  "
        )
    else:
        fits = "would fit nowhere" if dry else "is pending: it fits nowhere"
        text = f"Pod {decision.pod} {fits}{_on_nodes(decision)}."
        yield from sentence(text, bold | {"fits nowhere": {"fg": "red"}, "would fit nowhere": {"fg": "red"}})
    preemption = "" if decision.preemption is None else decision.preemption.message
    yield from wrapped(decision.message.removesuffix(preemption).rstrip(), "  ")
    yield from _tries(decision)


def _went(decision: Decision) -> str:
    return "went" if decision.binding is None or decision.binding.state == "bound" else "is on its way"


def _tries(decision: Decision) -> Iterator[str]:
    """Yield the number of attempts, and the later moves of the pod."""
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
    choice, count = decision.choice, format_node_count(decision.nodeCount)
    if choice is None:
        return ""
    looked_at = (
        count if decision.evaluated == decision.nodeCount else f"{format_node_count(decision.evaluated)} evaluated"
    )
    if choice.reason == "only":
        is_cut_short = not decision.preFilter.narrowedBy and decision.placement is None
        return f"It is the only feasible one of {looked_at if is_cut_short else count}."
    if choice.reason == "first":
        return "It is the first that is feasible; nothing is scored."
    if choice.reason == "nominated":
        return "It is its nominated node."
    feasible = f"{decision.feasible} of {looked_at} are feasible"
    if choice.reason == "score":
        return f"{feasible}, and it scores highest."
    many = len(choice.best)
    equal = "all of them score the same" if many == decision.feasible else f"{many} of them score highest"
    return f"{feasible}, and {equal}: {'one is' if dry else 'it was'} chosen at random."


def _on_nodes(decision: Decision) -> str:
    return f" on {format_node_count(decision.nodeCount)}" if decision.nodeCount else ""


# Preemption


def _has_victims(decision: Decision) -> bool:
    return decision.preemption is not None and bool(decision.preemption.nominated)


def _preemption(decision: Decision) -> Iterator[str]:
    preemption = decision.preemption
    if preemption is None or not (preemption.nominated or preemption.message):
        return
    refused = decision.preFilter.rejected
    if refused is not None and refused.code == "UnschedulableAndUnresolvable":
        # Preemption cannot help.
        return
    yield title("Preemption")
    if preemption.nominated:
        victims = ", ".join(victim.pod for victim in preemption.victims)
        yield from wrapped(f"evicts pods from {preemption.nominated}: {victims}", "  ")
        if preemption.pdbViolations:
            budgets = "PodDisruptionBudget" if preemption.pdbViolations == 1 else "PodDisruptionBudgets"
            yield f"  violates {preemption.pdbViolations} {budgets}"
        if len(preemption.candidates) > 1:
            why = _WHY.get(preemption.why, preemption.why)
            yield from wrapped(f"chosen among {len(preemption.candidates)} nodes for {why}", "  ")
    else:
        yield from wrapped(preemption.message.removeprefix("preemption: "), "  ")


# What would help


def _would_fit(explanation: Explanation, room: int | None) -> Iterator[str]:
    """Yield the suggestions that fit in some lines, but at least the first two; all without a limit."""
    suggestions = explanation.would_fit_if
    if not suggestions and not explanation.is_stuck:
        return
    yield title("Would fit if")
    if not suggestions:
        yield from _together(explanation)
    yield from some_ways([list(change_lines(one.side, one.change, _opens(one))) for one in suggestions], room)


def _together(explanation: Explanation) -> Iterator[str]:
    together = explanation.together
    if together is None:
        yield from nothing_helps(explanation.causes, explanation.decision.message)
        return
    yield f"  no single change is enough; all of these are, for node {together.node}:"
    for change in together.changes:
        first, *rest = wrapped(change, "    ")
        yield f"  - {first.lstrip()}"
        yield from rest


def _opens(suggestion: Suggestion) -> str:
    more = suggestion.opens - len(suggestion.nodes[:SHOWN_NAMES])
    names = ", ".join(distinct_short_names(suggestion.nodes[:SHOWN_NAMES]))
    opens = f"opens {format_node_count(suggestion.opens)}: {names}{f' and {more} more' if more > 0 else ''}"
    others = suggestion.alike - 1
    alike = "1 more node lacks" if others == 1 else f"{others} more nodes lack"
    return f"{opens}; {alike} only this" if others > 0 else opens


def _against(against: Against, causes: Sequence[Cause]) -> Iterator[str]:
    yield title(f"To land on {against.node}")
    if against.rejected is not None:
        rejected = against.rejected
        yield from wrapped(f"it is refused by {rejected.plugin}: {', '.join(rejected.reasons)}", "  ")
    elif against.total is not None and against.behind:
        by = ", ".join(f"{plugin} {score:+}" for plugin, score in against.behindBy.items())
        yield from wrapped(
            f"it is feasible, but the best scores {against.behind} more than its {against.total}: {by}", "  "
        )
    elif against.total is not None:
        yield "  it is feasible, and no node is better."
    for landing in against.changes[:_SUGGESTIONS]:
        if landing.ties:
            score = "scores" if landing.ties == 1 else "score"
            effect = f"it may be placed there: {format_other_count(landing.ties)} {score} the same"
        elif landing.chosen == against.node:
            effect = "it would be placed there"
        elif landing.chosen is None:
            effect = "the node would be feasible"
        else:
            effect = f"the node would be feasible, but {landing.chosen} scores higher"
        yield from change_lines(landing.side, landing.change, effect)
    if against.together:
        yield "  no single change is enough; all of these are:"
        for change in against.together:
            yield from (
                f"  - {line}" if not number else f"    {line}" for number, line in enumerate(textwrap.wrap(change, 76))
            )
    elif not against.changes and against.total is None:
        yield from nothing_helps(causes, "" if against.rejected is None else ", ".join(against.rejected.reasons))
