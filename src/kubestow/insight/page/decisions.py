"""Decisions, from a scheduler's records or from the file of a simulation: found alike, told alike.

A matrix of nodes and plugins is made from any decision that tells of nodes: a recorded one, or one of a dry run.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from kubestow.api.timestamps import format_micro_time
from kubestow.insight.decisions import reading
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.details import UnderivableError
from kubestow.insight.decisions.reading import Query
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.schema import Decision, DecisionList, NodeResult, Rejected

_LATELY = 200
"""Number of decisions that are looked through for rejections of a node."""
_NAMED_PODS = 10


class Attempt(NamedTuple):
    """A decision in short; `source` is what it was made from."""

    id: int
    time: float
    outcome: str
    message: str
    chosen: str | None
    pod: str
    source: Any
    owner: str = ""
    """The controller that made the pod, where that was written down."""

    def told(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "time": format_micro_time(self.time),
            "outcome": self.outcome,
            "message": self.message,
            "chosen": self.chosen,
        }


class Decisions(Protocol):
    """Where decisions are found."""

    def find(self, query: Query) -> Iterator[Attempt]:
        """Newest first."""

    def decision(self, attempt: Attempt, *, nodes: bool = True) -> Decision:
        """All about one."""

    def refusals(self, node: str, until: float) -> list[dict[str, Any]]:
        """Why pods were refused at a node lately."""


def read(decisions: Decisions, query: Query) -> DecisionList:
    """As `/debug/decisions` answers."""
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
        for record in reading.newest((record for record in self._archive if record.time <= until), _LATELY):
            try:
                rejection = details.rejection(record, node)
            except UnderivableError:
                continue
            if rejection is not None:
                found.append((Rejected.of(rejection), record))
        return by_reason(found)


def by_reason(refused: Iterable[tuple[Rejected, Record | Attempt]]) -> list[dict[str, Any]]:
    """Refusals at a node, newest first, put together; the most frequent first."""
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
    """The decision alone."""
    return replace(decision, nodes=msgspec.UNSET)


def told_with_nodes(decision: Decision) -> dict[str, Any]:
    """A decision, its matrix and the runner-up."""
    return {
        "decision": without_nodes(decision),
        "matrix": matrix(decision),
        "runnerUp": runner_up(decision),
    }


def matrix(decision: Decision) -> dict[str, Any]:
    """Nodes and plugins: first the nodes that passed, best first, then the refused ones, by reason."""
    results = decision.by_node
    counts = Counter(result.rejected for result in results.values() if result.rejected is not None)
    refusals = {rejected: number for number, (rejected, _) in enumerate(counts.most_common())}

    def order(entry: tuple[str, NodeResult]) -> tuple[int, bool, float, str]:
        name, result = entry
        number = -1 if result.rejected is None else refusals[result.rejected]
        return number, name != decision.chosen, -(result.total or 0), name

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
    """The best of the nodes that were not chosen, and by how much it is behind."""
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
