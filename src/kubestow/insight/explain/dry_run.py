"""Evaluates one pod on every node, and returns the decision of a scheduler that evaluates all nodes.

A dry run uses the parts of a cycle: PreEnqueue, then an `Evaluation` of all nodes, then PostFilter for a pod that is
unschedulable. Every feasible node is scored, even if it is the only one. Of several best nodes, among which the
scheduler chooses at random, the first by name is chosen. A node on which a filter fails is rejected with the code
Error; the scheduler aborts its attempt at such a node. Extenders filter and prioritize if a way to call them is given;
otherwise the decision states that they were not called.
"""

from msgspec.structs import replace

from kubestow.api.timestamps import format_time
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.evaluation_run import AskNow, EvaluationRun
from kubestow.insight.decisions.schema import Decision, NodeResult
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import NO_NODES
from kubestow.scheduler.extenders.protocol import ExtenderReport, Extenders
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.results import PluginError
from kubestow.telemetry.secrets import redact_text

_NOT_CALLED = "not called in a dry run"


class DryRun:
    """The decision about a pod in a world, with the evaluation behind it."""

    def __init__(self, world: World, pod: PodInfo, ask: AskNow | None = None, *, only_filters: bool = False) -> None:
        """Evaluate a pod that is not in the world. Raises ExplainError if no profile schedules it.

        `ask` calls extenders; None: they are not called. `only_filters`: no scores, no preemption.
        """
        self.world = world
        self.pod = pod
        self.profile = world.profile_of(pod.pod)
        self.evaluation = evaluation = Evaluation(self.profile, world.cluster, world.nominator, pod)
        self.gated = QueueRules(self.profile).pre_enqueue(pod.pod, None)
        """The rejection of PreEnqueue, if there is one."""
        self._calls_extenders = ask is not None
        calls: list[ExtenderReport] = []
        configured = world.extenders if ask is not None else ()
        has_nodes = world.cluster.nodes.count > 0
        self.evaluation_run = EvaluationRun(
            evaluation,
            evaluation.filter if has_nodes else None,
            fewest_scored=None if only_filters else 1,
            preempts=has_nodes and not only_filters,
            extenders=Extenders(configured, world.cluster.nodes, calls.append) if configured else None,
            ask=ask,
            calls=calls,
        )

    @property
    def feasible(self) -> list[str]:
        """The names of the feasible nodes."""
        names = self.world.cluster.nodes.names
        return [names[row] for row in self.evaluation_run.rows.tolist()]

    @property
    def fits(self) -> bool:
        """Whether the pod would be scheduled on one of the feasible nodes."""
        return len(self.evaluation_run.rows) > 0 and self.gated is None and not self.evaluation_run.error

    @property
    def best(self) -> list[str]:
        """The sorted names of the nodes with the highest score."""
        totals = self.evaluation_run.totals
        if not len(totals):
            return []
        names = self.world.cluster.nodes.names
        return sorted(names[row] for row in self.evaluation_run.rows[totals == totals.max()].tolist())

    @property
    def chosen(self) -> str | None:
        """The node of the pod: the nominated node if it is feasible, else the best one; None if there is none."""
        if not self.best or not self.fits:
            return None
        return self._nominated_node or self.best[0]

    @property
    def _nominated_node(self) -> str:
        name = self.pod.pod.status.nominatedNodeName
        return name if name in self.feasible else ""

    @property
    def message(self) -> str:
        """Why no node was chosen, without the result of PostFilter."""
        if self.evaluation_run.error:
            return self.evaluation_run.error
        if not self.world.cluster.nodes.count:
            return NO_NODES
        if not len(self.evaluation_run.rows):
            return self.evaluation.message()
        return "" if self.gated is None else self.gated.message

    def decision(self) -> Decision:
        """Return the decision in the form of the JSON schema."""
        evaluation = self.evaluation
        run, verdicts, preemption = self.evaluation_run, evaluation.verdicts, self.evaluation_run.post_filter
        has_failed = bool(run.error) or (verdicts is not None and verdicts.failed is not None)
        outcome = schema.SCHEDULED if self.chosen else schema.ERROR if has_failed else schema.UNSCHEDULABLE
        rejected_by = set() if run.error or len(run.rows) else evaluation.rejecting_plugins
        decision = Decision(
            version=schema.VERSION,
            pod=self.pod.key,
            outcome=outcome,
            chosen=self.chosen,
            message=self.message,
            nodes={} if run.error else self.results(),
            uid=self.pod.uid,
            profile=self.profile.name,
            time=format_time(self.world.now),
            priority=self.pod.priority,
            rejectedBy=tuple(sorted(rejected_by | ({self.gated.plugin} if self.gated else set()))),
            nominatedNode="" if preemption is None else preemption.nominated_node or "",
            nodeCount=self.world.cluster.nodes.count,
            evaluated=0 if verdicts is None else len(verdicts.rows),
            feasible=len(run.rows),
            weights=run.weights,
            preFilter=run.pre_filter(),
            nominated=run.nominated(),
            extenders=tuple(schema.ExtenderCall(*call) for call in run.calls)
            if self._calls_extenders
            else tuple(
                schema.ExtenderCall(redact_text(extender.urlPrefix), extender.filterVerb, 0, 0, _NOT_CALLED)
                for extender in self.world.extenders
            ),
            preemption=run.preemption(),
            choice=self._choice(),
        )
        if self.gated is None:
            return decision
        move = schema.Move(format_time(self.world.now), "gated", "PreEnqueue", self.gated.plugin)
        return replace(decision, queue=schema.Queue(history=(move,)))

    def results(self) -> dict[str, NodeResult]:
        """Return the result of each node, sorted by name."""
        return dict(sorted(self.evaluation_run.node_results().items()))

    def _choice(self) -> schema.Choice | None:
        best = self.best
        if not best:
            return None
        reason = "only" if len(self.evaluation_run.rows) == 1 else "score" if len(best) == 1 else "random"
        reason = "nominated" if self._nominated_node else reason
        return schema.Choice(reason, tuple(best))


def assume_and_reserve(run: DryRun) -> None:
    """Assume and reserve the pod on its chosen node, like a scheduler; if a plugin rejects or fails, forget the pod."""
    cluster, profile, node = run.world.cluster, run.profile, run.chosen
    if node is None:
        return
    pod, states = run.pod.placed_on(node), run.evaluation.states
    cluster.assume(pod, node)
    acting = [hook for hook in profile.reserve if hook.applies_to(states)]
    try:
        is_reserved = all(profile.caller.call(hook, states.get(hook.name), pod, node) is None for hook in acting)
        if not is_reserved:
            for hook in reversed(acting):
                assert hook.unreserve is not None
                profile.caller.call(hook.unreserve, states.get(hook.name), pod, node)
            cluster.forget(pod.uid)
    except PluginError:
        cluster.forget(pod.uid)
