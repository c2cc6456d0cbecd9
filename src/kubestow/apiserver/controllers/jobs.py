"""Jobs: pods are created until enough of them have succeeded, or too many have failed.

A pod is counted once: while it has the tracking finalizer, the counters of the status do not include it. A Job ends in
two steps: an interim condition with the outcome, and the final condition once none of its pods is running.
"""

from collections.abc import Iterable

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers import job_groups
from kubestow.apiserver.controllers import job_policies as policies
from kubestow.apiserver.controllers.adoption import Adoption
from kubestow.apiserver.controllers.api import Object, set_condition
from kubestow.apiserver.controllers.job_state import SUCCESS, TRACKING, JobState, Outcome, finish_time, read_state
from kubestow.apiserver.controllers.pods import DONE, Facts, Pods
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
    """Runs Jobs to completion; keys are those of Jobs, or `orphan:` keys of pods whose Job was deleted."""

    def __init__(self, pods: Pods, *, in_groups: bool = False) -> None:
        """`in_groups`: whether to create a Workload and a pod group for Jobs."""
        self._in_groups = in_groups
        self._pods = pods
        self._api = pods.api
        self._adoption = Adoption(pods.api, _JOBS, "pods")
        self._backoff: dict[str, tuple[int, float]] = {}
        self.sources = {_JOBS: self._job_keys, "pods": self._pod_keys}

    def _job_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        yield from self._adoption.owner_keys(change)
        if change.type == "DELETED":
            self._backoff.pop(record.uid, None)
            for pod in self._api.owned(record.uid, "pods"):
                yield f"{_ORPHAN}{pod.namespace}", pod.name

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        owners = [*self._adoption.owned_keys(change)]
        if not (owners and record.owners) and change.type != "DELETED" and TRACKING.encode() in record.body:
            owners.append((f"{_ORPHAN}{record.namespace}", record.name))
        return owners

    def reconcile(self, key: Key) -> float | None:
        """Create or delete pods of one Job, and update its status; or remove the finalizer of an orphaned pod."""
        if key[0].startswith(_ORPHAN):
            record = self._api.store.get("pods", key[0].removeprefix(_ORPHAN), key[1])
            if record is not None and not any(uid in self._api.store.by_uid for uid in record.owners):
                self._untrack(record)
            return None
        job = self._api.read(_JOBS, *key)
        if job is None or finish_time(job) or job["spec"].get("managedBy", _MANAGER) != _MANAGER:
            return None
        self._adoption.apply(self._api.store.by_uid[job["metadata"]["uid"]][1])
        return self._sync(job)

    def _sync(self, job: Object) -> float | None:
        state = read_state(job, self._pods.owned_by(job["metadata"]["uid"]))
        old, spec = job.get("status", {}), job["spec"]
        status: Object = {"conditions": [dict(one) for one in old.get("conditions", ())]}
        suspended = spec.get("suspend", False)
        if not suspended or old.get("startTime"):
            status["startTime"] = old.get("startTime") or self._api.store.now()
        backoff = self._updated_backoff(state)
        outcome = state.outcome(status, self._api.now())
        again, error = None, None
        if outcome is not None:
            self._delete(state, state.active)
        else:
            if "deletionTimestamp" not in job["metadata"]:
                try:
                    if self._in_groups:
                        state.group = job_groups.group_of(self._api, state)
                    again = self._manage(state, backoff)
                except ApiError as rejection:
                    error = rejection
            outcome = state.completed()
            if outcome is None:
                self._set_suspension(job, status, suspended=suspended)
        self._count(state, status, outcome, backoff)
        if error is not None:
            raise error
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is not None and status.get("startTime") and not suspended and outcome is None:
            left = max(0.0, parse_time(status["startTime"]) + deadline - self._api.now())
            again = left if again is None else min(again, left)
        return again

    def _updated_backoff(self, state: JobState) -> tuple[int, float]:
        """Return the number of failures since the last success, and the time of the last one."""
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

    def _manage(self, state: JobState, backoff: tuple[int, float]) -> float | None:
        """Create or delete pods; return the seconds until the next run is needed, if any."""
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
            left = backoff[1] + policies.wait_after(backoff[0]) - self._api.now()
            if left > 0:
                return left
        if not state.indexed:
            for _ in range(min(missing, _BATCH)):
                self._create(state, None)
            return 0.0 if missing > _BATCH else None
        return self._create_indexes(state, missing)

    def _create_indexes(self, state: JobState, missing: int) -> float | None:
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
            self._create(state, index)
            state.held.pop(index, None)
        return min(waits, default=None)

    def _create(self, state: JobState, index: int | None) -> None:
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
        created = self._pods.create(_COMPONENT, state.job, state.spec["template"], prefix, alter)
        state.active.append(self._pods.facts(created))

    def _surplus(self, state: JobState, least: int) -> list[Facts]:
        """Return the pods to delete: first duplicates of an index, then the pods that have made the least progress."""
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

    def _set_suspension(self, job: Object, status: Object, *, suspended: bool) -> None:
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

    def _count(self, state: JobState, status: Object, outcome: Outcome | None, backoff: tuple[int, float]) -> None:
        """Write the status, remove the finalizer of counted pods, and finish the Job once no pod is running."""
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
        self._backoff[job["metadata"]["uid"]] = backoff
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
        """Remove the tracking finalizer of a pod."""
        self._api.remove_finalizer("pods", record.namespace, record.name, TRACKING)
