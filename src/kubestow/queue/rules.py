"""What the queue goes by: durations, and what the plugins of each profile have to say about waiting pods."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from kubestow.cluster.events import Registration
from kubestow.framework.results import Rejection
from kubestow.model.pod import Pod


class QueueSettings(msgspec.Struct, frozen=True):
    """Durations in seconds."""

    initial_backoff: float = 1.0
    longest_backoff: float = 10.0
    longest_unschedulable: float = 300.0
    longest_unschedulable_in_group: float | None = None
    """The same for rejected pods of groups, since no hint knows all that may help a group; None: no other."""
    pop_from_backoff: bool = True
    """Take pods that are backing off when nothing is active, rather than idle."""


class QueueRules(Protocol):
    """What the plugins of one profile have to say about waiting pods."""

    @property
    def registrations(self) -> Mapping[str, Sequence[Registration]]:
        """By plugin: the events that may let in a pod the plugin rejected."""

    def pre_enqueue(self, pod: Pod, held_back_by: str | None) -> Rejection | None:
        """Asks the PreEnqueue plugins, that which holds the pod back now first; None lets the pod in."""
