"""The explanation of a pod group as one screen: whether it fits, the placements tried, and what would help."""

from collections.abc import Iterator
from itertools import islice

from kubestow.cli.explain.lines import (
    HEIGHT,
    cause_lines,
    change_lines,
    examples,
    nothing_helps,
    row,
    sentence,
    some_ways,
    title,
    to_the_second,
    wrapped,
)
from kubestow.insight.decisions.schema import ERROR, SCHEDULED, GroupDecision
from kubestow.insight.explain.explanation import GroupExplanation

_PLACEMENTS = 4


def group_lines_of(explanation: GroupExplanation, *, wide: bool = False) -> str:
    """Return the screen without a final line break."""
    most = None if wide else _PLACEMENTS
    sections = [
        list(_headline(explanation, most)),
        list(_placements(explanation.decision, most)),
        list(cause_lines(explanation.causes)),
        [line for note in explanation.notes for line in wrapped(f"Note: {note}", "")],
    ]
    room = HEIGHT - sum(len(section) + 1 for section in sections if section)
    sections.insert(-1, list(_would_fit(explanation, None if wide else room)))
    return "\n\n".join("\n".join(section) for section in sections if section)


def _headline(explanation: GroupExplanation, most: int | None) -> Iterator[str]:
    decision, against = explanation.decision, explanation.against
    bold = {decision.podGroup: {"bold": True}}
    gang = f"{decision.minCount} of its pods must have a node at once" if decision.minCount else "one pod is enough"
    live = explanation.source == "scheduler"
    if decision.outcome == SCHEDULED:
        fits = "was placed" if live else "would fit"
        where = f" in {decision.placement}" if decision.placement else ""
        yield from sentence(f"Pod group {decision.podGroup} {fits}{where}.", bold | {fits: {"fg": "green"}})
    elif decision.outcome == ERROR:
        yield from sentence(f"Scheduling pod group {decision.podGroup} failed.", bold | {"failed": {"fg": "red"}})
    else:
        fits = "is pending: it does not fit" if live else "does not fit"
        where = f" in {against}" if against else ""
        yield from sentence(f"Pod group {decision.podGroup} {fits}{where}.", bold | {"does not fit": {"fg": "red"}})
    yield from wrapped(decision.message, "  ")
    if live:
        yield f"  Tried last at {to_the_second(decision.time)}."
    have = f"{decision.scheduled} {'has' if decision.scheduled == 1 else 'have'} one"
    wait = f"{decision.pods} {'waits' if decision.pods == 1 else 'wait'}"
    missing = f"; {decision.missing} too few" if decision.missing else ""
    yield from wrapped(f"{gang}; {have}, {wait}{missing}.".capitalize(), "  ")
    for pod, node in islice(decision.chosen.items(), most):
        yield f"    {pod} on {node}"
    if most is not None and len(decision.chosen) > most:
        yield f"    and {len(decision.chosen) - most} other pods; see -o wide"
    if decision.victims:
        victims = [victim.pod for victim in decision.victims]
        yield from wrapped(f"Preemption evicts {', '.join(victims[:most])}.", "  ")


def _placements(decision: GroupDecision, most: int | None) -> Iterator[str]:
    groups: dict[tuple[int, int, tuple[str, ...]], list[str]] = {}
    for one in decision.placements:
        groups.setdefault((one.placed, one.nodes, one.reasons), []).append(one.name)
    if not groups:
        return
    yield title("Tried") + ", pods that found a node"
    ranked = sorted(groups.items(), key=lambda one: -one[0][0])
    for (placed, nodes, reasons), names in ranked[:most]:
        where = f"{', '.join(names) if most is None else examples(names)}: " if names[0] else ""
        many = f"{nodes} node{'' if nodes == 1 else 's'}{' each' if len(names) > 1 else ''}"
        yield from row(placed, f"of {decision.pods} in {where}{many}", "; ".join(reasons))
    if most is not None and len(ranked) > most:
        yield f"  and {sum(len(names) for _, names in ranked[most:])} other placements; see -o wide"


def _would_fit(explanation: GroupExplanation, room: int | None) -> Iterator[str]:
    suggestions = explanation.would_fit_if
    if not suggestions and not explanation.is_stuck:
        return
    yield title("Would fit if")
    if not suggestions:
        yield from nothing_helps(explanation.causes, explanation.decision.message)
    effect = "{} of its pods would have a node"
    ways = [list(change_lines(one.side, one.change, effect.format(one.placed))) for one in suggestions]
    yield from some_ways(ways, room)
