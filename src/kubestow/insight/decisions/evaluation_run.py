"""Runs one evaluation of a pod, of a past decision or a dry run, and converts its results into the JSON schema."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from kubestow.api.timestamps import format_time
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.schema import NodeResult, Rejected
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.ranking import NOT_STARTED
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.post_filter import run_post_filter
from kubestow.scheduler.extenders.extender import (
    Answer,
    Call,
    Conversation,
    ExtenderError,
    PausedConversation,
    run_until_calls,
)
from kubestow.scheduler.extenders.protocol import ExtenderReport, Extenders
from kubestow.scheduler.framework.results import PluginError, PostFilterResult, WeighedCandidates

T = TypeVar("T")

AskNow = Callable[[Sequence[Call]], Sequence[Answer]]
"""Calls extenders and blocks until they answer."""
Find = Callable[[], IntArray]
"""Filters rows, and returns the feasible ones in search order."""

NO_ROWS: IntArray = np.empty(0, np.int64)
_REASONS = ("pdbViolations", "highestPriority", "prioritySum", "victims", "started")


class EvaluationRun:
    """Runs an evaluation with the steps of a scheduling cycle, and keeps the result of each step."""

    def __init__(
        self,
        evaluation: Evaluation,
        find: Find | None,
        *,
        fewest_scored: int | None,
        preempts: bool,
        extenders: Extenders | None = None,
        ask: AskNow | None = None,
        calls: Sequence[ExtenderReport] = (),
        searched_rows: IntArray = NO_ROWS,
    ) -> None:
        """`find` is None if no node is evaluated; `preempts`: run PostFilter if no node is feasible.

        Fewer feasible nodes than `fewest_scored` are not scored; None: score no nodes. `extenders` add their calls to
        `calls`. `searched_rows` are the rows of a past search.
        """
        self.evaluation = evaluation
        self.rows = NO_ROWS
        """The feasible nodes."""
        self.totals = NO_ROWS
        self.extended = NO_ROWS
        """The scores that extenders added to the totals."""
        self.is_scored = False
        self.calls = calls
        self.searched_rows = searched_rows
        self.post_filter: PostFilterResult | None = None
        self.error = ""
        self._extenders = extenders
        self._ask = ask
        try:
            self._run(find, fewest_scored=fewest_scored, preempts=preempts)
        except (PluginError, ExtenderError, ValueError) as error:
            self.error = error.located if isinstance(error, PluginError) else str(error)

    def _run(self, find: Find | None, *, fewest_scored: int | None, preempts: bool) -> None:
        evaluation, extenders = self.evaluation, self._extenders
        if evaluation.pre_filter() and find is not None:
            self.rows = find()
        if extenders is not None and len(self.rows):
            left = self._finish(extenders.filter(evaluation.pod, self.rows))
            failed = left.failed(evaluation.cluster.nodes)
            if failed and evaluation.verdicts is not None:
                evaluation.explain_extended(evaluation.verdicts.rows, failed)
            self.rows = left.rows
        if fewest_scored is not None and len(self.rows) >= fewest_scored:
            self.totals = evaluation.score(self.rows)
            self.extended = np.zeros(len(self.rows), np.int64)
            self.is_scored = True
            if extenders is not None:
                self.extended = self._finish(extenders.prioritize(evaluation.pod, self.rows))
                self.totals = self.totals + self.extended
        elif not len(self.rows) and preempts and evaluation.profile.post_filter:
            self.post_filter = self._finish(run_post_filter(evaluation.profile, evaluation, extenders))

    def _finish(self, conversation: Conversation[T]) -> T:
        """Call extenders until a step is finished; return its result."""
        result = run_until_calls(conversation)
        while isinstance(result, PausedConversation):
            assert self._ask is not None
            result = result.resume(self._ask(result.calls))
        return result

    # Conversion into the JSON schema

    @property
    def weights(self) -> dict[str, int]:
        """The weights of the plugins that scored."""
        return {score.plugin: score.weight for score in self.evaluation.scores}

    def pre_filter(self) -> schema.PreFilter:
        evaluation = self.evaluation
        narrowed = evaluation.narrowed_to
        return schema.PreFilter(
            rejected=None if evaluation.rejected is None else Rejected.of(evaluation.rejected),
            narrowedTo=None if narrowed is None else tuple(sorted(narrowed)),
            narrowedBy=tuple(evaluation.narrowed_by),
            skipped=tuple(sorted(evaluation.skipped)),
        )

    def nominated(self, rows: Collection[int] | None = None) -> tuple[schema.Nominated, ...]:
        """Return the pods nominated to `rows` (None: to any row) whose requests were reserved; by node and pod."""
        nominated = self.evaluation.nominated
        if nominated is None:
            return ()
        row_of = self.evaluation.cluster.nodes.row_of
        found = [
            schema.Nominated(pod.key, node, pod.priority)
            for node in self.evaluation.nominator.nodes
            if (row := row_of.get(node)) is not None and (rows is None or row in rows)
            for pod in nominated.pods(row)
        ]
        return tuple(sorted(found, key=lambda one: (one.node, one.pod)))

    def preemption(self) -> schema.Preemption | None:
        if self.post_filter is None:
            return None
        return preemption_of(self.post_filter, self.evaluation.cluster.nodes.names)

    def node_results(self) -> dict[str, NodeResult]:
        """Return the result of each evaluated node, by name: first the feasible nodes."""
        names, found = self.evaluation.cluster.nodes.names, self._feasible()
        verdicts = self.evaluation.verdicts
        if verdicts is not None:
            for rejection, positions in verdicts.kinds():
                result = NodeResult(rejected=Rejected.of(rejection))
                found.update((names[row], result) for row in verdicts.rows[positions].tolist())
        return found

    def _feasible(self) -> dict[str, NodeResult]:
        names, scores = self.evaluation.cluster.nodes.names, self.evaluation.scores
        if not self.is_scored:
            return {names[row]: NodeResult(unscored=True) for row in self.rows.tolist()}
        plugins = [score.plugin for score in scores]
        parts = [part for score in scores for part in (score.weighted, score.raw, score.normalized)]
        found: dict[str, NodeResult] = {}
        # Many nodes share few distinct results.
        distinct: dict[Any, NodeResult] = {}
        columns = [part.tolist() for part in (self.totals, self.extended, *parts)]
        for row, *values in zip(self.rows.tolist(), *columns, strict=True):
            key = tuple(values)
            result = distinct.get(key)
            if result is None:
                total, extended, *by_plugin = values
                weighted, raw, normalized = (dict(zip(plugins, by_plugin[n::3], strict=True)) for n in range(3))
                result = distinct[key] = NodeResult(
                    total=total, plugins=weighted, raw=raw, normalized=normalized, extenders=extended
                )
            found[names[row]] = result
        return found


def best_nodes(results: Mapping[str, NodeResult]) -> tuple[str, ...]:
    """Return the nodes with the highest total, by name."""
    totals = {name: result.total for name, result in results.items() if result.total is not None}
    highest = max(totals.values(), default=None)
    return tuple(sorted(name for name, total in totals.items() if total == highest))


def preemption_of(result: PostFilterResult, names: Sequence[str]) -> schema.Preemption:
    """Return the result of PostFilter; `names` has the node name of each row."""
    node = result.nominated_node or ""
    candidates = _candidates(result.weighed, names)
    chosen = next((candidate for candidate in candidates if candidate.node == node), None)
    return schema.Preemption(
        plugin=result.plugin,
        message=result.message,
        nominated=node,
        victims=tuple(schema.Victim(pod.key, pod.priority) for pod in result.victims),
        pdbViolations=0 if chosen is None else chosen.pdbViolations,
        why="" if chosen is None else _why(chosen, candidates),
        candidates=candidates,
        unnominated=tuple(pod.key for pod in result.to_unnominate),
    )


def _candidates(weighed: WeighedCandidates | None, names: Sequence[str]) -> tuple[schema.Candidate, ...]:
    if weighed is None:
        return ()
    return tuple(
        schema.Candidate(
            names[row],
            int(broken),
            int(highest),
            int(priorities),
            int(victims),
            "" if start == NOT_STARTED else format_time(start),
        )
        for row, (broken, highest, priorities, victims, start) in zip(
            weighed.rows.tolist(), weighed.cost.T.tolist(), strict=True
        )
    )


def _why(chosen: schema.Candidate, candidates: Sequence[schema.Candidate]) -> str:
    """Return the first field in which the chosen candidate is better than all others."""
    left = [candidate for candidate in candidates if candidate is not chosen]
    if not left:
        return "only"
    for reason in _REASONS:
        left = [candidate for candidate in left if getattr(candidate, reason) == getattr(chosen, reason)]
        if not left:
            return reason
    return "first"
