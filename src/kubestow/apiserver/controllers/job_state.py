"""The state of a Job, computed from its status and its pods: uncounted pods, finished indexes, and the outcome."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers import job_policies as policies
from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.controllers.pods import DONE, Facts

TRACKING = "batch.kubernetes.io/job-tracking"
SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"

Outcome = tuple[str, str, str]
"""The outcome of a Job: the interim condition, reason and message."""


@dataclass(slots=True)
class JobState:
    """The state of a Job and its pods."""

    job: Object
    pods: list[Facts]
    active: list[Facts]
    uncounted: list[Facts]
    """Pods that the counters of the status do not include yet."""
    failures: dict[str, tuple[Object, policies.Failure]] = field(default_factory=dict)
    """Uncounted failed pods by UID, with the effect of the failure policy."""
    succeeded: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    """Indexes that have succeeded, and those that have failed."""
    held: dict[int, Facts] = field(default_factory=dict)
    """Failed pods by index; they are counted once they are replaced."""
    group: Object | None = None
    """The pod group of new pods."""

    @property
    def spec(self) -> Object:
        spec: Object = self.job["spec"]
        return spec

    @property
    def indexed(self) -> bool:
        return bool(self.spec.get("completionMode") == "Indexed")

    @property
    def only_failed(self) -> bool:
        """Whether a pod is replaced only after it has ended."""
        return bool(self.spec.get("podReplacementPolicy") == "Failed")

    def terminating(self) -> list[Facts]:
        """Return the pods that are being deleted and have not ended."""
        return [pod for pod in self.pods if pod.deleting and pod.phase not in DONE]

    def index(self, pod: Facts) -> int:
        """Return the completion index of a pod; -1 if it has no valid one."""
        text = pod.record.labels.get(policies.INDEX, "")
        return int(text) if text.isdecimal() and int(text) < (self.spec.get("completions") or 0) else -1

    def outcome(self, status: Object, now: float) -> Outcome | None:
        """Return the outcome if it is certain: the one already in the status, a failure, or a met success policy."""
        for one in status["conditions"]:
            if one["type"] in (SUCCESS, FAILURE) and one["status"] == "True":
                return one["type"], one["reason"], one["message"]
        spec, old = self.spec, self.job.get("status", {})
        fatal = next((failure.message for _, failure in self.failures.values() if failure.message), "")
        if fatal:
            return FAILURE, "PodFailurePolicy", fatal
        failed = old.get("failed", 0) + sum(1 for _, failure in self.failures.values() if failure.counts)
        if failed > spec.get("backoffLimit", 6) or self._restarted_too_often():
            return FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline = spec.get("activeDeadlineSeconds")
        running = deadline is not None and status.get("startTime") and not spec.get("suspend")
        if running and now - parse_time(status["startTime"]) >= (deadline or 0):
            return FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline"
        if self.indexed:
            limit = spec.get("maxFailedIndexes")
            if limit is not None and len(self.failed) > limit:
                message = "Job has exceeded the specified maximal number of failed indexes"
                return FAILURE, "MaxFailedIndexesExceeded", message
            if self.failed and len(self.failed | self.succeeded) >= spec["completions"]:
                return FAILURE, "FailedIndexes", "Job has failed indexes"
            matched = policies.matched_success(spec.get("successPolicy"), spec["completions"], self.succeeded)
            if matched:
                return SUCCESS, "SuccessPolicy", matched
        return None

    def _restarted_too_often(self) -> bool:
        if self.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        restarts = sum(pod.restarts for pod in self.pods if pod.phase in ("Running", "Pending"))
        return bool(restarts >= max(1, self.spec.get("backoffLimit", 6)))

    def completed(self) -> Outcome | None:
        """Return the successful outcome once enough pods have succeeded and none is active; else None."""
        completions, succeeded = self.spec.get("completions"), self.total_succeeded()
        enough = succeeded > 0 if completions is None else succeeded >= completions
        if not enough or self.active:
            return None
        return SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods"

    def total_succeeded(self) -> int:
        """Return the number of succeeded pods, or indexes, including uncounted ones."""
        if self.indexed:
            return len(self.succeeded)
        new = sum(1 for pod in self.uncounted if pod.phase == "Succeeded")
        return int(self.job.get("status", {}).get("succeeded", 0)) + new

    def read_indexes(self) -> None:
        """Compute the succeeded and failed indexes, and the failed pods to replace."""
        completions, status = self.spec["completions"], self.job.get("status", {})
        self.succeeded = policies.parse_indexes(status.get("completedIndexes", ""), completions)
        self.succeeded |= {self.index(pod) for pod in self.uncounted if pod.phase == "Succeeded"} - {-1}
        limit = self.spec.get("backoffLimitPerIndex")
        if limit is None:
            return
        self.failed = policies.parse_indexes(status.get("failedIndexes", ""), completions)
        failures = [(self.index(pod), pod) for pod in self.uncounted if pod.record.uid in self.failures]
        for index, pod in failures:
            obj, failure = self.failures[pod.record.uid]
            exceeded = failure.counts and _number(obj, policies.FAILURES) >= limit
            if index >= 0 and (exceeded or failure.action == "FailIndex"):
                self.failed.add(index)
        settled = self.succeeded | self.failed | {self.index(pod) for pod in self.active}
        for index, pod in failures:
            if index >= 0 and index not in settled:
                self.held[index] = max(self.held.get(index, pod), pod, key=self.failures_of)

    def failures_of(self, pod: Facts, more: int = 0) -> tuple[int, int]:
        """Return the counted and ignored failures of an index before a pod; `more` adds the pod's own failure."""
        obj, failure = self.failures[pod.record.uid]
        counted, ignored = _number(obj, policies.FAILURES), _number(obj, policies.IGNORED_FAILURES)
        return counted + more * failure.counts, ignored + more * (not failure.counts)


def read_state(job: Object, pods: Iterable[Facts]) -> JobState:
    """Compute the state of a Job from its pods."""
    owned = list(pods)
    uncounted = [pod for pod in owned if TRACKING.encode() in pod.record.body]
    state = JobState(job, owned, [pod for pod in owned if pod.active], uncounted)
    for pod in uncounted:
        if pod.phase == "Failed" or (pod.deleting and pod.phase not in DONE and not state.only_failed):
            obj = pod.record.object()
            state.failures[pod.record.uid] = obj, policies.evaluate_failure(state.spec.get("podFailurePolicy"), obj)
    if state.indexed:
        state.read_indexes()
    return state


def _number(obj: Object, annotation: str) -> int:
    text = obj["metadata"].get("annotations", {}).get(annotation, "0")
    return int(text) if text.isdecimal() else 0


def finish_time(job: Object) -> str:
    """Return the time at which a Job ended; empty if it has not."""
    for one in job.get("status", {}).get("conditions", ()):
        if one["type"] in ("Complete", "Failed") and one["status"] == "True":
            return str(one["lastTransitionTime"])
    return ""
