"""One pod judged on every node, told as a decision: what the scheduler would do, if it looked at all nodes.

Nothing is taken from the cycle but its parts: PreEnqueue, then an `Evaluation` of all nodes, then PostFilter for a pod
that fits nowhere. Every node that would do is scored, even if there is but one. Of several best ones, any of which the
scheduler may choose, the first by name is. A node that a filter fails on is refused with the code Error; the scheduler
gives up an attempt when it meets one. Extenders are asked which nodes will do and how good those are, if there is a way
to ask them; otherwise the decision says that they were not.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.outcome import NO_NODES
from kubestow.cycle.post_filter import run_post_filter
from kubestow.decisions import schema
from kubestow.decisions.schema import Decision, NodeResult, Rejected
from kubestow.decisions.telling import tell_preemption
from kubestow.explaining.world import World
from kubestow.extenders.asking import Asked, Extenders
from kubestow.extenders.extender import Answer, Asking, Call, Conversation, ExtenderError, carry_on
from kubestow.framework.queueing import QueueRules
from kubestow.framework.results import PluginError, PostFilterResult
from kubestow.model.timestamps import format_time
from kubestow.reporting.secrets import hide_in_text

_NOT_ASKED = "not asked in a dry run"

Found = TypeVar("Found")
AskNow = Callable[[Sequence[Call]], Sequence[Answer]]
"""Makes calls to extenders, and waits for the answers."""


class DryRun:
    """The decision about a pod in a world, and what led to it."""

    def __init__(self, world: World, pod: PodInfo, ask: AskNow | None = None) -> None:
        self.world = world
        self._ask = ask
        self._extended: IntArray = np.empty(0, np.int64)
        """What extenders added to the scores."""
        self._calls: list[Asked] = []
        self.pod = pod
        self.profile = world.profile_of(pod.pod)
        self.evaluation = Evaluation(self.profile, world.cluster, world.nominator, pod)
        self.gated = QueueRules(self.profile).pre_enqueue(pod.pod, None)
        """Why the pod may not even be tried."""
        self.rows: IntArray = np.empty(0, np.int64)
        """The nodes that would do."""
        self._totals: IntArray = np.empty(0, np.int64)
        self.preemption: PostFilterResult | None = None
        """What PostFilter found, for a pod that fits nowhere."""
        self._error = ""
        try:
            self._judge()
        except (PluginError, ExtenderError, ValueError) as error:
            self._error = str(error)

    def _judge(self) -> None:
        evaluation = self.evaluation
        if not self.world.cluster.nodes.count:
            return
        if evaluation.pre_filter():
            self.rows = evaluation.filter()
        extenders = None if self._ask is None else self._extenders()
        if extenders is not None and len(self.rows):
            left = self._answered(extenders.filter(self.pod, self.rows))
            failed = left.failed(self.world.cluster.nodes)
            if failed and evaluation.verdicts is not None:
                evaluation.explain_extended(evaluation.verdicts.rows, failed)
            self.rows = left.rows
        if len(self.rows):
            self._totals = evaluation.score(self.rows)
            self._extended = np.zeros(len(self.rows), np.int64)
            if extenders is not None:
                self._extended = self._answered(extenders.prioritize(self.pod, self.rows))
                self._totals = self._totals + self._extended
        elif self.profile.post_filter:
            result = carry_on(run_post_filter(self.profile, evaluation, None))
            assert isinstance(result, PostFilterResult)
            self.preemption = result

    def _extenders(self) -> Extenders | None:
        configured = self.world.extenders
        extenders = Extenders(configured, self.world.cluster.nodes) if configured else None
        if extenders is not None:
            extenders.asked = self._calls.append
        return extenders

    def _answered(self, conversation: Conversation[Found]) -> Found:
        """What a conversation with extenders comes to."""
        said = carry_on(conversation)
        while isinstance(said, Asking):
            assert self._ask is not None
            said = said.answered(self._ask(said.calls))
        return said

    @property
    def feasible(self) -> list[str]:
        """The names of the nodes that would do."""
        names = self.world.cluster.nodes.names
        return [names[row] for row in self.rows.tolist()]

    @property
    def best(self) -> list[str]:
        """The nodes of the highest score, by name."""
        if not len(self._totals):
            return []
        names = self.world.cluster.nodes.names
        return sorted(names[row] for row in self.rows[self._totals == self._totals.max()].tolist())

    @property
    def chosen(self) -> str | None:
        """Where the pod would go: to the node that it is nominated to, if that will do."""
        if not self.best or self.gated is not None or self._error:
            return None
        return self._nominated_node or self.best[0]

    @property
    def _nominated_node(self) -> str:
        name = self.pod.pod.status.nominatedNodeName
        return name if name in self.feasible else ""

    @property
    def message(self) -> str:
        """Why no node will do, before anything is done about it."""
        if self._error:
            return self._error
        if not self.world.cluster.nodes.count:
            return NO_NODES
        if not len(self.rows):
            return self.evaluation.message()
        return "" if self.gated is None else self.gated.message

    def decision(self) -> Decision:
        """All of it, as JSON has it."""
        evaluation = self.evaluation
        verdicts = evaluation.verdicts
        has_failed = bool(self._error) or (verdicts is not None and verdicts.failed is not None)
        outcome = schema.SCHEDULED if self.chosen else schema.ERROR if has_failed else schema.UNSCHEDULABLE
        rejected_by = set() if self._error or len(self.rows) else evaluation.rejecting_plugins
        decision = Decision(
            version=schema.VERSION,
            pod=self.pod.key,
            outcome=outcome,
            chosen=self.chosen,
            message=self.message,
            nodes={} if self._error else self.results(),
            uid=self.pod.uid,
            profile=self.profile.name,
            time=format_time(self.world.now),
            priority=self.pod.priority,
            rejectedBy=tuple(sorted(rejected_by | ({self.gated.plugin} if self.gated else set()))),
            nominatedNode=(self.preemption and self.preemption.nominated_node) or "",
            nodeCount=self.world.cluster.nodes.count,
            evaluated=0 if verdicts is None else len(verdicts.rows),
            feasible=len(self.rows),
            weights={score.plugin: score.weight for score in evaluation.scores},
            preFilter=self._pre_filter(),
            nominated=self._nominated(),
            extenders=tuple(schema.ExtenderCall(*call) for call in self._calls)
            if self._ask is not None
            else tuple(
                schema.ExtenderCall(hide_in_text(extender.urlPrefix), extender.filterVerb, 0, 0, _NOT_ASKED)
                for extender in self.world.extenders
            ),
            preemption=None
            if self.preemption is None
            else tell_preemption(self.preemption, self.world.cluster.nodes.names),
            choice=self._choice(),
        )
        return decision if self.gated is None else replace(decision, queue=self._held_back(self.gated.plugin))

    def results(self) -> dict[str, NodeResult]:
        """What was said of each node, by name."""
        evaluation, names = self.evaluation, self.world.cluster.nodes.names
        found: dict[str, NodeResult] = {}
        if evaluation.verdicts is not None:
            rows = evaluation.verdicts.rows.tolist()
            for rejection, positions in evaluation.verdicts.kinds():
                result = NodeResult(rejected=Rejected.of(rejection))
                found.update((names[rows[position]], result) for position in positions.tolist())
        plugins = [score.plugin for score in evaluation.scores]
        columns = [
            np.array(column, np.int64).reshape(len(plugins), len(self.rows)).T.tolist()
            for column in (
                [score.weighted for score in evaluation.scores],
                [score.raw for score in evaluation.scores],
                [score.normalized for score in evaluation.scores],
            )
        ]
        for row, total, extended, weighted, raw, normalized in zip(
            self.rows.tolist(), self._totals.tolist(), self._extended.tolist(), *columns, strict=True
        ):
            found[names[row]] = NodeResult(
                total=total,
                plugins=dict(zip(plugins, weighted, strict=True)),
                raw=dict(zip(plugins, raw, strict=True)),
                normalized=dict(zip(plugins, normalized, strict=True)),
                extenders=extended,
            )
        return dict(sorted(found.items()))

    def _pre_filter(self) -> schema.PreFilter:
        evaluation = self.evaluation
        narrowed = evaluation.narrowed_to
        return schema.PreFilter(
            rejected=None if evaluation.rejected is None else Rejected.of(evaluation.rejected),
            narrowedTo=None if narrowed is None else tuple(sorted(narrowed)),
            narrowedBy=tuple(evaluation.narrowed_by),
            skipped=tuple(sorted(evaluation.skipped)),
        )

    def _nominated(self) -> tuple[schema.Nominated, ...]:
        beside = self.evaluation.nominated
        if beside is None:
            return ()
        row_of = self.world.cluster.nodes.row_of
        return tuple(
            schema.Nominated(pod.key, node, pod.priority)
            for node in sorted(self.world.nominator.nodes)
            if node in row_of
            for pod in beside.pods(row_of[node])
        )

    def _choice(self) -> schema.Choice | None:
        best = self.best
        if not best:
            return None
        reason = "only" if len(self.rows) == 1 else "score" if len(best) == 1 else "random"
        reason = "nominated" if self._nominated_node else reason
        return schema.Choice(reason, tuple(best))

    def _held_back(self, plugin: str) -> schema.Queue:
        return schema.Queue(history=(schema.Move(format_time(self.world.now), "gated", "PreEnqueue", plugin),))


def dry_run(world: World, pod: PodInfo, ask: AskNow | None = None) -> DryRun:
    """Where a pod would go that is not in the world; raises ExplainError if nobody schedules it.

    `ask` is how extenders are asked; None: they are not.
    """
    return DryRun(world, pod, ask)


def take(run: DryRun) -> None:
    """Put the pod where it would go, as the scheduler does before it binds; if that cannot be done, it is nowhere."""
    cluster, profile, node = run.world.cluster, run.profile, run.chosen
    if node is None:
        return
    pod, states = run.pod.placed_on(node), run.evaluation.states
    cluster.assume(pod, node)
    acting = [hook for hook in profile.reserve if hook.concerns(states)]
    try:
        is_taken = all(profile.caller.call(hook, states.get(hook.name), pod, node) is None for hook in acting)
        if not is_taken:
            for hook in reversed(acting):
                assert hook.unreserve is not None
                profile.caller.call(hook.unreserve, states.get(hook.name), pod, node)
            cluster.forget(pod.uid)
    except PluginError:
        cluster.forget(pod.uid)
