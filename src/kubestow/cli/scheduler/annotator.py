"""Writes decisions to annotations of pods, one pod at a time, in the background.

Pending writes are records, not texts: only the last decision of each pod, and the newest up to a limit. Annotations
that a pod already has are not written again; otherwise an unschedulable pod would trigger its own next attempt.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from kubestow.api.failures import CallError
from kubestow.api.pod import Pod
from kubestow.insight.decisions.annotations import CUT_KEY, MOST_BYTES, PREFIX, Plugins, annotations, size_of
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.record import Record
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

MOST_DUE = 10_000

Annotate = Callable[[Pod, Mapping[str, str | None]], Awaitable[None]]
"""Writes annotations; None removes one."""


class Annotator:
    """Receives the decisions of a scheduler and writes them to pods."""

    def __init__(
        self,
        archive: Archive,
        pod_of: Callable[[str], Pod | None],
        annotate: Annotate,
    ) -> None:
        """`pod_of` returns the latest version of a pod by UID."""
        self._archive = archive
        self._details = archive.details()
        self._pod_of = pod_of
        self._annotate = annotate
        self._due: dict[str, Record] = {}
        self._arrived = asyncio.Event()
        archive.recorder.listeners.append(self._decided)

    def _decided(self, record: Record) -> None:
        if record.is_settled:
            self._due.pop(record.uid, None)
            self._due[record.uid] = record
            if len(self._due) > MOST_DUE:
                del self._due[next(iter(self._due))]
            self._arrived.set()

    async def run(self) -> None:
        """Write annotations until cancelled."""
        while True:
            while self._due:
                uid = next(iter(self._due))
                await self._write(self._due.pop(uid))
            self._arrived.clear()
            await self._arrived.wait()

    async def _write(self, record: Record) -> None:
        pod = self._pod_of(record.uid)
        if pod is None:
            return
        changes = self._changes(record, pod)
        if not changes:
            return
        try:
            await self._annotate(pod, changes)
        except CallError as error:
            log.error("A decision could not be written to its pod", err=error, pod=pod.key)

    def _changes(self, record: Record, pod: Pod) -> dict[str, str | None]:
        present = pod.metadata.annotations
        ours = {key: value for key, value in present.items() if key.startswith(PREFIX) or key == CUT_KEY}
        limit = MOST_BYTES - size_of({key: value for key, value in present.items() if key not in ours})
        wanted = annotations(self._archive.decision(record, details=self._details), Plugins.of(record.by), limit)
        if size_of(wanted) > limit:
            reason = "its other annotations leave too few bytes"
            log.warning("A decision was not written to its pod", reason=reason, bytesLeft=limit, pod=pod.key)
            # Annotations of an earlier decision are outdated.
            wanted = {}
        changes: dict[str, str | None] = {key: None for key in ours if key not in wanted}
        changes |= {key: value for key, value in wanted.items() if ours.get(key) != value}
        return changes
