"""A pod in the queue, with the results of its attempts."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import Rejection

NO_PLUGINS: frozenset[str] = frozenset()


class QueuedPod(msgspec.Struct, eq=False):
    """A pod, and the results of its attempts."""

    pod: Pod
    timestamp: float
    """When it entered the queue, or returned after its last attempt."""
    initial_attempt_timestamp: float | None = None
    """When it became active for the first time."""
    attempts: int = 0
    """Number of times it was popped."""
    unschedulable_count: int = 0
    """Number of attempts that ended in a rejection, as opposed to an error."""
    consecutive_errors: int = 0
    """Number of attempts that ended in an error since the last rejection."""
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    """The plugins that rejected it at the last attempt, and the one that gates it."""
    pending_plugins: frozenset[str] = NO_PLUGINS
    """The plugins that returned Pending: an event that one of these waits for lets the pod skip its backoff."""
    rejectors: frozenset[str] = NO_PLUGINS
    """The union of `unschedulable_plugins` and `pending_plugins`."""
    gate: Rejection | None = None
    """The rejection by a PreEnqueue plugin that keeps the pod from becoming active."""
    backoff_expiry: float | None = None
    """When its backoff ends; None until it is computed."""
    was_flushed: bool = False
    """Whether it became active because it had waited too long, not because of an event."""
    flush_timestamp: float = float("-inf")
    """When it was last retried because it had waited too long; the next such retry counts from here."""
    _info: PodInfo | None = None
    uid: str = ""
    profile: str = ""
    """The scheduler name; the same in all versions of the pod."""

    def __post_init__(self) -> None:
        self.uid = self.pod.metadata.uid
        self.profile = self.pod.spec.schedulerName

    @property
    def pods(self) -> "Sequence[QueuedPod]":
        """The pods that it stands for: itself."""
        return (self,)

    @property
    def backoff_factor(self) -> float:
        """The factor of the longest backoff."""
        return 1.0

    @property
    def equivalence_key(self) -> bytes:
        """Equal for pods that differ only in name, age and status, such as the pods of one controller."""
        meta = self.pod.metadata
        return msgspec.json.encode((meta.namespace, meta.labels, meta.ownerReferences, self.pod.spec))

    @property
    def info(self) -> PodInfo:
        """The current version of the pod in the form that scheduling cycles use."""
        found = self._info
        if found is None:
            found = self._info = PodInfo(self.pod)
        elif found.pod is not self.pod:
            found, _ = found.in_version(self.pod)
            self._info = found
        return found

    def reject(self, unschedulable: Iterable[str], pending: Iterable[str]) -> None:
        """Replace the rejecting plugins by those of the last attempt, and remove the gate."""
        self.unschedulable_plugins = frozenset(unschedulable)
        self.pending_plugins = frozenset(pending)
        self.rejectors = self.unschedulable_plugins | self.pending_plugins
        self.gate = None

    def set_gate(self, gate: Rejection) -> None:
        """Set the gate, and add its plugin to the plugins that rejected the pod."""
        self.gate = gate
        self.unschedulable_plugins |= {gate.plugin}
        self.rejectors |= {gate.plugin}


OnMove = Callable[[QueuedPod, str, str, str], None]
"""Callback for each pod that arrives in a queue: `(queued, queue, event, plugin)`.

The plugin is the one whose hint returned true for the event. Not called for new pods that become active at once.
"""


def priority_order(pod: Pod, waiting_since: float) -> tuple[int, float]:
    """Return the default sort key: higher priority first, then the earlier time."""
    return (-(pod.spec.priority or 0), waiting_since)
