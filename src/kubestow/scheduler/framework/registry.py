"""Plugin factories by name, and the validation of plugins."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from kubestow.scheduler.framework.caller import line_of
from kubestow.scheduler.framework.contract import CONTRACT
from kubestow.scheduler.framework.declarations import Watched, WatchError, watches_of
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import POINTS, AdaptsToChanges, NormalizeScore, Requeues, Signs
from kubestow.scheduler.framework.results import with_place

F = TypeVar("F", bound=Callable[..., Any])

Factory = Callable[[Any, Handle], Any]
"""Creates a plugin from its arguments and a handle; a plugin's class is a factory."""

_PLAIN = ("filter", "score")
"""The methods of the plain form, named as their points. They are not called if there is the vector form."""
_PLAIN_PARAMETERS = ("state", "pod", "node")
_OPTIONAL = (NormalizeScore, AdaptsToChanges, Signs, Requeues)
"""Optional methods besides those of extension points."""
_ALONE = {"filter": "filter", "score": "score", "reserve": "unreserve"}
"""Methods that are enough for their point."""
_ASYNC = ("pre_bind", "bind")
_OTHER_NAMES = {
    **{name.replace("_", ""): name for name in CONTRACT if name != "hint"},
    "filter": "filter",
    "score": "score",
    "less": "sort_key",
    "queuesort": "sort_key",
    "normalise": "normalize",
    "normalizescore": "normalize",
    "normalisescore": "normalize",
    "scoreextensions": "normalize",
    "eventstoregister": "requeue_on",
    "requeue": "requeue_on",
    "prebindpreflight": "pre_bind_needed",
    "addpod": "with_changes",
    "removepod": "with_changes",
    "prefilterextensions": "with_changes",
    "placementgenerate": "generate_placements",
    "placementscore": "score_placements",
    "signpod": "sign",
}
"""The methods that other names stand for, such as those of kube-scheduler; without underscores, in lower case."""
_SIMILAR = 0.82
"""Minimum similarity of a misspelt name to that of a method, as measured by difflib."""


class RegistryError(ValueError):
    """A plugin that is unknown, registered twice, or does not conform to its extension points."""


class Registry:
    """Plugin factories by name.

    The initial ones are the built-in plugins, which are trusted with the scheduler's own objects; those that are
    registered later are not.
    """

    def __init__(self, factories: Mapping[str, Factory] | None = None) -> None:
        self._factories: dict[str, Factory] = dict(factories or {})
        self._own = frozenset(self._factories)

    def register(self, name: str, factory: Factory) -> None:
        if name in self._factories:
            raise RegistryError(f"a plugin named {name} is already registered")
        self._factories[name] = factory

    def trusts(self, name: str) -> bool:
        """Return whether a plugin is built in."""
        return name in self._own

    def watches(self, name: str) -> tuple[Watched, ...]:
        """Return the kinds that a plugin declares. Raises WatchError."""
        return watches_of(self._factories.get(name))

    def signs(self, name: str) -> bool:
        """Return whether a plugin lets equal pods share its results."""
        return hasattr(self._factories.get(name), "sign")

    def __contains__(self, name: str) -> bool:
        return name in self._factories

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        factory = self._factories.get(name)
        if factory is None:
            raise RegistryError(f"plugin {name} does not exist")
        if not self.trusts(name):
            # Imported on demand: built-in plugins decode their arguments themselves.
            from kubestow.scheduler.framework.args import ArgsError, decode_args

            try:
                args = decode_args(factory, args)
            except ArgsError as error:
                raise RegistryError(f"plugin {name}: {error}") from None
        plugin = factory(args, handle)
        if getattr(plugin, "name", None) != name:
            raise RegistryError(f"plugin {name} has the name {getattr(plugin, 'name', None)!r}: set `name = {name!r}`")
        if self.trusts(name):
            return plugin
        check_signatures(plugin)
        if not points_of(plugin):
            raise RegistryError(f"plugin {name} has no method of any extension point; there are: {', '.join(POINTS)}")
        return plugin


def points_of(plugin: Any) -> frozenset[str]:
    """Return the extension points that a plugin (or its class) implements."""
    return frozenset(
        point
        for point, (protocol,) in POINTS.items()
        if all(hasattr(plugin, method) for method in _methods(protocol)) or hasattr(plugin, _ALONE.get(point, " "))
    )


def check_signatures(plugin: Any) -> None:
    """Raise RegistryError, which names the method, if its parameters are not those of the extension point."""
    _check_names(plugin)
    for protocol in (*(protocol for (protocol,) in POINTS.values()), *_OPTIONAL):
        methods = _methods(protocol)
        present = [method for method in methods if hasattr(plugin, method)]
        if present and len(present) < len(methods) and present != ["unreserve"]:
            missing = next(method for method in methods if method not in present)
            raise _wrong(plugin, f" has {present[0]} but lacks {missing}", present[0])
        for method in present:
            _check_method(plugin, method, _parameters(protocol, method))
    for method in _PLAIN:
        if hasattr(plugin, method):
            _check_method(plugin, method, _PLAIN_PARAMETERS)


def check_class(plugin: Any) -> None:
    """Check a class: its constructor and the signatures of its methods. Raises RegistryError."""
    try:
        inspect.signature(plugin).bind("args", "handle")
    except TypeError as error:
        raise RegistryError(f"plugin {plugin.name}: its constructor must take (args, handle): {error}") from None
    _check_names(plugin)
    missing = sorted(getattr(plugin, "__abstractmethods__", ()))
    if missing:
        raise RegistryError(f"plugin {plugin.name} lacks {', '.join(missing)}, which its base classes announce")
    check_signatures(plugin)
    try:
        watches_of(plugin)
    except WatchError as error:
        raise RegistryError(f"plugin {plugin.name}: {error}") from None


@cache
def _parameters(protocol: type, method: str) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(protocol, method)).parameters)[1:]


@cache
def _methods(protocol: type) -> list[str]:
    return [name for name, value in vars(protocol).items() if inspect.isfunction(value) and not name.startswith("_")]


def _check_method(plugin: Any, method: str, wanted: tuple[str, ...]) -> None:
    function = getattr(plugin, method)
    of_class = inspect.isclass(plugin) and inspect.isfunction(function)
    try:
        inspect.signature(function).bind(*(("self", *wanted) if of_class else wanted))
    except TypeError as error:
        raise _wrong(plugin, f": {method} must take ({', '.join(wanted)}): {error}", method) from None
    if method in _ASYNC and not inspect.iscoroutinefunction(function):
        raise _wrong(plugin, f": {method} must be declared with `async def`", method)


def not_a_hook(function: F) -> F:
    """Mark a method whose name is like that of an extension point, but which only the plugin itself calls."""
    function.__not_a_hook__ = True  # type: ignore[attr-defined]
    return function


def misspelt_methods(plugin: Any) -> Iterator[tuple[str, str]]:
    """Yield the methods that are never called because their names are a little wrong, with the right names."""
    # Imported on demand: only plugins that are not built in need it.
    from difflib import get_close_matches

    cls = plugin if inspect.isclass(plugin) else type(plugin)
    known = (*CONTRACT, *_PLAIN)
    for name in dir(cls):
        if name.startswith("_") or name in known:
            continue
        function = inspect.getattr_static(cls, name)
        if inspect.isfunction(function) and not hasattr(function, "__not_a_hook__"):
            meant = _OTHER_NAMES.get(name.replace("_", "").lower())
            for right in [meant] if meant else get_close_matches(name, known, 1, _SIMILAR):
                yield name, right


def _check_names(plugin: Any) -> None:
    """Raise RegistryError for a misspelt method."""
    for name, right in misspelt_methods(plugin):
        hint = "start its name with an underscore, or mark it with @not_a_hook, if you call it yourself"
        raise _wrong(plugin, f": {name} is never called: the method is named {right}; {hint}", name)


def _wrong(plugin: Any, problem: str, method: str) -> RegistryError:
    """Return the error about a method of a plugin, with its file and line."""
    return RegistryError(with_place(f"plugin {plugin.name}{problem}", line_of(getattr(plugin, method, None))))
