"""What the core tells about itself, passed on: to the metrics, to the record of decisions, to the log.

Most of it goes straight to the part of the metrics it concerns; such methods are the metrics' own, without a detour.
"""

from typing import Any

from kubestow.cycle.outcome import Failed, Placed
from kubestow.model.clock import Clock
from kubestow.model.pod import Pod
from kubestow.reporting.decisions import ERROR, SCHEDULED, UNSCHEDULABLE, DecisionRecord, Decisions
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.catalogue import Metrics

log = get_logger(__name__)


class LiveObserver:
    """Everything the core tells."""

    def __init__(self, metrics: Metrics, decisions: Decisions, clock: Clock) -> None:
        self._decisions = decisions
        self._clock = clock

        self.plugin_called = metrics.framework.plugin_called
        self.point_ran = metrics.framework.point_ran
        self.plugin_failed = metrics.framework.plugin_failed
        self.pod_entered = metrics.queue.pod_entered
        self.hint_ran = metrics.queue.hint_ran
        self.hint_failed = metrics.queue.hint_failed
        self.sort_failed = metrics.queue.sort_failed
        self.hint_looked_up = metrics.batching.hint_looked_up
        self.batch_tried = metrics.batching.batch_tried
        self.results_stored = metrics.batching.results_stored
        self.batch_flushed = metrics.batching.batch_flushed
        self.event_handled = metrics.scheduler.event_handled
        self.attempt_finished = metrics.scheduler.attempt_finished
        self.algorithm_finished = metrics.scheduler.algorithm_finished
        self.pod_scheduled = metrics.scheduler.pod_scheduled
        self.permit_waited = metrics.scheduler.permit_waited
        self.preemption = metrics.scheduler.victims_chosen
        self.preemption_finished = metrics.scheduler.victims_evicted
        self.api_call_finished = metrics.api_calls.api_call_finished
        self.api_call_failed = metrics.api_calls.api_call_failed

    def object_refused(self, obj: Any, error: Exception) -> None:
        meta = obj.metadata
        name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        log.error("Object makes no sense and is not taken in", err=error, kind=type(obj).__name__, object=name)

    def decided(self, pod: Pod, outcome: Placed | Failed, seconds: float) -> None:
        meta = pod.metadata
        if isinstance(outcome, Placed):
            record = DecisionRecord(
                self._clock.now(),
                pod.key,
                meta.uid,
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
            record = self._failure(pod, outcome, seconds)
        self._decisions.record(record)

    def _failure(self, pod: Pod, failed: Failed, seconds: float) -> DecisionRecord:
        if failed.is_rejection:
            result = UNSCHEDULABLE
            log.info("Unable to schedule pod; no fit; waiting", v=2, pod=pod.key, err=failed.message)
        else:
            result = ERROR
            log.error("Error scheduling pod; retrying", err=failed.message, pod=pod.key)
        return DecisionRecord(
            self._clock.now(),
            pod.key,
            pod.metadata.uid,
            result,
            failed.nominated_node or "",
            failed.message,
            seconds=seconds,
        )

    def preemption_failed(self, pod: Pod, error: Exception) -> None:
        log.error("Preemption failed; the pod will be tried again", err=error, pod=pod.key)
