"""Which plugins run at each extension point, in which order and with which weight."""

import pytest

from kubestow import config
from kubestow.config.configuration import Plugin, Plugins, PluginSet
from kubestow.config.expansion import EnabledPlugin, expand
from kubestow.config.plugin_points import EXTENSION_POINTS, GATE_OF_PLUGIN, IN_TREE

KNOWN = {
    "Sort": frozenset({"queueSort"}),
    "Bind": frozenset({"bind"}),
    "A": frozenset({"filter", "score"}),
    "B": frozenset({"filter", "score"}),
    "C": frozenset({"filter"}),
    "D": frozenset({"score"}),
}


def plugins(multi: str, disabled: str = "", **points: str) -> Plugins:
    """Plugins by names: `A*3` is A with weight 3; `disabled` lists point:name."""

    def enabled(names: str) -> tuple[Plugin, ...]:
        parts = (name.partition("*") for name in names.split())
        return tuple(Plugin(name, int(weight or 0)) for name, _, weight in parts)

    off: dict[str, list[Plugin]] = {}
    for entry in disabled.split():
        point, _, name = entry.partition(":")
        off.setdefault(point, []).append(Plugin(name))
    sets = {
        point: PluginSet(enabled(points.get(point, "")), tuple(off.get(point, ())))
        for point in points.keys() | off.keys()
    }
    return Plugins(multiPoint=PluginSet(enabled(f"Sort Bind {multi}")), **sets)


def order(profile: Plugins, point: str) -> list[str]:
    found = expand(profile, KNOWN)
    assert found.problems == []
    return [plugin.name for plugin in found.points[point]]


def problems_of(profile: Plugins) -> list[str]:
    return [str(problem) for problem in expand(profile, KNOWN).problems]


def test_multi_point_reaches_every_point_a_plugin_implements() -> None:
    """A plugin of multiPoint runs at all its points, in the order of multiPoint."""
    profile = plugins("B C A D")
    assert order(profile, "filter") == ["B", "C", "A"]
    assert order(profile, "score") == ["B", "A", "D"]
    assert order(profile, "bind") == ["Bind"]
    assert order(profile, "permit") == []


def test_overrides_come_first_and_strangers_last() -> None:
    """Named at the point and in multiPoint: first, as named; then the rest of multiPoint; then those only named."""
    assert order(plugins("A B", filter="C B"), "filter") == ["B", "A", "C"]
    assert order(plugins("A B", filter="C B A"), "filter") == ["B", "A", "C"]
    assert order(plugins("", filter="C A"), "filter") == ["C", "A"]


def test_disabling_at_a_point_holds_multi_point_off() -> None:
    """A disabled plugin is not brought in by multiPoint, but stays if it is named at the point itself."""
    assert order(plugins("A B C", "filter:A"), "filter") == ["B", "C"]
    assert order(plugins("A B C", "filter:A"), "score") == ["A", "B"]
    assert order(plugins("A B", "filter:A", filter="A"), "filter") == ["B", "A"]
    assert order(plugins("A B", "filter:*", filter="C"), "filter") == ["C"]
    assert order(plugins("A B", "filter:*"), "filter") == []


def test_weights_of_the_point_win_over_those_of_multi_point() -> None:
    """A weight counts at scoring points: the point's own first, then multiPoint's; none is 1."""
    points = expand(plugins("A*4 B*5 D", score="B*2"), KNOWN).points
    assert points["score"] == (EnabledPlugin("B", 2), EnabledPlugin("A", 4), EnabledPlugin("D", 1))
    assert points["filter"] == (EnabledPlugin("A", 0), EnabledPlugin("B", 0))


def test_nothing_follows_weights_that_add_up_to_less_than_nothing() -> None:
    """kube-scheduler takes that for an overflow, also where multiPoint is kept out; the last one may be as it likes."""
    told = 'plugins.{}.enabled: the weights up to that of plugin "{}" add up to {}, which must not be negative'
    assert problems_of(plugins("A B D", score="B*-5")) == [told.format("score", "B", -5)]
    assert problems_of(plugins("A*4 B*-5 D", "score:*")) == [told.format("multiPoint", "B", -1)]
    assert problems_of(plugins("A*4 B*-4 D")) == []
    assert problems_of(plugins("A B D*-9", filter="C*-1")) == []


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (plugins("X"), 'plugins.multiPoint.enabled: plugin "X" does not exist. There are: A, B, Bind, C, D, Sort'),
        (
            plugins("", filter="X"),
            'plugins.filter.enabled[0]: plugin "X" does not exist. There are: A, B, Bind, C, D, Sort',
        ),
        (plugins("", score="C"), 'plugins.score.enabled[0]: plugin "C" does not implement score, only filter'),
        (plugins("", filter="A A"), 'plugins.filter.enabled[1]: plugin "A" is enabled more than once at filter'),
        (plugins("C C"), 'plugins.multiPoint.enabled: plugin "C" is enabled more than once at filter'),
        (plugins("", "queueSort:*"), "plugins.queueSort: exactly one queue sort plugin is needed, found none"),
        (plugins("", "bind:*"), "plugins.bind: at least one bind plugin is needed, found none"),
        (plugins("", queueSort="Sort Sort2"), "plugins.queueSort.enabled: only one queue sort plugin can be enabled"),
    ],
)
def test_what_cannot_run_is_told(profile: Plugins, said: str) -> None:
    """Unknown plugins, wrong points, doubles, and missing or surplus plugins are problems with their paths."""
    assert said in problems_of(profile)


def test_a_double_that_is_overridden_everywhere_does_no_harm() -> None:
    """A plugin twice in multiPoint is a fault only at points where multiPoint decides."""
    assert problems_of(plugins("C C", filter="C")) == []
    assert problems_of(plugins("C C", "filter:C")) == []


def test_only_one_plugin_generates_placements() -> None:
    """Two placement generators are one too many."""
    known = {**KNOWN, "P": frozenset({"placementGenerate"}), "Q": frozenset({"placementGenerate"})}
    (problem,) = expand(plugins("P Q"), known).problems
    assert problem.path == "plugins.placementGenerate"
    assert problem.message == "at most one placement generate plugin is allowed, found P, Q"


def test_the_default_profile_runs_the_known_order() -> None:
    """The default configuration filters and scores with the in-tree plugins in their usual order."""
    points = expand(config.default().profiles[0].plugins, IN_TREE).points
    assert [plugin.name for plugin in points["filter"]] == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ]
    assert points["score"] == (
        EnabledPlugin("TaintToleration", 3),
        EnabledPlugin("NodeAffinity", 2),
        EnabledPlugin("NodeResourcesFit", 1),
        EnabledPlugin("VolumeBinding", 1),
        EnabledPlugin("PodTopologySpread", 2),
        EnabledPlugin("InterPodAffinity", 2),
        EnabledPlugin("DynamicResources", 2),
        EnabledPlugin("NodeResourcesBalancedAllocation", 1),
        EnabledPlugin("ImageLocality", 1),
    )
    assert [plugin.name for plugin in points["postFilter"]] == ["DynamicResources", "DefaultPreemption"]
    assert [plugin.name for plugin in points["preEnqueue"]] == [
        "SchedulingGates",
        "DynamicResources",
        "DefaultPreemption",
    ]


def test_the_table_of_plugins_uses_real_points() -> None:
    """Every in-tree plugin implements at least one extension point, and only such that exist."""
    assert all(points and points <= set(EXTENSION_POINTS) for points in IN_TREE.values())
    assert GATE_OF_PLUGIN.keys() <= IN_TREE.keys()
    assert {*EXTENSION_POINTS, "multiPoint"} == set(Plugins.__struct_fields__)
