"""A profile: the plugins of one scheduler name, made from its configuration, at each point in order."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from kubestow.config import configuration, expansion
from kubestow.scheduler.cluster.events import ANYTHING, Registration
from kubestow.scheduler.framework import plain
from kubestow.scheduler.framework.caller import Caller
from kubestow.scheduler.framework.guard import Guard
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.plugin import POINTS, PodsRead, pods_read_by
from kubestow.scheduler.framework.registry import Registry, RegistryError, points_of
from kubestow.scheduler.framework.results import PluginError, told
from kubestow.telemetry.metrics.instruments import Counter

_METHOD = {
    "queueSort": "sort_key",
    "filter": "filter_rows",
    "score": "score_rows",
    "placementGenerate": "generate_placements",
    "placementScore": "score_placements",
}
"""Where the method is not simply named as the point."""
_COUNTED = ("PreFilter", "Filter", "PreScore", "Score")
"""The points whose evaluations are a metric."""
_REJECTING = ("preEnqueue", "preFilter", "filter", "postFilter", "reserve", "permit")


class ProfileError(ValueError):
    """A profile that cannot be built; the message names the scheduler name and the plugin."""


class Profile:
    """One scheduler name with its plugins."""

    def __init__(
        self,
        config: configuration.Profile,
        registry: Registry,
        handle: Handle,
        stopwatch: Callable[[], float],
        guard: Guard | None = None,
    ) -> None:
        """`guard` stands around the plugins that are not the scheduler's own and are not pure."""
        self._config, self._registry = config, registry
        self.name = config.schedulerName
        self.percentage_of_nodes_to_score = config.percentageOfNodesToScore
        self.checks_all_filters = config.alwaysCheckAllPredicates
        """Whether filters are asked also about nodes that others have refused."""
        self.caller = Caller(self.name, handle.metrics, stopwatch)
        self.plugins = _make_plugins(config, registry, handle)
        points = _resolve(config, self.plugins)

        plain_guard = Guard()
        guards = {
            name: None if registry.trusts(name) else plain_guard if guard is None or is_pure(plugin) else guard
            for name, plugin in self.plugins.items()
        }

        def hooks(point: str) -> tuple[Hook, ...]:
            return tuple(_hook(self.plugins[entry.name], point, guards[entry.name]) for entry in points[point])

        self.pre_enqueue = hooks("preEnqueue")
        self.queue_sort = hooks("queueSort")
        self.pre_filter = hooks("preFilter")
        self.filter = hooks("filter")
        if self.checks_all_filters:
            for hook in self.filter:
                # Nobody asks one by one, until the first refuses.
                hook.row = None
        self.post_filter = hooks("postFilter")
        self.pre_score = hooks("preScore")
        self.score = hooks("score")
        self.weights = tuple(entry.weight for entry in points["score"])
        self.reserve = hooks("reserve")
        self.permit = hooks("permit")
        self.pre_bind = hooks("preBind")
        self.bind = hooks("bind")
        self.post_bind = hooks("postBind")
        self.placement_generate = hooks("placementGenerate")
        self.placement_score = hooks("placementScore")
        self.placement_weights = tuple(entry.weight for entry in points["placementScore"])
        acting = self.reserve + self.permit + self.pre_bind + self.post_bind
        self.acting = frozenset(of.name for of in acting)
        """The plugins that do something once a node is chosen."""
        signing = _signing(self.plugins, points, guards)
        self.node_signing = tuple(hook for hook in signing if pods_read_by(hook.plugin) is PodsRead.NOTHING)
        """The plugins that let equal pods share results, and look at a node alone."""
        self.sum_signing = tuple(hook for hook in signing if pods_read_by(hook.plugin) is PodsRead.SUMS)
        """Those that look at what the pods on it add up to, too."""
        self.pod_signing = tuple(hook for hook in signing if pods_read_by(hook.plugin) is PodsRead.ALL)
        """Those that look at the pods themselves."""
        self.signs_equal_pods_equally = all(hook.is_trusted for hook in signing)
        """Whether equal pods always get equal signatures, which is unknown for plugins that are not built in."""
        self.filter_names = tuple(entry.name for entry in self.filter)
        self.adapting = {hook.name: hook for hook in self.pre_filter if hook.with_changes is not None}
        """Plugins whose state counts pods on many nodes."""
        self.pods_read = {entry.name: pods_read_by(entry.plugin) for entry in self.filter}
        """What each filter reads of the pods on a node."""
        self.registrations = self._registrations(points, guards)
        """What is worth another attempt, by the plugin that rejected a pod."""

    def _registrations(
        self, points: expansion.ResolvedPlugins, guards: Mapping[str, Guard | None]
    ) -> dict[str, tuple[Registration, ...]]:
        rejecting = {entry.name for point in _REJECTING for entry in points[point]}
        found: dict[str, tuple[Registration, ...]] = {}
        for name, plugin in self.plugins.items():
            if name not in rejecting:
                continue
            if not hasattr(plugin, "requeue_on"):
                found[name] = ANYTHING
                continue
            wishes = self._ask_once(Hook(plugin, "requeue_on", None, guards[name]))
            found[name] = tuple(self._through_caller(plugin, wish, guards[name]) for wish in wishes)
        return found

    def _ask_once(self, hook: Hook) -> Any:
        try:
            return self.caller.call(hook)
        except PluginError as error:
            raise ProfileError(f"profile {self.name}: {error}") from error

    def _through_caller(self, plugin: Any, wish: Registration, guard: Guard | None) -> Registration:
        if wish.hint is None:
            return wish
        return replace(wish, hint=partial(self.caller.call, Hook(plugin, "hint", wish.hint, guard)))

    def made_for(self, handle: Handle, guard: Guard) -> "Profile":
        """Return the same profile with plugins of its own, made for another handle."""
        return Profile(self._config, self._registry, handle, lambda: 0.0, guard)

    def points(self) -> Mapping[str, tuple[Hook, ...]]:
        """Every point, as metrics name it, with its plugins in order."""
        return {_title(point): getattr(self, _snake(point)) for point in POINTS}

    def evaluations(self) -> dict[tuple[str, ...], float]:
        """How often each plugin was asked, by point, plugin and profile."""
        points = self.points()
        return {
            (point, hook.name, self.name): hook.all_evaluations
            for point in _COUNTED
            for hook in points[point]
            if hook.all_evaluations
        }

    def hand_over_evaluations(self, counter: Counter) -> None:
        """Somebody else keeps the count from now on; here it begins again."""
        for key, count in self.evaluations().items():
            counter.add(count, *key)
        for hooks in self.points().values():
            for hook in hooks:
                hook.reset()


def is_pure(plugin: Any) -> bool:
    """Return whether a plugin's answers about nodes depend on nothing but the pod, the cluster and its arguments.

    A plugin says so with `pure = True`, or by signing pods, which lets equal pods share its answers.
    """
    return bool(getattr(plugin, "pure", hasattr(plugin, "sign")))


def _snake(point: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)


def _title(point: str) -> str:
    return point[0].upper() + point[1:]


def _make_plugins(config: configuration.Profile, registry: Registry, handle: Handle) -> dict[str, Any]:
    """Make every plugin that is enabled anywhere in the profile."""
    made: dict[str, Any] = {}
    for name in sorted(expansion.enabled_names(config.plugins)):
        try:
            made[name] = registry.make(name, config.args_of(name), handle)
        except RegistryError as error:
            raise ProfileError(f"profile {config.schedulerName}: {error}") from None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            raise ProfileError(f"profile {config.schedulerName}: initializing plugin {name}: {told(error)}") from error
    return made


def _resolve(config: configuration.Profile, plugins: Mapping[str, Any]) -> expansion.ResolvedPlugins:
    expanded = expansion.expand(config.plugins, {name: points_of(plugin) for name, plugin in plugins.items()})
    if expanded.problems:
        raise ProfileError("\n".join(f"profile {config.schedulerName}: {problem}" for problem in expanded.problems))
    return expanded.points


def _hook(plugin: Any, point: str, guard: Guard | None) -> Hook:
    method = _METHOD.get(point) or _snake(point)
    if hasattr(plugin, method):
        return Hook(plugin, method, None, guard)
    plain_form = plain.filter_rows_of(plugin) if point == "filter" else plain.score_rows_of(plugin)
    hook = Hook(plugin, method, plain_form, guard)
    hook.method = point
    # In plain form every row costs a call.
    hook.costly_rows = True
    return hook


def _signing(
    plugins: Mapping[str, Any], points: expansion.ResolvedPlugins, guards: Mapping[str, Guard | None]
) -> tuple[Hook, ...]:
    judging = {entry.name for point in ("preFilter", "filter", "preScore", "score") for entry in points[point]}
    return tuple(
        Hook(plugin, "sign", None, guards[name])
        for name, plugin in plugins.items()
        if name in judging and hasattr(plugin, "sign")
    )
