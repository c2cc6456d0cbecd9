"""The usage in the status of quotas."""

from typing import Any

import pytest

from kubestow.apiserver import quota
from kubestow.apiserver.errors import ApiError
from support.apiserver.world import World, template, workload

QUOTAS = "resourcequotas"


def container(cpu: str, memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    """Return a container with requests."""
    amounts = {"cpu": cpu, "memory": memory}
    return {"name": more.pop("name", "c"), "image": "i", "resources": {"requests": amounts, "limits": amounts}, **more}


def used(world: World) -> dict[str, str]:
    """Return the usage in the status of the quota."""
    found: dict[str, str] = world.status(QUOTAS, "q")["used"]
    return found


def test_usage_follows_creations_and_deletions(world: World) -> None:
    """Finished pods count only as objects."""
    hard = {"pods": "10", "requests.cpu": "4", "limits.memory": "8Gi", "count/pods": "20", "configmaps": "5"}
    world.create("pods", "before", {"containers": [container("500m")]})
    world.run(1)
    world.create(QUOTAS, "q", {"hard": hard})
    world.run(1)
    # kube-root-ca.crt is also a ConfigMap.
    expected = {"pods": "1", "requests.cpu": "500m", "limits.memory": "1Gi", "count/pods": "1", "configmaps": "1"}
    assert (used(world), world.status(QUOTAS, "q")["hard"]) == (expected, hard)
    world.create("pods", "after", {"containers": [container("1")], "restartPolicy": "Never"})
    world.create("configmaps", "m", data={})
    world.run(5)
    assert (used(world)["requests.cpu"], used(world)["configmaps"]) == ("1500m", "2")
    world.run(30)
    assert (used(world)["pods"], used(world)["count/pods"], used(world)["requests.cpu"]) == ("1", "2", "500m")
    world.delete("pods", "before")
    world.delete("configmaps", "m")
    world.run(10)
    assert (used(world)["pods"], used(world)["requests.cpu"], used(world)["configmaps"]) == ("0", "0", "1")


def test_a_changed_quota_is_counted_again(world: World) -> None:
    """With other resources and other scopes."""
    world.create("pods", "p", {"containers": [container("1")]})
    world.create(QUOTAS, "q", {"hard": {"pods": "1"}})
    world.run(1)
    world.set(QUOTAS, "q", hard={"cpu": "2", "count/deployments.apps": "1"})
    world.run(1)
    world.create("deployments.apps", "w", workload(replicas=0))
    world.run(1)
    assert used(world) == {"cpu": "1", "count/deployments.apps": "1"}


SPECS: dict[str, dict[str, Any]] = {
    "plain": {"containers": [container("1")]},
    "best-effort": {"containers": [{"name": "c", "image": "i"}]},
    "deadline": {"containers": [container("1")], "activeDeadlineSeconds": 5},
    "important": {"containers": [container("1")], "priorityClassName": "system-node-critical"},
}


@pytest.mark.parametrize(
    ("spec", "counted"),
    [
        ({}, {"plain", "best-effort", "deadline", "important"}),
        ({"scopes": ["BestEffort"]}, {"best-effort"}),
        ({"scopes": ["NotBestEffort", "NotTerminating"]}, {"plain", "important"}),
        ({"scopes": ["Terminating"]}, {"deadline"}),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}},
            {"important"},
        ),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
                    ]
                }
            },
            {"important"},
        ),
    ],
)
def test_scopes_choose_pods(spec: dict[str, Any], counted: set[str]) -> None:
    """And no other objects."""
    limits = {"spec": spec}
    assert {name for name, pod in SPECS.items() if quota.is_counted(limits, "pods", {"spec": pod})} == counted
    assert quota.is_counted(limits, "configmaps", {}) == (not spec)


def test_a_pod_counts_with_its_largest_requests() -> None:
    """Init containers one by one, sidecars at all times, plus the overhead."""
    spec = {
        "initContainers": [
            container("3", name="init"),
            container("1", name="side", restartPolicy="Always"),
            container("4", name="late"),
        ],
        "containers": [container("2"), container("1", name="d")],
        "overhead": {"cpu": "100m"},
    }
    amounts = quota.usage_of("pods", {"spec": spec})
    assert amounts["requests.cpu"] == 5_100_000_000
    assert amounts["cpu"] == amounts["requests.cpu"]


def test_services_and_claims_count_by_kind() -> None:
    """Node ports by port, claims by class."""
    service = {"spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}}
    assert quota.usage_of("services", service)["services.nodeports"] == 2 * 10**9
    claim = {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}}}}
    amounts = quota.usage_of("persistentvolumeclaims", claim)
    assert amounts["fast.storageclass.storage.k8s.io/requests.storage"] == amounts["requests.storage"]
    assert amounts["fast.storageclass.storage.k8s.io/persistentvolumeclaims"] == 10**9


def test_templates_of_workloads_are_no_usage(world: World) -> None:
    """Only the pods created from them."""
    world.create(QUOTAS, "q", {"hard": {"pods": "9"}})
    world.create("replicasets.apps", "w", workload(replicas=2, template=template()))
    world.run(5)
    assert used(world) == {"pods": "2"}


def test_a_quota_admits_up_to_its_limit_and_again_after_a_deletion(world: World) -> None:
    """The controller counts, admission charges; a workload gets the rest later."""
    world.create("pods", "before", {"containers": [container("1")]})
    world.create(QUOTAS, "q", {"hard": {"pods": "3", "requests.cpu": "2"}})
    with pytest.raises(ApiError, match=r"status unknown for quota: q, resources: pods,requests.cpu"):
        world.create("pods", "early", {"containers": [container("1")]})
    world.run(1)
    world.create("pods", "next", {"containers": [container("1")]})
    with pytest.raises(ApiError, match=r"exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2"):
        world.create("pods", "late", {"containers": [container("1")]})
    assert used(world) == {"pods": "2", "requests.cpu": "2"}
    world.delete("pods", "before")
    world.run(5)
    assert used(world) == {"pods": "1", "requests.cpu": "1"}
    small = template(containers=[container("100m")])
    world.create("replicasets.apps", "w", workload(replicas=3, template=small))
    world.run(5)
    assert used(world) == {"pods": "3", "requests.cpu": "1200m"}
    assert any("exceeded quota: q" in message for _, message in world.events("ReplicaSet"))
    world.delete("pods", "next")
    world.run(120)
    assert used(world) == {"pods": "3", "requests.cpu": "300m"}
