"""Defaults of a configuration."""

from typing import Any

import pytest
import yaml

from kubestow import config
from kubestow.config import Features
from kubestow.config.configuration import Plugin, PluginSet
from kubestow.config.durations import Duration
from kubestow.config.plugin_args import (
    DynamicResourcesArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubestow.config.versions import Versions

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def load(fields: str, gates: str = "") -> config.SchedulerConfiguration:
    return config.load(HEAD + fields, Features.parse(gates))


def multi_point(fields: str = "", gates: str = "") -> list[str]:
    return [plugin.name for plugin in load(fields, gates).profiles[0].plugins.multiPoint.enabled]


@pytest.mark.parametrize(
    ("fields", "contention"),
    [
        ("", True),
        ("enableProfiling: false", False),
        ("enableProfiling: false\nenableContentionProfiling: true", True),
        ("enableContentionProfiling: false", False),
        ("enableProfiling: null\nenableContentionProfiling: null", True),
    ],
)
def test_contention_profiling_follows_profiling(fields: str, contention: bool) -> None:
    """Contention profiling is on by default only if profiling is on; a given value is kept."""
    assert load(fields).enableContentionProfiling is contention


def test_zero_and_empty_values_get_defaults() -> None:
    """Durations and rates of zero and empty names get their defaults."""
    fields = """
leaderElection:
  {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: "0", resourceLock: "", resourceName: "", resourceNamespace: ""}
clientConnection: {qps: 0, burst: 0, contentType: ""}
"""
    assert load(fields) == config.default()
    assert load("leaderElection: {leaderElect: false}").leaderElection.leaderElect is False
    assert load("extenders: [{httpTimeout: 0s}]").extenders[0].httpTimeout == Duration.parse("5s")


def test_a_single_profile_needs_no_name() -> None:
    """Without profiles, or with one without a name, the name is default-scheduler; an empty name is a fault."""
    assert load("profiles: []").profiles[0].schedulerName == "default-scheduler"
    assert load("profiles: [{percentageOfNodesToScore: 7}]").profiles[0].schedulerName == "default-scheduler"
    with pytest.raises(config.ConfigError, match=r"profiles\[0\].schedulerName: is required"):
        load("profiles: [{schedulerName: ''}]")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("{}", ScoringStrategy("LeastAllocated")),
        ("{scoringStrategy: null}", ScoringStrategy("LeastAllocated")),
        ("{scoringStrategy: {type: MostAllocated, resources: []}}", ScoringStrategy("MostAllocated")),
        (
            "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu}, {name: x, weight: 5}]}}",
            ScoringStrategy("MostAllocated", (ResourceSpec("cpu", 1), ResourceSpec("x", 5))),
        ),
    ],
)
def test_the_default_weight_of_resources_is_one(args: str, expected: ScoringStrategy) -> None:
    """The default resources of scoring are CPU and memory with weight 1."""
    loaded = load(f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]")
    assert loaded.profiles[0].args_of("NodeResourcesFit") == NodeResourcesFitArgs(scoringStrategy=expected)


def test_an_empty_defaulting_type_is_system() -> None:
    """defaultingType "" means System."""
    loaded = load("profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: ''}}]}]")
    assert loaded.profiles[0].args_of("PodTopologySpread") == PodTopologySpreadArgs()


def test_gates_change_the_defaults_of_arguments() -> None:
    """Timeouts of dynamic resources and the shape of volume scoring have defaults only if their gates are on."""
    ten_seconds, ten_minutes = Duration.parse("10s"), Duration.parse("10m")
    assert load("").profiles[0].args_of("DynamicResources") == DynamicResourcesArgs(ten_seconds, ten_minutes)
    without_filter = load("", "DRASchedulerFilterTimeout=false").profiles[0]
    assert without_filter.args_of("DynamicResources") == DynamicResourcesArgs(None, ten_minutes)
    without_binding = load("", "DRADeviceBindingConditions=false").profiles[0]
    assert without_binding.args_of("DynamicResources") == DynamicResourcesArgs(ten_seconds, None)
    assert load("", "StorageCapacityScoring=false").profiles[0].args_of("VolumeBinding") == VolumeBindingArgs(600, None)
    scoring = load("").profiles[0].args_of("VolumeBinding")
    assert scoring == VolumeBindingArgs(600, (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)))


def test_gates_change_the_default_plugins() -> None:
    """A plugin behind a gate is enabled by default only if the gate is on."""
    assert multi_point()[-2:] == ["DefaultBinder", "NodeDeclaredFeatures"]
    old = config.default(Features.parse("", Versions(35, 34))).profiles[0].plugins.multiPoint
    assert old.enabled[-1].name == "DefaultBinder"
    assert multi_point(gates="GenericWorkload=true")[-1] == "GangScheduling"
    topology = multi_point(gates="GenericWorkload=true,TopologyAwareWorkloadScheduling=true")
    assert topology[-3:] == ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"]


def merged(own: str) -> PluginSet:
    return load(f"profiles: [{{plugins: {{multiPoint: {own}}}}}]").profiles[0].plugins.multiPoint


def test_plugins_of_a_profile_are_merged_with_the_defaults() -> None:
    """A default plugin that is listed again is replaced in place, a disabled one is removed, others are appended."""
    default = config.default().profiles[0].plugins.multiPoint.enabled
    changed = merged("{enabled: [{name: NodeAffinity, weight: 9}], disabled: [{name: ImageLocality, weight: 4}]}")
    assert changed.enabled == tuple(
        Plugin("NodeAffinity", 9) if plugin.name == "NodeAffinity" else plugin
        for plugin in default
        if plugin.name != "ImageLocality"
    )
    assert changed.disabled == (Plugin("ImageLocality"),)
    moved = merged("{enabled: [{name: ImageLocality, weight: 2}], disabled: [{name: ImageLocality}]}")
    assert moved.enabled[-1] == Plugin("ImageLocality", 2)


def test_disabling_everything_leaves_only_the_plugins_of_the_profile() -> None:
    """With `*` disabled, the plugins are those of the profile, in its order."""
    only = merged("{disabled: [{name: '*'}], enabled: [{name: DefaultBinder}, {name: PrioritySort}]}")
    assert only.enabled == (Plugin("DefaultBinder"), Plugin("PrioritySort"))


def test_arguments_are_kept_only_for_enabled_plugins_in_the_order_of_names() -> None:
    """Completed arguments are those of enabled plugins that exist, sorted by name."""
    fields: dict[str, Any] = {
        "profiles": [
            {
                "plugins": {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}},
                "pluginConfig": [
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 5}},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
                    {"name": "Unheard", "args": {"x": 1}},
                    {"name": "NodeName", "args": {"y": 1}},
                    {"name": "NodePorts"},
                ],
            }
        ]
    }
    names = [entry.name for entry in load(yaml.safe_dump(fields)).profiles[0].pluginConfig]
    assert names == [
        "DefaultPreemption",
        "DynamicResources",
        "NodeAffinity",
        "NodeName",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ]


def test_resources_of_extenders_are_ignored_by_the_fit_plugin() -> None:
    """Resources with ignoredByScheduler replace ignoredResources in every profile."""
    extender = "{urlPrefix: 'http://a', managedResources: [{name: a.com/x, ignoredByScheduler: true}, {name: a.com/y}]}"
    own = "{name: NodeResourcesFit, args: {ignoredResources: [b.com/z]}}"
    loaded = load(
        f"extenders: [{extender}]\nprofiles: [{{schedulerName: a}}, {{schedulerName: b, pluginConfig: [{own}]}}]"
    )
    for profile in loaded.profiles:
        assert profile.args_of("NodeResourcesFit") == NodeResourcesFitArgs(ignoredResources=("a.com/x",))
    alone = "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}"
    with pytest.raises(config.ConfigError, match=r"profiles\[0\].pluginConfig: an extender has resources"):
        load(f"extenders: [{extender}]\nprofiles: [{{plugins: {alone}}}]")
