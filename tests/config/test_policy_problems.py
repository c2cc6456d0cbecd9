"""Problems of a legacy Policy, and of the arguments of the plugins that replaced it, with their paths."""

import json
from typing import Any

import pytest

from kubestow import config
from kubestow.config import ConfigError, policy

HEAD = {"apiVersion": "v1", "kind": "Policy"}


def problems(fields: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        policy.load(json.dumps(HEAD | fields))
    return [str(problem) for problem in caught.value.problems]


def predicate(**argument: Any) -> dict[str, Any]:
    return {"predicates": [{"name": "mine", "argument": argument}]}


def priority(name: str = "mine", weight: Any = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


def label(name: str, key: str, *, presence: bool, weight: int = 1) -> dict[str, Any]:
    return priority(name, weight, labelPreference={"label": key, "presence": presence})


def ratio(name: str, *points: tuple[int, int], **more: Any) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return priority(name, requestedToCapacityRatioArguments={"shape": shape, **more})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "Config"}, 'kind: no kind "Config" is known in version "v1"; kind must be Policy'),
        ({"apiVersion": None}, "apiVersion: is missing; it must be v1"),
        ({"predicate": []}, "predicate: is not a known field"),
        ({"predicates": {}}, "predicates: must be a list, not a mapping"),
        ({"predicates": [{"name": 3}]}, "predicates[0].name: must be a string, not 3"),
        ({"extenders": [{"enableHTTPS": True}]}, "extenders[0].enableHTTPS: is not a known field"),
        (
            {"extenders": [{"httpTimeout": "5s"}]},
            'extenders[0].httpTimeout: must be a number of nanoseconds, such as 5000000000 for 5s, not the string "5s"',
        ),
        ({"alwaysCheckAllPredicates": 1}, "alwaysCheckAllPredicates: must be true or false, not 1"),
        (
            {"predicates": [{"name": "Nope"}]},
            (
                'predicates[0]: there is no predicate "Nope"; a custom one needs an argument: '
                "serviceAffinity or labelsPresence"
            ),
        ),
        (
            {"priorities": [priority("Nope")]},
            (
                'priorities[0]: there is no priority "Nope"; a custom one needs an argument: '
                "labelPreference, requestedToCapacityRatioArguments, serviceAntiAffinity"
            ),
        ),
        (predicate(), 'predicates[0]: "mine" must have exactly one argument, not 0'),
        (
            predicate(serviceAffinity={"labels": ["a"]}, labelsPresence={"labels": ["a"]}),
            'predicates[0]: "mine" must have exactly one argument, not 2',
        ),
        (
            {"priorities": [priority(serviceAntiAffinity={"label": "a"}, labelPreference={"label": "a"})]},
            'priorities[0]: "mine" must have exactly one argument, not 2',
        ),
        (
            {"priorities": [priority("ImageLocalityPriority", 0)]},
            'priorities[0].weight: the weight of "ImageLocalityPriority" must be from 1 to 2147483647, not 0',
        ),
        (
            {"priorities": [priority("EqualPriority", 2**31)]},
            'priorities[0].weight: the weight of "EqualPriority" must be from 1 to 2147483647, not 2147483648',
        ),
        (
            {"priorities": [label("a", "x", presence=True), label("b", "y", presence=True, weight=2)]},
            'priorities[1].weight: "b" must have the same weight as "a", since both have labelPreference',
        ),
        (
            {"priorities": [label("a", "x", presence=True), label("b", "x", presence=False)]},
            (
                'priorities[1].argument.labelPreference.label: "x" cannot be avoided here and preferred in '
                "priorities[0].argument.labelPreference.label"
            ),
        ),
        (
            {
                "predicates": [
                    {"name": "a", "argument": {"labelsPresence": {"labels": ["y", "x"], "presence": False}}},
                    {"name": "b", "argument": {"labelsPresence": {"labels": ["x"], "presence": True}}},
                ]
            },
            (
                'predicates[1].argument.labelsPresence.labels[0]: "x" cannot be present here and absent in '
                "predicates[0].argument.labelsPresence.labels[1]"
            ),
        ),
        (
            {"priorities": [ratio("a", (0, 0)), ratio("b", (0, 0))]},
            'priorities[1]: "b" has requestedToCapacityRatioArguments, like "a"; only one priority may have it',
        ),
        (
            {"priorities": [ratio("a", (50, 3), (101, 1))]},
            (
                "priorities[0].argument.requestedToCapacityRatioArguments.shape[1].utilization: "
                "must be from 0 to 100, not 101"
            ),
        ),
        (
            {"priorities": [ratio("a")]},
            "priorities[0].argument.requestedToCapacityRatioArguments.shape: at least one point is required",
        ),
        (
            {"priorities": [ratio("a", (0, 0), resources=[{"name": "cpu"}])]},
            (
                "priorities[0].argument.requestedToCapacityRatioArguments.resources[0].weight: "
                "the weight of cpu must be greater than 0, not 0"
            ),
        ),
        (
            {"priorities": [priority("NodeLabel")]},
            (
                'priorities[0]: "NodeLabel" takes its arguments from priorities of other names with labelPreference, '
                "found none"
            ),
        ),
        ({"hardPodAffinitySymmetricWeight": 101}, "hardPodAffinitySymmetricWeight: must be from 0 to 100, not 101"),
        (
            {"priorities": [{"name": "ImageLocalityPriority"}]},
            'priorities[0].weight: the weight of "ImageLocalityPriority" is missing; it must be from 1 to 2147483647',
        ),
        ({"extenders": [{"httpTimeout": -1}]}, "extenders[0].httpTimeout: must be at least 0, not -1"),
        (
            {"extenders": [{"bindVerb": "bind"}, {"bindVerb": "bind"}]},
            "extenders: only one extender may have a bindVerb, but extenders[0], extenders[1] have one",
        ),
        (
            {"extenders": [{"managedResources": [{"name": "cpu"}]}]},
            (
                'extenders[0].managedResources[0].name: "cpu": not the name of an extended resource, such as '
                "example.com/gpu"
            ),
        ),
        (
            {"extenders": [{"prioritizeVerb": "p"}]},
            "extenders[0].weight: must be greater than 0 with a prioritizeVerb, not 0",
        ),
    ],
)
def test_faults_are_reported_with_their_path(fields: dict[str, Any], expected: str) -> None:
    """Paths and names are those of the Policy, not of its translation."""
    assert problems(fields) == [expected]


def test_all_faults_are_reported() -> None:
    """Not only the first."""
    faulty = {"predicates": [{"name": "x"}], "priorities": [priority("y", -1)], "hardPodAffinitySymmetricWeight": -1}
    assert len(problems(faulty)) == 4


def test_resources_of_extenders_need_the_fit_plugin() -> None:
    """As in v1.22, resources can be ignored only if NodeResourcesFit is enabled."""
    resources = [{"name": "x.io/foo", "ignoredByScheduler": True}]
    (problem,) = problems({"predicates": [], "extenders": [{"managedResources": resources}]})
    assert "NodeResourcesFit must be configured" in problem


@pytest.mark.parametrize(
    ("plugin", "arguments", "expected"),
    [
        ("NodeLabel", {"presentLabels": ["a", "b"], "absentLabels": ["b"]}, 'presentLabels[1]: "b" is in absentLabels'),
        (
            "NodeLabel",
            {"presentLabelsPreference": ["a"], "absentLabelsPreference": ["a"]},
            'presentLabelsPreference[0]: "a" is in absentLabelsPreference',
        ),
        ("NodeResourcesLeastAllocated", {"resources": [{"name": "cpu", "weight": 101}]}, "resources[0].weight: "),
        ("NodeResourcesMostAllocated", {"resources": [{"name": "cpu", "weight": -1}]}, "resources[0].weight: "),
        ("RequestedToCapacityRatio", {}, "shape: at least one point is required"),
        ("ServiceAffinity", {"labels": []}, "labels: is not a known field"),
    ],
)
def test_arguments_in_a_profile_are_validated(plugin: str, arguments: dict[str, Any], expected: str) -> None:
    """Like those of any plugin."""
    profile = {
        "plugins": {"score": {"enabled": [{"name": plugin}]}},
        "pluginConfig": [{"name": plugin, "args": arguments}],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    with pytest.raises(ConfigError) as caught:
        config.load(json.dumps({**head, "profiles": [profile]}))
    assert f"profiles[0].pluginConfig[0].args.{expected}" in str(caught.value)
