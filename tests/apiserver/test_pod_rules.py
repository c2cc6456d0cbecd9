"""Rules of pods: defaults, priority, binding, eviction and immutable fields."""

from typing import Any

import pytest

from support.apiserver.running import Client, pod

PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def test_defaults_that_schedulers_rely_on(client: Client) -> None:
    """Scheduler name, requests from limits, priority, default tolerations, phase Pending."""
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m"},
    }
    spec = client.create(PODS, wanted)["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert [one["key"] for one in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    status = client.get(f"{PODS}/a")["status"]
    assert status == {"phase": "Pending", "qosClass": "Burstable"}


def test_responders_to_evictions_are_dropped(client: Client) -> None:
    """The feature does not exist here."""
    made = client.create(PODS, pod(evictionResponders=[{"name": "example.com/a", "priority": 1000}]))
    assert "evictionResponders" not in made["spec"]


def test_a_status_without_claims_keeps_those_of_the_pod(client: Client) -> None:
    """A client may not know these fields; an empty list removes them."""
    made = client.create(PODS, pod())
    claims = [{"name": "c", "resourceClaimName": "d"}]
    place = f"{PODS}/a/status"
    made = client.patch(place, {"status": {"resourceClaimStatuses": claims}})
    del made["status"]["resourceClaimStatuses"]
    made["status"]["message"] = "m"
    status, kept = client.call("PUT", place, made)
    assert (status, kept["status"]["message"], kept["status"]["resourceClaimStatuses"]) == (200, "m", claims)
    kept["status"]["resourceClaimStatuses"] = []
    status, emptied = client.call("PUT", place, kept)
    assert (status, emptied["status"]["resourceClaimStatuses"]) == (200, [])


def test_host_network_sets_host_ports(client: Client) -> None:
    """Container ports are host ports; 0, as typed clients send it, means unset."""
    wanted = pod("a", hostNetwork=True)
    wanted["spec"]["containers"][0]["ports"] = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 0}]
    ports = client.create(PODS, wanted)["spec"]["containers"][0]["ports"]
    assert ports == [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
        {"containerPort": 81, "hostPort": 81, "protocol": "TCP"},
    ]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ],
)
def test_the_qos_class_is_set(client: Client, resources: dict[str, Any], expected: str) -> None:
    """From requests and limits, after defaulting."""
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = resources
    assert client.create(PODS, wanted)["status"]["qosClass"] == expected


def test_priority_comes_from_the_class(client: Client) -> None:
    """By name, or from the default class; another priority or an unknown class is rejected."""
    client.create(CLASSES, {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"})
    named = client.create(PODS, pod("named", priorityClassName="high"))["spec"]
    assert (named["priority"], named["preemptionPolicy"]) == (100, "Never")
    assert client.call("POST", PODS, pod("own", priority=7))[0] == 403
    status, body = client.call("POST", PODS, pod("unknown", priorityClassName="higher"))
    assert (status, "no PriorityClass with name higher was found" in body["message"]) == (403, True)
    client.create(CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    plain = client.create(PODS, pod("plain"))["spec"]
    assert (plain["priority"], plain["priorityClassName"]) == (5, "usual")


def test_binding_sets_node_and_condition(client: Client) -> None:
    """The response is a Status."""
    created = client.create(PODS, pod())
    binding = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "default", "uid": created["metadata"]["uid"]},
        "target": {"kind": "Node", "name": "n"},
    }
    status, body = client.call("POST", f"{PODS}/a/binding", binding)
    assert (status, body["status"]) == (201, "Success")
    bound = client.get(f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "n"
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


@pytest.mark.parametrize(
    ("spec", "metadata", "expected"),
    [
        ({"nodeName": "m"}, {}, 'pod a is already assigned to node "m"'),
        ({}, {"uid": "another"}, "UID in precondition: another"),
        ({"schedulingGates": [{"name": "g"}]}, {}, "schedulingGates"),
    ],
)
def test_an_impossible_binding_conflicts(
    client: Client, spec: dict[str, Any], metadata: dict[str, str], expected: str
) -> None:
    """The 409 response has the reason."""
    client.create(PODS, pod("a", **spec))
    binding = {"metadata": {"name": "a", **metadata}, "target": {"name": "n"}}
    status, body = client.call("POST", f"{PODS}/a/binding", binding)
    assert (status, body["reason"]) == (409, "Conflict")
    assert expected in body["message"]


def test_a_terminating_pod_is_not_bound(client: Client) -> None:
    """Deletion takes precedence over binding."""
    wanted = pod()
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    client.create(PODS, wanted)
    client.delete(f"{PODS}/a")
    status, body = client.call("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    assert (status, "is being deleted" in body["message"]) == (409, True)


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({"nodeName": "m"}, False),
        ({"hostNetwork": True}, False),
        ({"tolerations": [{"key": "other", "operator": "Exists"}]}, True),
        ({"tolerations": [{"operator": "Exists"}]}, False),
        ({"schedulingGates": [{"name": "new"}]}, False),
        ({"activeDeadlineSeconds": 5}, True),
        ({"terminationGracePeriodSeconds": 5}, False),
    ],
)
def test_few_fields_of_a_pod_are_mutable(client: Client, change: dict[str, Any], accepted: bool) -> None:
    """The node, above all, is not."""
    client.create(PODS, pod("a", nodeName="n"))
    status, _ = client.call("PATCH", f"{PODS}/a", {"spec": change}, content_type="application/merge-patch+json")
    assert status == (200 if accepted else 422)


def test_gates_can_only_be_removed(client: Client) -> None:
    """A gated pod has a condition, and its scheduling directives are mutable."""
    created = client.create(PODS, pod("a", schedulingGates=[{"name": "g"}]))
    assert created["status"]["conditions"][0]["reason"] == "SchedulingGated"
    client.patch(f"{PODS}/a", {"spec": {"nodeSelector": {"disk": "ssd"}}})
    opened = client.patch(f"{PODS}/a", {"spec": {"schedulingGates": None}})
    assert opened["metadata"]["generation"] == 3


def test_resize_changes_resources_only(client: Client) -> None:
    """Only through its subresource, and within the QoS class."""
    client.create(PODS, pod("a", nodeName="n"))
    change = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
    kind = "strategic-merge-patch+json"
    resized = client.patch(f"{PODS}/a/resize", change, kind)
    assert resized["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "200m"}
    status, _ = client.call(
        "PATCH", f"{PODS}/a/resize", {"spec": {"hostPID": True}}, content_type=f"application/{kind}"
    )
    assert status == 422


@pytest.mark.parametrize("metadata", [{}, {"name": "b"}])
def test_an_action_on_a_pod_must_name_it(client: Client, metadata: dict[str, str]) -> None:
    """The path and the body of bindings and evictions have the same name."""
    client.create(PODS, pod("a"))
    for kind in ("Binding", "Eviction"):
        body = {"metadata": metadata, "target": {"name": "n"}} if kind == "Binding" else {"metadata": metadata}
        status, answer = client.call("POST", f"{PODS}/a/{kind.lower()}", body)
        assert (status, answer["message"]) == (400, f"name in URL does not match name in {kind} object")
    assert client.get(f"{PODS}/a")["spec"].get("nodeName") is None


def test_eviction_is_limited_by_the_budget(client: Client) -> None:
    """429 while no disruption is allowed; an eviction is charged to the budget."""
    client.create(PODS, pod("a", nodeName="n"))
    selector = {"matchLabels": {"app": "a"}}
    client.create(BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    status, body = client.call("POST", f"{PODS}/a/eviction", eviction)
    assert (status, body["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")
    allowed = {"status": {"disruptionsAllowed": 1, "observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1}}
    client.patch(f"{BUDGETS}/b/status", allowed)
    client.patch(f"{PODS}/a/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert client.call("POST", f"{PODS}/a/eviction", eviction)[0] == 201
    assert client.get(f"{PODS}/a")["metadata"]["deletionTimestamp"]
    assert client.get(f"{BUDGETS}/b")["status"]["disruptionsAllowed"] == 0


def test_priority_classes_are_immutable(client: Client) -> None:
    """Value and policy cannot change; values above a billion are reserved for the system."""
    client.create(CLASSES, {"metadata": {"name": "c"}, "value": 1})
    merge = "application/merge-patch+json"
    assert client.call("PATCH", f"{CLASSES}/c", {"value": 2}, content_type=merge)[0] == 422
    assert client.call("POST", CLASSES, {"metadata": {"name": "huge"}, "value": 1_000_000_001})[0] == 422
