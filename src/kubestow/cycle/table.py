"""An evaluation laid out for people: every node against every plugin.

A cycle stops judging a node at the first refusal; here every filter is asked about every node, so that one can see all
that stands in the way.
"""

from dataclasses import dataclass, field

import numpy as np

from kubestow.cluster.arrays import IntArray
from kubestow.cycle.evaluation import Evaluation
from kubestow.framework.filtering import ask_filter
from kubestow.framework.results import Rejection


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """What one plugin said of one node."""

    raw: int
    normalized: int
    weight: int

    @property
    def weighted(self) -> int:
        return self.normalized * self.weight


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node: what each filter said of it, and what it scored if it passed."""

    node: str
    refused: Rejection | None
    """The refusal that counts: that of the first plugin in order, or of pods nominated to the node."""
    filters: dict[str, Rejection | None]
    """Every filter that has a say on the pod, with its refusal or None; empty if PreFilter left the node out."""
    scores: dict[str, ScoreCell] = field(default_factory=dict)
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The judgement of all nodes for one pod."""

    pod: str
    pre_filter: Rejection | None
    """The refusal of the pod as a whole, which leaves no lines."""
    skipped: tuple[str, ...]
    """Plugins that had nothing to say."""
    lines: tuple[NodeLine, ...]
    message: str
    """Why no node will do; empty if some will."""


def full_table(evaluation: Evaluation) -> Table:
    """Lay out an evaluation; runs what it has not run yet."""
    if not evaluation.states and not evaluation.skipped and evaluation.rejected is None:
        evaluation.pre_filter()
    skipped = tuple(sorted(evaluation.skipped))
    if evaluation.rejected is not None:
        return Table(evaluation.pod.key, evaluation.rejected, skipped, (), evaluation.message())
    if evaluation.verdicts is None:
        evaluation.filter()
    assert evaluation.verdicts is not None
    passed = evaluation.verdicts.feasible()
    totals = _totals(evaluation, passed)
    lines = _lines(evaluation, passed, totals)
    return Table(evaluation.pod.key, None, skipped, lines, "" if len(passed) else evaluation.message())


def _totals(evaluation: Evaluation, passed: IntArray) -> IntArray:
    if not len(passed):
        return np.zeros(0, np.int64)
    evaluation.scores.clear()
    return evaluation.score(passed)


def _lines(evaluation: Evaluation, passed: IntArray, totals: IntArray) -> tuple[NodeLine, ...]:
    verdicts = evaluation.verdicts
    assert verdicts is not None
    judged = _ask_every_filter(evaluation, verdicts.rows)
    place = {int(row): position for position, row in enumerate(passed)}
    names = evaluation.cluster.nodes.names
    lines = []
    for position, row in enumerate(verdicts.rows.tolist()):
        scored = place.get(row)
        scores = (
            {}
            if scored is None
            else {
                s.plugin: ScoreCell(int(s.raw[scored]), int(s.normalized[scored]), s.weight) for s in evaluation.scores
            }
        )
        lines.append(
            NodeLine(
                names[row],
                verdicts.rejection(position),
                {plugin: answers[position] for plugin, answers in judged.items()},
                scores,
                None if scored is None else int(totals[scored]),
            )
        )
    lines += _left_out(evaluation, set(verdicts.rows.tolist()))
    return tuple(sorted(lines, key=lambda line: line.node))


def _ask_every_filter(evaluation: Evaluation, rows: IntArray) -> dict[str, list[Rejection | None]]:
    profile = evaluation.profile
    judged: dict[str, list[Rejection | None]] = {}
    for hook in profile.filter:
        if hook.name in evaluation.skipped:
            continue
        state = evaluation.states.get(hook.name)
        answer = ask_filter(profile.caller, hook, state, evaluation.pod, evaluation.cluster.nodes, rows, len(rows))
        judged[hook.name] = (
            [answer.words(int(kind))._replace(plugin=hook.name) if kind else None for kind in answer.kinds]
            if answer is not None
            else [None] * len(rows)
        )
    return judged


def _left_out(evaluation: Evaluation, rows: set[int]) -> list[NodeLine]:
    """The nodes that PreFilter did not let in."""
    nodes = evaluation.cluster.nodes
    reason = Rejection((evaluation.left_out_reason,), plugin=", ".join(sorted(evaluation.narrowed_by)))
    return [NodeLine(nodes.names[row], reason, {}) for row in range(nodes.size) if nodes.live[row] and row not in rows]
