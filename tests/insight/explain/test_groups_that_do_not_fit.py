"""What stands in the way of a pod group, and that a change, or two, is found for each scenario."""

from typing import Any, NamedTuple

import click
import pytest

from kubestow import config
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup
from kubestow.cli.explain.group_screen import group_lines_of
from kubestow.cli.terminal import printable
from kubestow.config import Features
from kubestow.insight.explain.explanation import GroupExplanation, explain_group_run
from kubestow.insight.explain.group_run import GroupRun
from kubestow.insight.explain.world import Setup, World
from kubestow.testing import make_node, make_pod, make_pod_group
from support.insight.objects import ZONE
from support.insight.rejections import FAST, NODES
from support.plugins.device_world import device_class, device_slice, gpus

FEATURES = Features(generic_workload=True, topology_aware_workload_scheduling=True)
SETUP = Setup(config.default(FEATURES), FEATURES)


class Scenario(NamedTuple):
    """A group that does not fit."""

    objects: list[Any]
    group: PodGroup
    pods: list[Pod]
    cause: str
    """The first cause; empty if there is none."""
    change: str
    """The first suggestion; empty if there is none."""


def of(count: int, **options: Any) -> list[Pod]:
    return [make_pod(f"w{number}", group="train", **options) for number in range(count)]


def gang(least: int, key: str = "") -> PodGroup:
    return make_pod_group("train", min_count=least, topology_key=key)


SSD = [make_node(f"a{number}", labels={"disk": "ssd"}) for number in range(3)]
TAINTED = [make_node(f"a{number}", zone="abc"[number % 3], taints=["t:NoSchedule"]) for number in range(6)]
MINE = {"resourceClaims": [{"name": "g", "resourceClaimName": "mine"}]}
SCENARIOS = {
    "pods are missing": Scenario(
        [*NODES],
        gang(5),
        of(2, cpu=1),
        "pod group default/train has 2 pods, and its minCount is 5",
        "3 more pods like default/w0 created",
    ),
    "pods are missing and too large": Scenario(
        [*NODES],
        gang(4),
        of(2, cpu=9),
        "pod group default/train has 2 pods, and its minCount is 4",
        "minCount of pod group default/train lowered to 2, request of cpu lowered from 9 to 4",
    ),
    "selector is misspelt": Scenario(
        [*SSD],
        gang(3),
        of(3, node_selector={"disk": "sdd"}),
        "no node has disk=sdd; 3 nodes have ssd: did you mean that?",
        "node selector disk=sdd changed to disk=ssd (of every pod)",
    ),
    "selector is misspelt and pods are too large": Scenario(
        [*SSD],
        gang(3),
        of(3, cpu=9, node_selector={"disk": "sdd"}),
        "no node has disk=sdd; 3 nodes have ssd: did you mean that?",
        "node selector disk=sdd changed to disk=ssd, request of cpu lowered from 9 to 4",
    ),
    "placements are too small and nodes are tainted": Scenario(
        [*TAINTED],
        gang(4, ZONE),
        of(4, cpu=3),
        "",
        f"topology constraint {ZONE} removed, toleration of t:NoSchedule added (of every pod)",
    ),
    "topology key is misspelt": Scenario(
        [*NODES],
        gang(2, "topology.kubernetes.io/zon"),
        of(2),
        f"no node has the label topology.kubernetes.io/zon of the topology constraint; did you mean {ZONE}?",
        f"topology key topology.kubernetes.io/zon changed to {ZONE}",
    ),
    "claim does not exist": Scenario(
        [*NODES, FAST],
        gang(2),
        of(2, claims=["data"]),
        'persistentvolumeclaim "data" not found in namespace default: create it',
        "claim default/data created with storageclass fast",
    ),
    "resource claim does not exist": Scenario(
        [make_node("a"), device_class(), device_slice("a", gpus(1))],
        gang(2),
        of(2, spec=MINE),
        'resourceclaim "mine" not found in namespace default: create it; there is none',
        "resource claim default/mine created, for a device of class gpu",
    ),
    "resource claim and class do not exist": Scenario(
        [make_node("a")],
        gang(2),
        of(2, spec=MINE),
        'resourceclaim "mine" not found in namespace default: create it; there is none',
        "",
    ),
}


def explained(scenario: Scenario) -> GroupExplanation:
    world = World(SETUP, [*scenario.objects, scenario.group, *scenario.pods], 0.0)
    return explain_group_run(GroupRun(world, scenario.group))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_cause_is_named_and_a_change_is_found(scenario: Scenario) -> None:
    """Every suggestion was applied, and the whole group evaluated."""
    found = explained(scenario)
    assert [one.text for one in found.causes[:1]] == ([scenario.cause] if scenario.cause else [])
    assert [one.change for one in found.would_fit_if[:1]] == ([scenario.change] if scenario.change else [])
    assert found.is_stuck is not bool(scenario.change)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_screen_of_a_group_fits_a_terminal(scenario: Scenario) -> None:
    """Without a change that helps, it ends with what stands in the way."""
    text = click.unstyle(printable(group_lines_of(explained(scenario))))
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    if not scenario.change:
        assert f"In the way: {scenario.cause}." in " ".join(text.split())


def test_many_ways_are_cut_to_the_terminal() -> None:
    nodes = [make_node(f"n{number}", zone=f"zone-{number}", cpu=number + 1) for number in range(12)]
    text = click.unstyle(printable(group_lines_of(explained(Scenario(nodes, gang(4, ZONE), of(4, cpu=8), "", "")))))
    assert len(text.splitlines()) <= 24
    assert text.endswith("see -o wide")
