"""Whether something that happened makes a waiting pod worth another attempt.

The hints of the plugins that rejected the pod decide. A yes from a plugin that rejected it "for now" (pending) lets the
pod skip its backoff. Pods that nobody rejected, having failed by error, are always worth it.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from kubestow.cluster.events import ClusterEvent, Hint, Registration
from kubestow.model.clock import Clock
from kubestow.model.pod import Pod
from kubestow.queue.in_flight import Happened
from kubestow.queue.listeners import Listeners
from kubestow.queue.queued_pod import QueuedPod
from kubestow.reporting.logs import get_logger
from kubestow.reporting.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


class Retry(IntEnum):
    """What an event means for a pod."""

    NO = 0
    AFTER_BACKOFF = 1
    NOW = 2


class Judge:
    """Asks the hints; registrations are by profile and plugin."""

    def __init__(
        self,
        registrations: Mapping[str, Mapping[str, Sequence[Registration]]],
        clock: Clock,
        metrics: SchedulerMetrics,
    ) -> None:
        self.listeners = Listeners(registrations)
        self._clock = clock
        self._metrics = metrics
        self.hinted_by = ""
        """Whose hint was the last to say yes."""

    def after_event(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Retry:
        self.hinted_by = ""
        if not queued.rejectors:
            return Retry.AFTER_BACKOFF
        if event.is_wildcard:
            # Such an event may be meant for one pod, which it then carries.
            meant = new is None or (isinstance(new, Pod) and new.metadata.uid == queued.uid)
            return Retry.AFTER_BACKOFF if meant else Retry.NO
        retry = Retry.NO
        for plugin, hints in self.listeners.to(event).hints.get(queued.profile, _NO_PLUGINS).items():
            if plugin not in queued.rejectors or not self._any_says_yes(plugin, hints, queued.pod, event, old, new):
                continue
            self.hinted_by = plugin
            if plugin in queued.pending_plugins:
                return Retry.NOW
            retry = Retry.AFTER_BACKOFF
            if not queued.pending_plugins:
                break
        return retry

    def is_no_use(self, plugin: tuple[str, str], pod: Pod, event: ClusterEvent, old: Any, new: Any) -> bool:
        """Whether a plugin (of a profile) says no, to one pod that it rejected as to all that are alike."""
        hints = self.listeners.to(event).alike.get(plugin)
        return hints is not None and not self._any_says_yes(plugin[1], hints, pod, event, old, new)

    def after_attempt(self, queued: QueuedPod, happened: Sequence[Happened] | None) -> Retry:
        """What the events during a pod's attempt mean for it now that it was rejected; None: nobody knows them."""
        if happened is None or not queued.rejectors:
            return Retry.AFTER_BACKOFF
        best = Retry.NO
        for entry in happened:
            best = max(best, self.after_event(queued, entry.event, entry.old, entry.new))
            if best is Retry.NOW or (best is Retry.AFTER_BACKOFF and not queued.pending_plugins):
                break
        return best

    def _any_says_yes(
        self, plugin: str, hints: Sequence[Hint | None], pod: Pod, event: ClusterEvent, old: Any, new: Any
    ) -> bool:
        for hint in hints:
            if hint is None:
                return True
            started = self._clock.now()
            try:
                yes = hint(pod, old, new)
            except Exception as error:
                log.unexpected(
                    "Queueing hint failed; the pod will be tried again",
                    err=error,
                    plugin=plugin,
                    event=event.label,
                    pod=pod.key,
                )
                yes, result = True, "Error"
            else:
                result = "Queue" if yes else "QueueSkip"
            seconds = self._clock.now() - started
            self._metrics.queueing_hint_seconds.observe(seconds, event.label, result, plugin)
            if yes:
                return True
        return False


_NO_PLUGINS: Mapping[str, Sequence[Hint | None]] = {}
