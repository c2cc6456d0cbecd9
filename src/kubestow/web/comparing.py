"""Two decisions about each of many pods: who moved, grouped by why, in the words of `kubestow compare`."""

from collections.abc import Sequence
from typing import Any

from kubestow.decisions.reading import Query
from kubestow.decisions.schema import Decision
from kubestow.simulator.moved import Why, leads, why
from kubestow.web.decisions import Attempt
from kubestow.web.run import Run

_NAMED = 100


def told(a: str, b: str, pairs: Sequence[tuple[Decision, Decision]], figures: Sequence[Any] = ()) -> dict[str, Any]:
    """What moved between two runs."""
    groups: dict[Why, list[dict[str, Any]]] = {}
    for one, two in pairs:
        if one.chosen != two.chosen:
            groups.setdefault(why(one, two), []).append(_moved(one, two))
    ordered = sorted(groups.items(), key=lambda entry: -len(entry[1]))
    return {
        "a": a,
        "b": b,
        "pods": len(pairs),
        "moved": sum(map(len, groups.values())),
        "figures": list(figures),
        "groups": [
            {"why": one.words, "plugin": one.plugin, "kind": one.kind, "count": len(pods), "pods": pods[:_NAMED]}
            for one, pods in ordered
        ],
    }


def _moved(a: Decision, b: Decision) -> dict[str, Any]:
    under_a, under_b = (leads(decision, a.chosen or "", b.chosen or "") for decision in (a, b))
    known = {**under_a, **under_b} if under_a and under_b else {}
    by = {name: change for name in known if (change := under_a.get(name, 0) - under_b.get(name, 0))}
    return {"pod": a.pod, "a": a.chosen or "", "b": b.chosen or "", "by": by, "message": a.message or b.message}


def told_of_runs(a: Run, b: Run) -> dict[str, Any]:
    """Where pods went first in two runs; those that only one of them had are left out."""
    # Imported only now: a live scheduler has no use for a simulator.
    from kubestow.simulator.comparing import FIGURES

    first, second = _firsts(a), _firsts(b)
    both = [pod for pod in first if pod in second]
    moved = [pod for pod in both if first[pod].chosen != second[pod].chosen]
    pairs = [(a.decisions.tell(first[pod]), b.decisions.tell(second[pod])) for pod in moved]
    figures = [{"name": name, "a": read(a.results), "b": read(b.results)} for name, read in FIGURES.items()]
    return told(a.name, b.name, pairs, figures) | {"pods": len(both)}


def _firsts(run: Run) -> dict[str, Attempt]:
    """By pod, the decision that gave it its first node; or the last one, if none did."""
    found: dict[str, Attempt] = {}
    for attempt in run.decisions.find(Query()):
        if attempt.chosen or attempt.pod not in found:
            found[attempt.pod] = attempt
    return found
