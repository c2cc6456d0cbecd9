"""Jobs: pods until enough of them have finished, or too many have failed."""

import time
from typing import Any

from kubestow.apiserver import clock
from kubestow.apiserver.controllers.pods import Facts, Object, Pods, set_condition, set_status
from kubestow.apiserver.controllers.queue import KeysOf, own_key, owners_in
from kubestow.apiserver.objects.intent import internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.collection import Key

_JOBS = "jobs.batch"
_INDEX = "batch.kubernetes.io/job-completion-index"


class Jobs:
    """Runs Jobs to their end."""

    def __init__(self, pods: Pods, writer: Writer, remover: Remover) -> None:
        self._pods = pods
        self._writer = writer
        self._remover = remover

    def sources(self) -> dict[str, KeysOf]:
        """Follows Jobs and their pods."""
        return {_JOBS: own_key, "pods": owners_in(self._pods.store, _JOBS)}

    def visit(self, key: Key) -> float | None:
        """Starts pods that are due, and tells how far the job has come."""
        record = self._pods.store.get(_JOBS, *key)
        if record is None:
            return None
        job = record.object()
        if "deletionTimestamp" in job["metadata"]:
            return None
        spec, status = job["spec"], job.get("status", {})
        finished = _finished(status)
        if finished is not None:
            return self._expire(job, finished)
        pods = self._pods.owned_by(record.uid)
        active = [pod for pod in pods if pod.active]
        succeeded = [pod for pod in pods if pod.phase == "Succeeded"]
        failed = [pod for pod in pods if pod.phase == "Failed"]
        new: Object = {
            "startTime": status.get("startTime") or clock.now(),
            "active": len(active),
            "succeeded": len(succeeded),
            "failed": len(failed),
            "ready": sum(1 for pod in active if pod.ready),
            "conditions": [dict(one) for one in status.get("conditions", ())],
        }
        verdict = _verdict(spec, new, active)
        if verdict is not None:
            self._finish(job, new, active, *verdict)
            return 0.0
        if spec.get("suspend"):
            for pod in active:
                self._pods.delete(pod)
            new["active"] = 0
            del new["startTime"]
            set_condition(new["conditions"], "Suspended", "True", "JobSuspended", "Job suspended")
        else:
            if any(one["type"] == "Suspended" for one in new["conditions"]):
                set_condition(new["conditions"], "Suspended", "False", "JobResumed", "Job resumed")
            new["active"] += self._start_missing(job, active, succeeded)
        set_status(self._writer, _JOBS, job, _tidy(new))
        limit = spec.get("activeDeadlineSeconds")
        if limit is None or "startTime" not in new:
            return None
        return max(0.01, clock.seconds(new["startTime"]) + float(limit) - time.time() + 1)

    def _start_missing(self, job: Object, active: list[Facts], succeeded: list[Facts]) -> int:
        spec = job["spec"]
        parallel = spec.get("parallelism", 1)
        completions = spec.get("completions")
        wanted: int = parallel if completions is None else min(parallel, completions - len(succeeded))
        if completions is None and succeeded:
            wanted = len(active)
        missing = max(0, wanted - len(active))
        indexed = spec.get("completionMode") == "Indexed"
        taken = {pod.record.labels.get(_INDEX) for pod in (*active, *succeeded)}
        free = (str(index) for index in range(completions or 0) if str(index) not in taken)
        name = job["metadata"]["name"]
        for _ in range(missing):
            more: dict[str, Any] = {}
            prefix = f"{name}-"
            if indexed:
                index = next(free, None)
                if index is None:
                    break
                more = {"annotations": {_INDEX: index}, "labels": {_INDEX: index}}
                prefix = f"{name}-{index}-"
            self._pods.create(job, spec["template"], prefix, **more)
        for pod in active[max(0, wanted) :]:
            self._pods.delete(pod)
        return missing

    def _finish(self, job: Object, status: Object, active: list[Facts], type_: str, reason: str, message: str) -> None:
        for pod in active:
            self._pods.delete(pod)
        status["active"] = status["ready"] = 0
        before = "SuccessCriteriaMet" if type_ == "Complete" else "FailureTarget"
        for one in (before, type_):
            set_condition(status["conditions"], one, "True", reason, message)
        if type_ == "Complete":
            status["completionTime"] = clock.now()
        set_status(self._writer, _JOBS, job, _tidy(status))

    def _expire(self, job: Object, finished: str) -> float | None:
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        left = clock.seconds(finished) + float(ttl) - time.time()
        if left > 0:
            return left
        metadata = job["metadata"]
        self._remover.delete(BY_STORAGE[_JOBS], metadata["namespace"], metadata["name"], DeleteOptions(), internal())
        return None


def _verdict(spec: Object, status: Object, active: list[Facts]) -> tuple[str, str, str] | None:
    """How a job ended, if it did: condition, reason, message."""
    if status["failed"] > spec.get("backoffLimit", 6):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    limit = spec.get("activeDeadlineSeconds")
    if limit is not None and time.time() - clock.seconds(status["startTime"]) >= limit:
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    completions = spec.get("completions")
    if completions is None:
        if status["succeeded"] and not active:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    elif status["succeeded"] >= completions:
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _finished(status: Object) -> str | None:
    """When a job ended; None if it goes on."""
    for condition in status.get("conditions", ()):
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["lastTransitionTime"])
    return None


def _tidy(status: Object) -> Object:
    return {key: value for key, value in status.items() if value not in (0, []) or key == "ready"}
