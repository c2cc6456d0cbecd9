"""The order in which pods leave the queue, if a plugin that may fail defines it.

A pod for which the plugin returns no key sorts after those with a key. If two keys cannot be compared, priority and age
decide. Both failures are logged; no pod is lost.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kubestow.api.pod import Pod
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.queue.queued_pod import priority_order
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)


def queue_order(profile: Profile) -> Callable[[Pod, float], Any]:
    """Return the sort key function of a profile's queue sort plugin."""
    (sort,) = profile.queue_sort
    if sort.is_trusted:
        # It does not fail, and is called for every pod: do without the guard.
        return sort.function

    def log_failure(pod: Pod, error: BaseException) -> None:
        log.unexpected(
            "Queue sort plugin failed; the pod goes after the others", err=error, plugin=sort.name, pod=pod.key
        )

    return GuardedOrder(partial(profile.caller.call, sort), log_failure)


class GuardedOrder:
    """A plugin's sort key function, guarded against exceptions."""

    def __init__(self, sort_key: Callable[[Pod, float], Any], on_failure: Callable[[Pod, BaseException], None]) -> None:
        """`on_failure` is called with the pod and the exception."""
        self._sort_key = sort_key
        self.on_failure = on_failure

    def __call__(self, pod: Pod, waiting_since: float) -> "_SortKey":
        fallback = priority_order(pod, waiting_since)
        try:
            # The first element of the tuple sorts the pods with a key before those without one.
            return _SortKey(self, pod, (0, self._sort_key(pod, waiting_since)), fallback)
        except (Exception, SystemExit) as error:
            self.on_failure(pod, error)
            return _SortKey(self, pod, (1, fallback), fallback)


class _SortKey:
    __slots__ = ("_fallback", "_key", "_order", "_pod")

    def __init__(self, order: GuardedOrder, pod: Pod, key: tuple[int, Any], fallback: tuple[int, float]) -> None:
        self._order = order
        self._pod = pod
        self._key = key
        self._fallback = fallback

    def __lt__(self, other: "_SortKey") -> bool:
        try:
            return self._key < other._key
        except (Exception, SystemExit) as error:
            self._order.on_failure(self._pod, error)
            return self._fallback < other._fallback

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SortKey) and self._key == other._key

    __hash__ = None  # type: ignore[assignment]
