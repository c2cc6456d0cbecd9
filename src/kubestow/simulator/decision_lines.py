"""decisions.jsonl: a line of JSON for each decision of a simulation, once the pod is bound or has failed.

The schema is that of live decisions. Of the nodes that were evaluated the chosen one and the best are told: all of them
would be megabytes a pod in a large cluster.
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
"""Room for decisions that wait to be written: those whose pods are being bound."""
NODES = 10
"""How many nodes a line tells of, if nobody asks for more: it grows by half a kilobyte with each."""


class DecisionLines:
    """Writes the decisions of a scheduler."""

    def __init__(
        self, archive: Archive, write: Callable[[bytes], Any], nodes: int, pod_of: Callable[[str], Pod | None]
    ) -> None:
        """`pod_of` has the pods that there are, by namespace/name."""
        self._archive = archive
        self._details = archive.details()
        self._pod_of = pod_of
        self._write = write
        self._nodes = nodes
        self._encode = msgspec.json.Encoder().encode
        archive.recorder.listeners.append(self._heard)

    def _heard(self, record: Record) -> None:
        if record.is_settled:
            self._tell(record)

    def finish(self) -> None:
        """The run is over: write what is still being bound."""
        for record in sorted(self._archive, key=lambda one: one.id):
            if not record.is_settled:
                self._tell(record)

    def _tell(self, record: Record) -> None:
        decision = self._archive.decision(record, nodes=self._nodes > 0, most=self._nodes, details=self._details)
        if not self._nodes:
            decision = replace(decision, nodesCut=record.evaluated)
        pod = self._pod_of(decision.pod)
        owner = None if pod is None else controller_of(pod.metadata)
        if owner is not None:
            decision = replace(decision, owner=f"{owner.kind}/{owner.name}")
        self._write(self._encode(decision) + b"\n")
