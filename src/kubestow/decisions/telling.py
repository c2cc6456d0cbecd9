"""A record in words: the JSON schema filled in, when somebody reads it."""

from collections.abc import Iterable, Mapping, Sequence
from operator import mul
from typing import Any

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.ranking import NOT_STARTED
from kubestow.cycle.journal import lets_pass
from kubestow.cycle.trace import Trace
from kubestow.decisions import schema
from kubestow.decisions.record import FAILED, STEP_WIDTH, WAITING, Record
from kubestow.decisions.recorder import Recorder
from kubestow.framework.results import PostFilterResult, Rejection, Weighed
from kubestow.model.timestamps import format_micro_time, format_time

DROPPED = "there was no room to keep what was found out about nodes; --decision-records-bytes sets how much there is"
_UNEXPLAINED = Rejection(("refused; nobody asked for the reason",))
_REASONS = ("pdbViolations", "highestPriority", "prioritySum", "victims", "started")


def tell(record: Record, recorder: Recorder, *, nodes: bool = True, most: int | None = None) -> schema.Decision:
    """A decision, without what is said of single nodes if that is not wanted, or of so many: the best of them."""
    found, trace = record.found, record.trace
    details = found.details
    nominated = () if details.nominated is None else details.nominated.pods()
    results = node_results(record, most) if nodes else {}
    is_dropped = found.names is None and found.node_count > 0
    return schema.Decision(
        version=schema.VERSION,
        pod=record.pod,
        outcome=record.outcome,
        chosen=record.node or None,
        message=record.message,
        nodes=results if nodes else UNSET,
        nodesDropped=DROPPED if is_dropped else "",
        nodesCut=0 if most is None or is_dropped else max(record.evaluated - len(results), 0),
        id=record.id,
        uid=record.uid,
        profile=record.profile,
        priority=found.priority,
        podGroup=details.group,
        placement=None if details.placement is None else schema.Placement(*details.placement),
        time=format_micro_time(record.time),
        seconds=round(record.seconds, 6),
        rejectedBy=tuple(sorted(record.plugins)),
        nominatedNode=record.nominated_node,
        nodeCount=found.node_count,
        evaluated=record.evaluated,
        feasible=record.feasible,
        weights={} if trace is None else weights(trace),
        preFilter=schema.PreFilter(
            rejected=None if details.rejected is None else schema.Rejected.of(details.rejected),
            narrowedTo=None if details.narrowed_to is None else tuple(sorted(details.narrowed_to)),
            narrowedBy=tuple(details.narrowed_by),
            skipped=tuple(sorted(found.skipped)),
        ),
        nominated=tuple(schema.Nominated(pod.key, node, pod.priority) for node, pod in nominated),
        extenders=() if trace is None else tuple(schema.ExtenderCall(*call) for call in trace.calls),
        preemption=None
        if found.post_filter is None
        else tell_preemption(found.post_filter, () if found.names is None else found.names.of_row),
        choice=_choice(record, results) if nodes else None,
        queue=_queue(record, recorder.move_names),
        binding=_binding(record, recorder.clock_offset()),
    )


# Nodes


def node_results(record: Record, most: int | None = None) -> dict[str, schema.NodeResult]:
    """What is known of every node that was evaluated, or of so many, by name."""
    names, trace = record.found.names, record.trace
    if names is None:
        return {}
    results: dict[str, schema.NodeResult] = {}
    if trace is not None and trace.order is not None:
        _tell_rows(results, names.of_row, trace, record.node, most)
    for row, rejection in record.found.refusals or ():
        name = names.of_row[row]
        if name in results or most is None or len(results) < most:
            results[name] = schema.NodeResult(rejected=schema.Rejected.of(rejection))
    return results


def _tell_rows(
    results: dict[str, schema.NodeResult], names: Sequence[str], trace: Trace, chosen: str, most: int | None
) -> None:
    assert trace.order is not None
    layers = [chapter.at(change) for chapter, change, _ in trace.moments]
    searched = trace.order[: trace.searched].tolist()
    rows = [row for row in searched if lets_pass(layers[-1][row])] if trace.rows is None else trace.rows.tolist()
    left_rows = rows if trace.left is None else trace.left.tolist()
    scores = _scores(trace, layers, left_rows, names, chosen, most) if trace.is_scored else {}
    passed, left = set(rows), set(left_rows)
    # The chosen one has its place, scored or not.
    room = trace.searched if most is None else most - max(len(scores), 1)
    for row in (row for row in searched if row in scores) if scores and room <= 0 else searched:
        if row in scores:
            results[names[row]] = scores[row]
            continue
        if names[row] != chosen:
            if room <= 0 or (trace.is_scored and row in left):
                continue
            room -= 1
        if row in left:
            result = schema.NodeResult(unscored=True)
        else:
            said = (trace.failed or {}).get(row) if row in passed else layers[-1][row] if layers else None
            rejection = said if isinstance(said, Rejection) else _UNEXPLAINED
            result = schema.NodeResult(rejected=schema.Rejected.of(rejection))
        results[names[row]] = result


def weights(trace: Trace) -> dict[str, int]:
    """Of the plugins that scored."""
    if not trace.is_scored:
        return {}
    found = {part.plugin: part.weight for chapter, _, _ in trace.moments for part in chapter.parts}
    return found | {scored.plugin: scored.weight for scored in trace.scores}


def _scores(
    trace: Trace,
    layers: Sequence[Sequence[Any]],
    numbers: Sequence[int],
    names: Sequence[str],
    chosen: str,
    most: int | None,
) -> dict[int, schema.NodeResult]:
    """Of the rows that were scored; of so many, the chosen one and the best."""
    totals = _totals(trace, layers, numbers)
    told: Iterable[int] = range(len(numbers))
    if most is not None:
        best = np.argsort(-totals, kind="stable").tolist()
        # A pod that had to give its node back has none.
        first = next((position for position in best if names[numbers[position]] == chosen), best[0])
        # At least two, so that it can be told whether chance decided.
        told = [first, *(position for position in best[: max(most, 2)] if position != first)][: max(most, 2)]
    weight_of, results = weights(trace), dict[int, schema.NodeResult]()
    # Where the layers say everything, rows of which they say the same have the same result.
    is_shared = not trace.scores and trace.extended is None
    alike: dict[Any, schema.NodeResult] = {}
    for position in told:
        said = tuple([layer[numbers[position]] for layer in layers])
        key = said if is_shared else position
        if key not in alike:
            alike[key] = _result(trace, said, position, int(totals[position]), weight_of)
        results[numbers[position]] = alike[key]
    return results


def _result(
    trace: Trace, said: Sequence[Any], position: int, total: int, weight_of: Mapping[str, int]
) -> schema.NodeResult:
    """What was said of one row, in the layers and in the scores of its position."""
    raw: dict[str, int] = {}
    plugins: dict[str, int] = {}
    for (chapter, _, even), scores in zip(trace.moments, said, strict=True):
        for part, score in zip(chapter.parts, scores, strict=True):
            raw[part.plugin] = score
            if not part.normalizes:
                plugins[part.plugin] = score * part.weight
        plugins.update(even)
    for scored in trace.scores:
        if scored.raw is not None:
            raw[scored.plugin] = int(scored.raw[position])
        plugins[scored.plugin] = int(scored.counted[position])
    return schema.NodeResult(
        total=total,
        plugins=plugins,
        raw={plugin: raw[plugin] for plugin in plugins},
        normalized={plugin: score // weight_of[plugin] for plugin, score in plugins.items()},
        extenders=0 if trace.extended is None else int(trace.extended[position]),
    )


def _totals(trace: Trace, layers: Sequence[Sequence[Any]], numbers: Sequence[int]) -> IntArray:
    totals = np.zeros(len(numbers), np.int64)
    for (chapter, _, even), said in zip(trace.moments, layers, strict=True):
        counting = [0 if part.normalizes else part.weight for part in chapter.parts]
        here = [said[row] for row in numbers]
        # Many rows, and few things that are said of them.
        worth = {scores: sum(map(mul, scores, counting)) for scores in set(here)}
        totals += [worth[scores] for scores in here]
        totals += sum(score for _, score in even)
    for scored in trace.scores:
        totals += scored.counted
    return totals if trace.extended is None else totals + trace.extended


def best_nodes(results: Mapping[str, schema.NodeResult]) -> tuple[str, ...]:
    """The nodes of the highest total."""
    totals = {name: result.total for name, result in results.items() if result.total is not None}
    highest = max(totals.values(), default=None)
    return tuple(name for name, total in totals.items() if total == highest)


def _choice(record: Record, results: Mapping[str, schema.NodeResult]) -> schema.Choice | None:
    trace = record.trace
    if not record.node or trace is None:
        return None
    if trace.took_nominated:
        return schema.Choice("nominated", (record.node,))
    if not trace.is_scored:
        return schema.Choice("first" if _is_first(trace) else "only", (record.node,))
    best = best_nodes(results)
    return schema.Choice("random" if len(best) > 1 else "score", best)


def _is_first(trace: Trace) -> bool:
    """Whether the search ended at the first node that would do."""
    rows, order = trace.rows, trace.order
    return rows is not None and order is not None and len(rows) == 1 and trace.searched < len(order)


# Preemption


def tell_preemption(result: PostFilterResult, names: Sequence[str]) -> schema.Preemption:
    """What PostFilter came to; `names` are those of rows, empty if they are no longer known."""
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


def _candidates(weighed: Weighed | None, names: Sequence[str]) -> tuple[schema.Candidate, ...]:
    if weighed is None or not names:
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
    """The last thing that had to be looked at until the chosen one was alone, or all that was left equal."""
    left = [candidate for candidate in candidates if candidate is not chosen]
    if not left:
        return "only"
    for reason in _REASONS:
        left = [candidate for candidate in left if getattr(candidate, reason) == getattr(chosen, reason)]
        if not left:
            return reason
    return "first"


# Queue and binding


def _queue(record: Record, names: Sequence[tuple[str, str, str]]) -> schema.Queue:
    history, first = record.history, record.initial_attempt
    moves: list[schema.Move] = []
    forgotten = 0
    if history is not None:
        forgotten = int(history[0])
        moves = tell_moves(history, names)[: max(record.moves - forgotten, 0)]
    elif first is not None:
        moves.append(schema.Move(format_micro_time(first), *names[0]))
    return schema.Queue(
        attempts=record.attempts,
        firstAttempt="" if first is None else format_micro_time(first),
        waited=round(max(record.time - record.queued_since, 0.0), 6),
        history=tuple(moves),
        forgotten=min(forgotten, record.moves),
    )


def tell_moves(history: Sequence[float] | None, names: Sequence[tuple[str, str, str]]) -> list[schema.Move]:
    """The moves of a pod that are known, oldest first."""
    if history is None:
        return []
    pairs = zip(history[1::2], history[2::2], strict=True)
    return [schema.Move(format_micro_time(time), *names[int(number)]) for time, number in pairs]


def _binding(record: Record, offset: float) -> schema.Binding | None:
    binding = record.binding
    if not binding:
        return None
    error = record.message if binding == FAILED else ""
    steps = [
        schema.Step(step, format_micro_time(start + offset), plugin, round(end - start, 6))
        for step, plugin, start, end, _ in zip(*[iter(record.steps)] * STEP_WIDTH, strict=True)
    ]
    if steps:
        steps[-1] = replace(steps[-1], error=error)
    permits = dict(record.waits)
    waits_for = tuple(permits) if binding == WAITING else ()
    return schema.Binding(binding, tuple(steps), waits_for, error, permits)
