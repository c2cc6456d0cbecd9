"""The plugins of each extension point, in the order in which they run.

A profile lists plugins at single points and at `multiPoint`, which means every point that a plugin implements. The
order at each point is: plugins listed there that multiPoint has, too, in the order of that list (an override); then the
others of multiPoint, except those disabled at the point; then the other plugins listed at the point. Disabling `*` at a
point excludes all of multiPoint.
"""

from typing import TypeAlias

import msgspec

from kubestow.config.configuration import Plugins
from kubestow.config.plugin_points import EXTENSION_POINTS, SCORING_POINTS, PluginPoints
from kubestow.config.problems import Problem


class EnabledPlugin(msgspec.Struct, frozen=True):
    """A plugin at an extension point; the weight is 0 except at the scoring points."""

    name: str
    weight: int


ResolvedPlugins: TypeAlias = dict[str, tuple[EnabledPlugin, ...]]
"""The plugins of each extension point, in the order in which they run."""


class Expansion(msgspec.Struct, frozen=True):
    """The plugins of each extension point, and the problems found."""

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
            found = ", ".join(plugin.name for plugin in resolved["queueSort"])
            found = f"{found}: disable the others in queueSort.disabled" if found else "none"
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
        """Return the plugins listed at the point itself; report and omit those that cannot run there."""
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
        # Imported here because only error messages need it.
        from difflib import get_close_matches

        closest = get_close_matches(name, self._known, 1, 0.5)
        hint = f'; did you mean "{closest[0]}"?' if closest else "."
        return f'plugin "{name}" does not exist{hint} There are: {", ".join(sorted(self._known))}'

    def _weights(self, point: str) -> dict[str, int]:
        """Return the weight of each plugin at the point, or else at multiPoint; 0 means 1.

        The sum of the weights of all plugins but the last must not be negative: kube-scheduler reports an overflow.
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
    """Resolve the plugins of a profile. `known` are the existing plugins, `path` is the field, for problems."""
    return _Expander(plugins, known, path).expand()


def enabled_names(plugins: Plugins) -> frozenset[str]:
    """Return the names of all plugins that are enabled at any point."""
    return frozenset(plugin.name for point in Plugins.__struct_fields__ for plugin in plugins.at(point).enabled)
