"""Plugins choose the victims of preemption by rules of their own; the engine does the rest."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.api.workloads import PodDisruptionBudget
from kubestow.plugin import Candidates, FailedEvaluation, Handle, PodInfo, PostFilterResult, Preemption
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod
from support.plugins.platform_plugins import Borrowing, ElasticQuota
from support.plugins.preemption_world import World

WITHOUT_DEFAULT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: %s}]
    postFilter:
      disabled: [{name: DefaultPreemption}]
"""


def borrowing(*nodes: str, **minimum: int) -> SchedulerHarness:
    """Return a harness with a quota for each namespace."""
    harness = SchedulerHarness(WITHOUT_DEFAULT % Borrowing.name, plugins=[Borrowing])
    for node in nodes:
        harness.cluster.add(make_node(node, cpu=8))
    for namespace, cpu in minimum.items():
        harness.cluster.add(make_object(ElasticQuota, "quota", namespace=namespace, spec={"min": {"cpu": cpu}}))
    return harness


def run(harness: SchedulerHarness, namespace: str, number: int, **pod: Any) -> None:
    for count in range(number):
        harness.cluster.add(
            make_pod(f"{namespace}-{pod.get('priority', 0)}-{count}", namespace=namespace, cpu=1, **pod)
        )
    harness.run_until_idle()
    harness.run_for(120)
    harness.run_until_idle()


def count(harness: SchedulerHarness, namespace: str) -> int:
    pods = (pod for pod in harness.cluster.all(Pod) if pod.spec.nodeName and not pod.metadata.deletionTimestamp)
    return sum(pod.metadata.namespace == namespace for pod in pods)


def test_borrowers_of_equal_priority_are_evicted_for_the_owner_of_the_quota() -> None:
    """The pod is rejected in PreFilter, so no filter has a say; as few borrowers as necessary are evicted."""
    with borrowing("n1", "n2", a=4, b=4) as harness:
        run(harness, "a", 6)
        assert count(harness, "a") == 6
        run(harness, "b", 3)
        assert (count(harness, "a"), count(harness, "b")) == (5, 3)
        run(harness, "b", 1, priority=1)
        run(harness, "b", 1, priority=2)
        assert (count(harness, "a"), count(harness, "b")) == (4, 4)
        assert [harness.cluster.node_of(f"b-{number}-0", "b") != "" for number in (1, 2)] == [True, True]


def test_within_a_quota_priority_decides() -> None:
    """A pod beyond its own min evicts only pods of its namespace."""
    with borrowing("n1", a=2, b=6) as harness:
        run(harness, "a", 2)
        run(harness, "b", 6)
        run(harness, "a", 2, priority=5)
        assert {pod.metadata.name for pod in harness.cluster.all(Pod) if pod.metadata.namespace == "a"} == {
            "a-5-0",
            "a-5-1",
        }
        assert count(harness, "b") == 6


def test_no_eviction_without_need() -> None:
    """Neither for a pod that must not preempt, nor if no victim may be evicted."""
    with borrowing("n1", a=4, b=4) as harness:
        run(harness, "a", 6)
        run(harness, "b", 4, spec={"preemptionPolicy": "Never"})
        assert (count(harness, "a"), count(harness, "b")) == (6, 2)
        message = harness.cluster.conditions("b-0-3", "b")["PodScheduled"].message
        assert message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


class Plain:
    """Preempts by the default rules."""

    name = "Plain"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._preemption = Preemption(self.name, handle)

    def post_filter(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        return self._preemption.run(pod, cycle)


def tolerant(pod: PodInfo, others: Sequence[PodInfo]) -> Sequence[PodInfo]:
    return [other for other in others if other.priority < pod.priority and "tolerates" not in other.labels]


class Tolerant(Plain):
    """Spares pods with a label, and prefers to evict young pods."""

    name = "Tolerant"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._preemption = Preemption(self.name, handle, candidates=tolerant, importance=lambda pod: pod.name)


def decided_by(plugin: type, world: World, pod: Pod) -> PostFilterResult:
    """Return the result of the plugin for a pod of the default profile."""
    handle = world.handle
    result = plugin(None, handle).post_filter(PodInfo(pod), world.evaluate(pod))
    assert isinstance(result, PostFilterResult)
    return result


def test_a_plugin_says_which_pods_are_spared() -> None:
    """By its own rule, and its own order."""
    world = World("n1")
    world.run("a", "n1", cpu=1)
    world.run("b", "n1", cpu=1)
    world.run("c", "n1", cpu=1, labels={"tolerates": "yes"})
    world.run("d", "n1", cpu=1, labels={"tolerates": "yes"})
    result = decided_by(Tolerant, world, make_pod("p", cpu=1, priority=5))
    assert ([pod.name for pod in result.victims], result.nominated_node) == (["a"], "n1")
    result = decided_by(Tolerant, world, make_pod("p", cpu=3, priority=5))
    assert result.message == "preemption: 0/1 nodes are available: 1 Insufficient cpu."


def _random_world(seed: int) -> tuple[World, Pod]:
    chance = random.Random(seed)
    nodes = [f"n{number}" for number in range(chance.randint(1, 6))]
    world = World(*nodes)
    labels = [{}, {"app": "web"}, {"app": "web", "tier": "x"}]
    for name in nodes:
        free = 4000
        for number in range(chance.randint(2, 6)):
            cpu = chance.choice([250, 500, 1000, 1500]) if number else 1500
            if cpu > free:
                continue
            free -= cpu
            options: dict[str, Any] = {"labels": chance.choice(labels), "priority": chance.randint(0, 4)}
            if chance.random() < 0.3:
                options["spec"] = _apart("web")
            world.run(f"{name}-{number}", name, cpu=f"{cpu}m", started=float(chance.randint(1, 5) * 100), **options)
    if chance.random() < 0.7:
        world.budget("one", chance.randint(0, 1))
    pod = make_pod("p", cpu=3, priority=3, labels=chance.choice(labels))
    if chance.random() < 0.4:
        pod = make_pod("p", cpu=3, priority=3, labels={"app": "web"}, spec=_apart("web"))
    if chance.random() < 0.4:
        nominated = make_pod("waits", cpu=1, priority=4, status={"nominatedNodeName": nodes[0]})
        world.nominator.nominate(nominated)
    return world, pod


def _apart(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize("seed", range(60))
def test_with_the_default_rules_the_result_is_that_of_default_preemption(seed: int) -> None:
    """Candidates, victims, nominations and messages are the same."""
    expected = World.preempt(*_random_world(seed))
    found = decided_by(Plain, *_random_world(seed))
    assert {one.name for one in found.victims} == {one.name for one in expected.victims}
    assert found.nominated_node == expected.nominated_node
    assert (found.code, found.message) == (
        expected.code,
        expected.message.removeprefix("no new claims to deallocate, "),
    )
    assert [one.name for one in found.to_unnominate] == [one.name for one in expected.to_unnominate]


def test_budgets_are_honored_where_possible() -> None:
    """The node whose victims violate no budget is chosen."""
    world = World("n1", "n2")
    world.run("a", "n1", cpu=4, labels={"app": "web"})
    world.run("b", "n2", cpu=4, priority=1)
    world.budget("web", 0)
    assert decided_by(Plain, world, make_pod("p", cpu=4, priority=5)).nominated_node == "n2"


def test_an_exception_in_a_rule_fails_the_attempt_and_names_the_plugin() -> None:
    """Other pods are not affected."""

    class Broken(Plain):
        name = "Broken"

        def __init__(self, args: Any, handle: Handle) -> None:
            self._preemption = Preemption(self.name, handle, fits=self._fail)

        def _fail(self, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> bool:
            raise KeyError("nope")

    with SchedulerHarness(WITHOUT_DEFAULT % "Broken", plugins=[Broken]) as harness:
        harness.cluster.add(make_node("n1", cpu=1))
        harness.cluster.add(make_pod("low", cpu=1))
        harness.run_until_idle()
        harness.cluster.add(make_pod("high", cpu=1, priority=1))
        harness.run_until_idle()
        assert (
            'running PostFilter plugin "Broken": KeyError' in harness.cluster.conditions("high")["PodScheduled"].message
        )


def test_victims_of_a_budget_come_from_the_cluster() -> None:
    """The whole way: nomination, eviction and the retry of the preemptor."""
    with SchedulerHarness(WITHOUT_DEFAULT % "Plain", plugins=[Plain]) as harness:
        harness.cluster.add(make_node("n1", cpu=2))
        harness.cluster.add(convert(PodDisruptionBudget, {"metadata": {"name": "b", "namespace": "default"}}))
        run(harness, "default", 2)
        run(harness, "default", 1, priority=1)
        assert harness.cluster.node_of("default-1-0") == "n1"
        assert count(harness, "default") == 2
