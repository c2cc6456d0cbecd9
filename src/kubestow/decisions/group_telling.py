"""What the cycle of a pod group came to, as JSON has it; of a live one and of a dry run alike."""

from kubestow.cycle.group_outcome import GroupOutcome
from kubestow.cycle.outcome import Failed, Placed
from kubestow.decisions import schema
from kubestow.decisions.schema import GroupDecision, PlacementResult
from kubestow.framework.placements import TriedGroup
from kubestow.framework.results import Code

_OUTCOMES = {Code.SUCCESS: schema.SCHEDULED, Code.ERROR: schema.ERROR}


def tell_group(tried: TriedGroup, outcome: GroupOutcome, scheduled: int) -> GroupDecision:
    """A decision; `scheduled` is how many of the group's pods had a node before."""
    will_do = outcome.code is Code.SUCCESS
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
            if will_do and isinstance(one, Placed)
        },
        message=outcome.message,
        uid="" if tried.group is None else tried.group.metadata.uid,
        placement=outcome.placement,
        placements=tuple(PlacementResult(one.placement, one.nodes, one.placed, one.failures) for one in outcome.tried),
        members=tuple(keys),
        rejectedBy=tuple(sorted(plugins)),
        minCount=min_count,
        pods=len(keys),
        scheduled=scheduled,
        missing=0 if will_do else max(max(min_count - scheduled, 1) - best, 0),
        victims=tuple(schema.Victim(pod.key, pod.priority) for pod in outcome.victims),
        nominated={key: node for key, node in zip(keys, outcome.nominated, strict=False) if node},
    )
