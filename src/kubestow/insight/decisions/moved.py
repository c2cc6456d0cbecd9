"""Finds out why a pod was scheduled on another node under B than under A, from the results of both nodes under both.

The decisions come from decisions.jsonl, so other versions of the program may have made them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubestow.insight.decisions.schema import Decision

_NAMING = ("ReplicaSet", "ReplicationController", "Job")
"""Kinds whose pods are interchangeable; a DaemonSet's pods belong to nodes, a StatefulSet's pods have stable names."""
_SUFFIX_LENGTH = 5
"""Number of characters that the API server appends to a generated name."""
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
"""The figures of a run that are compared, by name; each reads `results.json`."""


class Reason(NamedTuple):
    """A reason why pods moved: its text, its kind, and the plugin that made the difference."""

    text: str
    kind: str
    plugin: str = ""


class MovedPod(NamedTuple):
    """A pod whose node differs between two runs; the node is empty if the pod was not scheduled."""

    pod: str
    a: str
    b: str
    why: str
    renamed: str = ""
    """The name of the pod under B, if it differs."""

    @property
    def called(self) -> str:
        """The name of the pod under A, and under B if that differs."""
        return f"{self.pod} ({self.renamed} under B)" if self.renamed else self.pod


class Scores(NamedTuple):
    """The results of the two nodes under A or under B."""

    chosen: str
    totals: dict[str, int]
    plugins: dict[str, dict[str, int]]
    """Weighted scores by node and plugin."""
    refused: dict[str, str]
    """The plugin that rejected the node and its reasons, by node."""
    message: str


def pair_pods(a: Mapping[str, str], b: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return pairs of the names of each pod in two runs; a name is empty if the run does not have the pod.

    `a` and `b` map pods to their owners, in the order of the first attempts. Pods with the same name are the same pod.
    The remaining pods with generated names are paired by owner, in order.
    """
    left: dict[str, list[str]] = defaultdict(list)
    for pod, owner in b.items():
        if pod not in a:
            left[_stem(pod, owner)].append(pod)
    waiting = {stem: iter(pods) for stem, pods in left.items()}
    pairs = [(pod, pod if pod in b else next(waiting.get(_stem(pod, owner), iter(())), "")) for pod, owner in a.items()]
    return pairs + [("", pod) for pods in waiting.values() for pod in pods]


def _stem(pod: str, owner: str) -> str:
    """Return a key that pods of one owner with generated names share; the name of any other pod."""
    return f"{owner} {pod[:-_SUFFIX_LENGTH]}" if owner.partition("/")[0] in _NAMING else pod


def scores(decision: Decision | None, nodes: tuple[str, str]) -> Scores:
    """Return the results of two nodes in a decision."""
    if decision is None:
        return Scores("", {}, {}, {}, "the pod does not exist in this run")
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


def reason_for_move(a: Decision | None, b: Decision | None) -> Reason:
    """Return the reason why a pod moved, equal for all pods that moved for the same reason."""
    for side, decision, kind in (("A", a, PLACED), ("B", b, UNPLACED)):
        if decision is None:
            return Reason(f"the pod does not exist under {side}", kind)
        if not decision.chosen:
            by = ", ".join(decision.rejectedBy)
            return Reason(f"no node under {side}: {by or decision.message}", kind, next(iter(decision.rejectedBy), ""))
    assert a is not None
    assert b is not None
    assert a.chosen
    assert b.chosen
    for side, decision, other, node in (("B", b, "A", a.chosen), ("A", a, "B", b.chosen)):
        result = decision.by_node.get(node)
        if result is not None and result.rejected is not None:
            plugin = result.rejected.plugin
            return Reason(f"{plugin} rejects {other}'s node under {side}", REFUSED, plugin)
        if result is None or result.plugins is None:
            state = "not among the best" if decision.nodesCut else "not scored"
            return Reason(f"{other}'s node is {state} under {side}", UNKNOWN)
    return _difference(a, b)


def score_leads(decision: Decision | None, one: str, other: str) -> dict[str, int]:
    """Return by plugin how much higher it scores one node than another; empty if either was not scored."""
    results = [None, None] if decision is None else [decision.by_node.get(one), decision.by_node.get(other)]
    mine, others = (None if result is None else result.plugins for result in results)
    if mine is None or others is None:
        return {}
    return {name: score - others.get(name, 0) for name, score in mine.items()}


def _difference(a: Decision, b: Decision) -> Reason:
    """Return the plugin whose lead of A's node over B's node is larger under A than under B by most."""
    under_a, under_b = (score_leads(decision, a.chosen or "", b.chosen or "") for decision in (a, b))
    if sum(under_a.values()) == sum(under_b.values()) == 0:
        return Reason("random choice: both nodes have equal scores under A and B", TIE)
    names = sorted({*under_a, *under_b})
    plugin = max(names, key=lambda name: under_a.get(name, 0) - under_b.get(name, 0))
    weights = a.weights.get(plugin, 0), b.weights.get(plugin, 0)
    if weights[0] != weights[1]:
        return Reason(f"weight of {plugin}: {weights[0]} under A, {weights[1]} under B", SCORE, plugin)
    return Reason(f"{plugin} scores the nodes differently", SCORE, plugin)
