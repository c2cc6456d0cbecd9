"""What was decided about pods, passed on to the record of decisions and to the log."""

from kubestow.cycle.outcome import Failed, Placed
from kubestow.model.clock import Clock
from kubestow.model.pod import Pod
from kubestow.reporting.decisions import ERROR, SCHEDULED, UNSCHEDULABLE, DecisionRecord, Decisions
from kubestow.reporting.logs import get_logger
from kubestow.scheduler import Decided

log = get_logger(__name__)


def telling(decisions: Decisions, clock: Clock) -> Decided:
    """What keeps and logs every decision."""

    def decided(pod: Pod, outcome: Placed | Failed, seconds: float) -> None:
        if isinstance(outcome, Placed):
            record = DecisionRecord(
                clock.now(),
                pod.key,
                pod.metadata.uid,
                SCHEDULED,
                outcome.node,
                "",
                outcome.evaluated,
                outcome.feasible,
                seconds,
            )
            if log.tells(3):
                log.info("Node chosen for pod", v=3, pod=pod.key, node=outcome.node, feasibleNodes=outcome.feasible)
        else:
            record = _failure(pod, outcome, clock.now(), seconds)
        decisions.record(record)

    return decided


def _failure(pod: Pod, failed: Failed, now: float, seconds: float) -> DecisionRecord:
    if failed.is_rejection:
        result = UNSCHEDULABLE
        log.info("Unable to schedule pod; no fit; waiting", v=2, pod=pod.key, err=failed.message)
    else:
        result = ERROR
        log.error("Error scheduling pod; retrying", err=failed.message, pod=pod.key)
    nominated = failed.nominated_node or ""
    return DecisionRecord(now, pod.key, pod.metadata.uid, result, nominated, failed.message, seconds=seconds)
