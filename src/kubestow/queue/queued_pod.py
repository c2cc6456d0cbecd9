"""A pod in the queue, with what the queue remembers of its attempts."""

from collections.abc import Callable, Iterable

import msgspec

from kubestow.cluster.pods import PodInfo
from kubestow.framework.results import Rejection
from kubestow.model.pod import Pod

NOBODY: frozenset[str] = frozenset()


class QueuedPod(msgspec.Struct, eq=False):
    """A pod, and what its attempts came to."""

    pod: Pod
    timestamp: float
    """When it entered the queue, or came back after its last attempt."""
    initial_attempt_timestamp: float | None = None
    """When it became active for the first time."""
    attempts: int = 0
    """How often it was popped."""
    unschedulable_count: int = 0
    """How many attempts ended in a rejection, as opposed to an error."""
    consecutive_errors: int = 0
    """How many attempts ended in an error since the last rejection."""
    unschedulable_plugins: frozenset[str] = NOBODY
    """Who rejected it at the last attempt, or holds it back."""
    pending_plugins: frozenset[str] = NOBODY
    """Who rejected it for now only: when one of these sees the event it waits for, the pod skips its backoff."""
    rejectors: frozenset[str] = NOBODY
    """All of the above."""
    gate: Rejection | None = None
    """Why it may not enter the queue: the refusal of a PreEnqueue plugin."""
    backoff_expiry: float | None = None
    """When its backoff ends, once somebody asked."""
    was_flushed: bool = False
    """It became active because it had waited too long, not because something happened that might help it."""
    flush_timestamp: float = float("-inf")
    _info: PodInfo | None = None
    uid: str = ""
    profile: str = ""
    """No version of the pod has another one."""

    def __post_init__(self) -> None:
        self.uid = self.pod.metadata.uid
        self.profile = self.pod.spec.schedulerName

    @property
    def likeness(self) -> bytes:
        """Equal for pods that differ in name, age and status only, as the pods of one controller do."""
        meta = self.pod.metadata
        return msgspec.json.encode((meta.namespace, meta.labels, meta.ownerReferences, self.pod.spec))

    @property
    def info(self) -> PodInfo:
        """The pod as cycles handle it."""
        found = self._info
        if found is None:
            found = self._info = PodInfo(self.pod)
        elif found.pod is not self.pod:
            found, _ = found.in_version(self.pod)
            self._info = found
        return found

    def reject(self, unschedulable: Iterable[str], pending: Iterable[str]) -> None:
        """Records who rejected it, in place of whoever did before."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.rejectors = self.unschedulable_plugins | self.pending_plugins
        self.gate = None

    def hold_back(self, gate: Rejection) -> None:
        """Records the gate, beside whoever rejected the pod before."""
        self.gate = gate
        self.unschedulable_plugins |= {gate.plugin}
        self.rejectors |= {gate.plugin}


Moved = Callable[[QueuedPod, str, str, str], None]
"""Callback for each pod that comes to a queue: `(queued, queue, event, plugin)`.

The plugin is the one whose hint said that the event may help. Not called for new pods that become active at once.
"""


def priority_order(pod: Pod, waiting_since: float) -> tuple[int, float]:
    """Higher priority first; among equals, who has waited longer."""
    return (-(pod.spec.priority or 0), waiting_since)
