"""The plugins that are registered for an event, with their queueing hints, by profile."""

from collections.abc import Mapping, Sequence

import msgspec

from kubestow.scheduler.cluster.events import ClusterEvent, Hint, Registration


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
