"""Decisions for the page, from a scheduler's records or from the file of a simulation, by one interface.

A matrix of nodes and plugins is made from any decision with details about nodes, recorded or of a dry run.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from kubestow.api.natural_order import natural
from kubestow.api.timestamps import format_micro_time
from kubestow.insight.decisions import reading
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.details import UnderivableError
from kubestow.insight.decisions.reading import Query
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.schema import Decision, DecisionList, NodeResult, Rejected

_SEARCHED = 200
"""Number of the newest decisions that are searched for rejections on a node."""
_NAMED_PODS = 10


class Attempt(NamedTuple):
    """A summary of a decision; `source` is the record of the decision."""

    id: int
    time: float
    outcome: str
    message: str
    chosen: str | None
    pod: str
    source: Any
    owner: str = ""
    """The controller that made the pod, if it was recorded."""

    def summary(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "time": format_micro_time(self.time),
            "outcome": self.outcome,
            "message": self.message,
            "chosen": self.chosen,
        }


class Decisions(Protocol):
    """A source of decisions."""

    def find(self, query: Query) -> Iterator[Attempt]:
        """Yield the matching decisions, newest first."""

    def decision(self, attempt: Attempt, *, nodes: bool = True) -> Decision:
        """Return the full decision; with `nodes`, include details about nodes."""

    def refusals(self, node: str, until: float) -> list[dict[str, Any]]:
        """Return the reasons for which a node rejected pods in recent decisions."""


def read(decisions: Decisions, query: Query) -> DecisionList:
    """Return the decisions that match a query, as `/debug/decisions` does."""
    return reading.listed(decisions.find(query), query, lambda attempt: decisions.decision(attempt, nodes=query.nodes))


class Recorded:
    """The records of a scheduler."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def find(self, query: Query) -> Iterator[Attempt]:
        for one in reading.find(self._archive, query):
            yield Attempt(one.id, one.time, one.outcome, one.message, one.node or None, one.pod, one)

    def decision(self, attempt: Attempt, *, nodes: bool = True) -> Decision:
        return self._archive.decision(attempt.source, nodes=nodes)

    def refusals(self, node: str, until: float) -> list[dict[str, Any]]:
        details = self._archive.details()
        found: list[tuple[Rejected, Record]] = []
        for record in reading.newest((record for record in self._archive if record.time <= until), _SEARCHED):
            try:
                rejection = details.rejection(record, node)
            except UnderivableError:
                continue
            if rejection is not None:
                found.append((Rejected.of(rejection), record))
        return by_reason(found)


def by_reason(refused: Iterable[tuple[Rejected, Record | Attempt]]) -> list[dict[str, Any]]:
    """Group the rejections on a node, given newest first; return the most frequent first."""
    found: dict[Rejected, dict[str, Any]] = {}
    for rejected, of in refused:
        entry = found.get(rejected)
        if entry is None:
            entry = found[rejected] = msgspec.to_builtins(rejected) | {"count": 0, "pods": [], "time": of.time}
        entry["count"] += 1
        if of.pod not in entry["pods"] and len(entry["pods"]) < _NAMED_PODS:
            entry["pods"].append(of.pod)
    return sorted(found.values(), key=lambda entry: -entry["count"])


def without_nodes(decision: Decision) -> Decision:
    """Return the decision without `nodes`."""
    return replace(decision, nodes=msgspec.UNSET)


def with_matrix(decision: Decision) -> dict[str, Any]:
    """Return a decision with its matrix and the runner-up."""
    return {
        "decision": without_nodes(decision),
        "matrix": matrix(decision),
        "runnerUp": runner_up(decision),
    }


def matrix(decision: Decision) -> dict[str, Any]:
    """Return the results by node and plugin: first the feasible nodes by score, then rejected nodes by reason."""
    results = decision.by_node
    counts = Counter(result.rejected for result in results.values() if result.rejected is not None)
    refusals = {rejected: number for number, (rejected, _) in enumerate(counts.most_common())}

    def order(entry: tuple[str, NodeResult]) -> tuple[int, bool, float, list[tuple[int, str]]]:
        name, result = entry
        number = -1 if result.rejected is None else refusals[result.rejected]
        return number, name != decision.chosen, -(result.total or 0), natural(name)

    ordered = sorted(results.items(), key=order)
    plugins = list(dict.fromkeys(plugin for _, result in ordered for plugin in result.plugins or ()))
    return {
        "nodes": [name for name, _ in ordered],
        "plugins": plugins,
        "total": [result.total for _, result in ordered],
        "scores": {name: [(result.plugins or {}).get(name) for _, result in ordered] for name in plugins},
        "raw": {name: [result.raw.get(name) for _, result in ordered] for name in plugins},
        "extenders": [None if result.total is None else result.extenders for _, result in ordered],
        "refusal": [-1 if result.rejected is None else refusals[result.rejected] for _, result in ordered],
        "refusals": [
            {"plugin": one.plugin, "code": one.code, "reasons": one.reasons, "others": one.others, "count": counts[one]}
            for one in refusals
        ],
        "left": max(decision.evaluated - len(results), 0),
    }


def runner_up(decision: Decision) -> dict[str, Any] | None:
    """Return the best node that was not chosen, with its distance to the chosen one; None if there is none."""
    results = decision.by_node
    chosen = results.get(decision.chosen or "")
    others = [(name, one) for name, one in results.items() if one.total is not None and name != decision.chosen]
    if chosen is None or chosen.total is None or not others:
        return None
    name, second = min(others, key=lambda entry: (-(entry[1].total or 0), entry[0]))
    mine, others_scores = chosen.plugins or {}, second.plugins or {}
    return {
        "node": name,
        "total": second.total,
        "behind": chosen.total - (second.total or 0),
        "by": {plugin: mine[plugin] - others_scores.get(plugin, 0) for plugin in mine},
    }
