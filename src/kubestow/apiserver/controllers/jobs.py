"""Jobs: pods until enough of them have finished, or too many have failed.

A pod is counted once: while it carries the tracking finalizer it is not in the counters of the status yet. A Job that
has ended says so in two steps: what its end will be, and, once no pod of it is left running, that it has ended.
"""

from collections.abc import Iterable

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers import job_groups
from kubestow.apiserver.controllers import job_policies as policies
from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.api import Object, set_condition
from kubestow.apiserver.controllers.job_state import SUCCESS, TRACKING, JobState, Outcome, finish_time, look
from kubestow.apiserver.controllers.pods import DONE, Facts, Pods
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_JOBS = "jobs.batch"
_COMPONENT = "job-controller"
_MANAGER = "kubernetes.io/job-controller"
_ORPHAN = "orphan:"
_BATCH = 500
_INDEX_ENV = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{policies.INDEX}']", "apiVersion": "v1"}},
}


class Jobs:
    """Runs Jobs to their end; keys are those of Jobs, or of pods that lost theirs after `orphan:`."""

    def __init__(self, pods: Pods, *, in_groups: bool = False) -> None:
        """`in_groups`: whether pods of a Job that run at once belong to a group."""
        self._in_groups = in_groups
        self._pods = pods
        self._api = pods.api
        self._adoption = Adoption(pods.api, _JOBS, "pods")
        self._backoff: dict[str, tuple[int, float]] = {}

    def sources(self) -> dict[str, KeysOf]:
        """Follows Jobs and their pods."""
        return {_JOBS: self._of_job, "pods": self._of_pod}

    def _of_job(self, change: Change) -> Iterable[Key]:
        record = change.record
        yield from self._adoption.of_owner(change)
        if change.type == "DELETED":
            self._backoff.pop(record.uid, None)
            for pod in self._api.owned(record.uid, "pods"):
                yield f"{_ORPHAN}{pod.namespace}", pod.name

    def _of_pod(self, change: Change) -> Iterable[Key]:
        record = change.record
        owners = [*self._adoption.of_owned(change)]
        if not (owners and record.owners) and change.type != "DELETED" and TRACKING.encode() in record.body:
            owners.append((f"{_ORPHAN}{record.namespace}", record.name))
        return owners

    def visit(self, key: Key) -> float | None:
        """Starts pods that are due, and tells how far the Job has come."""
        if key[0].startswith(_ORPHAN):
            record = self._api.store.get("pods", key[0].removeprefix(_ORPHAN), key[1])
            if record is not None and not any(uid in self._api.store.by_uid for uid in record.owners):
                self._untrack(record)
            return None
        job = self._api.read(_JOBS, *key)
        if job is None or finish_time(job) or job["spec"].get("managedBy", _MANAGER) != _MANAGER:
            return None
        self._adoption.settle(self._api.store.by_uid[job["metadata"]["uid"]][1])
        return self._sync(job)

    def _sync(self, job: Object) -> float | None:
        state = look(job, self._pods.owned_by(job["metadata"]["uid"]))
        old, spec = job.get("status", {}), job["spec"]
        status: Object = {"conditions": [dict(one) for one in old.get("conditions", ())]}
        suspended = spec.get("suspend", False)
        if not suspended or old.get("startTime"):
            status["startTime"] = old.get("startTime") or self._api.store.now()
        record = self._backoff_with(state)
        outcome = state.outcome(status, self._api.now())
        again, error = None, None
        if outcome is not None:
            self._delete(state, state.active)
        else:
            if "deletionTimestamp" not in job["metadata"]:
                try:
                    if self._in_groups:
                        state.group = job_groups.group_of(self._api, state)
                    again = self._manage(state, record)
                except ApiError as refused:
                    error = refused
            outcome = state.completed()
            if outcome is None:
                self._note_suspension(job, status, suspended=suspended)
        self._count(state, status, outcome, record)
        if error is not None:
            raise error
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and status.get("startTime") and not suspended and outcome is None:
            left = max(0.0, parse_time(status["startTime"]) + deadline - self._api.now())
            again = left if again is None else min(again, left)
        return again

    def _backoff_with(self, state: JobState) -> tuple[int, float]:
        """How many pods failed since the last success, and when the last did."""
        failures, last = self._backoff.get(state.job["metadata"]["uid"], (0, 0.0))
        ended = [
            (policies.finished_at(pod.record.object(), self._api.now()), pod.phase)
            for pod in state.uncounted
            if pod.phase == "Succeeded" or pod.record.uid in state.failures
        ]
        for at, phase in sorted(ended):
            failures, last = (0, 0.0) if phase == "Succeeded" else (failures + 1, max(last, at))
        return failures, last

    # Pods

    def _manage(self, state: JobState, record: tuple[int, float]) -> float | None:
        """Starts or deletes pods; returns when to look again."""
        spec, active = state.spec, len(state.active)
        completions, succeeded = spec.get("completions"), state.total_succeeded()
        wanted = spec.get("parallelism", 1)
        if spec.get("suspend"):
            wanted = 0
        elif completions is not None:
            wanted = max(0, min(wanted, completions - succeeded))
        elif succeeded:
            wanted = active
        surplus = self._surplus(state, max(0, active - wanted))
        if surplus:
            self._delete(state, surplus[:_BATCH])
            return 0.0 if len(surplus) > _BATCH else None
        missing = wanted - active - (len(state.terminating()) if state.only_failed else 0)
        if missing <= 0:
            return None
        if "backoffLimitPerIndex" not in spec:
            left = record[1] + policies.wait_after(record[0]) - self._api.now()
            if left > 0:
                return left
        if not state.indexed:
            for _ in range(min(missing, _BATCH)):
                self._start(state, None)
            return 0.0 if missing > _BATCH else None
        return self._start_indexes(state, missing)

    def _start_indexes(self, state: JobState, missing: int) -> float | None:
        busy = [*state.active, *(state.terminating() if state.only_failed else ())]
        taken = state.succeeded | state.failed | {state.index(pod) for pod in busy}
        free = [index for index in range(state.spec["completions"]) if index not in taken][:missing]
        waits: list[float] = []
        for number, index in enumerate(free):
            if number >= _BATCH:
                return 0.0
            held = state.held.get(index)
            if held is not None:
                end = policies.finished_at(held.record.object(), self._api.now())
                left = end + policies.wait_after(1 + sum(state.failures_of(held))) - self._api.now()
                if left > 0:
                    waits.append(left)
                    continue
            self._start(state, index)
            state.held.pop(index, None)
        return min(waits, default=None)

    def _start(self, state: JobState, index: int | None) -> None:
        name = state.job["metadata"]["name"]

        def alter(pod: Object) -> None:
            metadata = pod["metadata"]
            metadata["finalizers"] = [*metadata["finalizers"], TRACKING]
            if state.group is not None:
                job_groups.join(pod, state.group)
            if index is None:
                return
            metadata["annotations"][policies.INDEX] = metadata["labels"][policies.INDEX] = str(index)
            pod["spec"].setdefault("hostname", f"{name}-{index}")
            for kind in ("containers", "initContainers"):
                if pod["spec"].get(kind):
                    pod["spec"][kind] = [{**one, "env": [*one.get("env", ()), _INDEX_ENV]} for one in pod["spec"][kind]]
            if "backoffLimitPerIndex" in state.spec:
                counted, ignored = state.failures_of(state.held[index], more=1) if index in state.held else (0, 0)
                metadata["annotations"][policies.FAILURES] = str(counted)
                if ignored:
                    metadata["annotations"][policies.IGNORED_FAILURES] = str(ignored)

        prefix = f"{name}-" if index is None else f"{name}-{index}-"
        made = self._pods.create(_COMPONENT, state.job, state.spec["template"], prefix, alter)
        state.active.append(self._pods.facts(made))

    def _surplus(self, state: JobState, least: int) -> list[Facts]:
        """Pods of an index that another works on already, then those that are least of a loss."""
        surplus: list[Facts] = []
        seen: set[int] = set()
        for pod in state.active if state.indexed else ():
            index = state.index(pod)
            if index < 0 or index in seen:
                surplus.append(pod)
            seen.add(index)
        rest = [pod for pod in state.active if pod not in surplus]
        rest.sort(key=lambda pod: (bool(pod.node), pod.ready, -pod.ready_since, -pod.created))
        return surplus + rest[: max(0, least - len(surplus))]

    def _delete(self, state: JobState, pods: list[Facts]) -> None:
        for pod in list(pods):
            self._pods.delete(_COMPONENT, state.job, pod)
            state.active.remove(pod)

    # Status

    def _note_suspension(self, job: Object, status: Object, *, suspended: bool) -> None:
        now = self._api.store.now()
        before = next((one["status"] for one in status["conditions"] if one["type"] == "Suspended"), "")
        if suspended and before != "True":
            set_condition(status["conditions"], "Suspended", "True", "JobSuspended", "Job suspended", now)
            self._api.event(_COMPONENT, job, "Suspended", "Job suspended")
            status.pop("startTime", None)
        elif not suspended and before == "True":
            set_condition(status["conditions"], "Suspended", "False", "JobResumed", "Job resumed", now)
            self._api.event(_COMPONENT, job, "Resumed", "Job resumed")
            status["startTime"] = now

    def _count(self, state: JobState, status: Object, outcome: Outcome | None, record: tuple[int, float]) -> None:
        """Writes the status, lets counted pods go, and says that the Job has ended once nothing runs any more."""
        job, old = state.job, state.job.get("status", {})
        deleting = "deletionTimestamp" in job["metadata"]
        held = {pod.record.uid for pod in state.held.values()} if outcome is None and not deleting else set()
        counted = []
        failed = old.get("failed", 0)
        for pod in state.uncounted:
            failure = state.failures.get(pod.record.uid)
            ended = pod.phase == "Succeeded" or failure is not None
            if pod.record.uid in held or not (ended or outcome is not None or deleting):
                continue
            counted.append(pod)
            unfinished = outcome is not None and outcome[0] != SUCCESS
            if pod.phase != "Succeeded" and (failure[1].counts if failure else unfinished):
                failed += not state.indexed or state.index(pod) >= 0
        current = self._pods.owned_by(job["metadata"]["uid"])
        status |= {
            "active": len(state.active),
            "ready": sum(1 for pod in state.active if pod.ready),
            "terminating": sum(1 for pod in current if pod.deleting and pod.phase not in DONE),
            "succeeded": state.total_succeeded(),
            "failed": failed,
            "uncountedTerminatedPods": {},
        }
        if state.indexed:
            status["completedIndexes"] = policies.format_indexes(state.succeeded)
        if "backoffLimitPerIndex" in state.spec:
            status["failedIndexes"] = policies.format_indexes(state.failed)
        if outcome is not None:
            set_condition(status["conditions"], outcome[0], "True", *outcome[1:], self._api.store.now())
        self._write(job, status)
        self._backoff[job["metadata"]["uid"]] = record
        for pod in counted:
            self._untrack(pod.record)
        if outcome is not None:
            self._finish(job, status, outcome)

    def _finish(self, job: Object, status: Object, outcome: Outcome) -> None:
        left = [pod for pod in self._pods.owned_by(job["metadata"]["uid"]) if pod.deleting and pod.phase not in DONE]
        status["terminating"] = len(left)
        now = self._api.store.now()
        if not left:
            end = "Complete" if outcome[0] == SUCCESS else "Failed"
            set_condition(status["conditions"], end, "True", *outcome[1:], now)
            self._backoff.pop(job["metadata"]["uid"], None)
            if end == "Complete":
                status["completionTime"] = now
                self._api.event(_COMPONENT, job, "Completed", "Job completed")
            else:
                self._api.event(_COMPONENT, job, outcome[1], outcome[2], "Warning")
        self._write(job, status)

    def _write(self, job: Object, status: Object) -> None:
        kept = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")
        new = {key: [*value] if key == "conditions" else value for key, value in status.items() if value or key in kept}
        self._api.set_status(_JOBS, job, new)
        job["status"] = new

    def _untrack(self, record: Record) -> None:
        """Lets a pod go that is counted."""

        def alter(pod: Object) -> None:
            left = [one for one in pod["metadata"].get("finalizers", ()) if one != TRACKING]
            pod["metadata"]["finalizers"] = left
            if not left:
                del pod["metadata"]["finalizers"]

        if self._api.store.get("pods", record.namespace, record.name) is not None:
            self._api.update("pods", record.namespace, record.name, alter)
