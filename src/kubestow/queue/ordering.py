"""The order in which pods leave the queue, when a plugin decides it that may fail.

A pod without a key goes after those that have one; where two keys cannot be compared, priority and age decide. Either
way the failure is told, and no pod is lost: a place in the wrong order is better than none.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from kubestow.framework.profile import Profile
from kubestow.model.pod import Pod
from kubestow.queue.queued_pod import priority_order
from kubestow.reporting.logs import get_logger

log = get_logger(__name__)


def queue_order(profile: Profile) -> Callable[[Pod, float], Any]:
    """The order of a profile's queue sort plugin."""
    (sort,) = profile.queue_sort
    if sort.is_trusted:
        # It does not fail, and is asked for every pod.
        return sort.function

    def failed(pod: Pod, error: BaseException) -> None:
        log.unexpected(
            "Queue sort plugin failed; the pod goes after the others", err=error, plugin=sort.name, pod=pod.key
        )

    return GuardedOrder(partial(profile.caller.call, sort), failed)


class GuardedOrder:
    """A plugin's order; `failed` is told what the plugin raises, and for which pod."""

    def __init__(self, sort_key: Callable[[Pod, float], Any], failed: Callable[[Pod, BaseException], None]) -> None:
        self._sort_key = sort_key
        self.failed = failed

    def __call__(self, pod: Pod, waiting_since: float) -> "_Place":
        usual = priority_order(pod, waiting_since)
        try:
            # As tuples compare: those with a key by it, those without one after them.
            return _Place(self, pod, (0, self._sort_key(pod, waiting_since)), usual)
        except (Exception, SystemExit) as error:
            self.failed(pod, error)
            return _Place(self, pod, (1, usual), usual)


class _Place:
    __slots__ = ("_key", "_order", "_pod", "_usual")

    def __init__(self, order: GuardedOrder, pod: Pod, key: tuple[int, Any], usual: tuple[int, float]) -> None:
        self._order = order
        self._pod = pod
        self._key = key
        self._usual = usual

    def __lt__(self, other: "_Place") -> bool:
        try:
            return self._key < other._key
        except (Exception, SystemExit) as error:
            self._order.failed(self._pod, error)
            return self._usual < other._usual

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self._key == other._key

    __hash__ = None  # type: ignore[assignment]
