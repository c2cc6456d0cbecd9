"""The configuration of the queue: durations, and the PreEnqueue plugins and queueing hints of each profile."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import Registration
from kubestow.scheduler.framework.results import Rejection


class QueueSettings(msgspec.Struct, frozen=True):
    """Durations in seconds."""

    initial_backoff: float = 1.0
    longest_backoff: float = 10.0
    longest_unschedulable: float = 300.0
    pop_from_backoff: bool = True
    """Pop pods before the end of their backoff when no pod is active."""


class QueueRules(Protocol):
    """The PreEnqueue plugins and the queueing hints of one profile."""

    @property
    def registrations(self) -> Mapping[str, Sequence[Registration]]:
        """The events that may make a pod schedulable again, by the plugin that rejected it."""

    def pre_enqueue(self, pod: Pod, gating_plugin: str | None) -> Rejection | None:
        """Run the PreEnqueue plugins, `gating_plugin` first; return the first rejection, or None."""
