"""CapacityScheduling: namespaces borrow from the ElasticQuotas of others, which take back what is theirs."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.contrib.capacity import CapacityScheduling, ElasticQuota
from kubestow.plugin import Pod
from kubestow.testing import SchedulerHarness, make_node, make_object, make_pod
from support.contrib import configured

Limits = dict[str, Any]


def scheduler(*nodes: int) -> SchedulerHarness:
    """Return a scheduler with nodes of this many CPUs."""
    configuration = configured(CapacityScheduling.name, None, disabled={"postFilter": ["DefaultPreemption"]})
    harness = SchedulerHarness(configuration, plugins=[CapacityScheduling])
    for number, cpu in enumerate(nodes):
        harness.cluster.add(make_node(f"n{number}", cpu=cpu))
    return harness


def quota(namespace: str, minimum: Limits | None = None, maximum: Limits | None = None) -> ElasticQuota:
    limits = {"min": minimum, "max": maximum}
    spec = {name: given for name, given in limits.items() if given is not None}
    return make_object(ElasticQuota, "quota", namespace=namespace, spec=spec)


def run(harness: SchedulerHarness, namespace: str, *names: str, cpu: Any = 1, **pod: Any) -> None:
    """Add pods, and wait until the victims of preemption are gone."""
    for name in names:
        harness.cluster.add(make_pod(name, namespace=namespace, cpu=cpu, grace_seconds=1, **pod))
    harness.run_for(20)


def placed(harness: SchedulerHarness) -> set[str]:
    return {pod.key for pod in harness.cluster.all(Pod) if pod.spec.nodeName}


def message(harness: SchedulerHarness, namespace: str, pod: str) -> str:
    return harness.cluster.conditions(pod, namespace)["PodScheduled"].message


def used(harness: SchedulerHarness, namespace: str) -> Any:
    found = harness.cluster.get(ElasticQuota, f"{namespace}/quota")
    assert found is not None
    return found.status.used


def test_a_namespace_borrows_up_to_its_max() -> None:
    with scheduler(8) as harness:
        harness.cluster.add(quota("a", {"cpu": 1}, {"cpu": 2}))
        harness.cluster.add(quota("b", {"cpu": 4}))
        run(harness, "a", "a0", "a1", "a2")
        assert placed(harness) == {"a/a0", "a/a1"}
        assert "Pod a/a2 is rejected in PreFilter because ElasticQuota a is more than Max" in message(
            harness, "a", "a2"
        )


def test_all_namespaces_together_use_no_more_than_the_sum_of_min() -> None:
    """Pods of namespaces without a quota do not count; a pod that ends lets the next one in."""
    with scheduler(8) as harness:
        harness.cluster.add(quota("a", {"cpu": 1}))
        harness.cluster.add(quota("b", {"cpu": 2}))
        run(harness, "free", "f0", "f1")
        run(harness, "a", "a0", "a1", "a2", "a3")
        assert placed(harness) == {"free/f0", "free/f1", "a/a0", "a/a1", "a/a2"}
        assert "total ElasticQuota used is more than min" in message(harness, "a", "a3")
        harness.cluster.delete(harness.cluster.pod("a0", "a"), grace_seconds=0)
        harness.run_for(5)
        assert placed(harness) == {"free/f0", "free/f1", "a/a1", "a/a2", "a/a3"}


def test_a_namespace_takes_back_no_more_than_it_needs() -> None:
    """Borrowers of the same or a higher priority are evicted, the least important ones first."""
    with scheduler(8) as harness:
        harness.cluster.add(quota("a", {"cpu": 2}))
        harness.cluster.add(quota("b", {"cpu": 2}))
        run(harness, "a", "high0", "high1", priority=10)
        run(harness, "a", "low0", "low1", priority=5)
        run(harness, "b", "b0")
        assert {"b/b0", "a/high0", "a/high1"} < placed(harness)
        assert len(placed(harness)) == 4
        run(harness, "b", "b1")
        assert placed(harness) == {"b/b0", "b/b1", "a/high0", "a/high1"}
        run(harness, "b", "b2")
        assert placed(harness) == {"b/b0", "b/b1", "a/high0", "a/high1"}


def test_what_a_namespace_is_guaranteed_is_not_taken_from_it() -> None:
    """On a node with pods of one borrower, no more are evicted than it has borrowed, even if the pod would then fit."""
    with scheduler(3) as harness:
        harness.cluster.add(quota("a", {"cpu": 2}))
        harness.cluster.add(quota("b", {"cpu": 2}))
        run(harness, "a", "a0", "a1", "a2")
        run(harness, "b", "b0", cpu=2)
        assert placed(harness) == {"a/a0", "a/a1", "a/a2"}
        run(harness, "b", "b1")
        assert "b/b1" in placed(harness)


def test_beyond_its_min_a_namespace_preempts_only_its_own_pods_of_lower_priority() -> None:
    with scheduler(4) as harness:
        harness.cluster.add(quota("a", {"cpu": 2}))
        harness.cluster.add(quota("b", {"cpu": 2}))
        run(harness, "b", "b0", "b1")
        run(harness, "a", "a0", "a1")
        run(harness, "a", "urgent", priority=100)
        assert len(placed(harness) & {"a/a0", "a/a1"}) == 1
        assert {"a/urgent", "b/b0", "b/b1"} < placed(harness)


def test_pods_without_a_quota_preempt_only_one_another() -> None:
    with scheduler(2) as harness:
        harness.cluster.add(quota("a", {"cpu": 1}))
        run(harness, "a", "a0")
        run(harness, "free", "f0")
        run(harness, "free", "urgent", priority=100)
        assert placed(harness) == {"a/a0", "free/urgent"}
        run(harness, "free", "next", priority=100)
        assert placed(harness) == {"a/a0", "free/urgent"}


@pytest.mark.parametrize(
    ("limits", "requests", "fits"),
    [
        ({"maximum": {"cpu": 2}}, {"cpu": 1, "example.com/gpu": 1}, True),  # not limited, as max does not list it
        ({"maximum": {"cpu": 2}}, {"cpu": 1, "memory": "1Mi"}, False),
        ({"maximum": {"cpu": 2, "example.com/gpu": 0}}, {"cpu": 1, "example.com/gpu": 1}, False),
        ({"maximum": {}}, {"cpu": 1}, False),
        ({}, {"cpu": 1, "memory": "1Gi"}, True),
    ],
)
def test_resources_that_max_does_not_list(limits: dict[str, Limits], requests: Limits, fits: bool) -> None:
    """CPU, memory and ephemeral storage are limited to 0 then, as in scheduler-plugins; others are not limited."""
    with scheduler() as harness:
        harness.cluster.add(make_node("n", resources={"example.com/gpu": 4}))
        harness.cluster.add(quota("a", **limits))
        harness.cluster.add(quota("b", {"cpu": 8, "memory": "8Gi", "example.com/gpu": 8}))
        harness.cluster.add(make_pod("p", namespace="a", resources=requests))
        harness.run_for(5)
        assert bool(placed(harness)) == fits


def test_the_status_shows_what_is_used() -> None:
    """Changes within a second are written once, deleted pods included; all limited resources are listed."""
    with scheduler(8) as harness:
        harness.cluster.add(quota("a", {"cpu": 4, "memory": "1Gi"}, {"cpu": 8, "memory": "1Gi", "example.com/gpu": 1}))
        harness.run_for(2)
        assert used(harness, "a") == {"cpu": "0", "memory": "0", "example.com/gpu": "0"}
        before = len(harness.cluster.calls)
        run(harness, "a", "a0", "a1", cpu="1500m")
        assert used(harness, "a") == {"cpu": "3", "memory": "0", "example.com/gpu": "0"}
        assert [call.call for call in harness.cluster.calls[before:]].count("patch_object") == 1
        harness.cluster.delete(harness.cluster.pod("a0", "a"), grace_seconds=0)
        harness.run_for(2)
        assert used(harness, "a") == {"cpu": "1500m", "memory": "0", "example.com/gpu": "0"}


def test_a_status_that_was_not_written_is_written_later() -> None:
    """It is not on a replica that becomes the leader only after the change."""
    with scheduler(8) as harness:
        harness.cluster.faults.fail("patch_object", "Forbidden")
        harness.cluster.add(quota("a", {"cpu": 4}))
        run(harness, "b", "b0")
        assert used(harness, "a") is None
        harness.run_for(30)
        assert used(harness, "a") == {"cpu": "0"}


def test_an_invalid_status_is_replaced() -> None:
    with scheduler(8) as harness:
        written = {"used": {"cpu": "much", "other": "1"}}
        harness.cluster.add(make_object(ElasticQuota, "quota", namespace="a", spec={"min": {"cpu": 4}}, status=written))
        harness.run_for(2)
        assert used(harness, "a") == {"cpu": "0"}


def test_a_changed_quota_retries_pods() -> None:
    """Only the oldest quota of a namespace is applied; when it is deleted, the next one takes its place."""
    with scheduler(8) as harness:
        small = harness.cluster.add(quota("a", {"cpu": 1}))
        harness.run_for(2)
        second = make_object(ElasticQuota, "another", namespace="a", spec={"min": {"cpu": 3}})
        harness.cluster.add(second)
        run(harness, "a", "a0", "a1", "a2", "a3")
        assert len(placed(harness)) == 1
        found = harness.cluster.get(ElasticQuota, "a/quota")
        assert found is not None
        harness.cluster.update(replace(found, spec=replace(small.spec, min={"cpu": 2})))
        harness.run_for(5)
        assert len(placed(harness)) == 2
        harness.cluster.delete(small)
        harness.run_for(5)
        assert len(placed(harness)) == 3


def test_pods_are_not_placed_while_quotas_are_unknown() -> None:
    with scheduler(8) as harness:
        harness.remove_crd(ElasticQuota)
        run(harness, "a", "a0")
        assert "waiting for elasticquotas.scheduling.x-k8s.io" in message(harness, "a", "a0")
        harness.install_crd(ElasticQuota)
        harness.run_for(5)
        assert placed(harness) == {"a/a0"}


def test_an_invalid_quota_rejects_the_pods_of_its_namespace() -> None:
    with scheduler(8) as harness:
        harness.cluster.add(quota("a", {"cpu": "many"}))
        run(harness, "a", "a0")
        run(harness, "b", "b0")
        assert placed(harness) == {"b/b0"}
        assert "ElasticQuota a/quota: " in message(harness, "a", "a0")
