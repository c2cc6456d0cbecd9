"""The registry: known plugins, and their validation."""

from typing import Any

import pytest

from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.registry import Registry, RegistryError, not_a_hook, points_of
from kubestow.scheduler.offline_handle import offline_handle
from support.scheduler.troupe import Refuses, evaluation_of, filtered, nodes, registry_of


def make(plugin: Any) -> Any:
    return registry_of(plugin).make(plugin.name, None, offline_handle(Cluster()))


class Named:
    """A minimal plugin."""

    name = "Mine"

    def post_bind(self, state: Any, pod: Any, node: str) -> None: ...


def test_a_plugin_is_made_from_its_arguments_and_a_handle() -> None:
    """The factory gets both, and its result is returned."""

    class Mine(Named):
        def __init__(self, args: Any, handle: Any) -> None:
            self.given = (args, handle)

    handle = offline_handle(Cluster())
    registry = Registry({"Mine": Mine})
    assert registry.make("Mine", {"size": 3}, handle).given == ({"size": 3}, handle)
    assert "Mine" in registry
    assert list(registry) == ["Mine"]


def test_an_unknown_plugin() -> None:
    """The message says that there is no such plugin."""
    with pytest.raises(RegistryError, match="plugin Nobody does not exist"):
        Registry().make("Nobody", None, offline_handle(Cluster()))


def test_a_name_can_be_registered_once() -> None:
    """The second registration is an error; the first stays."""
    registry = registry_of(Refuses("Mine", {}))
    with pytest.raises(RegistryError, match="a plugin named Mine is already registered"):
        registry.register("Mine", lambda _args, _handle: None)


@pytest.mark.parametrize("name", ["Other", None])
def test_a_plugin_must_have_its_registered_name(name: str | None) -> None:
    """A plugin with another `name`, or none, is an error that shows the correct line."""
    plugin = Named()
    plugin.name = name  # type: ignore[assignment]
    registry = Registry({"Mine": lambda _args, _handle: plugin})
    with pytest.raises(RegistryError, match=f"plugin Mine has the name {name!r}: set `name = 'Mine'`"):
        registry.make("Mine", None, offline_handle(Cluster()))


class TooFew(Named):
    def filter_rows(self, state: Any, pod: Any, view: Any) -> None: ...


class TooMany(Named):
    def pre_filter(self, pod: Any, nodes: Any) -> None: ...


class PlainTooFew(Named):
    def score(self, pod: Any, node: Any) -> int:
        return 0


class NormalizesWrongly(Named):
    def normalize(self, scores: Any) -> Any: ...


class SignsWrongly(Named):
    def sign(self) -> None: ...


class AdaptsWrongly(Named):
    def with_changes(self, state: Any) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (TooFew, r"plugin Mine: filter_rows must take \(state, pod, view, rows\): too many positional arguments"),
        (TooMany, r"plugin Mine: pre_filter must take \(pod\): missing a required argument: 'nodes'"),
        (PlainTooFew, r"plugin Mine: score must take \(state, pod, node\): "),
        (NormalizesWrongly, r"plugin Mine: normalize must take \(state, pod, view, rows, scores\): "),
        (SignsWrongly, r"plugin Mine: sign must take \(pod\): "),
        (AdaptsWrongly, r"plugin Mine: with_changes must take \(state, pod, changes\): "),
    ],
)
def test_a_method_with_other_parameters(plugin: type, message: str) -> None:
    """The message names the method and the parameters that it must take."""
    with pytest.raises(RegistryError, match=message):
        make(plugin())


def test_more_parameters_with_defaults_are_allowed() -> None:
    """The method must only accept the arguments that it will get."""

    class Mine(Named):
        def filter(self, state: Any, pod: Any, node: Any, strict: bool = True) -> None: ...

    assert points_of(make(Mine())) == {"filter", "postBind"}


class ReservesOnly(Named):
    def reserve(self, state: Any, pod: Any, node: str) -> None: ...


class NeverAsks(Named):
    async def pre_bind(self, state: Any, pod: Any, node: str) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (ReservesOnly, "plugin Mine has reserve but lacks unreserve"),
        (NeverAsks, "plugin Mine has pre_bind but lacks pre_bind_needed"),
    ],
)
def test_an_incomplete_pair_of_methods(plugin: type, message: str) -> None:
    """Methods that belong together must both exist."""
    with pytest.raises(RegistryError, match=message):
        make(plugin())


class BindsSynchronously(Named):
    def bind(self, pod: Any, node: str) -> None: ...


class PreparesSynchronously(Named):
    def pre_bind_needed(self, state: Any, pod: Any, node: str) -> bool:
        return True

    def pre_bind(self, state: Any, pod: Any, node: str) -> None: ...


@pytest.mark.parametrize(("plugin", "method"), [(BindsSynchronously, "bind"), (PreparesSynchronously, "pre_bind")])
def test_methods_that_call_the_api_server_must_be_async(plugin: type, method: str) -> None:
    """A plain function would block the event loop."""
    with pytest.raises(RegistryError, match=f"plugin Mine: {method} must be declared with `async def`"):
        make(plugin())


def test_a_plugin_without_any_point() -> None:
    """It would silently do nothing."""

    class Mine:
        name = "Mine"

        def weigh(self, state: Any, pod: Any, node: Any) -> None: ...

    with pytest.raises(RegistryError, match=r"plugin Mine has no method of any extension point; there are: preEnqueue"):
        make(Mine())


def test_both_forms_of_one_method() -> None:
    """The vector form is called; the plain form may stay, for comparisons."""

    class Mine(Refuses):
        def filter(self, state: Any, pod: Any, node: Any) -> str:
            raise AssertionError("not called")

    assert filtered(evaluation_of(nodes(2), Mine("Mine", {"n0": "no"}))) == ["n1"]


def test_points_follow_from_methods() -> None:
    """A plugin, or its class, that has the methods of a point is registered for it."""

    class Mine(Named):
        def filter(self, state: Any, pod: Any, node: Any) -> None: ...
        def score_rows(self, state: Any, pod: Any, view: Any, rows: Any) -> Any: ...
        def reserve(self, state: Any, pod: Any, node: str) -> None: ...
        def unreserve(self, state: Any, pod: Any, node: str) -> None: ...
        def sort_key(self, pod: Any, waiting_since: float) -> int:
            return 0

    expected = {"filter", "score", "reserve", "queueSort", "postBind"}
    assert points_of(Mine()) == expected
    assert points_of(Mine) == expected


def _with_method(name: str) -> type:
    return type("Mine", (Named,), {name: lambda *_args: None})


@pytest.mark.parametrize(
    ("name", "right"),
    [
        *(("Score", "score"), ("Filter", "filter"), ("PreFilter", "pre_filter"), ("NormalizeScore", "normalize")),
        *(("EventsToRegister", "requeue_on"), ("Less", "sort_key"), ("PreBindPreFlight", "pre_bind_needed")),
        *(
            ("prefilter", "pre_filter"),
            ("pre_filer", "pre_filter"),
            ("normalise", "normalize"),
            ("requeue", "requeue_on"),
        ),
        *(("post_bin", "post_bind"), ("filter_row", "filter_rows"), ("events_to_register", "requeue_on")),
    ],
)
def test_a_misspelt_method_is_refused_with_the_right_name(name: str, right: str) -> None:
    """It would never be called; the message has file and line."""
    wanted = f"plugin Mine: {name} is never called: the method is named {right}; .*test_registry.py:"
    with pytest.raises(RegistryError, match=wanted):
        make(_with_method(name)())


@pytest.mark.parametrize("name", ["fetch", "on_update", "simulate", "group_of", "limits", "_prefilter", "usage"])
def test_other_methods_of_a_plugin_are_its_own_matter(name: str) -> None:
    """Names that are unlike those of the contract are allowed, and so are those that start with an underscore."""
    make(_with_method(name)())


def test_a_method_with_a_similar_name_can_be_marked() -> None:
    """The plugin calls it itself."""

    class Mine(Named):
        @not_a_hook
        def filters(self) -> None: ...

    make(Mine())


def test_unreserve_may_be_there_alone() -> None:
    """A plugin that reserves nothing may still want to know that a pod failed."""

    class Mine(Named):
        def unreserve(self, state: Any, pod: Any, node: str) -> None: ...

    assert points_of(make(Mine())) == {"reserve", "postBind"}
