"""The differences between two configurations."""

import pytest

from kubestow import config
from kubestow.config import Features
from kubestow.config.differences import differences

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TWO = "profiles: [{schedulerName: a}, {schedulerName: b}]\n"
SCORE = (
    "profiles: [{plugins: {score: {disabled: [{name: ImageLocality}], enabled: [{name: ImageLocality, weight: %d}]}}}]"
)
FIT = "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: %s}}}]}]"
EXTENDERS = "extenders: [{urlPrefix: 'http://x', filterVerb: f, enableHTTPS: true, tlsConfig: {serverName: %s}}]"
ARGS = "profiles[default-scheduler].pluginConfig[NodeResourcesFit].args"


def changes(old: str, new: str) -> list[str]:
    before, after = (config.load(HEAD + text, Features()) for text in (old, new))
    return [str(found) for found in differences(before, after)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (TWO, TWO + "# a comment\n", []),
        ("", "podMaxBackoffSeconds: 20", ["podMaxBackoffSeconds: 10 -> 20"]),
        ("", "leaderElection: {leaseDuration: 20s}", ['leaderElection.leaseDuration: "15s" -> "20s"']),
        (TWO, "profiles: [{schedulerName: a}, {schedulerName: c}]", ["profiles[b]: removed", "profiles[c]: added"]),
        (TWO, "profiles: [{schedulerName: b}, {schedulerName: a}]", ["profiles: in another order"]),
        (SCORE % 1, SCORE % 5, ["profiles[default-scheduler].plugins.score.enabled[ImageLocality].weight: 1 -> 5"]),
        (
            FIT % "LeastAllocated",
            FIT % "MostAllocated",
            [f'{ARGS}.scoringStrategy.type: "LeastAllocated" -> "MostAllocated"'],
        ),
        ("", EXTENDERS % "host-1", ["extenders[http://x]: added"]),
        (EXTENDERS % "host-1", EXTENDERS % "host-2", ["extenders[http://x].tlsConfig: changed"]),
        (
            "",
            "profiles: [{percentageOfNodesToScore: 30}]",
            ["profiles[default-scheduler].percentageOfNodesToScore: none -> 30"],
        ),
    ],
)
def test_differences(old: str, new: str, expected: list[str]) -> None:
    """Fields have both values; of a field that may be secret, only the change is reported."""
    assert changes(old, new) == expected
    assert bool(changes(new, old)) is bool(expected)


def test_long_values_are_not_shown() -> None:
    """Only the path of the field is reported."""
    preferred = "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [%s]}}]}]"
    many = ", ".join(f"example.com/resource-{number}" for number in range(9))
    (change,) = changes(preferred % "example.com/one", preferred % many)
    assert change == f"{ARGS}.ignoredResources: changed"
