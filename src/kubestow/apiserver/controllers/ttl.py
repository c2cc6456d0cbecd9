"""Finished Jobs that have a time to live go when it is over."""

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.job_state import finish_time
from kubestow.apiserver.controllers.queue import KeysOf, own_key
from kubestow.apiserver.store.collection import Key

_JOBS = "jobs.batch"


class TtlAfterFinished:
    """Deletes Jobs ttlSecondsAfterFinished seconds after they ended."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def sources(self) -> dict[str, KeysOf]:
        """Follows Jobs that have a time to live."""
        return {_JOBS: lambda change: own_key(change) if b'"ttlSecondsAfterFinished":' in change.record.body else ()}

    def visit(self, key: Key) -> float | None:
        """Deletes a Job whose time is over; returns when it will be."""
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
