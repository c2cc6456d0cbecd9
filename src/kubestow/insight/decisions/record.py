"""The record of one decision: the facts that cannot be derived from the history of the cluster."""

from array import array
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from kubestow.insight.decisions import extender_answers, plugin_answers
from kubestow.insight.decisions.schema import ERROR, SCHEDULED, UNSCHEDULABLE
from kubestow.scheduler.binding.binder import Step
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.outcome import Failed, SearchedNodes
from kubestow.scheduler.framework.profile import Profile

WAITING = "waiting"
BINDING = "binding"
BOUND = "bound"
FAILED = "failed"

_DRAW_BYTES = 40
RECORD_BYTES = 4_000
"""Approximate size of a record with the pod as it was scheduled, which only the record references."""


class Answers(NamedTuple):
    """Answers during a cycle of extenders and plugins that cannot be called again."""

    extenders: extender_answers.Answers
    plugins: plugin_answers.Answers
    draws: tuple[int, ...]
    """The random numbers that plugins drew."""

    plugin_bytes: int = 0
    """The size of the answers of plugins that no earlier decision has."""

    @property
    def nbytes(self) -> int:
        return extender_answers.size_of(self.extenders) + self.plugin_bytes + _DRAW_BYTES * len(self.draws)


class Record(Struct, gc=False, eq=False):
    """One cycle of one pod, and the binding that followed."""

    id: int
    info: PodInfo
    """The pod as it was scheduled."""
    by: Profile
    """The profile that decided."""
    attempts: int
    queued_since: float
    initial_attempt: float | None
    time: float
    seconds: float
    searched: SearchedNodes | None
    node: str
    """The chosen node; empty if there is none."""
    failed: Failed | None
    """Why there is no chosen node."""
    permits: Mapping[str, float]
    """The plugins whose permission was missing, with their timeouts in seconds."""
    history: "array[float] | None" = None
    """The pod's moves between queues, shared by all records of the pod; see `Recorder.on_pod_moved`."""
    moves: int = 1
    """The number of moves up to this decision."""
    answers: Answers | None = None
    own_bytes: int = 0
    """Approximate size in addition to RECORD_BYTES."""
    steps: tuple[Step, ...] = ()
    """The finished steps of the binding."""
    binding_failed: Failed | None = None
    """Why the pod was not bound to the chosen node."""

    @property
    def uid(self) -> str:
        return self.info.uid

    @property
    def namespace(self) -> str:
        return self.info.namespace

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def pod(self) -> str:
        """namespace/name"""
        return self.info.key

    @property
    def profile(self) -> str:
        return self.by.name

    @property
    def binding(self) -> str:
        """The state of the binding; empty if no node was found."""
        if not self.node:
            return ""
        if self.binding_failed is not None:
            return FAILED
        if self.is_bound:
            return BOUND
        return WAITING if self.permits and not self.steps else BINDING

    @property
    def is_bound(self) -> bool:
        return self.binding_failed is None and bool(self.steps) and self.steps[-1].is_bound

    @property
    def is_settled(self) -> bool:
        """Whether the pod is bound or has failed, so that the record will not change."""
        return self.binding not in (WAITING, BINDING)

    @property
    def _failure(self) -> Failed | None:
        return self.binding_failed or self.failed

    @property
    def outcome(self) -> str:
        failure = self._failure
        if failure is None:
            return SCHEDULED
        return UNSCHEDULABLE if failure.is_rejection else ERROR

    @property
    def message(self) -> str:
        return "" if self._failure is None else self._failure.located_message

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected the pod."""
        failure = self._failure
        return frozenset() if failure is None else failure.plugins | failure.pending_plugins

    @property
    def nominated_node(self) -> str:
        return "" if self.failed is None else self.failed.nominated_node or ""

    @property
    def called_extenders(self) -> bool:
        """Whether extenders answered during the cycle."""
        return self.answers is not None and bool(self.answers.extenders)

    @property
    def evaluated(self) -> int:
        """Number of evaluated nodes."""
        return 0 if self.searched is None else self.searched.evaluated

    @property
    def feasible(self) -> int:
        return 0 if self.searched is None else self.searched.feasible
