"""The plugins that are registered for an event, with their queueing hints, by profile."""

from collections.abc import Mapping, Sequence

import msgspec

from kubestow.scheduler.cluster.events import Action, ClusterEvent, Hint, Registration, Resource, on


class EventListeners(msgspec.Struct, frozen=True):
    """The plugins that are registered for one event."""

    hints: Mapping[str, Mapping[str, Sequence[Hint | None]]]
    """profile -> plugin -> its hints; None stands for a hint that always returns true."""
    plugins: tuple[tuple[str, str], ...]
    """The same plugins, as (profile, plugin)."""
    shared_hints: Mapping[tuple[str, str], Sequence[Hint]]
    """The hints of the plugins whose hints all return the same for equivalent pods (`Registration.alike`)."""


_NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)
_NODE_TAINTS_CHANGED = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


class Listeners:
    """Returns the listeners of an event; computes them once for each event label."""

    def __init__(self, registrations: Mapping[str, Mapping[str, Sequence[Registration]]]) -> None:
        self._registrations = {
            profile: {plugin: _with_taints(registered) for plugin, registered in plugins.items()}
            for profile, plugins in registrations.items()
        }
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


def _with_taints(registrations: Sequence[Registration]) -> Sequence[Registration]:
    """Add changes of node taints, without a hint, for a plugin that is registered for new nodes but not for taints.

    kube-scheduler does the same; without it, pods would wait in a different queue.
    """
    on_nodes = [one.event for one in registrations if one.event.resource == Resource.NODE]
    if any(event.covers(_NODE_ADDED) for event in on_nodes) and not any(
        event.covers(_NODE_TAINTS_CHANGED) for event in on_nodes
    ):
        return (*registrations, on(Resource.NODE, Action.UPDATE_NODE_TAINT))
    return registrations
