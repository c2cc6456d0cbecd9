"""Pods get their decisions as annotations, one after the other, beside everything else.

What waits to be written is a table of records, not of texts: of a pod only its last decision, and of too many pods the
newest. What a pod has already is not written again, or a pod that fits nowhere would wake itself.
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
    """Follows the decisions of a scheduler."""

    def __init__(
        self,
        archive: Archive,
        pod_of: Callable[[str], Pod | None],
        annotate: Annotate,
    ) -> None:
        """`pod_of` has the latest version of a pod, by uid."""
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
        """Until cancelled."""
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
        room = MOST_BYTES - size_of({key: value for key, value in present.items() if key not in ours})
        wanted = annotations(self._archive.decision(record, details=self._details), Plugins.of(record.by), room)
        if size_of(wanted) > room:
            reason = "its other annotations leave too few bytes"
            log.warning("A decision was not written to its pod", reason=reason, bytesLeft=room, pod=pod.key)
            # What an earlier decision left there is no longer true.
            wanted = {}
        changes: dict[str, str | None] = {key: None for key in ours if key not in wanted}
        changes |= {key: value for key, value in wanted.items() if ours.get(key) != value}
        return changes
