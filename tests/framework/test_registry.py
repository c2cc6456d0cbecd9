"""The registry: which plugins there are, and whether they are what they claim to be."""

from typing import Any

import pytest

from framework.troupe import Refuses, evaluation_of, judged, nodes, registry_of
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.registry import Registry, RegistryError, points_of
from kubestow.scheduler.offline_handle import offline_handle


def make(plugin: Any) -> Any:
    return registry_of(plugin).make(plugin.name, None, offline_handle(Cluster()))


class Named:
    """The least that a plugin must have."""

    name = "Mine"

    def post_bind(self, state: Any, pod: Any, node: str) -> None: ...


def test_a_plugin_is_made_from_its_arguments_and_a_handle() -> None:
    """The factory is given both, and what it returns is handed out."""

    class Mine(Named):
        def __init__(self, args: Any, handle: Any) -> None:
            self.given = (args, handle)

    handle = offline_handle(Cluster())
    registry = Registry({"Mine": Mine})
    assert registry.make("Mine", {"size": 3}, handle).given == ({"size": 3}, handle)
    assert "Mine" in registry
    assert list(registry) == ["Mine"]


def test_an_unknown_plugin() -> None:
    """Says that there is no such plugin."""
    with pytest.raises(RegistryError, match="plugin Nobody does not exist"):
        Registry().make("Nobody", None, offline_handle(Cluster()))


def test_a_name_can_be_registered_once() -> None:
    """The second registration is refused; the first stays."""
    registry = registry_of(Refuses("Mine", {}))
    with pytest.raises(RegistryError, match="a plugin named Mine is already registered"):
        registry.register("Mine", lambda _args, _handle: None)


@pytest.mark.parametrize("name", ["Other", None])
def test_a_plugin_must_bear_its_name(name: str | None) -> None:
    """A plugin with another `name`, or none, is refused, and told what to write."""
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
    ("plugin", "words"),
    [
        (TooFew, r"plugin Mine: filter_rows must take \(state, pod, view, rows\): too many positional arguments"),
        (TooMany, r"plugin Mine: pre_filter must take \(pod\): missing a required argument: 'nodes'"),
        (PlainTooFew, r"plugin Mine: score must take \(state, pod, node\): "),
        (NormalizesWrongly, r"plugin Mine: normalize must take \(state, pod, view, rows, scores\): "),
        (SignsWrongly, r"plugin Mine: sign must take \(pod\): "),
        (AdaptsWrongly, r"plugin Mine: with_changes must take \(state, pod, changes\): "),
    ],
)
def test_a_method_with_other_parameters(plugin: type, words: str) -> None:
    """The message names the method and the parameters that it must take."""
    with pytest.raises(RegistryError, match=words):
        make(plugin())


def test_more_parameters_with_defaults_are_allowed() -> None:
    """What counts is that the method can be called with what it will be given."""

    class Mine(Named):
        def filter(self, state: Any, pod: Any, node: Any, strict: bool = True) -> None: ...

    assert points_of(make(Mine())) == {"filter", "postBind"}


class ReservesOnly(Named):
    def reserve(self, state: Any, pod: Any, node: str) -> None: ...


class UnreservesOnly(Named):
    def unreserve(self, state: Any, pod: Any, node: str) -> None: ...


class NeverAsks(Named):
    async def pre_bind(self, state: Any, pod: Any, node: str) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "words"),
    [
        (ReservesOnly, "plugin Mine has reserve but lacks unreserve"),
        (UnreservesOnly, "plugin Mine has unreserve but lacks reserve"),
        (NeverAsks, "plugin Mine has pre_bind but lacks pre_bind_needed"),
    ],
)
def test_half_a_pair(plugin: type, words: str) -> None:
    """Methods that belong together must come together."""
    with pytest.raises(RegistryError, match=words):
        make(plugin())


class BindsSynchronously(Named):
    def bind(self, pod: Any, node: str) -> None: ...


class PreparesSynchronously(Named):
    def pre_bind_needed(self, state: Any, pod: Any, node: str) -> bool:
        return True

    def pre_bind(self, state: Any, pod: Any, node: str) -> None: ...


@pytest.mark.parametrize(("plugin", "method"), [(BindsSynchronously, "bind"), (PreparesSynchronously, "pre_bind")])
def test_what_talks_to_the_api_server_must_be_async(plugin: type, method: str) -> None:
    """A plain function would hold up everything else."""
    with pytest.raises(RegistryError, match=f"plugin Mine: {method} must be declared with `async def`"):
        make(plugin())


def test_a_plugin_without_any_point() -> None:
    """Most likely a misspelt method: enabled, it would silently do nothing."""

    class Mine:
        name = "Mine"

        def filters(self, state: Any, pod: Any, node: Any) -> None: ...

    with pytest.raises(RegistryError, match=r"plugin Mine has no method of any extension point; there are: preEnqueue"):
        make(Mine())


def test_both_forms_of_one_method() -> None:
    """The vector form is what is called; the plain form may stay, to be compared with it."""

    class Mine(Refuses):
        def filter(self, state: Any, pod: Any, node: Any) -> str:
            raise AssertionError("not called")

    assert judged(evaluation_of(nodes(2), Mine("Mine", {"n0": "no"}))) == ["n1"]


def test_points_follow_from_methods() -> None:
    """Having the methods of a point is registering for it, for plugins and for their classes."""

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
