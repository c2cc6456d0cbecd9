"""CronJobs: they create Jobs on a schedule."""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from email.utils import format_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubestow.api.timestamps import format_time, parse_time
from kubestow.apiserver.controllers.api import Api, Object, condition_of, has_condition, reference
from kubestow.apiserver.controllers.job_state import finish_time
from kubestow.apiserver.controllers.queue import own_key, owners_in
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.rules import cron
from kubestow.apiserver.store.collection import Key

_CRON_JOBS = "cronjobs.batch"
_JOBS = "jobs.batch"
_COMPONENT = "cronjob-controller"
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobs:
    """Creates the Jobs of CronJobs, and deletes old ones."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sources = {_CRON_JOBS: own_key, _JOBS: owners_in(self._api.store, _CRON_JOBS)}

    def reconcile(self, key: Key) -> float | None:
        """Create a Job if one is due; return the seconds until the next one is."""
        cron_job = self._api.read(_CRON_JOBS, *key)
        if cron_job is None:
            return None
        jobs = [record.object() for record in self._api.owned(cron_job["metadata"]["uid"], _JOBS)]
        status = dict(cron_job.get("status", {}))
        self._remove_finished(cron_job, status, jobs)
        self._prune(cron_job, jobs)
        again = None
        try:
            if "deletionTimestamp" not in cron_job["metadata"] and not cron_job["spec"].get("suspend"):
                again = self._run(cron_job, status)
        finally:
            if not status.get("active"):
                status.pop("active", None)
            self._api.set_status(_CRON_JOBS, cron_job, status)
        return again

    def _remove_finished(self, cron_job: Object, status: Object, jobs: list[Object]) -> None:
        """Remove ended and deleted Jobs from the list of active ones, and set the last successful time."""
        by_uid = {job["metadata"]["uid"]: job for job in jobs}
        left = []
        for one in status.get("active", ()):
            job = by_uid.get(one["uid"])
            if job is None:
                self._event(cron_job, "MissingJob", f"Active job went missing: {one['name']}")
            elif finish_time(job):
                end = "Complete" if condition_of(job, "Complete") else "Failed"
                self._event(cron_job, "SawCompletedJob", f"Saw completed job: {one['name']}, condition: {end}")
            else:
                left.append(one)
        status["active"] = left
        times = [job["status"]["completionTime"] for job in jobs if job.get("status", {}).get("completionTime")]
        if times:
            status["lastSuccessfulTime"] = max(*times, status.get("lastSuccessfulTime", ""))

    def _prune(self, cron_job: Object, jobs: list[Object]) -> None:
        for end, name, default in (("Complete", "successful", 3), ("Failed", "failed", 1)):
            limit = cron_job["spec"].get(f"{name}JobsHistoryLimit", default)
            ended = [job for job in jobs if has_condition(job, end)]
            ended.sort(key=lambda job: (job["status"].get("startTime", ""), job["metadata"]["name"]))
            for job in ended[: max(0, len(ended) - limit)]:
                self._delete(cron_job, job["metadata"]["name"])

    def _run(self, cron_job: Object, status: Object) -> float | None:
        spec, now = cron_job["spec"], self._api.now()
        try:
            zone: tzinfo = ZoneInfo(spec["timeZone"]) if spec.get("timeZone") else UTC
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f'invalid timeZone: "{spec["timeZone"]}": unknown time zone {spec["timeZone"]}'
            self._event(cron_job, "UnknownTimeZone", message, "Warning")
            return None
        try:
            schedule = cron.parse(spec["schedule"])
        except ValueError as error:
            message = f'unparseable schedule: "{spec["schedule"]}" : {error}'
            self._event(cron_job, "UnparseableSchedule", message, "Warning")
            return None
        next_time = schedule.after(now, zone)
        again = next_time - now if next_time is not None else None
        earliest = parse_time(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None:
            earliest = max(earliest, now - deadline)
        due, missed = schedule.latest(earliest, now, zone)
        if due is None:
            return again
        if missed > 100:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._event(cron_job, "TooManyMissedTimes", message, "Warning")
        if deadline is not None and due + deadline < now:
            when = format_datetime(datetime.fromtimestamp(due, UTC))
            self._event(cron_job, "MissSchedule", f"Missed scheduled time to start a job: {when}", "Warning")
            return again
        if spec.get("concurrencyPolicy") == "Forbid" and status.get("active"):
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._event(cron_job, "JobAlreadyActive", message)
            return again
        if spec.get("concurrencyPolicy") == "Replace":
            for one in status.get("active", ()):
                self._delete(cron_job, one["name"])
            status["active"] = []
        self._start(cron_job, status, due, zone)
        return again

    def _start(self, cron_job: Object, status: Object, due: float, zone: tzinfo) -> None:
        metadata, template = cron_job["metadata"], cron_job["spec"]["jobTemplate"]
        inner = template.get("metadata", {})
        at = datetime.fromtimestamp(due, UTC).astimezone(zone)
        stamp = format_time(due) if zone is UTC else at.isoformat()
        job: Object = {
            "metadata": {
                "name": f"{metadata['name']}-{int(due // 60)}",
                "labels": dict(inner.get("labels", {})),
                "annotations": {**inner.get("annotations", {}), _SCHEDULED: stamp},
                "ownerReferences": [reference(cron_job)],
            },
            "spec": template.get("spec", {}),
        }
        status["lastScheduleTime"] = format_time(due)
        try:
            new = self._api.create(_JOBS, metadata["namespace"], job).object()
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return
            del status["lastScheduleTime"]
            self._event(cron_job, "FailedCreate", f"Error creating job: {error.message}", "Warning")
            raise
        self._event(cron_job, "SuccessfulCreate", f"Created job {new['metadata']['name']}")
        fields: Iterable[tuple[str, str]] = (("apiVersion", new["apiVersion"]), ("kind", new["kind"]))
        active = dict(fields) | {key: new["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
        status.setdefault("active", []).append(active)

    def _delete(self, cron_job: Object, name: str) -> None:
        self._api.delete(_JOBS, cron_job["metadata"]["namespace"], name)
        self._event(cron_job, "SuccessfulDelete", f"Deleted job {name}")

    def _event(self, cron_job: Object, reason: str, message: str, type_: str = "Normal") -> None:
        self._api.event(_COMPONENT, cron_job, reason, message, type_)
