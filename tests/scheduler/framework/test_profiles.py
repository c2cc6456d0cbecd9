"""Profiles: which plugins run at which point, in which order, with which weight; and the errors of invalid ones."""

from typing import Any

import pytest
from msgspec import Struct

from kubestow.config.configuration import Plugin, PluginConfig, Plugins, PluginSet
from kubestow.scheduler.cluster.events import ANYTHING, Action, Resource, on
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.profile import Profile, ProfileError
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.offline_handle import offline_handle
from support.scheduler.troupe import Refuses, Scores, config_of, profile_of, registry_of


class Size(Struct):
    """Arguments of a plugin."""

    size: int = 1


A, B, C = Refuses("A", {}), Refuses("B", {}), Refuses("C", {})


def names(bounds: Any) -> list[str]:
    return [hook.name for hook in bounds]


def enabled(*plugins: str) -> PluginSet:
    return PluginSet(tuple(Plugin(name) for name in plugins))


def disabled(*plugins: str) -> PluginSet:
    return PluginSet((), tuple(Plugin(name) for name in plugins))


def test_plugins_run_in_the_order_of_the_configuration() -> None:
    """The order does not depend on their names."""
    assert names(profile_of(B, C, A).filter) == ["B", "C", "A"]


def test_a_point_can_put_some_first() -> None:
    """Plugins named at the point itself come before the others of multiPoint."""
    assert names(profile_of(A, B, C, filter=enabled("C")).filter) == ["C", "A", "B"]


def test_multi_point_enables_a_plugin_where_it_can() -> None:
    """A plugin is enabled at the points that it has methods for, and at no other."""
    profile = profile_of(A, Scores("S", {}))
    assert names(profile.filter) == ["A"]
    assert names(profile.score) == ["S"]
    assert names(profile.pre_score) == []
    assert {point for point, bounds in profile.points().items() if bounds} == {"Filter", "Score", "QueueSort", "Bind"}


def test_a_plugin_can_be_disabled_at_a_point() -> None:
    """The other plugins stay enabled."""
    assert names(profile_of(A, B, filter=disabled("A")).filter) == ["B"]


def test_all_can_be_disabled_at_a_point() -> None:
    """`*` removes all plugins of multiPoint from the point; those named at the point stay."""
    only_b = PluginSet((Plugin("B"),), (Plugin("*"),))
    assert names(profile_of(A, B, C, filter=only_b).filter) == ["B"]


@pytest.mark.parametrize(("multi", "at_point", "weight"), [(0, None, 1), (7, None, 7), (7, 3, 3), (0, 3, 3), (7, 0, 1)])
def test_weights(multi: int, at_point: int | None, weight: int) -> None:
    """A weight at score takes precedence over that of multiPoint; 0 means 1."""
    points: dict[str, Any] = {} if at_point is None else {"score": PluginSet((Plugin("S", at_point),))}
    assert profile_of(Scores("S", {}), weights={"S": multi}, **points).weights == (weight,)


def test_an_unknown_plugin() -> None:
    """The message names the profile and the plugin."""
    config = config_of(A, filter=enabled("Nobody"))
    with pytest.raises(ProfileError, match="profile troupe: plugin Nobody does not exist"):
        Profile(config, registry_of(A), offline_handle(Cluster()), lambda: 0.0)


def test_a_plugin_without_a_method_of_the_point() -> None:
    """The message names the profile, the field, the plugin and the points that it implements."""
    words = r'profile troupe: plugins.score.enabled\[0\]: plugin "A" does not implement score, only filter'
    with pytest.raises(ProfileError, match=words):
        profile_of(A, score=enabled("A"))


def test_a_plugin_that_is_enabled_twice() -> None:
    """This is an error even if the registry returns the same plugin twice."""
    with pytest.raises(ProfileError, match='plugin "A" is enabled more than once at filter'):
        profile_of(A, filter=enabled("A", "A"))


def test_several_problems_are_reported_at_once() -> None:
    """Each has its own line, with the profile."""
    with pytest.raises(ProfileError) as caught:
        profile_of(A, score=enabled("A"), permit=enabled("A"))
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["profile troupe"] * 2


@pytest.mark.parametrize("error", [ValueError("size must be positive"), KeyError("size"), RuntimeError("no luck")])
def test_arguments_that_a_plugin_rejects(error: Exception) -> None:
    """Every exception of its constructor is reported with the profile and the plugin."""

    def refuse(args: Any, handle: Any) -> Any:
        raise error

    registry = registry_of()
    registry.register("A", refuse)
    with pytest.raises(ProfileError, match="profile troupe: initializing plugin A: ") as caught:
        Profile(config_of(A), registry, offline_handle(Cluster()), lambda: 0.0)
    assert str(error) in str(caught.value)


def test_arguments_reach_the_plugin() -> None:
    """The plugin gets those of pluginConfig under its name; None without."""
    given = {}

    class Curious(Refuses):
        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__("Curious", {})
            given["args"] = args

    registry: Registry = registry_of()
    registry.register("Curious", Curious)
    config = config_of(Refuses("Curious", {}))
    for plugin_config, expected in (((), None), ((PluginConfig("Curious", {"size": 3}),), {"size": 3})):
        profile = type(config)(config.schedulerName, None, config.plugins, plugin_config)
        Profile(profile, registry, offline_handle(Cluster()), lambda: 0.0)
        assert given["args"] == expected


def test_declared_arguments_may_be_given_with_their_type() -> None:
    """A written configuration has `apiVersion` and `kind`, which a plugin need not declare."""
    given = {}

    class Sized(Refuses):
        def __init__(self, args: Size, handle: Any) -> None:
            super().__init__("Sized", {})
            given["size"] = args.size

    registry: Registry = registry_of()
    registry.register("Sized", Sized)
    typed = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "SizedArgs", "size": 3}
    config = config_of(Refuses("Sized", {}))
    profile = type(config)(config.schedulerName, None, config.plugins, (PluginConfig("Sized", typed),))
    Profile(profile, registry, offline_handle(Cluster()), lambda: 0.0)
    assert given == {"size": 3}


def test_a_profile_needs_a_binder_and_one_sorter() -> None:
    """Without either it cannot be built."""
    config = config_of(A)
    bare = type(config)("bare", None, Plugins(multiPoint=enabled("A")))
    with pytest.raises(ProfileError) as caught:
        Profile(bare, registry_of(A), offline_handle(Cluster()), lambda: 0.0)
    assert "profile bare: plugins.queueSort: exactly one queue sort plugin is needed, found none" in str(caught.value)
    assert "profile bare: plugins.bind: at least one bind plugin is needed, found none" in str(caught.value)


def test_registrations_of_plugins_that_can_reject() -> None:
    """A plugin has its own, or all events without `requeue_on`; a plugin that cannot reject has none."""

    class Particular(Refuses):
        def requeue_on(self) -> Any:
            return [on(Resource.NODE, Action.ADD)]

    profile = profile_of(A, Particular("P", {}), Scores("S", {}))
    assert profile.registrations == {"A": ANYTHING, "P": (on(Resource.NODE, Action.ADD),)}
