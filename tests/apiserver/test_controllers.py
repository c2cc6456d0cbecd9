"""Controllers in real time: on the event loop of a running control plane, observed by its clients."""

from typing import Any

import pytest

from kubestow.apiserver import Pace
from support.apiserver.running import Client, Running, pod

DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"
APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LABELS = {"app": "w"}
AT_ONCE = Pace(start=0, run=0, stop=0)

pytestmark = pytest.mark.control_plane(controllers=True, kubelets=True, nodes=2, pace=AT_ONCE)


def workload(name: str = "w", image: str = "i:1", **spec: Any) -> dict[str, Any]:
    """Return a Deployment or ReplicaSet whose pods have a node name."""
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": image}], "nodeName": "node-0"},
    }
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec}}


def until_deleted(plane: Running, path: str) -> None:
    """Watch until an object is deleted."""
    watch = plane.watch(f"{path}?watch=1")
    if plane.client().call("GET", path)[0] != 404:
        watch.until(lambda event: event["type"] == "DELETED")


def test_a_deployment_rolls_out(plane: Running, client: Client) -> None:
    """A new template gets its own ReplicaSet; the old one is kept without pods."""
    path = f"{APPS}/deployments/w"
    client.create(f"{APPS}/deployments", workload(replicas=4))

    def done(one: Any) -> bool:
        status = one.get("status", {})
        return bool(
            status.get("observedGeneration") == one["metadata"]["generation"]
            and status.get("updatedReplicas") == status.get("replicas") == status.get("availableReplicas") == 4
        )

    first = plane.until(path, done)
    conditions = {one["type"]: one["reason"] for one in first["status"]["conditions"]}
    assert conditions == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
    client.patch(path, {"spec": workload(image="i:2")["spec"]})
    second = plane.until(path, lambda one: done(one) and one["metadata"]["generation"] == 2)
    assert second["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    revision = "deployment.kubernetes.io/revision"
    sets = client.get(f"{APPS}/replicasets")["items"]
    replicas = {one["metadata"]["annotations"][revision]: one["spec"]["replicas"] for one in sets}
    assert replicas == {"1": 0, "2": 4}
    running = [one for one in client.get(PODS)["items"] if "deletionTimestamp" not in one["metadata"]]
    assert {one["spec"]["containers"][0]["image"] for one in running} == {"i:2"}


def job(**spec: Any) -> dict[str, Any]:
    """Return a Job whose pods have a node name."""
    pod_spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "nodeName": "node-0"}
    return {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod_spec}, **spec}}


def test_a_job_runs_to_completion(plane: Running, client: Client) -> None:
    """The desired number of pods finishes, never more than the parallelism at the same time."""
    client.create(JOBS, job(completions=4, parallelism=2))
    finished = plane.until(f"{JOBS}/j", lambda one: "completionTime" in one.get("status", {}))
    assert finished["status"]["succeeded"] == 4
    assert [one["type"] for one in finished["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]


def test_a_namespace_is_emptied_before_it_is_removed(plane: Running, client: Client) -> None:
    """Creating objects in it is forbidden; a new namespace has its service account."""
    client.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    plane.until("/api/v1/namespaces/x/serviceaccounts/default", lambda _: True)
    held = {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}}
    client.create("/api/v1/namespaces/x/configmaps", held)
    client.create("/api/v1/namespaces/x/pods", pod("a", nodeName="node-0"))
    assert client.delete("/api/v1/namespaces/x")["status"]["phase"] == "Terminating"
    status, body = client.call("POST", "/api/v1/namespaces/x/configmaps", {"metadata": {"name": "d"}})
    assert (status, "being terminated" in body["message"]) == (403, True)
    until_deleted(plane, "/api/v1/namespaces/x/pods/a")
    client.patch("/api/v1/namespaces/x/configmaps/c", {"metadata": {"finalizers": None}})
    until_deleted(plane, "/api/v1/namespaces/x")


def test_the_default_namespace_cannot_be_deleted(client: Client) -> None:
    """403."""
    assert client.call("DELETE", "/api/v1/namespaces/default")[0] == 403
