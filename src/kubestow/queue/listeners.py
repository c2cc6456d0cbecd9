"""Which plugins of which profile listen to an event, with their hints."""

from collections.abc import Mapping, Sequence

import msgspec

from kubestow.cluster.events import Action, ClusterEvent, Hint, Registration, Resource, on


class Listening(msgspec.Struct, frozen=True):
    """Who listens to one event."""

    hints: Mapping[str, Mapping[str, Sequence[Hint | None]]]
    """profile -> plugin -> its hints; None stands for a hint that always says yes."""
    plugins: tuple[tuple[str, str], ...]
    """The same plugins, as (profile, plugin)."""
    alike: Mapping[tuple[str, str], Sequence[Hint]]
    """Those of them, with their hints, that say the same of pods that are alike."""


_NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)
_NODE_TAINTS_CHANGED = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


class Listeners:
    """Looks up who listens to an event; found out once per event."""

    def __init__(self, registrations: Mapping[str, Mapping[str, Sequence[Registration]]]) -> None:
        self._registrations = {
            profile: {plugin: _with_taints(wishes) for plugin, wishes in plugins.items()}
            for profile, plugins in registrations.items()
        }
        self._known: dict[str, Listening] = {}
        """By label."""

    def to(self, event: ClusterEvent) -> Listening:
        known = self._known.get(event.label)
        if known is None:
            known = self._known[event.label] = self._find(event)
        return known

    def _find(self, event: ClusterEvent) -> Listening:
        found: dict[str, dict[str, list[Hint | None]]] = {}
        alike: dict[tuple[str, str], list[Hint]] = {}
        for profile, plugins in self._registrations.items():
            for plugin, registrations in plugins.items():
                wishes = [wish for wish in registrations if wish.event.covers(event)]
                if wishes:
                    found.setdefault(profile, {})[plugin] = [wish.hint for wish in wishes]
                hints = [wish.hint for wish in wishes if wish.hint is not None and wish.alike]
                if hints and len(hints) == len(wishes):
                    alike[profile, plugin] = hints
        names = tuple((profile, plugin) for profile, plugins in found.items() for plugin in plugins)
        return Listening(found, names, alike)


def _with_taints(registrations: Sequence[Registration]) -> Sequence[Registration]:
    """Whoever listens to new nodes and not to taints is asked again, without a hint, when a node's taints change.

    kube-scheduler does so, and pods wait elsewhere if this scheduler does not.
    """
    on_nodes = [wish.event for wish in registrations if wish.event.resource == Resource.NODE]
    if any(event.covers(_NODE_ADDED) for event in on_nodes) and not any(
        event.covers(_NODE_TAINTS_CHANGED) for event in on_nodes
    ):
        return (*registrations, on(Resource.NODE, Action.UPDATE_NODE_TAINT))
    return registrations
