"""Compares two decisions about each pod: the pods whose node differs, grouped by reason, as in `kubestow compare`."""

from collections.abc import Sequence
from typing import Any

from kubestow.insight.decisions.moved import FIGURES, Reason, pair_pods, reason_for_move, score_leads
from kubestow.insight.decisions.reading import Query
from kubestow.insight.decisions.schema import Decision
from kubestow.insight.page.decisions import Attempt
from kubestow.insight.page.run import Run

_NAMED = 100


def comparison(
    a: str, b: str, pods: int, moved: Sequence[tuple[Decision | None, Decision | None]], figures: Sequence[Any] = ()
) -> dict[str, Any]:
    """Return which of a number of pods moved and why; a decision is None for a pod without attempts."""
    groups: dict[Reason, list[dict[str, Any]]] = {}
    for one, two in moved:
        groups.setdefault(reason_for_move(one, two), []).append(_moved(one, two))
    ordered = sorted(groups.items(), key=lambda entry: -len(entry[1]))
    return {
        "a": a,
        "b": b,
        "pods": pods,
        "moved": len(moved),
        "figures": list(figures),
        "groups": [
            {"why": one.text, "plugin": one.plugin, "kind": one.kind, "count": len(pods), "pods": pods[:_NAMED]}
            for one, pods in ordered
        ],
    }


def _moved(a: Decision | None, b: Decision | None) -> dict[str, Any]:
    nodes = tuple("" if one is None else one.chosen or "" for one in (a, b))
    under_a, under_b = (score_leads(one, *nodes) for one in (a, b))
    known = {**under_a, **under_b} if under_a and under_b else {}
    by = {name: change for name in known if (change := under_a.get(name, 0) - under_b.get(name, 0))}
    first = next(one for one in (a, b) if one is not None)
    message = first.message or ("" if b is None else b.message)
    return {"pod": first.pod, "a": nodes[0], "b": nodes[1], "by": by, "message": message}


def compare_runs(a: Run, b: Run) -> dict[str, Any]:
    """Compare the first nodes of pods in two runs."""
    first, second = _firsts(a), _firsts(b)
    pods, moved = pair_pods(*({pod: one.owner for pod, one in run.items()} for run in (first, second))), []
    for one, two in ((first.get(under_a), second.get(under_b)) for under_a, under_b in pods):
        if (one and one.chosen) != (two and two.chosen):
            moved.append((one and a.decisions.decision(one), two and b.decisions.decision(two)))
    figures = [{"name": name, "a": read(a.results), "b": read(b.results)} for name, read in FIGURES.items()]
    return comparison(a.name, b.name, len(pods), moved, figures)


def _firsts(run: Run) -> dict[str, Attempt]:
    """Return the decision for the first node of each pod, or else its last one, in the order of first attempts."""
    found: dict[str, Attempt] = {}
    for attempt in reversed(list(run.decisions.find(Query()))):
        if attempt.pod not in found or not found[attempt.pod].chosen:
            found[attempt.pod] = attempt
    return found
