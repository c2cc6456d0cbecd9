"""Defaults and validation of resources besides pods, as in kube-apiserver."""

from collections.abc import Callable
from typing import Any

import pytest

from kubestow.config.features import Features
from support.apiserver.running import Client, Running, pod

CORE = "/api/v1/namespaces/default"
STORAGE = "/apis/storage.k8s.io/v1"
BATCH = "/apis/batch/v1/namespaces/default"
DEVICES = "/apis/resource.k8s.io/v1/namespaces/default"
JOB = {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def contains(whole: Any, part: Any) -> bool:
    """Return whether everything in `part` is in `whole`."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize(
    ("path", "body", "defaults"),
    [
        (
            f"{DEVICES}/resourceclaims",
            {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
            {"spec": {"devices": {"requests": [{"exactly": {"allocationMode": "ExactCount", "count": 1}}]}}},
        ),
        (
            f"{DEVICES}/resourceclaimtemplates",
            {
                "spec": {
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "r",
                                    "firstAvailable": [{"name": "a", "deviceClassName": "c", "allocationMode": "All"}],
                                }
                            ]
                        }
                    }
                }
            },
            {"spec": {"spec": {"devices": {"requests": [{"firstAvailable": [{"allocationMode": "All"}]}]}}}},
        ),
        (
            f"{STORAGE}/csidrivers",
            {"spec": {}},
            {"spec": {"attachRequired": True, "storageCapacity": False, "volumeLifecycleModes": ["Persistent"]}},
        ),
        (
            f"{BATCH}/cronjobs",
            {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": JOB}}},
            {
                "spec": {
                    "concurrencyPolicy": "Allow",
                    "successfulJobsHistoryLimit": 3,
                    "jobTemplate": {"spec": {"template": {"spec": {"schedulerName": "default-scheduler"}}}},
                }
            },
        ),
        (f"{BATCH}/jobs", {"spec": JOB}, {"metadata": {"labels": {"job-name": "o"}}, "spec": {"parallelism": 1}}),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            {
                "spec": {
                    "serviceName": "s",
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
                    "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": CLAIM}],
                }
            },
            {
                "spec": {
                    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                    "volumeClaimTemplates": [{"kind": "PersistentVolumeClaim", "spec": {"volumeMode": "Filesystem"}}],
                }
            },
        ),
        (
            f"{CORE}/services",
            {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}},
            {"spec": {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True}},
        ),
        (
            f"{CORE}/pods",
            {
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "livenessProbe": {"httpGet": {"port": 80}},
                            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        }
                    ]
                }
            },
            {
                "spec": {
                    "containers": [
                        {
                            "livenessProbe": {"httpGet": {"path": "/", "scheme": "HTTP"}, "periodSeconds": 10},
                            "env": [{"valueFrom": {"fieldRef": {"apiVersion": "v1"}}}],
                        }
                    ]
                }
            },
        ),
    ],
)
def test_defaults_are_set(client: Client, path: str, body: dict[str, Any], defaults: dict[str, Any]) -> None:
    """With the values that users and controllers rely on."""
    created = client.create(path, {"metadata": {"name": "o"}, **body})
    assert contains(created, defaults), created


def test_a_node_port_service_gets_a_node_port(client: Client) -> None:
    """It is kept by updates without it, and shown by kubectl get."""
    path = f"{CORE}/services"
    body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    (port,) = client.create(path, body)["spec"]["ports"]
    assert 30_000 <= port["nodePort"] < 32_768
    status, again = client.call("PUT", f"{path}/s", body)
    assert (status, again["spec"]["ports"]) == (200, [port])
    table = client.get(f"{path}/s", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert f"80:{port['nodePort']}/TCP" in table["rows"][0]["cells"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (f"{CORE}/configmaps", {"data": {"a b": ""}}, "data[a b]"),
        (f"{CORE}/events", {"involvedObject": {"namespace": "other"}}, "involvedObject.namespace"),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
            {"spec": {"leaseDurationSeconds": 0}},
            "spec.leaseDurationSeconds",
        ),
        (f"{BATCH}/cronjobs", {"spec": {"schedule": "daily", "jobTemplate": {"spec": JOB}}}, "spec.schedule"),
        (
            f"{BATCH}/cronjobs",
            {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": pod()["spec"]}}}}},
            "spec.jobTemplate.spec.template.spec.restartPolicy",
        ),
        (f"{CORE}/pods", {"spec": {**pod()["spec"], "nodeName": "No_Name"}}, "spec.nodeName"),
        (
            f"{CORE}/pods",
            {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"a.b/gpu": 1}}}]}},
            "spec.containers[0].resources.limits",
        ),
    ],
)
def test_invalid_objects_are_rejected(client: Client, path: str, body: dict[str, Any], field: str) -> None:
    """The 422 response names the field."""
    status, refused = client.call("POST", path, {"metadata": {"name": "o"}, **body})
    assert (status, refused["reason"]) == (422, "Invalid"), refused
    assert [cause["field"] for cause in refused["details"]["causes"]] == [field]


def test_names_of_system_priority_classes_are_reserved(client: Client) -> None:
    """Other classes cannot have the prefix system-."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    status, refused = client.call("POST", path, {"metadata": {"name": "system-mine"}, "value": 1})
    assert (status, refused["details"]["causes"][0]["field"]) == (422, "metadata.name")


@pytest.mark.parametrize(
    ("path", "body", "patch", "field"),
    [
        (f"{STORAGE}/storageclasses", {"provisioner": "p"}, {"provisioner": "q"}, "provisioner"),
        (
            f"{CORE}/persistentvolumeclaims",
            {"spec": CLAIM},
            {"spec": {"accessModes": ["ReadWriteMany"]}},
            "spec",
        ),
    ],
)
def test_storage_classes_and_claims_are_immutable(
    client: Client, path: str, body: dict[str, Any], patch: dict[str, Any], field: str
) -> None:
    """Their specs cannot change after creation."""
    client.create(path, {"metadata": {"name": "o"}, **body})
    status, refused = client.call("PATCH", f"{path}/o", patch, content_type="application/merge-patch+json")
    assert (status, refused["details"]["causes"][0]["field"]) == (422, field)


def test_a_claim_may_grow_and_be_bound(client: Client) -> None:
    """Unset fields can be set, and the size can change once the claim is bound."""
    path = f"{CORE}/persistentvolumeclaims"
    client.create(path, {"metadata": {"name": "o"}, "spec": CLAIM})
    grown = {"resources": {"requests": {"storage": "2Gi"}}}
    assert client.call("PATCH", f"{path}/o", {"spec": grown}, content_type="application/merge-patch+json")[0] == 422
    found = {"volumeName": "v", "storageClassName": "s"}
    assert contains(client.patch(f"{path}/o", {"spec": found})["spec"], found)
    client.patch(f"{path}/o/status", {"status": {"phase": "Bound"}})
    assert contains(client.patch(f"{path}/o", {"spec": grown})["spec"], grown)


@pytest.mark.parametrize(
    ("owners", "message"),
    [
        (["a b"], 'Invalid value: "a b": name part must consist of alphanumeric characters'),
        (["a", "a"], 'Duplicate value: "a"'),
        ([f"a{number}" for number in range(21)], "Too many: 21: must have at most 20 items"),
    ],
)
def test_invalid_owners_of_a_preemption_policy_are_rejected(
    start: Callable[..., Running], owners: list[str], message: str
) -> None:
    """Without the feature gate, the policy of a node is dropped."""
    policy = {"podPreemptionPolicy": {"disableResizePreemption": owners}}
    body = {"metadata": {"name": "n"}, "spec": policy}
    features = Features(in_place_pod_vertical_scaling_scheduler_preemption=True)
    status, refused = start(features=features).client().call("POST", "/api/v1/nodes", body)
    (cause,) = refused["details"]["causes"]
    assert status == 422
    assert cause["field"].startswith("spec.podPreemptionPolicy.disableResizePreemption")
    assert cause["message"].startswith(message)
    assert start().client().create("/api/v1/nodes", body)["spec"] == {}
