"""Validation of a configuration."""

import pytest

from kubestow import config
from kubestow.config import ConfigError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SORT_ONLY = "{disabled: [{name: '*'}], enabled: [{name: PrioritySort}]}"


def problems_of(fields: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config.load(HEAD + fields)
    return [str(problem).partition(" There are: ")[0] for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("parallelism: 0", "parallelism: must be greater than 0, not 0"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore: must be from 0 to 100, not 101"),
        ("percentageOfNodesToScore: -1", "percentageOfNodesToScore: must be from 0 to 100, not -1"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: must be greater than 0, not 0"),
        (
            "podInitialBackoffSeconds: 20",
            "podMaxBackoffSeconds: must be at least podInitialBackoffSeconds (20), not 10",
        ),
        ("clientConnection: {burst: -1}", "clientConnection.burst: must be at least 0, not -1"),
        ("leaderElection: {retryPeriod: -2s}", "leaderElection.retryPeriod: must be greater than 0, not -2s"),
        (
            "leaderElection: {leaseDuration: 10s}",
            "leaderElection.leaseDuration: must be longer than renewDeadline (10s), not 10s",
        ),
        ("leaderElection: {resourceLock: endpoints}", 'leaderElection.resourceLock: must be leases, not "endpoints"'),
        (
            "profiles: [{percentageOfNodesToScore: 500}]",
            "profiles[0].percentageOfNodesToScore: must be from 0 to 100, not 500",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            'profiles[1].schedulerName: "a" is the name of profiles[0], too',
        ),
        ("profiles: [{}, {schedulerName: a}]", "profiles[0].schedulerName: is required"),
        (
            "profiles: [{pluginConfig: [{name: X}, {name: X}]}]",
            'profiles[0].pluginConfig[1]: plugin "X" is configured more than once',
        ),
        (
            "profiles: [{pluginConfig: [{name: EBSLimits}]}]",
            'profiles[0].pluginConfig[0]: plugin "EBSLimits" no longer exists',
        ),
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesFitArgs, args: {}}]}]",
            "profiles[0].pluginConfig[0].args: the plugin is called NodeResourcesFit, this is the kind of its args",
        ),
        (
            f"profiles: [{{schedulerName: a, plugins: {{queueSort: {SORT_ONLY}}}}}, {{schedulerName: b}}]",
            "profiles[1].plugins.queueSort: must be the same as in profiles[0]",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: PrioritySort, args: {x: 1}}]}]",
            (
                "profiles[1].pluginConfig.args: "
                "the args of queue sort plugin PrioritySort must be the same as in profiles[0]"
            ),
        ),
        (
            "extenders: [{prioritizeVerb: p}]",
            "extenders[0].weight: must be greater than 0 with a prioritizeVerb, not 0",
        ),
        (
            "extenders: [{bindVerb: b}, {}, {bindVerb: b}]",
            "extenders: only one extender may have a bindVerb, but extenders[0], extenders[2] have one",
        ),
        (
            "extenders: [{tlsConfig: {insecure: true, caFile: /ca}}]",
            "extenders[0].tlsConfig.insecure: must be false if there is a CA",
        ),
    ],
)
def test_a_fault_is_reported_with_its_path(fields: str, expected: str) -> None:
    """Each message names the field, the rule and the given value."""
    assert [problem.partition(" There are: ")[0] for problem in problems_of(fields)] == [expected]


@pytest.mark.parametrize(
    "fields",
    [
        "leaderElection: {leaderElect: false, leaseDuration: 1s, resourceLock: endpoints}",
        "clientConnection: {qps: -5}",
        "extenders: [{urlPrefix: 'http://a', weight: -1}]",
        "profiles: [{pluginConfig: [{name: NeverHeardOf, args: {any: thing}}]}]",
        "profiles: [{plugins: {score: {disabled: [{name: NeverHeardOf}]}}}]",
        "profiles: [{plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: -5}]}}}]",
    ],
)
def test_values_that_kube_scheduler_accepts_are_accepted(fields: str) -> None:
    """Unusual values that kube-scheduler does not validate are valid."""
    config.load(HEAD + fields)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("example.com/gpu", True),
        ("a.b-c.d/X_y.z", True),
        ("gpu", False),
        ("kubernetes.io/gpu", False),
        ("x.kubernetes.io/gpu", False),
        ("requests.example.com/gpu", False),
        ("Example.com/gpu", False),
        ("example.com/", False),
        ("/gpu", False),
        ("a/b/c", False),
        ("example.com/-gpu", False),
        (f"example.com/{'x' * 63}", True),
        (f"example.com/{'x' * 64}", False),
        (f"{'a.' * 121}aa/x", True),
        (f"{'a.' * 122}a/x", False),
        ("", False),
    ],
)
def test_extenders_manage_extended_resources_only(name: str, valid: bool) -> None:
    """A managed resource has a domain other than Kubernetes', and is short enough for the prefix of quotas."""
    fields = f"extenders: [{{managedResources: [{{name: '{name}'}}]}}]"
    if valid:
        assert config.load(HEAD + fields).extenders[0].managedResources[0].name == name
    else:
        assert problems_of(fields)[0].startswith("extenders[0].managedResources[0].name: ")


def test_a_resource_is_managed_once() -> None:
    """Two extenders cannot manage the same resource."""
    fields = "extenders: [{managedResources: [{name: a.com/x}]}, {managedResources: [{name: a.com/x}]}]"
    assert [problem.partition(" There are: ")[0] for problem in problems_of(fields)] == [
        'extenders[1].managedResources[0].name: "a.com/x" is managed by an extender already'
    ]


def test_extenders_need_a_timeout() -> None:
    """With a negative httpTimeout, every call would time out."""
    assert problems_of("extenders: [{urlPrefix: 'http://a', httpTimeout: -1s}]") == [
        "extenders[0].httpTimeout: must be at least 0, not -1s"
    ]


def test_faults_of_form_and_of_content_are_reported_together() -> None:
    """What a field that cannot be decoded would have contained is not guessed: its own fault is the only one there."""
    assert problems_of(
        "parallelism: 0\nparallelism: -1\ncolour: red\npercentageOfNodesToScore: 500\n"
        "leaderElection: {leaseDuration: long, renewDeadline: 20s}\n"
        "profiles:\n- plugins: {filter: {enabled: [{name: Nope}]}, score: 3}\n"
        "  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Odd, size: 1}}}]\n"
    ) == [
        "parallelism: is given more than once",
        "colour: is not a known field",
        'leaderElection.leaseDuration: "long" is not a duration; write for example 10s, 1m30s or 500ms',
        "profiles[0].plugins.score: must be a mapping, not 3",
        "profiles[0].pluginConfig[0].args.scoringStrategy.size: is not a known field",
        "percentageOfNodesToScore: must be from 0 to 100, not 500",
        'profiles[0].pluginConfig[0].args.scoringStrategy.type: must be one of LeastAllocated, MostAllocated, \
RequestedToCapacityRatio, not "Odd"',
        'profiles[0].plugins.filter.enabled[0]: plugin "Nope" does not exist; did you mean "NodeName"?',
    ]


def test_all_faults_are_reported_at_once() -> None:
    """A file with several faults gets all of them, those of plugins included."""
    fields = """
parallelism: 0
profiles:
- schedulerName: a
  plugins: {filter: {enabled: [{name: Nope}, {name: ImageLocality}]}, bind: {disabled: [{name: '*'}]}}
  pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]
"""
    assert [problem.partition(" There are: ")[0] for problem in problems_of(fields)] == [
        "parallelism: must be greater than 0, not 0",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: must be from 0 to 100, not 101",
        'profiles[0].plugins.filter.enabled[0]: plugin "Nope" does not exist; did you mean "NodeName"?',
        'profiles[0].plugins.filter.enabled[1]: plugin "ImageLocality" does not implement filter, only score',
        "profiles[0].plugins.bind: at least one bind plugin is needed, found none",
    ]
