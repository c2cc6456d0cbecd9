"""A profile's plugins as the queue sees them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubestow.cluster.events import ANYTHING, Registration
from kubestow.config.plugin_points import IN_TREE
from kubestow.framework.caller import Hook
from kubestow.framework.profile import Profile
from kubestow.framework.results import Code, PluginError, Rejection
from kubestow.model.pod import Pod
from kubestow.queue.observer import QueueObserver
from kubestow.queue.ordering import GuardedOrder
from kubestow.queue.queued_pod import Gate

EXTENDER = "Extender"
"""Stands for all HTTP extenders: what they rejected may change its mind at any event."""


def queue_order(profile: Profile, observer: QueueObserver) -> Callable[[Pod, float], Any]:
    """The order of the profile's queue sort plugin."""
    (sort,) = profile.queue_sort
    if sort.name in IN_TREE:
        # PrioritySort cannot fail, and is asked for every pod.
        return sort.function
    return GuardedOrder(sort.function, lambda pod, error: observer.sort_failed(sort.name, pod, error))


class ProfileRules:
    """What may keep pods out of the queue, and what may let rejected pods try again."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # The plugin that holds a pod back most likely still does: it is asked first.
        self._in_turn: dict[str | None, tuple[Hook, ...]] = {None: profile.pre_enqueue}
        for first in profile.pre_enqueue:
            self._in_turn[first.name] = (first, *(hook for hook in profile.pre_enqueue if hook is not first))
        self.registrations: Mapping[str, Sequence[Registration]] = {**profile.registrations, EXTENDER: ANYTHING}

    def pre_enqueue(self, pod: Pod, held_back_by: str | None) -> Gate | None:
        for hook in self._in_turn[held_back_by]:
            refused = self._ask(hook, pod)
            if refused is not None:
                return Gate(hook.name, refused.message)
        return None

    def _ask(self, hook: Hook, pod: Pod) -> Rejection | None:
        try:
            answer: Rejection | None = self._profile.caller.call(hook, pod)
        except PluginError as error:
            return Rejection((str(error),), Code.ERROR)
        return answer
