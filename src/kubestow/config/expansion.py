"""Which plugins run at each extension point, in which order.

A profile lists plugins at single points and at `multiPoint`, which stands for every point a plugin implements. At each
point the order is: plugins named there that multiPoint also has, in the order given there (an override); then the rest
of multiPoint, less what is disabled there; then the other plugins named there. `*` disabled at a point keeps multiPoint
out of it.
"""

from typing import TypeAlias

import msgspec

from kubestow.config.configuration import Plugins
from kubestow.config.plugin_points import EXTENSION_POINTS, SCORING_POINTS, PluginPoints
from kubestow.config.problems import Problem


class EnabledPlugin(msgspec.Struct, frozen=True):
    """A plugin at an extension point; the weight counts only at the scoring points, elsewhere it is 0."""

    name: str
    weight: int


ResolvedPlugins: TypeAlias = dict[str, tuple[EnabledPlugin, ...]]
"""Extension point -> its plugins, in the order they run."""


class Expansion(msgspec.Struct, frozen=True):
    """What runs where, and what could not be resolved."""

    points: ResolvedPlugins
    problems: list[Problem]


class _Expander:
    def __init__(self, plugins: Plugins, known: PluginPoints, path: str) -> None:
        self._plugins = plugins
        self._known = known
        self._path = path
        self._problems: list[Problem] = []

    def expand(self) -> Expansion:
        multi = [plugin.name for plugin in self._plugins.multiPoint.enabled]
        for name in dict.fromkeys(multi):
            if name not in self._known:
                self._report("multiPoint.enabled", self._unknown(name))
        resolved = {point: self._at(point, multi) for point in EXTENSION_POINTS}
        if len(self._plugins.queueSort.enabled) > 1:
            self._report("queueSort.enabled", "only one queue sort plugin can be enabled")
        elif len(resolved["queueSort"]) != 1:
            found = ", ".join(plugin.name for plugin in resolved["queueSort"]) or "none"
            self._report("queueSort", f"exactly one queue sort plugin is needed, found {found}")
        if not resolved["bind"]:
            self._report("bind", "at least one bind plugin is needed, found none")
        if len(resolved["placementGenerate"]) > 1:
            found = ", ".join(plugin.name for plugin in resolved["placementGenerate"])
            self._report("placementGenerate", f"at most one placement generate plugin is allowed, found {found}")
        return Expansion(resolved, self._problems)

    def _at(self, point: str, multi: list[str]) -> tuple[EnabledPlugin, ...]:
        named = self._named(point)
        disabled = {plugin.name for plugin in self._plugins.at(point).disabled}
        names = named
        if "*" not in disabled:
            here = [name for name in multi if point in self._known.get(name, ()) and name not in disabled]
            added = [name for name in here if name not in named]
            for name in sorted({name for name in added if added.count(name) > 1}):
                self._report("multiPoint.enabled", f'plugin "{name}" is enabled more than once at {point}')
            overridden = [name for name in named if name in here]
            names = [*overridden, *dict.fromkeys(added), *(name for name in named if name not in here)]
        weights = self._weights(point) if point in SCORING_POINTS else {}
        return tuple(EnabledPlugin(name, weights.get(name, 0)) for name in names)

    def _named(self, point: str) -> list[str]:
        """The plugins listed at the point itself, those that cannot be there reported and left out."""
        named: list[str] = []
        for index, plugin in enumerate(self._plugins.at(point).enabled):
            field = f"{point}.enabled[{index}]"
            if plugin.name not in self._known:
                self._report(field, self._unknown(plugin.name))
            elif point not in self._known[plugin.name]:
                implemented = ", ".join(sorted(self._known[plugin.name]))
                self._report(field, f'plugin "{plugin.name}" does not implement {point}, only {implemented}')
            elif plugin.name in named:
                self._report(field, f'plugin "{plugin.name}" is enabled more than once at {point}')
            else:
                named.append(plugin.name)
        return named

    def _unknown(self, name: str) -> str:
        # Imported only now: it is there for mistakes.
        from difflib import get_close_matches

        nearest = get_close_matches(name, self._known, 1, 0.5)
        hint = f'; did you mean "{nearest[0]}"?' if nearest else "."
        return f'plugin "{name}" does not exist{hint} There are: {", ".join(sorted(self._known))}'

    def _weights(self, point: str) -> dict[str, int]:
        """The weight given at the point, else at multiPoint; 0 means 1.

        No plugin may follow those whose weights add up to less than nothing: kube-scheduler takes it for an overflow.
        """
        weights: dict[str, int] = {}
        listed = [(name, plugin) for name in (point, "multiPoint") for plugin in self._plugins.at(name).enabled]
        total, below = 0, ("", "")
        for place, plugin in listed:
            if plugin.name in weights or point not in self._known.get(plugin.name, ()):
                continue
            if total < 0:
                self._report(*below)
                break
            weights[plugin.name] = plugin.weight or 1
            total += weights[plugin.name]
            message = f'the weights up to that of plugin "{plugin.name}" add up to {total}, which must not be negative'
            below = (f"{place}.enabled", message)
        return weights

    def _report(self, field: str, message: str) -> None:
        self._problems.append(Problem(f"{self._path}.{field}", message))


def expand(plugins: Plugins, known: PluginPoints, path: str = "plugins") -> Expansion:
    """Resolve a profile's plugins, given which exist; problems are told at `path`."""
    return _Expander(plugins, known, path).expand()


def enabled_names(plugins: Plugins) -> frozenset[str]:
    """Every plugin that is enabled at some point."""
    return frozenset(plugin.name for point in Plugins.__struct_fields__ for plugin in plugins.at(point).enabled)
