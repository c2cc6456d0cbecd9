"""Derives the details of past decisions: evaluates them again in a copy of the cluster at their revision.

    Record (revision, pod, profile, search) + Past -> Evaluation -> EvaluationRun

Extenders and impure plugins are not called again: their answers are kept with the record.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from kubestow.config import Features
from kubestow.config.configuration import Extender
from kubestow.insight.decisions import extender_answers
from kubestow.insight.decisions.evaluation_run import NO_ROWS, EvaluationRun, Find
from kubestow.insight.decisions.group_results import try_group
from kubestow.insight.decisions.groups import GroupRecord
from kubestow.insight.decisions.plugin_answers import ReplayingGuard
from kubestow.insight.decisions.record import Answers, Record
from kubestow.insight.decisions.recorder import Recorder
from kubestow.insight.decisions.schema import PlacementResult
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.history import ForgottenError
from kubestow.scheduler.cluster.past import Past
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.group_counts import count
from kubestow.scheduler.cycle.outcome import SearchedNodes
from kubestow.scheduler.extenders.protocol import ExtenderReport, Extenders
from kubestow.scheduler.framework.detached import FixedClock, detached_handle
from kubestow.scheduler.framework.profile import Profile, ProfileError
from kubestow.scheduler.framework.results import PluginError, Rejection
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)

DROPPED = "the cluster changes since then were dropped; --decision-records-bytes limits how many are kept"
_NO_ANSWERS = Answers({}, {}, ())


class UnderivableError(Exception):
    """The details of a decision cannot be derived; the message says why."""


class SchedulerParts(NamedTuple):
    """The parts of a scheduler that its decisions depend on."""

    cluster: Cluster
    nominator: Nominator
    features: Features
    metrics: SchedulerMetrics
    """Metrics that count these evaluations, separate from the metrics of the scheduler."""


class _RecordedDraws:
    """Returns the recorded random numbers of plugins again."""

    def __init__(self, draws: tuple[int, ...]) -> None:
        self._rest = list(draws)

    def randrange(self, stop: int, /) -> int:
        return min(self._rest.pop(0), stop - 1) if self._rest else 0


class Details:
    """Derives the details of several decisions; fastest in order of time, forwards or backwards.

    Decisions are read in the scheduler's own thread, which must not fail because of a reader: every failure, including
    that the changes since a decision were dropped, is raised as an UnderivableError.
    """

    def __init__(self, recorder: Recorder, scheduler: SchedulerParts) -> None:
        self._recorder = recorder
        self._scheduler = scheduler
        self._past: Past[Nominator] | None = None
        self._profile: Profile | None = None
        """The profile bound to the copy, with plugins of its own."""

    def evaluate(self, record: Record) -> EvaluationRun | None:
        """Evaluate a decision again; read the result within `deriving`. None for a pod that was not evaluated."""
        return None if record.searched is None else self._run(record, record.searched, is_full=True)

    def rejection(self, record: Record, node: str) -> Rejection | None:
        """Return why a node was rejected; None if it was not rejected or not evaluated."""
        searched = record.searched
        if searched is None or not searched.is_done or record.node == node:
            return None
        with self.deriving():
            cluster = self._at(searched.revision).cluster
            row = cluster.nodes.row_of.get(node)
            if row is None or row not in _searched_rows(cluster, searched):
                return None
            # Extenders get all nodes in one call.
            only = None if record.called_extenders or searched.is_counted else np.array([row])
            verdicts = self._run(record, searched, only, is_full=False).evaluation.verdicts
            position = None if verdicts is None else verdicts.position_of(row)
            return None if verdicts is None or position is None else verdicts.rejection(position)

    def placements(self, record: GroupRecord) -> tuple[PlacementResult, ...]:
        """Return the placements of a pod group, with the reasons why pods failed in each."""
        with self.deriving():
            return self._placements(record)

    @contextmanager
    def deriving(self) -> Iterator[None]:
        """Convert every exception while details are derived or read into an UnderivableError."""
        try:
            yield
        except ForgottenError:
            raise UnderivableError(DROPPED) from None
        except Exception as error:
            # The copy may be between two revisions.
            self._past = None
            if not isinstance(error, PluginError | ProfileError):
                log.unexpected("A past decision cannot be evaluated again", err=error)
            raise UnderivableError(f"cannot be evaluated again: {str(error) or repr(error)}") from error

    def _placements(self, record: GroupRecord) -> tuple[PlacementResult, ...]:
        if record.answers is None:
            raise ForgottenError("the answers of extenders and plugins are forgotten")
        past = self._at(record.revision)
        profile, extenders = self._profile_for(record.by, record.extenders, record.answers, record.time, past, [])
        outcome = try_group(
            profile,
            past.cluster,
            past.nominator,
            self._scheduler.features,
            record.tree,
            extenders=extenders,
            ask=partial(extender_answers.replay, record.answers.extenders),
        )
        leaves = zip(record.tree.leaves, outcome.leaves or (outcome,), strict=True)
        tried = next(of_leaf.tried for leaf, of_leaf in leaves if leaf is record.tried)
        reasons = {one.placement: one.failures for one in tried}
        return tuple(
            PlacementResult(one.name, one.nodes, one.placed, reasons.get(one.name, one.reasons))
            for one in record.decision.placements
        )

    def _at(self, revision: int) -> Past[Nominator]:
        """Return the copy of the cluster, moved to a revision."""
        if self._past is None:
            self._past = Past(self._scheduler.cluster, self._scheduler.nominator, self._recorder.history)
        if self._profile is not None:
            # Its plugins follow the objects of the copy.
            self._profile.close()
        self._past.go_to(revision)
        return self._past

    def _profile_for(
        self,
        profile: Profile,
        configured: tuple[Extender, ...],
        answers: Answers,
        time: float,
        past: Past[Nominator],
        calls: list[ExtenderReport],
    ) -> tuple[Profile, Extenders | None]:
        """Return a profile and the extenders, bound to the copy of the cluster."""
        extenders = Extenders(configured, past.cluster.nodes, calls.append) if configured else None
        judging = {} if extenders is None else {"extenders_judge_preemption": extenders.supports_preemption}
        handle = detached_handle(
            past.cluster,
            self._scheduler.features,
            nominator=past.nominator,
            clock=FixedClock(time),
            rng=_RecordedDraws(answers.draws),
            metrics=self._scheduler.metrics,
            **judging,
        )
        self._profile = profile.with_handle(handle, ReplayingGuard(answers.plugins, past.cluster.nodes))
        return self._profile, extenders

    def _run(
        self, record: Record, searched: SearchedNodes, only: IntArray | None = None, *, is_full: bool
    ) -> EvaluationRun:
        """Evaluate a pod again, on all rows of the search or on `only` these; with PostFilter if `is_full`."""
        past = self._at(searched.revision)
        answers = record.answers or _NO_ANSWERS
        calls: list[ExtenderReport] = []
        profile, extenders = self._profile_for(record.by, searched.extenders, answers, record.time, past, calls)
        evaluation, find = _search(Evaluation(profile, past.cluster, past.nominator, record.info), searched, only)
        return EvaluationRun(
            evaluation,
            find,
            # For a pod of a group that was only counted, no node was chosen.
            fewest_scored=None if searched.is_counted else 2,
            preempts=record.failed is not None and record.failed.is_rejection and is_full,
            extenders=extenders,
            ask=partial(extender_answers.replay, answers.extenders),
            calls=calls,
            searched_rows=_searched_rows(past.cluster, searched),
        )


def _searched_rows(cluster: Cluster, searched: SearchedNodes) -> IntArray:
    """Return the rows that a search evaluated, in search order; `cluster` is at the revision of the search."""
    order = searched.order
    if searched.start is not None:
        order = cluster.order.rows_from(searched.start)
    return NO_ROWS if order is None else order[: searched.evaluated]


def _search(evaluation: Evaluation, searched: SearchedNodes, only: IntArray | None) -> tuple[Evaluation, Find | None]:
    """Return an evaluation, and a function that repeats the search in it, on all rows or on `only` these."""
    placement = searched.placement
    if not searched.is_done:
        return evaluation, None
    if placement is not None and len(placement.rows) < searched.node_count:
        evaluation = evaluation.for_pod(evaluation.pod, placement.rows)
    if searched.is_counted and searched.group is not None:
        return _counted(evaluation, searched)
    rows = _searched_rows(evaluation.cluster, searched) if only is None else only

    def find() -> IntArray:
        verdicts = evaluation.verdicts = evaluation.verdicts_on(np.sort(rows))
        return rows[verdicts.passing[verdicts.positions_of(rows)]]

    return evaluation, find


def _counted(evaluation: Evaluation, searched: SearchedNodes) -> tuple[Evaluation, Find | None]:
    """Return the evaluation and the search of a pod of a group whose feasible nodes were only counted."""
    assert searched.group is not None
    counts = count(evaluation.profile, evaluation.cluster, evaluation.nominator, searched.group)
    if counts is None:
        return evaluation, None
    fits = searched.feasible > 0
    of_pod = counts.evaluation_of_pod(evaluation.within, fits=fits)
    verdicts = of_pod.verdicts
    return of_pod, (lambda: NO_ROWS if verdicts is None or not fits else verdicts.feasible())
