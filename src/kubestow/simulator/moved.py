"""Why a pod went elsewhere under B than under A: what both schedulers said of both nodes, and who made the difference.

Both decisions are those of decisions.jsonl, so both may have been made by other versions of the program.
"""

from typing import NamedTuple

from kubestow.decisions.schema import Decision, NodeResult

SCORE, REFUSED, PLACED, UNPLACED, TIE, UNKNOWN = "score", "refused", "placed", "unplaced", "tie", "unknown"


class Why(NamedTuple):
    """A reason: in a few words, of which kind it is, and whose doing."""

    words: str
    kind: str
    plugin: str = ""


class Moved(NamedTuple):
    """A pod that went elsewhere; an empty node: nowhere."""

    pod: str
    a: str
    b: str
    why: str


class Scores(NamedTuple):
    """What the plugins said of the two nodes, weighted, under one of the two."""

    chosen: str
    totals: dict[str, int]
    plugins: dict[str, dict[str, int]]
    """By node."""
    refused: dict[str, str]
    """By node: the plugin, and its reasons."""
    message: str


def scores(decision: Decision | None, nodes: tuple[str, str]) -> Scores:
    """What a decision says of two nodes."""
    if decision is None:
        return Scores("", {}, {}, {}, "the pod was never tried")
    found = {name: result for name in nodes if (result := _of(decision, name)) is not None}
    return Scores(
        decision.chosen or "",
        {name: one.total for name, one in found.items() if one.total is not None},
        {name: one.plugins for name, one in found.items() if one.plugins is not None},
        {
            name: f"{one.rejected.plugin}: {', '.join(one.rejected.reasons)}"
            for name, one in found.items()
            if one.rejected is not None
        },
        decision.message,
    )


def _of(decision: Decision, node: str) -> NodeResult | None:
    return decision.nodes.get(node) if isinstance(decision.nodes, dict) else None


def why(a: Decision | None, b: Decision | None) -> Why:
    """The reason, the same for all pods that moved for it."""
    for side, decision, kind in (("A", a, PLACED), ("B", b, UNPLACED)):
        if decision is None:
            return Why(f"the pod is never tried under {side}", kind)
        if not decision.chosen:
            by = ", ".join(decision.rejectedBy)
            return Why(f"no node under {side}: {by or decision.message}", kind, next(iter(decision.rejectedBy), ""))
    assert a is not None
    assert b is not None
    assert a.chosen
    assert b.chosen
    for side, decision, other, node in (("B", b, "A", a.chosen), ("A", a, "B", b.chosen)):
        result = _of(decision, node)
        if result is not None and result.rejected is not None:
            plugin = result.rejected.plugin
            return Why(f"{plugin} refuses {other}'s node under {side}", REFUSED, plugin)
        if result is None or result.plugins is None:
            far = "not among the best" if decision.nodesCut else "not scored"
            return Why(f"{other}'s node is {far} under {side}", UNKNOWN)
    return _difference(a, b)


def leads(decision: Decision | None, one: str, other: str) -> dict[str, int]:
    """How much more plugins give one node than another; nothing where one of them was not scored."""
    results = [None, None] if decision is None else [_of(decision, one), _of(decision, other)]
    mine, others = (None if result is None else result.plugins for result in results)
    if mine is None or others is None:
        return {}
    return {name: score - others.get(name, 0) for name, score in mine.items()}


def _difference(a: Decision, b: Decision) -> Why:
    """Who gives A's node more before B's under A than under B."""
    under_a, under_b = (leads(decision, a.chosen or "", b.chosen or "") for decision in (a, b))
    if sum(under_a.values()) == sum(under_b.values()) == 0:
        return Why("chance: both score both nodes the same", TIE)
    names = sorted({*under_a, *under_b})
    plugin = max(names, key=lambda name: under_a.get(name, 0) - under_b.get(name, 0))
    weights = a.weights.get(plugin, 0), b.weights.get(plugin, 0)
    if weights[0] != weights[1]:
        return Why(f"weight of {plugin}: {weights[0]} under A, {weights[1]} under B", SCORE, plugin)
    return Why(f"{plugin} scores the nodes otherwise", SCORE, plugin)
