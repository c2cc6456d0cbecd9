"""Recorded decisions in the form of the JSON schema: a summary from the record, and details derived on demand."""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from kubestow.api.pod_groups import group_key
from kubestow.api.timestamps import format_micro_time
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.details import Details, SchedulerParts, UnderivableError
from kubestow.insight.decisions.evaluation_run import EvaluationRun, best_nodes
from kubestow.insight.decisions.groups import GroupRecord
from kubestow.insight.decisions.record import WAITING, Record
from kubestow.insight.decisions.recorder import Recorder
from kubestow.insight.decisions.schema import NodeResult


class Archive:
    """The recorded decisions of one scheduler."""

    def __init__(self, recorder: Recorder, scheduler: SchedulerParts) -> None:
        self.recorder = recorder
        self.scheduler = scheduler

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records, newest first."""
        return iter(self.recorder)

    def details(self) -> Details:
        """Return an object that derives the details of several decisions."""
        return Details(self.recorder, self.scheduler)

    def decision(
        self, record: Record, *, nodes: bool = True, most: int | None = None, details: Details | None = None
    ) -> schema.Decision:
        """Return a decision; with `nodes`, include details, of at most `most` nodes."""
        decision = _summary(record, self.recorder)
        if not nodes:
            return decision
        details = details or self.details()
        try:
            with details.deriving():
                run = details.evaluate(record)
                return replace(decision, nodes={}) if run is None else _with_details(decision, record, run, most)
        except UnderivableError as error:
            return replace(decision, nodes={}, nodesDropped=str(error) if record.evaluated else "")

    def group_decision(self, record: GroupRecord, details: Details | None = None) -> schema.GroupDecision:
        """Return a decision about a pod group, with the reasons why pods failed in each placement."""
        try:
            return replace(record.decision, placements=(details or self.details()).placements(record))
        except UnderivableError:
            return record.decision

    def moves_of(self, uid: str) -> list[schema.Move]:
        """Return the last moves of a pod between queues, oldest first."""
        moves = self.recorder.moves_of(uid)
        return [] if moves is None else _moves(moves, self.recorder)


def _summary(record: Record, recorder: Recorder) -> schema.Decision:
    searched, failed = record.searched, record.failed
    placement = None if searched is None else searched.placement
    preemption = None
    if failed is not None and failed.preempting_plugin:
        preemption = schema.Preemption(
            plugin=failed.preempting_plugin,
            nominated=failed.nominated_node or "",
            victims=tuple(schema.Victim(pod.key, pod.priority) for pod in failed.victims),
            unnominated=tuple(pod.key for pod in failed.to_unnominate),
        )
    return schema.Decision(
        version=schema.VERSION,
        pod=record.pod,
        outcome=record.outcome,
        chosen=record.node or None,
        message=record.message,
        nodes=UNSET,
        id=record.id,
        uid=record.uid,
        profile=record.profile,
        priority=record.info.priority,
        podGroup=group_key(record.info.pod) if searched is not None and searched.group is not None else "",
        placement=schema.Placement(placement.name, len(placement.rows)) if placement and placement.name else None,
        time=format_micro_time(record.time),
        seconds=round(record.seconds, 6),
        rejectedBy=tuple(sorted(record.plugins)),
        nominatedNode=record.nominated_node,
        nodeCount=0 if searched is None else searched.node_count,
        evaluated=record.evaluated,
        feasible=record.feasible,
        preemption=preemption,
        queue=_queue(record, recorder),
        binding=_binding(record, recorder.clock_offset()),
    )


def _with_details(decision: schema.Decision, record: Record, run: EvaluationRun, most: int | None) -> schema.Decision:
    searched = record.searched
    assert searched is not None
    if len(run.rows) != searched.feasible:
        found = run.error or f"{len(run.rows)} nodes are feasible instead of {searched.feasible}"
        return replace(decision, nodes={}, nodesDropped=f"evaluated again, the decision has another result: {found}")
    results = run.node_results()
    shown = results if most is None else _best(results, record.node, most)
    return replace(
        decision,
        nodes=shown,
        nodesCut=len(results) - len(shown),
        weights=run.weights,
        preFilter=run.pre_filter(),
        nominated=run.nominated(set(run.searched_rows.tolist())),
        extenders=tuple(schema.ExtenderCall(*call) for call in run.calls),
        preemption=_preemption(decision.preemption, run.preemption()),
        choice=_choice(record, run, results, shown),
    )


def _preemption(made: schema.Preemption | None, derived: schema.Preemption | None) -> schema.Preemption | None:
    """Return the derived preemption, which has candidates; the recorded one if their results differ."""
    if derived is None:
        return made
    nominated, victims = ("", ()) if made is None else (made.nominated, made.victims)
    return derived if (derived.nominated, derived.victims) == (nominated, victims) else made


def _best(results: dict[str, NodeResult], chosen: str, most: int) -> dict[str, NodeResult]:
    """Return the chosen node, then the best others, then rejected nodes; at least two if scores decided."""

    def order(name: str) -> tuple[bool, bool, int]:
        result = results[name]
        return name != chosen, result.rejected is not None, -(result.total or 0)

    scored = sum(result.total is not None for result in results.values())
    return {name: results[name] for name in sorted(results, key=order)[: max(most, min(scored, 2))]}


def _choice(
    record: Record, run: EvaluationRun, results: dict[str, NodeResult], shown: dict[str, NodeResult]
) -> schema.Choice | None:
    """Return why the node was chosen, with the best nodes among those that are shown."""
    searched = record.searched
    if not record.node or searched is None or not searched.is_done:
        return None
    if searched.is_nominated:
        return schema.Choice("nominated", (record.node,))
    if not run.is_scored:
        return schema.Choice("first" if searched.evaluated < searched.candidates else "only", (record.node,))
    best = best_nodes(results)
    return schema.Choice("random" if len(best) > 1 else "score", tuple(name for name in best if name in shown))


def _queue(record: Record, recorder: Recorder) -> schema.Queue:
    history, first = record.history, record.initial_attempt
    moves: list[schema.Move] = []
    forgotten = 0
    if history is not None:
        forgotten = int(history[0])
        moves = _moves(history, recorder)[: max(record.moves - forgotten, 0)]
    elif first is not None:
        moves.append(schema.Move(format_micro_time(first), *recorder.move_names[0]))
    return schema.Queue(
        attempts=record.attempts,
        firstAttempt="" if first is None else format_micro_time(first),
        waited=round(max(record.time - record.queued_since, 0.0), 6),
        history=tuple(moves),
        forgotten=min(forgotten, record.moves),
    )


def _moves(history: Any, recorder: Recorder) -> list[schema.Move]:
    pairs = zip(history[1::2], history[2::2], strict=True)
    return [schema.Move(format_micro_time(time), *recorder.move_names[int(number)]) for time, number in pairs]


def _binding(record: Record, offset: float) -> schema.Binding | None:
    if not record.binding:
        return None
    error = "" if record.binding_failed is None else record.binding_failed.message
    steps = [
        schema.Step(
            step.name, format_micro_time(step.started + offset), step.plugin, round(step.ended - step.started, 6)
        )
        for step in record.steps
    ]
    if steps:
        steps[-1] = replace(steps[-1], error=error)
    permits = dict(record.permits)
    return schema.Binding(
        record.binding, tuple(steps), tuple(permits) if record.binding == WAITING else (), error, permits
    )
