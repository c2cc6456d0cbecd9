"""A profile: the plugins of one scheduler name, created from its configuration, in order at each extension point."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from kubestow.api.custom_kinds import resource_of
from kubestow.api.pod import Pod
from kubestow.config import configuration, expansion
from kubestow.scheduler.cluster.events import ANYTHING, Action, Registration, on
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework import plain
from kubestow.scheduler.framework.caller import Caller, place_of
from kubestow.scheduler.framework.declarations import WatchError
from kubestow.scheduler.framework.guard import Guard
from kubestow.scheduler.framework.handle import Handle, scoped_handle
from kubestow.scheduler.framework.hook import Hook
from kubestow.scheduler.framework.plugin import POINTS, PodsRead, pods_read_by
from kubestow.scheduler.framework.registry import Registry, RegistryError, points_of
from kubestow.scheduler.framework.results import PluginError, error_text, unresolvable, with_place
from kubestow.scheduler.framework.scope import Scope, ScopedGuard
from kubestow.telemetry.metrics.instruments import Counter

_METHOD = {
    "queueSort": "sort_key",
    "filter": "filter_rows",
    "score": "score_rows",
    "placementGenerate": "generate_placements",
    "placementScore": "score_placements",
    "podGroupPostFilter": "pod_group_post_filter",
}
"""The method of a point, if it is not the point's name."""
_COUNTED = ("PreFilter", "Filter", "PreScore", "Score")
"""The points whose evaluations are exported as a metric."""
_REJECTING = ("preEnqueue", "preFilter", "filter", "postFilter", "podGroupPostFilter", "reserve", "permit")


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
        """`guard` wraps the plugins that are neither built in nor pure."""
        self._config, self._registry = config, registry
        self.name = config.schedulerName
        self.percentage_of_nodes_to_score = config.percentageOfNodesToScore
        self.checks_all_filters = config.alwaysCheckAllPredicates
        """Whether filters are also called for nodes that other filters have rejected."""
        self.caller = Caller(self.name, handle.metrics, stopwatch)
        self._scopes: dict[str, Scope] = {}
        """The scopes of the plugins that are not built in."""
        try:
            self._build(config, registry, handle, guard)
        except BaseException:
            self.close()
            raise

    def _build(self, config: configuration.Profile, registry: Registry, handle: Handle, guard: Guard | None) -> None:
        self.plugins = _make_plugins(config, registry, handle, self._scopes)
        points = _resolve(config, self.plugins)

        plain_guard = Guard()
        guards: dict[str, Guard | None] = dict.fromkeys(self.plugins)
        for name, scope in self._scopes.items():
            plugin = self.plugins[name]
            inner = plain_guard if guard is None or is_pure(plugin, scope) else guard
            guards[name] = ScopedGuard(inner, scope, signs=hasattr(plugin, "sign"))

        def hooks(point: str) -> tuple[Hook, ...]:
            return tuple(_hook(self.plugins[entry.name], point, guards[entry.name]) for entry in points[point])

        self.pre_enqueue = hooks("preEnqueue")
        self.queue_sort = hooks("queueSort")
        self.pre_filter = self._with_blocking(hooks("preFilter"), points, guards)
        self.filter = hooks("filter")
        if self.checks_all_filters:
            for hook in self.filter:
                # Rows are not evaluated up to the first rejection only.
                hook.row = None
        self.post_filter = hooks("postFilter")
        self.pod_group_post_filter = hooks("podGroupPostFilter")
        self.pre_score = hooks("preScore")
        self.score = hooks("score")
        self.weights = tuple(entry.weight for entry in points["score"])
        self.reserve = hooks("reserve")
        self.permit = hooks("permit")
        self.placement_feasible = tuple(hook.feasible for hook in self.permit if hook.feasible is not None)
        """Whether enough pods of a group have a node."""
        self.pre_bind = hooks("preBind")
        self.bind = hooks("bind")
        self.post_bind = hooks("postBind")
        self.placement_generate = hooks("placementGenerate")
        self.placement_score = hooks("placementScore")
        self.placement_weights = tuple(entry.weight for entry in points["placementScore"])
        acting = self.reserve + self.permit + self.pre_bind + self.post_bind
        self.acting = frozenset(hook.name for hook in acting)
        """The plugins that act after a node is chosen."""
        signing = _signing(self.plugins, points, guards)
        self.node_signing = tuple(hook for hook in signing if pods_read_by(hook.plugin) is PodsRead.NOTHING)
        """The plugins that let equal pods share results, and read only the node."""
        self.sum_signing = tuple(hook for hook in signing if pods_read_by(hook.plugin) is PodsRead.SUMS)
        """The plugins that let equal pods share results, and read sums of the pods on the node."""
        self.pod_signing = tuple(hook for hook in signing if pods_read_by(hook.plugin) is PodsRead.ALL)
        """The plugins that let equal pods share results, and read the pods on the node."""
        self.signs_equal_pods_equally = all(hook.is_trusted for hook in signing)
        """Whether equal pods always get equal signatures, which is unknown for plugins that are not built in."""
        self.filter_names = tuple(entry.name for entry in self.filter)
        self.adapting = {hook.name: hook for hook in self.pre_filter if hook.with_changes is not None}
        """The plugins whose state counts pods on many nodes."""
        self.pods_read = {entry.name: pods_read_by(entry.plugin) for entry in self.filter}
        """What each filter reads of the pods on a node."""
        self.registrations = self._registrations(points, guards)
        """The events at which a pod is retried, by the plugin that rejected it."""

    def close(self) -> None:
        """End the subscriptions of the plugins; the profile is not used any more."""
        for scope in self._scopes.values():
            scope.close()

    @property
    def declared_kinds(self) -> set[type]:
        """The kinds that the plugins watch."""
        return {kind for scope in self._scopes.values() for kind in scope.kinds}

    @property
    def data_version(self) -> int:
        """Increases whenever a plugin's results about pods may have changed other than by changes of rows."""
        return sum([scope.version for scope in self._scopes.values()])

    def _with_blocking(
        self, hooks: tuple[Hook, ...], points: expansion.ResolvedPlugins, guards: Mapping[str, Guard | None]
    ) -> tuple[Hook, ...]:
        """Return the PreFilter hooks; those of some plugins first reject pods while a kind cannot be read."""
        rejecting = {entry.name for point in _REJECTING for entry in points[point]}
        blocking = {name: scope for name, scope in self._scopes.items() if scope.blocking and name in rejecting}
        added = blocking.keys() - {hook.name for hook in hooks}
        for hook in hooks:
            if hook.name in blocking:
                hook.function = partial(_reject_unavailable, blocking[hook.name], hook.function)
        more = (
            Hook(self.plugins[name], "pre_filter", partial(_reject_unavailable, blocking[name], None), guards[name])
            for name in sorted(added)
        )
        return (*hooks, *more)

    def _registrations(
        self, points: expansion.ResolvedPlugins, guards: Mapping[str, Guard | None]
    ) -> dict[str, tuple[Registration, ...]]:
        rejecting = {entry.name for point in _REJECTING for entry in points[point]}
        found: dict[str, tuple[Registration, ...]] = {}
        for name, plugin in self.plugins.items():
            if name not in rejecting:
                continue
            scope = self._scopes.get(name)
            kinds = () if scope is None else scope.kinds
            if not hasattr(plugin, "requeue_on"):
                polled = () if scope is None else scope.polled
                found[name] = (*ANYTHING, *(on(source, Action.ALL) for source in (*kinds, *polled)))
                continue
            registered = self._call_once(Hook(plugin, "requeue_on", None, guards[name]))
            for one in registered:
                if one.kind is not None and resource_of(one.kind) is not None and one.kind not in kinds:
                    raise ProfileError(
                        f"profile {self.name}: plugin {name}: requeue_on names {one.kind.__name__}: add it to `watches`"
                    )
            blocking = () if scope is None else (on(kind, Action(0)) for kind in scope.blocking)
            found[name] = (*(self._through_caller(plugin, one, guards[name]) for one in registered), *blocking)
        return found

    def _call_once(self, hook: Hook) -> Any:
        try:
            return self.caller.call(hook)
        except PluginError as error:
            raise ProfileError(f"profile {self.name}: {error.located}") from error

    def _through_caller(self, plugin: Any, registration: Registration, guard: Guard | None) -> Registration:
        if registration.hint is None:
            return registration
        hint = partial(self.caller.call, Hook(plugin, "hint", registration.hint, guard))
        if registration.kind is not None:
            hint = partial(_hint_about, registration.kind, hint)
        return replace(registration, hint=hint)

    def with_handle(self, handle: Handle, guard: Guard) -> "Profile":
        """Return the same profile with new plugins, created for another handle."""
        return Profile(self._config, self._registry, handle, lambda: 0.0, guard)

    def points(self) -> Mapping[str, tuple[Hook, ...]]:
        """Return the hooks of every point, in order, by the name of the point in metrics."""
        return {_title(point): getattr(self, _snake(point)) for point in POINTS}

    def evaluations(self) -> dict[tuple[str, ...], float]:
        """Return the number of evaluations of each plugin, by point, plugin and profile."""
        points = self.points()
        return {
            (point, hook.name, self.name): hook.all_evaluations
            for point in _COUNTED
            for hook in points[point]
            if hook.all_evaluations
        }

    def flush_evaluations(self, counter: Counter) -> None:
        """Add the number of evaluations to a counter, and set it to 0 here."""
        for key, count in self.evaluations().items():
            counter.add(count, *key)
        for hooks in self.points().values():
            for hook in hooks:
                hook.reset()


def is_pure(plugin: Any, scope: Scope) -> bool:
    """Return whether a plugin's results for nodes depend on nothing but the pod, the cluster and its arguments.

    A plugin declares that by `pure = True`, or by signing pods, which lets equal pods share its results, unless it
    keeps state.
    """
    return bool(getattr(plugin, "pure", hasattr(plugin, "sign") and not scope.keeps_state))


def _reject_unavailable(scope: Scope, pre_filter: Callable[[PodInfo], Any] | None, pod: PodInfo) -> Any:
    """Reject a pod while a kind cannot be read that the plugin needs; otherwise call its `pre_filter`, if any."""
    reason = scope.unavailable()
    if reason:
        return unresolvable(reason)
    return None if pre_filter is None else pre_filter(pod)


def _hint_about(kind: type, hint: Callable[..., bool], pod: Pod, old: Any, new: Any) -> bool:
    """Call a hint for objects of its class; other classes may stand for the same resource.

    Without objects, the kind has become available or unavailable, which is always worth another attempt.
    """
    present = new if old is None else old
    return present is None or (isinstance(present, kind) and hint(pod, old, new))


def _snake(point: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in point)


def _title(point: str) -> str:
    return point[0].upper() + point[1:]


def _make_plugins(
    config: configuration.Profile, registry: Registry, handle: Handle, scopes: dict[str, Scope]
) -> dict[str, Any]:
    """Create every plugin that is enabled at any point of the profile; add the scopes of out-of-tree plugins."""
    made: dict[str, Any] = {}
    for name in sorted(expansion.enabled_names(config.plugins)):
        try:
            given = handle
            if not registry.trusts(name) and name in registry:
                scopes[name] = handle.scope_of(name, registry.watches(name))
                given = scoped_handle(handle, scopes[name], signs=registry.signs(name))
            made[name] = registry.make(name, config.args_of(name), given)
        except (RegistryError, WatchError) as error:
            which = f"plugin {name}: " if isinstance(error, WatchError) else ""
            raise ProfileError(f"profile {config.schedulerName}: {which}{error}") from None
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            place = place_of(error)
            problem = f"initializing plugin {name}: {with_place(error_text(error), place)}"
            raise ProfileError(f"profile {config.schedulerName}: {problem}") from error
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
    if point == "reserve":
        return Hook(plugin, method, _reserve_nothing, guard)
    plain_form = plain.filter_rows_of(plugin) if point == "filter" else plain.score_rows_of(plugin)
    hook = Hook(plugin, method, plain_form, guard)
    hook.method = point
    # In plain form, every row costs a call.
    hook.costly_rows = True
    return hook


def _reserve_nothing(_state: Any, _pod: PodInfo, _node: str) -> None:
    """Stands for the `reserve` of a plugin that has only `unreserve`."""


def _signing(
    plugins: Mapping[str, Any], points: expansion.ResolvedPlugins, guards: Mapping[str, Guard | None]
) -> tuple[Hook, ...]:
    evaluating = {entry.name for point in ("preFilter", "filter", "preScore", "score") for entry in points[point]}
    return tuple(
        Hook(plugin, "sign", None, guards[name])
        for name, plugin in plugins.items()
        if name in evaluating and hasattr(plugin, "sign")
    )
