"""Why a pod went elsewhere under B than under A: what both schedulers said of both nodes, and who made the difference.

Both decisions are those of decisions.jsonl, so both may have been made by other versions of the program.
"""

from typing import NamedTuple

from kubestow.decisions.schema import Decision, NodeResult


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


def why(a: Decision | None, b: Decision | None) -> str:
    """In a few words, the same for all pods that moved for the same reason."""
    for side, decision in (("A", a), ("B", b)):
        if decision is None:
            return f"the pod is never tried under {side}"
        if not decision.chosen:
            return f"no node under {side}: {', '.join(decision.rejectedBy) or decision.message}"
    assert a is not None
    assert b is not None
    assert a.chosen
    assert b.chosen
    for side, decision, other, node in (("B", b, "A", a.chosen), ("A", a, "B", b.chosen)):
        result = _of(decision, node)
        if result is not None and result.rejected is not None:
            return f"{result.rejected.plugin} refuses {other}'s node under {side}"
        if result is None or result.plugins is None:
            far = "not among the best" if decision.nodesCut else "not scored"
            return f"{other}'s node is {far} under {side}"
    return _difference(a, b, a.chosen, b.chosen)


def _difference(a: Decision, b: Decision, node_a: str, node_b: str) -> str:
    """Who gives A's node more before B's under A than under B."""
    leads = []
    for decision in (a, b):
        one, two = _of(decision, node_a), _of(decision, node_b)
        assert one is not None
        assert two is not None
        assert one.plugins is not None
        assert two.plugins is not None
        leads.append({name: score - two.plugins.get(name, 0) for name, score in one.plugins.items()})
    if sum(leads[0].values()) == sum(leads[1].values()) == 0:
        return "chance: both score both nodes the same"
    names = sorted({*leads[0], *leads[1]})
    plugin = max(names, key=lambda name: leads[0].get(name, 0) - leads[1].get(name, 0))
    weights = a.weights.get(plugin, 0), b.weights.get(plugin, 0)
    if weights[0] != weights[1]:
        return f"weight of {plugin}: {weights[0]} under A, {weights[1]} under B"
    return f"{plugin} scores the nodes otherwise"
