"""Why a pod went elsewhere under B than under A: what both schedulers said of both nodes, and who made the difference.

Both decisions are those of decisions.jsonl, so both may have been made by other versions of the program.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubestow.insight.decisions.schema import Decision

_NAMING = ("ReplicaSet", "ReplicationController", "Job")
"""Kinds whose pods may be any of their kind; a DaemonSet's are each for a node, a StatefulSet's have names to keep."""
_MADE_UP = 5
"""So many letters the API server puts behind a name that is to be generated."""
SCORE, REFUSED, PLACED, UNPLACED, TIE, UNKNOWN = "score", "refused", "placed", "unplaced", "tie", "unknown"

FIGURES: dict[str, Callable[[dict[str, Any]], float]] = {
    "pods bound": lambda tree: tree["pods"]["bound"],
    "pods pending at the end": lambda tree: tree["pods"]["pending"],
    "mean wait, s": lambda tree: tree["waits"]["mean"],
    "95 % of waits within, s": lambda tree: tree["waits"]["p95"],
    "evicted by preemption": lambda tree: tree["pods"]["victims"],
    "attempts": lambda tree: tree["pods"]["attempts"],
    "CPU requested, mean share": lambda tree: tree["utilisation"]["cpu"]["mean"],
    "fragmentation, mean": lambda tree: tree["utilisation"]["fragmentation"]["mean"],
}
"""Figures of a run that are compared, by name: each is read from its `results.json`."""


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
    renamed: str = ""
    """What the pod is called under B, if that is another name."""

    @property
    def called(self) -> str:
        """The pod by its names."""
        return f"{self.pod} ({self.renamed} under B)" if self.renamed else self.pod


class Scores(NamedTuple):
    """What the plugins said of the two nodes, weighted, under one of the two."""

    chosen: str
    totals: dict[str, int]
    plugins: dict[str, dict[str, int]]
    """By node."""
    refused: dict[str, str]
    """By node: the plugin, and its reasons."""
    message: str


def paired(a: Mapping[str, str], b: Mapping[str, str]) -> list[tuple[str, str]]:
    """The pods of two runs, each with what it is called in both; an empty name: it is only in the other.

    `a` and `b` tell the owner of each pod, in the order in which pods were first tried. Pods are the same if they have
    the same name. Of those left, which a controller gave made-up names, the first of one run is the first of the other.
    """
    left: dict[str, list[str]] = defaultdict(list)
    for pod, owner in b.items():
        if pod not in a:
            left[_stem(pod, owner)].append(pod)
    waiting = {stem: iter(pods) for stem, pods in left.items()}
    pairs = [(pod, pod if pod in b else next(waiting.get(_stem(pod, owner), iter(())), "")) for pod, owner in a.items()]
    return pairs + [("", pod) for pods in waiting.values() for pod in pods]


def _stem(pod: str, owner: str) -> str:
    """What the pods of one owner have in common whose names are made up; else all of the name."""
    return f"{owner} {pod[:-_MADE_UP]}" if owner.partition("/")[0] in _NAMING else pod


def scores(decision: Decision | None, nodes: tuple[str, str]) -> Scores:
    """What a decision says of two nodes."""
    if decision is None:
        return Scores("", {}, {}, {}, "no such pod was tried")
    found = {name: result for name in nodes if (result := decision.by_node.get(name)) is not None}
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


def why(a: Decision | None, b: Decision | None) -> Why:
    """The reason, the same for all pods that moved for it."""
    for side, decision, kind in (("A", a, PLACED), ("B", b, UNPLACED)):
        if decision is None:
            return Why(f"no such pod is tried under {side}", kind)
        if not decision.chosen:
            by = ", ".join(decision.rejectedBy)
            return Why(f"no node under {side}: {by or decision.message}", kind, next(iter(decision.rejectedBy), ""))
    assert a is not None
    assert b is not None
    assert a.chosen
    assert b.chosen
    for side, decision, other, node in (("B", b, "A", a.chosen), ("A", a, "B", b.chosen)):
        result = decision.by_node.get(node)
        if result is not None and result.rejected is not None:
            plugin = result.rejected.plugin
            return Why(f"{plugin} refuses {other}'s node under {side}", REFUSED, plugin)
        if result is None or result.plugins is None:
            far = "not among the best" if decision.nodesCut else "not scored"
            return Why(f"{other}'s node is {far} under {side}", UNKNOWN)
    return _difference(a, b)


def leads(decision: Decision | None, one: str, other: str) -> dict[str, int]:
    """How much more plugins give one node than another; nothing where one of them was not scored."""
    results = [None, None] if decision is None else [decision.by_node.get(one), decision.by_node.get(other)]
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
