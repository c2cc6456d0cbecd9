"""Writes decisions.jsonl: a line of JSON for each decision of a simulation, once the pod is bound or has failed.

The schema is that of live decisions. A line contains the chosen node and the best of the evaluated ones: all nodes
would take megabytes per pod in a large cluster.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.api.meta import controller_of
from kubestow.api.pod import Pod
from kubestow.insight.decisions.archive import Archive
from kubestow.insight.decisions.record import Record

RECORD_BYTES = 128 * 1024 * 1024
"""Memory limit for decisions that are not written yet because their pods are being bound."""
NODES = 10
"""Default number of nodes in a line; each adds half a kilobyte."""


class DecisionLines:
    """Writes the decisions of a scheduler."""

    def __init__(
        self, archive: Archive, write: Callable[[bytes], Any], nodes: int, pod_of: Callable[[str], Pod | None]
    ) -> None:
        """`pod_of` returns an existing pod by namespace/name."""
        self._archive = archive
        self._details = archive.details()
        self._pod_of = pod_of
        self._write = write
        self._nodes = nodes
        self._encode = msgspec.json.Encoder().encode
        archive.recorder.listeners.append(self._on_record)

    def _on_record(self, record: Record) -> None:
        if record.is_settled:
            self._write_decision(record)

    def finish(self) -> None:
        """Write the decisions whose pods are still being bound at the end of the run."""
        for record in sorted(self._archive, key=lambda one: one.id):
            if not record.is_settled:
                self._write_decision(record)

    def _write_decision(self, record: Record) -> None:
        decision = self._archive.decision(record, nodes=self._nodes > 0, most=self._nodes, details=self._details)
        if not self._nodes:
            decision = replace(decision, nodesCut=record.evaluated)
        pod = self._pod_of(decision.pod)
        owner = None if pod is None else controller_of(pod.metadata)
        if owner is not None:
            decision = replace(decision, owner=f"{owner.kind}/{owner.name}")
        self._write(self._encode(decision) + b"\n")
