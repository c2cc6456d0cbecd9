"""Line output of `kubestow up` without a terminal: decisions, phases of pods, changes of nodes."""

import asyncio
import time
from collections.abc import Iterable

from kubestow.apiserver.controllers.pods import NODE, PHASE
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.cli.nonblocking_output import NonBlockingOutput
from kubestow.insight.decisions.record import WAITING, Record
from kubestow.insight.decisions.schema import SCHEDULED

SECONDS = 0.1
"""The polling interval."""

_CORDONED = BY_STORAGE["nodes"].selectable_fields.index("spec.unschedulable")


async def write_lines(store: Store, decisions: Iterable[Record], output: NonBlockingOutput) -> None:
    """Write new events until cancelled or until writing fails."""
    lines = Lines(decisions)
    store.collection("pods").subscribers.append(lines.pod_changed)
    store.collection("nodes").subscribers.append(lines.node_changed)
    while True:
        for line in lines.take():
            output.write(line)
        output.flush()
        await asyncio.sleep(SECONDS)


class Lines:
    """Buffers lines until they are taken."""

    def __init__(self, decisions: Iterable[Record]) -> None:
        self._decisions = decisions
        self._last_written: Record | None = None
        self._rejected: dict[str, str] = {}
        self._waiting: list[Record] = []
        """Decisions that plugins delay."""
        self._lines: list[tuple[float, str]] = []

    def take(self) -> list[str]:
        """Return the lines since the last call, in order."""
        fresh = []
        for record in self._decisions:
            if record is self._last_written:
                break
            fresh.append(record)
        if fresh:
            self._last_written = fresh[0]
        now = time.time()
        decided = [(now, record) for record in self._waiting if record.binding != WAITING]
        decided += [(record.time, record) for record in reversed(fresh)]
        self._waiting = [record for record in (*self._waiting, *reversed(fresh)) if record.binding == WAITING]
        self._lines += [(when, line) for when, record in decided if (line := self._decided(record))]
        self._lines.sort(key=lambda entry: entry[0])
        lines = [f"{time.strftime('%H:%M:%S', time.localtime(when))} {line}" for when, line in self._lines]
        self._lines.clear()
        return lines

    def _decided(self, record: Record) -> str:
        if record.binding == WAITING:
            return f"pod {record.pod}: waits for {', '.join(record.permits)} to go to {record.node}"
        if record.outcome == SCHEDULED:
            self._rejected.pop(record.uid, None)
            return f"pod {record.pod}: goes to {record.node}, chosen from {record.feasible} of {record.evaluated} nodes"
        if self._rejected.get(record.uid) == record.message:
            return ""
        self._rejected[record.uid] = record.message
        nominated = f"; nominated to {record.nominated_node}" if record.nominated_node else ""
        return f"pod {record.pod}: {record.outcome}: {record.message}{nominated}"

    def pod_changed(self, change: Change) -> None:
        record, previous = change.record, change.previous
        if change.type == "DELETED":
            self._rejected.pop(record.uid, None)
            self._say(f"pod {record.namespace}/{record.name}: gone")
        elif previous is not None and record.fields[PHASE] != previous.fields[PHASE]:
            self._say(f"pod {record.namespace}/{record.name}: {record.fields[PHASE]} on {record.fields[NODE]}")

    def node_changed(self, change: Change) -> None:
        name, previous = change.record.name, change.previous
        if change.type == "DELETED":
            self._say(f"node {name}: removed")
        elif previous is None:
            self._say(f"node {name}: added")
        elif (cordoned := change.record.fields[_CORDONED]) != previous.fields[_CORDONED]:
            self._say(f"node {name}: {'cordoned' if cordoned == 'true' else 'uncordoned'}")

    def _say(self, line: str) -> None:
        self._lines.append((time.time(), line))
