"""Writes the decision log: one line of JSON for each decision, once its pod is bound or has failed.

When a file reaches its limit, it is renamed to FILE.1, FILE.1 to FILE.2, and so on; the oldest file is deleted.
"""

import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.groups import GroupRecord
from kubestow.insight.decisions.record import Record
from kubestow.insight.decisions.schema import Decision, GroupDecision
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)


class DecisionLog:
    """Writes decisions to a file; `-` is standard output, which is not rotated."""

    def __init__(self, archive: Archive, path: str, *, size: int, backups: int, nodes: bool) -> None:
        """Raises OSError if the file cannot be written. A `size` of 0: no limit."""
        self._archive = archive
        self._details = archive.details()
        self._path = None if path == "-" else Path(path)
        self._most = size
        self._backups = backups
        self._nodes = nodes
        self._is_failing = False
        self._file: BinaryIO = self._open()
        self._size = 0 if self._path is None else self._path.stat().st_size
        archive.recorder.listeners.append(self.record)
        archive.recorder.groups.listeners.append(self.record_group)

    def _open(self) -> BinaryIO:
        return sys.stdout.buffer if self._path is None else self._path.open("ab", buffering=0)

    def record(self, record: Record) -> None:
        """Write a line about a decision that is settled; ignore others."""
        if not record.is_settled:
            return
        self._write(self._archive.decision(record, nodes=self._nodes, details=self._details))

    def record_group(self, record: GroupRecord) -> None:
        """Write a line about a pod group."""
        self._write(self._archive.group_decision(record, self._details) if self._nodes else record.decision)

    def _write(self, decision: Decision | GroupDecision) -> None:
        line = msgspec.json.encode(decision) + b"\n"
        try:
            if self._path is not None and self._size and 0 < self._most < self._size + len(line):
                self._rotate(self._path)
            self._file.write(line)
            self._file.flush()
        except (OSError, ValueError) as error:
            # Log the error once: a full disk stays full for many decisions.
            if not self._is_failing:
                log.error("Decisions are missing in the decision log", err=error, file=str(self._path or "-"))
            self._is_failing = True
        else:
            self._is_failing = False
            self._size += len(line)

    def close(self) -> None:
        """Close the log; standard output stays open."""
        if self._path is not None:
            self._file.close()

    def _rotate(self, path: Path) -> None:
        self._file.close()
        try:
            for number in range(self._backups, 0, -1):
                older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
                if older.exists():
                    older.replace(path.with_name(f"{path.name}.{number}"))
            if not self._backups:
                path.unlink()
        finally:
            self._file = self._open()
            self._size = path.stat().st_size
