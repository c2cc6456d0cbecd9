"""Admission plugins: the effect of limit ranges, quotas, runtime classes, accounts and namespaces on writes."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.apiserver import StartError
from support.apiserver.running import Client, Running, pod

DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"


def limits(client: Client, **item: Any) -> None:
    """Create a limit range with one item."""
    body = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", **item}]}}
    client.create(f"{DEFAULT}/limitranges", body)


def quota(client: Client, hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> None:
    """Create a quota with a status, as the quota controller sets it."""
    client.create(f"{DEFAULT}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})}
    client.patch(f"{DEFAULT}/resourcequotas/q/status", {"status": status})


def used(client: Client) -> dict[str, str]:
    """Return the used amounts of the quota."""
    found: dict[str, str] = client.get(f"{DEFAULT}/resourcequotas/q")["status"]["used"]
    return found


def refusal(client: Client, path: str, body: Any) -> str:
    """Return the message of a denied write."""
    status, refused = client.call("POST", path, body)
    assert (status, refused["reason"]) == (403, "Forbidden"), refused
    message: str = refused["message"]
    return message


def sized(name: str = "a", **resources: dict[str, str]) -> dict[str, Any]:
    """Return a pod with one container with these resources."""
    return pod(name, containers=[{"name": "c", "image": "i", "resources": resources}])


def test_containers_get_the_defaults_of_a_limit_range(client: Client) -> None:
    """Missing requests and limits are set and listed in an annotation; the QoS class follows."""
    limits(client, default={"cpu": "500m"}, defaultRequest={"cpu": "100m", "memory": "1Mi"})
    made = client.create(PODS, sized())
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "1Mi"},
        "limits": {"cpu": "500m"},
    }
    assert made["status"]["qosClass"] == "Burstable"
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu limit for container c"
    )


def test_a_limit_range_gets_defaults(client: Client) -> None:
    """Default limits are the maximum, default requests are the limits."""
    limits(client, max={"cpu": "2"}, min={"memory": "1Mi"})
    (item,) = client.get(f"{DEFAULT}/limitranges/l")["spec"]["limits"]
    assert item["default"] == {"cpu": "2"}
    assert item["defaultRequest"] == {"cpu": "2", "memory": "1Mi"}
    status, refused = client.call(
        "POST",
        f"{DEFAULT}/limitranges",
        {"metadata": {"name": "m"}, "spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}},
    )
    assert status == 422
    assert 'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1' in refused["message"]


@pytest.mark.parametrize(
    ("item", "resources", "message"),
    [
        (
            {"max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        ({"type": "Pod", "max": {"cpu": "1"}}, {}, "maximum cpu usage per Pod is 1.  No limit is specified"),
    ],
)
def test_pods_outside_of_a_limit_range_are_refused(client: Client, item: Any, resources: Any, message: str) -> None:
    """The messages are those of kube-apiserver."""
    limits(client, **item)
    assert refusal(client, PODS, sized(**resources)) == f'pods "a" is forbidden: {message}'


def test_claims_outside_of_a_limit_range_are_refused(client: Client) -> None:
    """The requested size counts."""
    limits(client, type="PersistentVolumeClaim", max={"storage": "1Gi"})
    claim = {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    }
    message = refusal(client, f"{DEFAULT}/persistentvolumeclaims", claim)
    assert message.endswith("maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi")


def test_a_quota_is_charged_until_it_is_used_up(client: Client) -> None:
    """Pods and their requests are charged; a dry run is free."""
    quota(client, {"pods": "2", "requests.cpu": "1"})
    client.create(f"{PODS}?dryRun=All", sized("dry", requests={"cpu": "600m"}))
    client.create(PODS, sized("a", requests={"cpu": "600m"}))
    assert used(client) == {"pods": "1", "requests.cpu": "600m"}
    assert refusal(client, PODS, sized("b", requests={"cpu": "500m"})) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, '
        "limited: requests.cpu=1"
    )
    client.create(PODS, sized("c", requests={"cpu": "400m"}))
    assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in refusal(
        client, PODS, sized("d", requests={"cpu": "0"})
    )


def test_pods_must_request_what_a_quota_counts(client: Client) -> None:
    """Every container needs CPU and memory."""
    quota(client, {"limits.cpu": "1", "memory": "1Gi"})
    assert refusal(client, PODS, sized()) == (
        'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: c; memory for: c'
    )


def test_a_quota_without_a_status_denies_writes(client: Client) -> None:
    """Remaining amounts are unknown until the status is set; other kinds are not concerned."""
    client.create(f"{DEFAULT}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}})
    assert refusal(client, PODS, sized()).endswith("status unknown for quota: q, resources: pods")
    client.create(f"{DEFAULT}/configmaps", {"metadata": {"name": "a"}})


def test_quotas_count_objects_of_any_kind(client: Client) -> None:
    """By count/NAME, and services by their type, also when it changes."""
    quota(client, {"count/deployments.apps": "0", "services": "5", "services.nodeports": "1"})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    assert "exceeded quota: q, requested: count/deployments.apps=1" in refusal(
        client, "/apis/apps/v1/namespaces/default/deployments", deployment
    )
    service = {"spec": {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}}
    client.create(f"{DEFAULT}/services", {"metadata": {"name": "s"}, **service})
    assert used(client)["services"] == "1"
    status, refused = client.call(
        "PATCH", f"{DEFAULT}/services/s", {"spec": {"type": "NodePort"}}, content_type="application/merge-patch+json"
    )
    assert (status, "requested: services.nodeports=2" in refused["message"]) == (403, True)


def test_a_quota_counts_only_objects_in_its_scopes(client: Client) -> None:
    """The scope here is BestEffort."""
    quota(client, {"pods": "0"}, scopes=["BestEffort"])
    client.create(PODS, sized("a", requests={"cpu": "1"}))
    assert "exceeded quota" in refusal(client, PODS, sized("b"))


def test_a_runtime_class_sets_overhead_and_node_selector(client: Client) -> None:
    """Pods that contradict the class are denied."""
    runtime = {
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"runtime": "x"}, "tolerations": [{"key": "r", "operator": "Exists"}]},
    }
    client.create("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "x"}, **runtime})
    spec = client.create(PODS, pod(runtimeClassName="x", nodeSelector={"a": "b"}))["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"a": "b", "runtime": "x"})
    assert {"key": "r", "operator": "Exists"} in spec["tolerations"]
    message = refusal(client, PODS, pod("b", runtimeClassName="x", overhead={"cpu": "1"}))
    assert message.endswith("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    assert refusal(client, PODS, pod("b", runtimeClassName="y")).endswith('RuntimeClass "y" not found')
    assert "conflict: runtimeClass.scheduling.nodeSelector[runtime] = x" in refusal(
        client, PODS, pod("b", runtimeClassName="x", nodeSelector={"runtime": "z"})
    )


def test_a_pod_needs_its_service_account(client: Client) -> None:
    """An account that a pod names must exist; its image pull secrets are added to the pod."""
    message = refusal(client, PODS, pod(serviceAccountName="robot"))
    assert message == (
        'pods "a" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
    )
    account = {"metadata": {"name": "robot"}, "imagePullSecrets": [{"name": "s"}]}
    client.create(f"{DEFAULT}/serviceaccounts", account)
    spec = client.create(PODS, pod(serviceAccountName="robot"))["spec"]
    assert (spec["serviceAccount"], spec["imagePullSecrets"]) == ("robot", [{"name": "s"}])


def test_a_priority_that_contradicts_the_class_is_refused(client: Client) -> None:
    """A preemption policy is checked, too."""
    message = refusal(client, PODS, pod(preemptionPolicy="Never"))
    assert "the string value of PreemptionPolicy (Never) must not be provided in pod spec" in message


def test_plugins_can_be_enabled_and_disabled(start: Callable[..., Running]) -> None:
    """PodNodeSelector is disabled by default; an unknown plugin prevents the start."""
    client = start(
        enable_admission_plugins=("PodNodeSelector",), disable_admission_plugins=("DefaultTolerationSeconds",)
    ).client()
    key = "scheduler.alpha.kubernetes.io/node-selector"
    client.patch("/api/v1/namespaces/default", {"metadata": {"annotations": {key: "env=test, disk=ssd"}}})
    spec = client.create(PODS, pod(nodeSelector={"disk": "ssd"}))["spec"]
    assert (spec["nodeSelector"], "tolerations" in spec) == ({"disk": "ssd", "env": "test"}, False)
    message = refusal(client, PODS, pod("b", nodeSelector={"disk": "hdd"}))
    assert message.endswith("pod node label selector conflicts with its namespace node label selector")
    with pytest.raises(StartError, match="unknown admission plugin Magic; known plugins: LimitRanger, "):
        start(enable_admission_plugins=("Magic",))


@pytest.mark.parametrize(
    ("controllers", "tainted"),
    [(True, True), (False, False), ("none", False), ("*,-node-lifecycle-controller", False)],
)
def test_new_nodes_are_tainted_until_they_are_ready(
    start: Callable[..., Running], controllers: bool | str, tainted: bool
) -> None:
    """Only where a controller removes the taint."""
    made = start(controllers=controllers).client().create("/api/v1/nodes", {"metadata": {"name": "n"}})
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert made["spec"].get("taints", []) == ([taint] if tainted else [])
