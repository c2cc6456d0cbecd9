"""One pod judged on every node, told as a decision: what the scheduler would do, if it looked at all nodes.

Nothing is taken from the cycle but its parts: PreEnqueue, then an `Evaluation` of all nodes, then PostFilter for a pod
that fits nowhere. Every node that would do is scored, even if there is but one. Of several best ones, any of which the
scheduler may choose, the first by name is. A node that a filter fails on is refused with the code Error; the scheduler
gives up an attempt when it meets one. Extenders are asked which nodes will do and how good those are, if there is a way
to ask them; otherwise the decision says that they were not.
"""

from msgspec.structs import replace

from kubestow.api.timestamps import format_time
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.judged import AskNow, Judged
from kubestow.insight.decisions.schema import Decision, NodeResult
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import NO_NODES
from kubestow.scheduler.extenders.asking import Asked, Extenders
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.results import PluginError
from kubestow.telemetry.secrets import hide_in_text

_NOT_ASKED = "not asked in a dry run"


class DryRun:
    """The decision about a pod in a world, and what led to it."""

    def __init__(self, world: World, pod: PodInfo, ask: AskNow | None = None) -> None:
        """Evaluate a pod that is not in the world; raises ExplainError if no profile schedules it.

        `ask` is how extenders are asked; None: they are not.
        """
        self.world = world
        self.pod = pod
        self.profile = world.profile_of(pod.pod)
        self.evaluation = evaluation = Evaluation(self.profile, world.cluster, world.nominator, pod)
        self.gated = QueueRules(self.profile).pre_enqueue(pod.pod, None)
        """Why the pod may not even be tried."""
        self._asks = ask is not None
        calls: list[Asked] = []
        configured = world.extenders if ask is not None else ()
        has_nodes = world.cluster.nodes.count > 0
        self.judged = Judged(
            evaluation,
            evaluation.filter if has_nodes else None,
            fewest_scored=1,
            preempts=has_nodes,
            extenders=Extenders(configured, world.cluster.nodes, calls.append) if configured else None,
            ask=ask,
            calls=calls,
        )

    @property
    def feasible(self) -> list[str]:
        """The names of the nodes that would do."""
        names = self.world.cluster.nodes.names
        return [names[row] for row in self.judged.rows.tolist()]

    @property
    def best(self) -> list[str]:
        """The nodes of the highest score, by name."""
        totals = self.judged.totals
        if not len(totals):
            return []
        names = self.world.cluster.nodes.names
        return sorted(names[row] for row in self.judged.rows[totals == totals.max()].tolist())

    @property
    def chosen(self) -> str | None:
        """Where the pod would go: to the node that it is nominated to, if that will do."""
        if not self.best or self.gated is not None or self.judged.error:
            return None
        return self._nominated_node or self.best[0]

    @property
    def _nominated_node(self) -> str:
        name = self.pod.pod.status.nominatedNodeName
        return name if name in self.feasible else ""

    @property
    def message(self) -> str:
        """Why no node will do, before anything is done about it."""
        if self.judged.error:
            return self.judged.error
        if not self.world.cluster.nodes.count:
            return NO_NODES
        if not len(self.judged.rows):
            return self.evaluation.message()
        return "" if self.gated is None else self.gated.message

    def decision(self) -> Decision:
        """All of it, as JSON has it."""
        evaluation = self.evaluation
        verdicts, preemption = evaluation.verdicts, self.judged.post_filter
        has_failed = bool(self.judged.error) or (verdicts is not None and verdicts.failed is not None)
        outcome = schema.SCHEDULED if self.chosen else schema.ERROR if has_failed else schema.UNSCHEDULABLE
        rejected_by = set() if self.judged.error or len(self.judged.rows) else evaluation.rejecting_plugins
        decision = Decision(
            version=schema.VERSION,
            pod=self.pod.key,
            outcome=outcome,
            chosen=self.chosen,
            message=self.message,
            nodes={} if self.judged.error else self.results(),
            uid=self.pod.uid,
            profile=self.profile.name,
            time=format_time(self.world.now),
            priority=self.pod.priority,
            rejectedBy=tuple(sorted(rejected_by | ({self.gated.plugin} if self.gated else set()))),
            nominatedNode="" if preemption is None else preemption.nominated_node or "",
            nodeCount=self.world.cluster.nodes.count,
            evaluated=0 if verdicts is None else len(verdicts.rows),
            feasible=len(self.judged.rows),
            weights=self.judged.weights,
            preFilter=self.judged.pre_filter(),
            nominated=self.judged.nominated(),
            extenders=tuple(schema.ExtenderCall(*call) for call in self.judged.calls)
            if self._asks
            else tuple(
                schema.ExtenderCall(hide_in_text(extender.urlPrefix), extender.filterVerb, 0, 0, _NOT_ASKED)
                for extender in self.world.extenders
            ),
            preemption=self.judged.preemption(),
            choice=self._choice(),
        )
        if self.gated is None:
            return decision
        move = schema.Move(format_time(self.world.now), "gated", "PreEnqueue", self.gated.plugin)
        return replace(decision, queue=schema.Queue(history=(move,)))

    def results(self) -> dict[str, NodeResult]:
        """Return what was found about each node, by name."""
        return dict(sorted(self.judged.node_results().items()))

    def _choice(self) -> schema.Choice | None:
        best = self.best
        if not best:
            return None
        reason = "only" if len(self.judged.rows) == 1 else "score" if len(best) == 1 else "random"
        reason = "nominated" if self._nominated_node else reason
        return schema.Choice(reason, tuple(best))


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
