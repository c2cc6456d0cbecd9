"""The example network_overhead.py: a plugin for the kinds AppGroup and NetworkTopology."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kubestow.plugin import Handle, Node, NodeRow, Pod, PodInfo
from kubestow.plugin.loading import load
from kubestow.scheduler.framework.args import decode_args
from kubestow.testing import SchedulerHarness, check_forms, make_node, make_object, make_pod
from support.repository import ROOT

FILE = ROOT / "examples" / "network_overhead.py"
(LOADED,) = load(str(FILE))
OVERHEAD: Any = LOADED.plugin
APP_GROUP, TOPOLOGY = OVERHEAD.watches
GROUP, WORKLOAD = "appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: NetworkOverhead, weight: 100}]}}
  pluginConfig: [{name: NetworkOverhead, args: {networkTopologyName: costs}}]
"""
COSTS = {
    (REGION, "west", "east"): 20,
    (REGION, "east", "west"): 30,
    (ZONE, "w1", "w2"): 5,
    (ZONE, "w2", "w1"): 8,
    (ZONE, "e1", "e2"): 15,
}


def app_group(**limits: int) -> Any:
    """Return an AppGroup in which web depends on these workloads, with the costs that it tolerates."""
    dependencies = [{"workload": {"selector": workload}, "maxNetworkCost": limit} for workload, limit in limits.items()]
    members = [{"workload": {"selector": "web"}, "dependencies": dependencies}, {"workload": {"selector": "db"}}]
    return make_object(APP_GROUP, "shop", spec={"workloads": members})


def topology(costs: dict[tuple[str, str, str], int]) -> Any:
    levels = [
        {
            "topologyKey": level,
            "originList": [
                {"origin": origin, "costList": [{"destination": destination, "networkCost": cost}]}
                for (key, origin, destination), cost in costs.items()
                if key == level
            ],
        }
        for level in (REGION, ZONE)
    ]
    weights = [{"name": "Other", "topologyList": []}, {"name": "UserDefined", "topologyList": levels}]
    return make_object(TOPOLOGY, "costs", spec={"weights": weights})


def member(name: str, workload: str, node: str = "", **more: Any) -> Pod:
    return make_pod(name, labels={GROUP: "shop", WORKLOAD: workload}, node=node, **more)


@pytest.fixture
def harness() -> Iterator[SchedulerHarness]:
    """Two zones in the west, one in the east, and a database in w2."""
    with SchedulerHarness(CONFIGURATION, plugins=[OVERHEAD]) as started:
        for name, region, zone in (("n1", "west", "w1"), ("n2", "west", "w2"), ("n3", "east", "e1")):
            started.cluster.add(make_node(name, region=region, zone=zone))
        started.cluster.add(topology(COSTS))
        started.cluster.add(app_group(db=10))
        started.cluster.add(member("db", "db", "n2"))
        yield started


def test_it_has_fewer_than_250_lines_and_is_listed() -> None:
    """It is meant to be read."""
    assert len(FILE.read_text().splitlines()) < 250
    assert f"({FILE.name})" in (ROOT / "examples" / "README.md").read_text()


def test_members_run_where_the_network_costs_least(harness: SchedulerHarness) -> None:
    """On the node of the dependency; next to it if that is full."""
    harness.cluster.add(member("web", "web"))
    harness.run_until_idle()
    assert harness.cluster.node_of("web") == "n2"
    harness.cluster.add(member("large", "web", cpu="4"))
    harness.cluster.add(member("larger", "web", cpu="4"))
    harness.run_until_idle()
    assert [harness.cluster.node_of(name) for name in ("large", "larger")] == ["n2", "n1"]


def test_a_member_that_tolerates_no_node_waits_for_lower_costs(harness: SchedulerHarness) -> None:
    """The condition has the reason; a change of the NetworkTopology retries the pod."""
    harness.cluster.add(member("web", "web", node_selector={REGION: "east"}))
    harness.run_until_idle()
    message = harness.cluster.conditions("web")["PodScheduled"].message
    assert "1 network to 1 of 1 dependencies costs too much" in message
    harness.cluster.update(topology({**COSTS, (REGION, "east", "west"): 10}))
    harness.run_until_idle()
    assert harness.cluster.node_of("web") == "n3"


def test_the_labels_of_the_other_node_count(harness: SchedulerHarness) -> None:
    """A pod is retried when the node of its dependency moves to its region."""
    harness.cluster.add(member("web", "web", node_selector={REGION: "east"}))
    harness.run_until_idle()
    harness.cluster.update(make_node("n2", region="east", zone="e1", unschedulable=True))
    harness.run_until_idle()
    assert harness.cluster.node_of("web") == "n3"


def test_more_satisfied_than_violated_dependencies_are_enough(harness: SchedulerHarness) -> None:
    """A node is rejected for the majority only; dependencies whose cost is unknown are neither."""
    harness.cluster.update(app_group(db=10, cache=10))
    harness.cluster.add(member("cache", "cache", "n3"))
    harness.cluster.add(member("web", "web", node_selector={REGION: "east"}))
    harness.run_until_idle()
    assert harness.cluster.node_of("web") == "n3"


def test_other_pods_are_not_affected(harness: SchedulerHarness) -> None:
    """Pods without a group, of a group that does not exist, and before there are dependencies."""
    harness.cluster.add(make_pod("alone", node_selector={REGION: "east"}))
    harness.cluster.add(make_pod("lost", labels={GROUP: "none"}, node_selector={REGION: "east"}))
    harness.cluster.add(member("db2", "db", node_selector={REGION: "east"}))
    harness.run_until_idle()
    assert set(harness.bindings.values()) == {"n3"}
    assert len(harness.bindings) == 3


class PodByPod(OVERHEAD):  # type: ignore[misc]
    """The rule of scheduler-plugins, written for one node and one pod at a time."""

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._nodes = handle.cluster

    def _totals_at(self, pod: PodInfo, node: NodeRow) -> tuple[int, int, int]:
        satisfied = violated = total = 0
        region, zone = (node.labels.get(key, "") for key in (REGION, ZONE))
        for limit, workload in ((10, "db"), (16, "cache")):
            for other in self._members.assigned(("shop", workload)):
                there: Node | None = self._nodes.node(other.pod.spec.nodeName)
                assert there is not None
                labels = there.metadata.labels
                other_region, other_zone = (labels.get(key, "") for key in (REGION, ZONE))
                if there.metadata.name == node.name:
                    satisfied += 1
                elif not other_region and not other_zone:
                    violated, total = violated + 1, total + 100
                elif (region, zone) == (other_region, other_zone):
                    satisfied, total = satisfied + 1, total + 1
                else:
                    level = (ZONE, zone, other_zone) if region == other_region else (REGION, region, other_region)
                    cost = COSTS.get(level)
                    satisfied += cost is not None and cost <= limit
                    violated += cost is not None and cost > limit
                    total += 100 if cost is None else cost
        return satisfied, violated, total

    def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> str | None:
        satisfied, violated, _ = self._totals_at(pod, node)
        total = satisfied + violated
        return f"network to {violated} of {total} dependencies costs too much" if violated > satisfied else None

    def score(self, state: Any, pod: PodInfo, node: NodeRow) -> int:
        return 0 if state is None else self._totals_at(pod, node)[2]


def random_node(name: str, rng: Random) -> Node:
    region, zone = rng.choice((("west", "w1"), ("west", "w2"), ("east", "e1"), ("east", "e2"), (None, None)))
    return make_node(name, region=rng.choice((region, None)), zone=rng.choice((zone, zone, None)))


def random_pod(name: str, rng: Random) -> Pod:
    labels = {GROUP: "shop", WORKLOAD: rng.choice(("web", "db", "cache"))}
    return make_pod(name, labels=labels if rng.random() < 0.9 else {})


def test_results_are_those_of_the_rule_pod_by_pod() -> None:
    """In random clusters, also on nodes without labels and on those of the dependencies."""
    args = decode_args(OVERHEAD, {"networkTopologyName": "costs"})
    objects = [app_group(db=10, cache=16), topology(COSTS)]
    assert check_forms(PodByPod, args, node=random_node, pod=random_pod, objects=objects) > 1_000
