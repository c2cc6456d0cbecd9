"""What was decided about pods, passed on to the log."""

from kubestow.cycle.outcome import Failed, Placed
from kubestow.model.pod import Pod
from kubestow.reporting.logs import get_logger

log = get_logger(__name__)


def log_decision(pod: Pod, outcome: Placed | Failed, seconds: float) -> None:
    """Log a decision; how long it took is for others."""
    del seconds
    if isinstance(outcome, Placed):
        if log.tells(3):
            log.info("Node chosen for pod", v=3, pod=pod.key, node=outcome.node, feasibleNodes=outcome.feasible)
    elif outcome.is_rejection:
        log.info("Unable to schedule pod; no fit; waiting", v=2, pod=pod.key, err=outcome.message)
    else:
        log.error("Error scheduling pod; retrying", err=outcome.message, pod=pod.key)
