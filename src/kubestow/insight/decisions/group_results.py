"""Converts the result of a pod group's cycle, live or repeated, into the JSON schema."""

from collections.abc import Callable, Sequence

from kubestow.config.features import Features
from kubestow.insight.decisions import schema
from kubestow.insight.decisions.schema import GroupDecision, PlacementResult
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.group_outcome import GroupOutcome
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.scheduler.cycle.pod_group import GroupCycles, Nominations
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.extenders.configured import ConfiguredExtenders
from kubestow.scheduler.extenders.extender import Answer, Call, PausedConversation, run_until_calls
from kubestow.scheduler.extenders.protocol import Extenders
from kubestow.scheduler.framework.detached import FirstRng
from kubestow.scheduler.framework.placements import TriedGroup
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code

_OUTCOMES = {Code.SUCCESS: schema.SCHEDULED, Code.ERROR: schema.ERROR}
_ALL_NODES = 100
"""Value of percentageOfNodesToScore."""


def try_group(
    profile: Profile,
    cluster: Cluster,
    nominator: Nominations,
    features: Features,
    tried: TriedGroup,
    *,
    only: str = "",
    runs_post_filter: bool = False,
    extenders: Extenders | None = None,
    ask: Callable[[Sequence[Call]], Sequence[Answer]] | None = None,
) -> GroupOutcome:
    """Run the cycle of a pod group, or of a tree of groups, on all nodes, and undo its reservations.

    `only` limits each pod group to one placement.

    PodGroupPostFilter runs only if `runs_post_filter`. Among equally good nodes or placements, the first is chosen.
    """
    cycles = SchedulingCycles(cluster, nominator, _first, _ALL_NODES, extenders=ConfiguredExtenders(extenders))
    groups = GroupCycles(
        cluster,
        cycles,
        nominator,
        features,
        FirstRng(),
        collects_failures=True,
        only_placement=only,
        runs_post_filter=runs_post_filter,
    )
    outcome = run_until_calls(groups.schedule(profile, tried))
    while isinstance(outcome, PausedConversation):
        assert ask is not None
        outcome = outcome.resume(ask(outcome.calls))
    for one in reversed(outcome.outcomes):
        if isinstance(one, Placed):
            cycles.unreserve(profile, one)
    return outcome


def _first(best: IntArray) -> int:
    return int(best[0])


def group_decision(tried: TriedGroup, outcome: GroupOutcome) -> GroupDecision:
    """Return the decision about a pod group."""
    succeeded = outcome.code is Code.SUCCESS
    min_count = 0 if tried.group is None else tried.group.min_count
    best = max((one.placed for one in outcome.tried), default=0)
    keys = [pod.key for pod in tried.pods]
    failed = [one for one in outcome.outcomes if isinstance(one, Failed)]
    plugins = frozenset().union(*{one.plugins | one.pending_plugins for one in failed})
    return GroupDecision(
        version=schema.VERSION,
        podGroup=tried.key,
        outcome=_OUTCOMES.get(outcome.code, schema.UNSCHEDULABLE),
        chosen={
            key: one.node
            for key, one in zip(keys, outcome.outcomes, strict=False)
            if succeeded and isinstance(one, Placed)
        },
        message=outcome.message,
        uid="" if tried.group is None else tried.group.metadata.uid,
        placement=outcome.placement,
        placements=tuple(PlacementResult(one.placement, one.nodes, one.placed, one.failures) for one in outcome.tried),
        members=tuple(keys),
        rejectedBy=tuple(sorted(plugins)),
        minCount=min_count,
        pods=len(keys),
        scheduled=outcome.scheduled,
        missing=0 if succeeded else max(max(min_count - outcome.scheduled, 1) - best, 0),
        victims=tuple(schema.Victim(pod.key, pod.priority) for pod in outcome.found.victims),
        nominated={pod.key: node for pod in tried.pods if (node := outcome.found.nodes.get(pod.uid))},
    )
