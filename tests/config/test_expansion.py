"""The plugins of each extension point, their order and their weights."""

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
    """Return plugins by name: `A*3` is A with weight 3; `disabled` lists point:name."""

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


def test_overrides_are_first_and_other_plugins_last() -> None:
    """The order is: overrides of multiPoint as listed, the others of multiPoint, plugins listed only at the point."""
    assert order(plugins("A B", filter="C B"), "filter") == ["B", "A", "C"]
    assert order(plugins("A B", filter="C B A"), "filter") == ["B", "A", "C"]
    assert order(plugins("", filter="C A"), "filter") == ["C", "A"]


def test_disabling_at_a_point_excludes_multi_point() -> None:
    """A disabled plugin of multiPoint runs only if it is listed at the point itself."""
    assert order(plugins("A B C", "filter:A"), "filter") == ["B", "C"]
    assert order(plugins("A B C", "filter:A"), "score") == ["A", "B"]
    assert order(plugins("A B", "filter:A", filter="A"), "filter") == ["B", "A"]
    assert order(plugins("A B", "filter:*", filter="C"), "filter") == ["C"]
    assert order(plugins("A B", "filter:*"), "filter") == []


def test_weights_of_the_point_override_those_of_multi_point() -> None:
    """Only scoring points have weights; the default is 1."""
    points = expand(plugins("A*4 B*5 D", score="B*2"), KNOWN).points
    assert points["score"] == (EnabledPlugin("B", 2), EnabledPlugin("A", 4), EnabledPlugin("D", 1))
    assert points["filter"] == (EnabledPlugin("A", 0), EnabledPlugin("B", 0))


def test_no_plugin_follows_a_negative_sum_of_weights() -> None:
    """kube-scheduler reports an overflow, even if multiPoint is disabled; the last weight may be negative."""
    expected = 'plugins.{}.enabled: the weights up to that of plugin "{}" add up to {}, which must not be negative'
    assert problems_of(plugins("A B D", score="B*-5")) == [expected.format("score", "B", -5)]
    assert problems_of(plugins("A*4 B*-5 D", "score:*")) == [expected.format("multiPoint", "B", -1)]
    assert problems_of(plugins("A*4 B*-4 D")) == []
    assert problems_of(plugins("A B D*-9", filter="C*-1")) == []


@pytest.mark.parametrize(
    ("profile", "expected"),
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
def test_invalid_plugins_are_reported(profile: Plugins, expected: str) -> None:
    """Unknown plugins, wrong points, duplicates, missing and surplus plugins are problems with their paths."""
    assert expected in problems_of(profile)


def test_an_overridden_duplicate_is_valid() -> None:
    """A duplicate in multiPoint is a fault only at points without an override."""
    assert problems_of(plugins("C C", filter="C")) == []
    assert problems_of(plugins("C C", "filter:C")) == []


def test_two_queue_sort_plugins_in_multi_point() -> None:
    """The problem says where to disable one: a plugin comes in addition to the default one."""
    known = {**KNOWN, "Other": frozenset({"queueSort"})}
    (problem,) = expand(plugins("Other"), known).problems
    assert str(problem).endswith("needed, found Sort, Other: disable the others in queueSort.disabled")


def test_only_one_plugin_generates_placements() -> None:
    """Two placement generators are a fault."""
    known = {**KNOWN, "P": frozenset({"placementGenerate"}), "Q": frozenset({"placementGenerate"})}
    (problem,) = expand(plugins("P Q"), known).problems
    assert problem.path == "plugins.placementGenerate"
    assert problem.message == "at most one placement generate plugin is allowed, found P, Q"


def test_the_default_profile_has_the_usual_order() -> None:
    """The in-tree plugins filter and score in the order of kube-scheduler."""
    points = expand(config.default().profiles[0].plugins, IN_TREE).points
    assert [plugin.name for plugin in points["filter"]] == [
        "NodeName",
        "NodeUnschedulable",
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


def test_the_table_of_plugins_is_consistent() -> None:
    """Every in-tree plugin implements at least one extension point, and only existing ones."""
    assert all(points and points <= set(EXTENSION_POINTS) for points in IN_TREE.values())
    assert GATE_OF_PLUGIN.keys() <= IN_TREE.keys()
    assert {*EXTENSION_POINTS, "multiPoint"} == set(Plugins.__struct_fields__)
