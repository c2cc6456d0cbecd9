"""Decides whether an event makes a waiting pod worth another attempt.

The queueing hints of the plugins that rejected the pod decide. If a plugin that returned Pending hints true, the pod
skips its backoff. Pods without rejecting plugins, which failed with an error, are always retried.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from kubestow.api.pod import Pod
from kubestow.clock import Clock
from kubestow.scheduler.cluster.events import ClusterEvent, Hint, Registration, Resource
from kubestow.scheduler.queue.in_flight import RecordedEvent
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

log = get_logger(__name__)


class Retry(IntEnum):
    """Whether and when a pod is retried because of an event."""

    NO = 0
    AFTER_BACKOFF = 1
    NOW = 2


class EventListeners(msgspec.Struct, frozen=True):
    """The plugins that are registered for one event."""

    hints: Mapping[str, Mapping[str, Sequence[Hint | None]]]
    """profile -> plugin -> its hints; None stands for a hint that always returns true."""
    plugins: tuple[tuple[str, str], ...]
    """The same plugins, as (profile, plugin)."""
    shared_hints: Mapping[tuple[str, str], Sequence[Hint]]
    """The hints of the plugins whose hints all return the same for equivalent pods (`Registration.alike`)."""


class Listeners:
    """Returns the listeners of an event; computes them once for each event label."""

    def __init__(self, registrations: Mapping[str, Mapping[str, Sequence[Registration]]]) -> None:
        self._registrations = registrations
        self._known: dict[str, EventListeners] = {}
        """Listeners by event label."""

    def to(self, event: ClusterEvent) -> EventListeners:
        known = self._known.get(event.label)
        if known is None:
            known = self._known[event.label] = self._find(event)
        return known

    def _find(self, event: ClusterEvent) -> EventListeners:
        found: dict[str, dict[str, list[Hint | None]]] = {}
        shared: dict[tuple[str, str], list[Hint]] = {}
        for profile, plugins in self._registrations.items():
            for plugin, registrations in plugins.items():
                matching = [one for one in registrations if one.event.covers(event)]
                if matching:
                    found.setdefault(profile, {})[plugin] = [one.hint for one in matching]
                hints = [one.hint for one in matching if one.hint is not None and one.alike]
                if hints and len(hints) == len(matching):
                    shared[profile, plugin] = hints
        names = tuple((profile, plugin) for profile, plugins in found.items() for plugin in plugins)
        return EventListeners(found, names, shared)


class QueueingHints:
    """Calls the queueing hints."""

    def __init__(
        self,
        registrations: Mapping[str, Mapping[str, Sequence[Registration]]],
        clock: Clock,
        metrics: SchedulerMetrics,
    ) -> None:
        """`registrations` are by profile and plugin."""
        self.listeners = Listeners(registrations)
        self._clock = clock
        self._metrics = metrics
        self.hinting_plugin = ""
        """The plugin whose hint decided the last call of `retry_after_event`; empty if no hint returned true."""

    def retry_after_event(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Retry:
        """Return whether and how to retry a waiting pod because of an event; sets `hinting_plugin`."""
        self.hinting_plugin = ""
        if not queued.rejectors:
            return Retry.AFTER_BACKOFF
        if event.is_wildcard:
            # A wildcard event with a pod as its object is meant for that pod only.
            is_addressed = new is None or (isinstance(new, Pod) and new.metadata.uid == queued.uid)
            return Retry.AFTER_BACKOFF if is_addressed else Retry.NO
        retry = Retry.NO
        for plugin, hints in self.listeners.to(event).hints.get(queued.profile, _NO_HINTS).items():
            if plugin not in queued.rejectors or not self._any_returns_true(plugin, hints, queued.pod, event, old, new):
                continue
            self.hinting_plugin = plugin
            if plugin in queued.pending_plugins:
                return Retry.NOW
            retry = Retry.AFTER_BACKOFF
            if not queued.pending_plugins:
                break
        return retry

    def retry_after_attempt(self, queued: QueuedPod, events: Sequence[RecordedEvent] | None) -> Retry:
        """Decide by the events during the attempt that rejected a pod; None: the events are unknown."""
        if events is None or not queued.rejectors:
            return Retry.AFTER_BACKOFF
        best = Retry.NO
        for recorded in events:
            if recorded.event.resource == Resource.TARGET_POD and recorded.new.metadata.uid != queued.uid:
                continue
            best = max(best, self.retry_after_event(queued, recorded.event, recorded.old, recorded.new))
            if best is Retry.NOW or (best is Retry.AFTER_BACKOFF and not queued.pending_plugins):
                break
        return best

    def is_irrelevant(self, plugin: tuple[str, str], pod: Pod, event: ClusterEvent, old: Any, new: Any) -> bool:
        """Return True if a plugin, as (profile, plugin), hints false for a pod and so for all equivalent pods."""
        hints = self.listeners.to(event).shared_hints.get(plugin)
        return hints is not None and not self._any_returns_true(plugin[1], hints, pod, event, old, new)

    def _any_returns_true(
        self, plugin: str, hints: Sequence[Hint | None], pod: Pod, event: ClusterEvent, old: Any, new: Any
    ) -> bool:
        for hint in hints:
            if hint is None:
                return True
            started = self._clock.now()
            try:
                answer = hint(pod, old, new)
            except Exception as error:
                log.unexpected(
                    "Queueing hint failed; retrying the pod",
                    err=error,
                    plugin=plugin,
                    event=event.label,
                    pod=pod.key,
                )
                answer, result = True, "Error"
            else:
                result = "Queue" if answer else "QueueSkip"
            seconds = self._clock.now() - started
            self._metrics.queueing_hint_seconds.observe(seconds, event.label, result, plugin)
            if answer:
                return True
        return False


_NO_HINTS: Mapping[str, Sequence[Hint | None]] = {}
