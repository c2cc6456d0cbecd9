"""The rules of a profile for the queue: what keeps pods out of the queue, and which events requeue rejected pods."""

from collections.abc import Mapping, Sequence

from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.events import ANYTHING, Registration
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, PluginError, Rejection

EXTENDER = "Extender"
"""Stands for all HTTP extenders: pods that they reject are retried at the default events."""


class QueueRules:
    """PreEnqueue and the registrations of a profile's plugins."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        # The gating plugin most likely still rejects the pod, so it runs first.
        self._hooks_by_gate: dict[str | None, tuple[Hook, ...]] = {None: profile.pre_enqueue}
        for first in profile.pre_enqueue:
            self._hooks_by_gate[first.name] = (first, *(hook for hook in profile.pre_enqueue if hook is not first))
        self.registrations: Mapping[str, Sequence[Registration]] = {**profile.registrations, EXTENDER: ANYTHING}

    def pre_enqueue(self, pod: Pod, gating_plugin: str | None) -> Rejection | None:
        """Return why a pod may not become active, or None; a plugin that fails gates the pod, too."""
        hooks = self._hooks_by_gate.get(gating_plugin, self._profile.pre_enqueue)
        try:
            return self._profile.caller.first_rejection(hooks, pod)
        except PluginError as error:
            return Rejection((str(error),), Code.ERROR, error.plugin)
