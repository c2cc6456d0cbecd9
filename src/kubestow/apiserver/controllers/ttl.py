"""Deletion of finished Jobs after their time to live."""

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.job_state import finish_time
from kubestow.apiserver.controllers.queue import own_key
from kubestow.apiserver.store.collection import Key

_JOBS = "jobs.batch"


class TtlAfterFinished:
    """Deletes Jobs ttlSecondsAfterFinished seconds after they ended."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sources = {
            _JOBS: lambda change: own_key(change) if b'"ttlSecondsAfterFinished":' in change.record.body else ()
        }

    def reconcile(self, key: Key) -> float | None:
        """Delete a Job whose time to live has expired; return the seconds until it expires."""
        job = self._api.read(_JOBS, *key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return None
        ttl, end = job["spec"].get("ttlSecondsAfterFinished"), finish_time(job)
        if ttl is None or not end:
            return None
        left = parse_time(end) + float(ttl) - self._api.now()
        if left > 0:
            return left
        self._api.delete(_JOBS, *key, uid=job["metadata"]["uid"], how="Foreground")
        return None
