"""Translation of a legacy Policy into a configuration: plugins, weights and arguments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow import config
from kubestow.config import Features, SchedulerConfiguration, policy
from kubestow.config.durations import Duration
from kubestow.config.expansion import expand
from kubestow.config.plugin_args import (
    DEFAULT_RESOURCES,
    InterPodAffinityArgs,
    NodeLabelArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioArgs,
    ResourceSpec,
    ServiceAffinityArgs,
    UtilizationShapePoint,
)
from kubestow.config.plugin_points import IN_TREE
from kubestow.config.policy.tables import PREDICATES, PRIORITIES

HEAD = {"apiVersion": "v1", "kind": "Policy"}
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def load(**fields: Any) -> SchedulerConfiguration:
    return policy.load(json.dumps(HEAD | fields))


def enabled(configuration: SchedulerConfiguration, point: str) -> list[str]:
    return [plugin.name for plugin in expand(configuration.profiles[0].plugins, IN_TREE).points[point]]


def weights(configuration: SchedulerConfiguration) -> dict[str, int]:
    points = expand(configuration.profiles[0].plugins, IN_TREE).points
    return {plugin.name: plugin.weight for plugin in points["score"]}


def args(configuration: SchedulerConfiguration, plugin: str) -> Any:
    return configuration.profiles[0].args_of(plugin)


def by_name(*names: str, weight: int = 1) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name in names]


def presence(name: str, *labels: str, present: bool) -> dict[str, Any]:
    return {"name": name, "argument": {"labelsPresence": {"labels": labels, "presence": present}}}


def preference(name: str, label: str, *, present: bool, weight: int = 1) -> dict[str, Any]:
    return {"name": name, "weight": weight, "argument": {"labelPreference": {"label": label, "presence": present}}}


def test_absent_lists_mean_the_defaults() -> None:
    """The default predicates are in their order, the default priorities sorted by name."""
    found = load()
    assert enabled(found, "filter") == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
    assert weights(found) == {
        "NodeResourcesBalancedAllocation": 1,
        "PodTopologySpread": 2,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesLeastAllocated": 1,
        "NodeAffinity": 1,
        "NodePreferAvoidPods": 10_000,
        "TaintToleration": 1,
    }
    assert found.profiles[0].schedulerName == "default-scheduler"


def test_empty_lists_mean_none() -> None:
    """Only the two mandatory predicates remain, and plugins that a Policy cannot name."""
    found = load(predicates=[], priorities=[])
    points = expand(found.profiles[0].plugins, IN_TREE).points
    assert {point: [plugin.name for plugin in plugins] for point, plugins in points.items() if plugins} == {
        "preEnqueue": ["SchedulingGates", "DefaultPreemption"],
        "queueSort": ["PrioritySort"],
        "preFilter": ["NodeUnschedulable", "TaintToleration"],
        "filter": ["NodeUnschedulable", "TaintToleration"],
        "postFilter": ["DefaultPreemption"],
        "bind": ["DefaultBinder"],
    }


def test_predicates_have_a_fixed_order() -> None:
    """The order in the file does not matter; deprecated names are accepted, and duplicates count once."""
    names = by_name("MatchInterPodAffinity", "PodFitsPorts", "HostName", "PodFitsHostPorts", "GeneralPredicates")
    found = load(predicates=[{"name": entry["name"]} for entry in names], priorities=[])
    general = ["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"]
    assert enabled(found, "filter") == ["NodeUnschedulable", *general, "TaintToleration", "InterPodAffinity"]


def test_a_plugin_is_enabled_at_the_points_of_its_predicate_or_priority() -> None:
    """A predicate does not make a plugin score, nor a priority make it filter."""
    found = load(predicates=[{"name": "CheckVolumeBinding"}], priorities=by_name("NodeAffinityPriority"))
    for point in ("preFilter", "filter", "reserve", "preBind"):
        assert "VolumeBinding" in enabled(found, point)
        assert "NodeAffinity" not in enabled(found, point)
    for point in ("preScore", "score"):
        assert enabled(found, point) == ["NodeAffinity"]


def test_volume_limits_of_all_kinds_are_one_plugin() -> None:
    """Its position is that of the first predicate."""
    names = ["MaxCinderVolumeCount", "MaxEBSVolumeCount", "MaxCSIVolumeCountPred", "NoVolumeZoneConflict"]
    found = load(predicates=[{"name": name} for name in names])
    assert enabled(found, "filter") == ["NodeUnschedulable", "TaintToleration", "NodeVolumeLimits", "VolumeZone"]


def test_labels_of_several_predicates_are_combined() -> None:
    """They are arguments of one plugin."""
    affinity = [{"name": name, "argument": {"serviceAffinity": {"labels": [name]}}} for name in ("rack", "row")]
    found = load(predicates=[presence("a", "zone", present=True), presence("b", "x", "y", present=False), *affinity])
    assert args(found, "NodeLabel") == NodeLabelArgs(presentLabels=("zone",), absentLabels=("x", "y"))
    assert args(found, "ServiceAffinity") == ServiceAffinityArgs(affinityLabels=("rack", "row"))
    assert enabled(found, "preFilter") == ["NodeUnschedulable", "TaintToleration", "ServiceAffinity"]


def test_weights_of_priorities_with_labels_are_summed() -> None:
    """Each label has the weight of its priority."""
    anti = [{"name": name, "weight": 5, "argument": {"serviceAntiAffinity": {"label": name}}} for name in ("a", "b")]
    preferred = [preference(name, name, present=name != "x", weight=2) for name in ("x", "y", "z")]
    found = load(priorities=[*anti, *preferred])
    assert weights(found) == {"NodeLabel": 6, "ServiceAffinity": 10}
    assert args(found, "NodeLabel").presentLabelsPreference == ("y", "z")
    assert args(found, "NodeLabel").absentLabelsPreference == ("x",)
    assert args(found, "ServiceAffinity").antiAffinityLabelsPreference == ("a", "b")


def test_of_two_priorities_for_one_plugin_the_first_by_name_counts() -> None:
    """As in v1.22, which was intended to use the greater weight."""
    found = load(priorities=[*by_name("SelectorSpreadPriority", weight=9), *by_name("EvenPodsSpreadPriority")])
    assert weights(found) == {"PodTopologySpread": 1}


def test_of_a_repeated_priority_the_last_counts() -> None:
    """Its deprecated names are the same priority."""
    found = load(priorities=[*by_name("SelectorSpreadPriority", weight=9), *by_name("ServiceSpreadingPriority")])
    assert weights(found) == {"PodTopologySpread": 1}


@pytest.mark.parametrize(
    ("names", "defaulting"),
    [
        (["EvenPodsSpreadPriority"], "List"),
        (["SelectorSpreadPriority"], "System"),
        (["EvenPodsSpreadPriority", "SelectorSpreadPriority"], "System"),
    ],
)
def test_spreading_of_pods_without_constraints(names: list[str], defaulting: str) -> None:
    """SelectorSpread is PodTopologySpread with its system defaults."""
    assert args(load(priorities=by_name(*names)), "PodTopologySpread") == PodTopologySpreadArgs((), defaulting)


def test_the_shape_of_a_function() -> None:
    """Without resources there are none; v1.22 had no defaults for them in a Policy."""
    argument: dict[str, Any] = {"requestedToCapacityRatioArguments": {"shape": SHAPE}}
    points = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
    found = load(priorities=[{"name": "mine", "weight": 4, "argument": argument}])
    assert weights(found) == {"RequestedToCapacityRatio": 4}
    assert args(found, "RequestedToCapacityRatio") == RequestedToCapacityRatioArgs(points, ())
    argument["requestedToCapacityRatioArguments"]["resources"] = [{"name": "x.io/gpu", "weight": 200}]
    found = load(priorities=[{"name": "mine", "weight": 4, "argument": argument}])
    assert args(found, "RequestedToCapacityRatio").resources == (ResourceSpec("x.io/gpu", 200),)


def test_equal_priority_is_ignored() -> None:
    """All nodes would have the same score."""
    assert weights(load(priorities=by_name("EqualPriority"))) == {}


def test_arguments_of_known_names_are_ignored() -> None:
    """As in v1.22: a known name always has the same meaning."""
    found = load(
        predicates=[presence("HostName", "zone", present=True)],
        priorities=[preference("ImageLocalityPriority", "zone", present=True)],
    )
    assert enabled(found, "filter") == ["NodeUnschedulable", "NodeName", "TaintToleration"]
    assert weights(found) == {"ImageLocality": 1}


@pytest.mark.parametrize(
    ("given_weight", "priorities", "wanted"),
    [(30, ["InterPodAffinityPriority"], 30), (0, ["InterPodAffinityPriority"], 1), (30, [], 1)],
)
def test_hard_pod_affinity(given_weight: int, priorities: list[str], wanted: int) -> None:
    """The weight applies if pod affinity is scored; 0 means the default, 1."""
    found = load(
        predicates=[{"name": "MatchInterPodAffinity"}],
        priorities=by_name(*priorities),
        hardPodAffinitySymmetricWeight=given_weight,
    )
    assert args(found, "InterPodAffinity") == InterPodAffinityArgs(hardPodAffinityWeight=wanted)


def test_extenders() -> None:
    """The timeout is in nanoseconds, HTTPS has another name; ignored resources are passed to NodeResourcesFit."""
    found = load(
        extenders=[
            {
                "urlPrefix": "https://a",
                "filterVerb": "filter",
                "enableHttps": True,
                "httpTimeout": 1_500_000_000,
                "managedResources": [{"name": "x.io/foo", "ignoredByScheduler": True}],
                "tlsConfig": {"insecure": True},
            },
            {"urlPrefix": "http://b", "prioritizeVerb": "score", "weight": 3},
        ]
    )
    first, second = found.extenders
    assert (first.enableHTTPS, first.httpTimeout, first.tlsConfig.insecure) == (True, Duration.parse("1.5s"), True)  # type: ignore[union-attr]
    assert (second.enableHTTPS, second.httpTimeout, second.weight) == (False, Duration.parse("5s"), 3)
    assert args(found, "NodeResourcesFit") == NodeResourcesFitArgs(ignoredResources=("x.io/foo",))


def test_the_rest_of_a_configuration_is_kept() -> None:
    """A Policy replaces only profiles and extenders."""
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    base = config.load(head + "parallelism: 3\nprofiles: [{schedulerName: mine}]\nextenders: [{urlPrefix: http://x}]\n")
    found = policy.load(json.dumps(HEAD), Features(), base)
    assert found.parallelism == 3
    assert [profile.schedulerName for profile in found.profiles] == ["default-scheduler"]
    assert found.extenders == ()


def test_a_policy_may_be_yaml() -> None:
    """It may set alwaysCheckAllPredicates."""
    found = policy.load(
        "apiVersion: v1\nkind: Policy\npredicates: [{name: HostName}]\nalwaysCheckAllPredicates: true\n"
    )
    assert "NodeName" in enabled(found, "filter")
    assert found.profiles[0].alwaysCheckAllPredicates
    assert not load().profiles[0].alwaysCheckAllPredicates


_names = st.sampled_from(["a", "b", "c"])
_predicates = st.one_of(
    st.builds(lambda name: {"name": name}, st.sampled_from(sorted(PREDICATES))),
    st.builds(lambda name, label: presence(name, label, present=True), _names, _names),
    st.builds(lambda name, label: {"name": name, "argument": {"serviceAffinity": {"labels": [label]}}}, _names, _names),
)
_priorities = st.one_of(
    st.builds(
        lambda name, weight: {"name": name, "weight": weight},
        st.sampled_from(sorted(PRIORITIES.keys() - set(PRIORITIES.values()))),
        st.integers(1, 100),
    ),
    st.builds(lambda name, label: preference(name, label, present=False), _names, _names),
)


@given(
    predicates=st.none() | st.lists(_predicates),
    priorities=st.none() | st.lists(_priorities),
    with_shape=st.booleans(),
    fields=st.fixed_dictionaries(
        {"alwaysCheckAllPredicates": st.booleans(), "hardPodAffinitySymmetricWeight": st.integers(0, 100)}
    ),
)
def test_translated_policies_round_trip(
    predicates: list[Any] | None, priorities: list[Any] | None, with_shape: bool, fields: dict[str, Any]
) -> None:
    """A translated Policy, written and loaded again, is the same configuration."""
    if with_shape:
        argument = {"requestedToCapacityRatioArguments": {"shape": SHAPE}}
        priorities = [*(priorities or ()), {"name": "shape", "weight": 1, "argument": argument}]
    found = load(predicates=predicates, priorities=priorities, **fields)
    assert config.load(config.dump(found)) == found
    assert config.load(config.dump_briefly(found, config.default(), Features())) == found


def test_legacy_arguments_in_a_profile_have_defaults() -> None:
    """Absent resources mean cpu and memory; the default weight is 1."""
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      enabled: [{name: NodeResourcesMostAllocated}, {name: RequestedToCapacityRatio}]
  pluginConfig:
  - name: RequestedToCapacityRatio
    args: {shape: [{utilization: 0, score: 1}], resources: [{name: cpu}]}
"""
    found = config.load(text)
    assert args(found, "NodeResourcesMostAllocated").resources == DEFAULT_RESOURCES
    assert args(found, "RequestedToCapacityRatio").resources == (ResourceSpec("cpu", 1),)
