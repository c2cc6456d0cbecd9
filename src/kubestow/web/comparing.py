"""Two decisions about the same pod: whether it moved, and whose doing that is.

Where both nodes were scored both times, the plugin whose scores changed most in favour of the second did it. Otherwise
it is the plugin that refuses one of the nodes in one of the two.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kubestow.decisions.reading import Query
from kubestow.decisions.schema import Decision
from kubestow.web.decisions import Attempt, nodes_of
from kubestow.web.run import Run

SCORE, REFUSED, PLACED, UNPLACED, TIE, UNKNOWN = "score", "refused", "placed", "unplaced", "tie", "unknown"
_NAMED = 100


class Why(NamedTuple):
    """The reason why a pod moved."""

    kind: str
    plugin: str
    words: str


def told(a: str, b: str, pairs: Sequence[tuple[Decision, Decision]], figures: Sequence[Any] = ()) -> dict[str, Any]:
    """What moved between two runs, grouped by why."""
    groups: dict[Why, list[dict[str, Any]]] = {}
    for one, two in pairs:
        if one.chosen != two.chosen:
            why, by = explain(one, two)
            moved = {"pod": one.pod, "a": one.chosen or "", "b": two.chosen or "", "by": by}
            groups.setdefault(why, []).append(moved | {"message": one.message or two.message})
    ordered = sorted(groups.items(), key=lambda entry: -len(entry[1]))
    return {
        "a": a,
        "b": b,
        "pods": len(pairs),
        "moved": sum(map(len, groups.values())),
        "figures": list(figures),
        "groups": [
            {"why": why.words, "plugin": why.plugin, "kind": why.kind, "count": len(pods), "pods": pods[:_NAMED]}
            for why, pods in ordered
        ],
    }


def told_of_runs(a: Run, b: Run) -> dict[str, Any]:
    """Where pods went first in two runs; those that only one of them had are left out."""
    # Imported only now: a live scheduler has no use for a simulator.
    from kubestow.simulator.comparing import FIGURES

    first, second = _firsts(a), _firsts(b)
    both = [pod for pod in first if pod in second]
    moved = [pod for pod in both if first[pod].chosen != second[pod].chosen]
    pairs = [(a.decisions.tell(first[pod]), b.decisions.tell(second[pod])) for pod in moved]
    figures = [
        {"name": name, "a": read(a.results), "b": read(b.results)}
        for name, read in FIGURES.items()
        if a.results and b.results
    ]
    return told(a.name, b.name, pairs, figures) | {"pods": len(both)}


def _firsts(run: Run) -> dict[str, Attempt]:
    """By pod, the decision that gave it its first node; or the last one, if none did."""
    found: dict[str, Attempt] = {}
    for attempt in run.decisions.find(Query()):
        if attempt.chosen or attempt.pod not in found:
            found[attempt.pod] = attempt
    return found


def explain(a: Decision, b: Decision) -> tuple[Why, dict[str, int]]:
    """Why a pod moved, and how the difference between the two nodes' scores has changed, by plugin."""
    if not a.chosen or not b.chosen:
        without, kind = (a, PLACED) if b.chosen else (b, UNPLACED)
        refused = _refusal(without, a.chosen or b.chosen or "")
        plugin = refused or next(iter(without.rejectedBy), "")
        letter = "the first" if kind == PLACED else "the second"
        return Why(kind, plugin, f"no node in {letter}" + (f", because of {plugin}" if plugin else "")), {}
    for decision, node, letter in ((b, a.chosen, "second"), (a, b.chosen, "first")):
        refused = _refusal(decision, node)
        if refused:
            return Why(REFUSED, refused, f"{refused} refuses the other node in the {letter}"), {}
    first, second = _differences(a, a.chosen, b.chosen), _differences(b, a.chosen, b.chosen)
    if first is None or second is None:
        return Why(UNKNOWN, "", "nothing is known of the scores"), {}
    by = {name: first.get(name, 0) - second.get(name, 0) for name in {**first, **second}}
    by = {name: change for name, change in sorted(by.items(), key=lambda entry: -abs(entry[1])) if change}
    plugin = max(by, key=lambda name: by[name], default="")
    if not by or by[plugin] <= 0:
        return Why(TIE, "", "equal scores: chance decided"), by
    return Why(SCORE, plugin, f"{plugin} scores differently"), by


def _refusal(decision: Decision, node: str) -> str:
    result = nodes_of(decision).get(node)
    return result.rejected.plugin if result is not None and result.rejected is not None else ""


def _differences(decision: Decision, one: str, other: str) -> dict[str, int] | None:
    """By how much one node is ahead of another, by plugin."""
    nodes = nodes_of(decision)
    mine, others = nodes.get(one), nodes.get(other)
    if mine is None or others is None or mine.plugins is None or others.plugins is None:
        return None
    names: Iterable[str] = {**mine.plugins, **others.plugins}
    return {name: mine.plugins.get(name, 0) - others.plugins.get(name, 0) for name in names}
