"""Validation of the arguments of plugins."""

import pytest

from kubestow import config
from kubestow.config import ConfigError, Features

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = "profiles[0].pluginConfig[0].args"
CONSTRAINT = "maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway"
RATIO = "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: %s}}}"
REQUIRED = "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{%s}]}}}"
PREFERRED = "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: %d, preference: {%s}}]}}"
TERM = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"


def load(plugin: str, args: str, gates: str = "", plugins: str = "{}") -> config.SchedulerConfiguration:
    fields = f"profiles: [{{plugins: {plugins}, pluginConfig: [{{name: {plugin}, args: {args}}}]}}]"
    return config.load(HEAD + fields, Features.parse(gates))


def paths(plugin: str, args: str, gates: str = "") -> list[str]:
    """Return the paths of all problems, relative to the arguments."""
    with pytest.raises(ConfigError) as caught:
        load(plugin, args, gates)
    return [problem.path.removeprefix(f"{ARGS}.") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        ("DefaultPreemption", "{minCandidateNodesPercentage: 200}", ["minCandidateNodesPercentage"]),
        ("DefaultPreemption", "{minCandidateNodesAbsolute: -1}", ["minCandidateNodesAbsolute"]),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            ["minCandidateNodesPercentage", "minCandidateNodesAbsolute"],
        ),
        ("InterPodAffinity", "{hardPodAffinityWeight: -1}", ["hardPodAffinityWeight"]),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}, {name: cpu}]}",
            ["resources[0].weight", "resources[1].name"],
        ),
        ("VolumeBinding", "{bindTimeoutSeconds: -1}", ["bindTimeoutSeconds"]),
        ("DynamicResources", "{filterTimeout: -1s}", ["filterTimeout"]),
        ("DynamicResources", "{bindingTimeout: 999ms}", ["bindingTimeout"]),
        ("PodTopologySpread", "{defaultingType: Other}", ["defaultingType"]),
        (
            "PodTopologySpread",
            f"{{defaultConstraints: [{{{CONSTRAINT}}}]}}",
            ["defaultingType"],
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{topologyKey: a b, whenUnsatisfiable: Maybe}, {maxSkew: 1}]}",
            [f"defaultConstraints[0].{field}" for field in ("maxSkew", "topologyKey", "whenUnsatisfiable")]
            + [f"defaultConstraints[1].{field}" for field in ("topologyKey", "whenUnsatisfiable")],
        ),
        (
            "PodTopologySpread",
            f"{{defaultingType: List, defaultConstraints: [&c {{{CONSTRAINT}, labelSelector: {{}}}}, *c]}}",
            ["defaultConstraints[0].labelSelector", "defaultConstraints[1].labelSelector", "defaultConstraints[1]"],
        ),
    ],
)
def test_a_wrong_argument_is_named(plugin: str, args: str, expected: list[str]) -> None:
    """Every faulty argument is reported with its path."""
    assert paths(plugin, args) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("{scoringStrategy: {}}", ["scoringStrategy.type"]),
        ("{scoringStrategy: {type: Bogus}}", ["scoringStrategy.type"]),
        (
            "{scoringStrategy: {type: LeastAllocated, resources: [{name: a, weight: -1}, {name: b, weight: 101}]}}",
            ["scoringStrategy.resources[0].weight", "scoringStrategy.resources[1].weight"],
        ),
        ("{scoringStrategy: {type: RequestedToCapacityRatio}}", ["scoringStrategy.requestedToCapacityRatio"]),
        (
            "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}",
            ["scoringStrategy.requestedToCapacityRatio"],
        ),
        (RATIO % "[]", ["scoringStrategy.requestedToCapacityRatio.shape"]),
        (
            RATIO
            % "[{utilization: 50}, {utilization: 20, score: 11}, {utilization: 10}, {utilization: 101, score: -1}]",
            [
                f"scoringStrategy.requestedToCapacityRatio.shape{point}"
                for point in ("[1].utilization", "[1].score", "[3].utilization", "[3].score")
            ],
        ),
        (
            "{ignoredResources: [example.com/a, 'bad name!'], ignoredResourceGroups: [example.com, a/b]}",
            ["ignoredResources[1]", "ignoredResourceGroups[1]"],
        ),
    ],
)
def test_wrong_arguments_of_the_fit_plugin_are_named(args: str, expected: list[str]) -> None:
    """Scoring strategy, ignored resources and the shape of the scoring function are validated."""
    assert paths("NodeResourcesFit", args) == expected


def test_arguments_of_a_disabled_fit_plugin_are_not_validated() -> None:
    """As in kube-scheduler, their faults have no effect."""
    load(
        "NodeResourcesFit",
        "{scoringStrategy: {type: Bogus}}",
        plugins="{multiPoint: {disabled: [{name: NodeResourcesFit}]}}",
    )


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("matchExpressions: [{key: a, operator: In}]", ["matchExpressions[0].values"]),
        ("matchExpressions: [{key: a, operator: Exists, values: [x]}]", ["matchExpressions[0].values"]),
        ("matchExpressions: [{key: a, operator: Gt, values: ['1', '2']}]", ["matchExpressions[0].values"]),
        ("matchExpressions: [{key: a, operator: Lt, values: [x]}]", ["matchExpressions[0].values[0]"]),
        ("matchExpressions: [{key: a, operator: is, values: [x]}]", ["matchExpressions[0].operator"]),
        (
            "matchExpressions: [{key: a b, operator: In, values: ['!']}]",
            ["matchExpressions[0].key", "matchExpressions[0].values[0][a b]"],
        ),
        (f"matchExpressions: [{{key: a, operator: In, values: [{'x' * 64}]}}]", ["matchExpressions[0].values[0][a]"]),
        ("matchFields: [{key: metadata.name, operator: Exists}]", ["matchFields[0].operator"]),
        ("matchFields: [{key: metadata.name, operator: In, values: [a, b]}]", ["matchFields[0].values"]),
    ],
)
def test_wrong_node_selectors_of_added_affinity_are_named(term: str, expected: list[str]) -> None:
    """Keys, operators and values of required and preferred added affinity are validated."""
    assert paths("NodeAffinity", REQUIRED % term) == [f"{TERM}.{path}" for path in expected]
    preferred = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
    assert paths("NodeAffinity", PREFERRED % (1, term)) == [f"{preferred}.{path}" for path in expected]
    load("NodeAffinity", PREFERRED % (0, term))


def test_valid_node_selectors_are_accepted() -> None:
    """All operators with matching values are accepted, and an empty term."""
    load(
        "NodeAffinity",
        REQUIRED % "matchExpressions: [{key: a.com/b, operator: Gt, values: ['5']}, {key: c, operator: Exists}]",
    )
    load("NodeAffinity", REQUIRED % "matchFields: [{key: metadata.name, operator: NotIn, values: [node-1]}]")
    load("NodeAffinity", REQUIRED % "")


def test_arguments_behind_a_gate_need_it() -> None:
    """An argument that has no effect without its gate is rejected while the gate is off."""
    shape = "{shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}"
    assert paths("VolumeBinding", shape, "StorageCapacityScoring=false") == ["shape"]
    assert paths("VolumeBinding", "{shape: []}", "StorageCapacityScoring=false") == ["shape"]
    load("VolumeBinding", shape)
    assert paths("VolumeBinding", "{shape: [{score: 11}]}") == ["shape[0].score"]
    assert paths("DynamicResources", "{filterTimeout: 1s}", "DRASchedulerFilterTimeout=false") == ["filterTimeout"]
    assert paths("DynamicResources", "{bindingTimeout: 1s}", "DRADeviceBindingConditions=false") == ["bindingTimeout"]
