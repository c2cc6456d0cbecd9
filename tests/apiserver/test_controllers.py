"""Workloads become pods; what has lost its owner goes; namespaces are emptied."""

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.running import Client, Running, pod
from kubestow.apiserver import Pace

DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"
APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LABELS = {"app": "w"}
AT_ONCE = Pace(start=0, run=0, stop=0)


@pytest.fixture
def plane(start: Callable[..., Running]) -> Running:
    """A control plane whose nodes act at once."""
    return start(controllers=True, kubelets=True, nodes=2, pace=AT_ONCE)


def workload(name: str = "w", image: str = "i:1", **spec: Any) -> dict[str, Any]:
    """A Deployment or ReplicaSet; its pods go straight to a node."""
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "c", "image": image}], "nodeName": "node-0"},
    }
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec}}


def until(plane: Running, path: str, found: Callable[[Any], bool]) -> Any:
    """Waits, by watching, until an object is as wanted."""
    watch = plane.watch(f"{path}{'&' if '?' in path else '?'}watch=1")
    return watch.until(lambda event: event["type"] != "DELETED" and found(event["object"]))["object"]


def until_gone(plane: Running, path: str) -> None:
    """Waits, by watching, until an object is gone."""
    watch = plane.watch(f"{path}?watch=1")
    if plane.client().call("GET", path)[0] != 404:
        watch.until(lambda event: event["type"] == "DELETED")


def test_a_replica_set_keeps_its_number(plane: Running, client: Client) -> None:
    """Missing pods are created, surplus ones deleted, and the status counts."""
    client.create(f"{APPS}/replicasets", workload(replicas=3))
    until(plane, f"{APPS}/replicasets/w", lambda one: one.get("status", {}).get("availableReplicas") == 3)
    client.patch(f"{APPS}/replicasets/w", {"spec": {"replicas": 1}})
    until(plane, f"{APPS}/replicasets/w", lambda one: one.get("status", {}).get("replicas") == 1)
    (left,) = [one for one in client.get(PODS)["items"] if "deletionTimestamp" not in one["metadata"]]
    owner = left["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "w", True)
    client.delete(f"{PODS}/{left['metadata']['name']}")
    replaced = lambda one: one["metadata"]["name"] != left["metadata"]["name"] and one["status"]["phase"] == "Running"  # noqa: E731
    until(plane, PODS, replaced)


def test_a_deployment_rolls_out(plane: Running, client: Client) -> None:
    """A new template gets a ReplicaSet of its own that takes over; the old one is kept, empty."""
    path = f"{APPS}/deployments/w"
    client.create(f"{APPS}/deployments", workload(replicas=4))

    def done(one: Any) -> bool:
        status = one.get("status", {})
        return bool(
            status.get("observedGeneration") == one["metadata"]["generation"]
            and status.get("updatedReplicas") == status.get("replicas") == status.get("availableReplicas") == 4
        )

    first = until(plane, path, done)
    conditions = {one["type"]: one["reason"] for one in first["status"]["conditions"]}
    assert conditions == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
    client.patch(path, {"spec": workload(image="i:2")["spec"]})
    second = until(plane, path, lambda one: done(one) and one["metadata"]["generation"] == 2)
    assert second["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    revision = "deployment.kubernetes.io/revision"
    sets = client.get(f"{APPS}/replicasets")["items"]
    replicas = {one["metadata"]["annotations"][revision]: one["spec"]["replicas"] for one in sets}
    assert replicas == {"1": 0, "2": 4}
    running = [one for one in client.get(PODS)["items"] if "deletionTimestamp" not in one["metadata"]]
    assert {one["spec"]["containers"][0]["image"] for one in running} == {"i:2"}


def test_saying_what_holds_anyway_rolls_out_nothing(plane: Running, client: Client) -> None:
    """`hostNetwork: false` is the same template as none: kubectl's rollout undo leaves out what create sent."""
    path = f"{APPS}/deployments/w"
    client.create(f"{APPS}/deployments", workload(replicas=1))
    until(plane, path, lambda one: one.get("status", {}).get("availableReplicas") == 1)
    explicit = {"spec": {"template": {"spec": {"hostNetwork": False, "nodeSelector": {}}}}}
    generation = client.patch(path, explicit)["metadata"]["generation"]
    until(plane, path, lambda one: one["status"]["observedGeneration"] == generation)
    assert len(client.get(f"{APPS}/replicasets")["items"]) == 1


def test_a_roll_out_never_has_too_few_or_too_many(plane: Running, client: Client) -> None:
    """At every moment at most replicas + surge pods are wanted and enough stay available."""
    path = f"{APPS}/deployments/w"
    limits = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    client.create(f"{APPS}/deployments", workload(replicas=3, strategy=limits))
    until(plane, path, lambda one: one.get("status", {}).get("availableReplicas") == 3)
    watch = plane.watch(f"{APPS}/deployments/w?watch=1")
    client.patch(path, {"spec": workload(image="i:2")["spec"]})
    while True:
        status = watch.next()["object"]["status"]
        assert status.get("replicas", 0) <= 4
        assert status.get("availableReplicas", 0) >= 3
        if status.get("updatedReplicas") == 3 and status.get("replicas") == 3:
            break


def test_recreate_waits_for_the_old_pods(plane: Running, client: Client) -> None:
    """The new set stays at none while old pods are left."""
    path = f"{APPS}/deployments/w"
    client.create(f"{APPS}/deployments", workload(replicas=2, strategy={"type": "Recreate"}))
    until(plane, path, lambda one: one.get("status", {}).get("availableReplicas") == 2)
    pods = plane.watch(f"{PODS}?watch=1&resourceVersion={client.get(PODS)['metadata']['resourceVersion']}")
    client.patch(path, {"spec": workload(image="i:2")["spec"]})
    gone = 0
    while True:
        event = pods.next()
        gone += event["type"] == "DELETED"
        if event["object"]["spec"]["containers"][0]["image"] == "i:2":
            break
    assert gone == 2


def test_deleting_a_deployment_takes_everything_along(plane: Running, client: Client) -> None:
    """Owner references, in the background."""
    client.create(f"{APPS}/deployments", workload(replicas=2))
    until(plane, f"{APPS}/deployments/w", lambda one: one.get("status", {}).get("availableReplicas") == 2)
    names = [one["metadata"]["name"] for one in client.get(PODS)["items"]]
    client.delete(f"{APPS}/deployments/w")
    for name in names:
        until_gone(plane, f"{PODS}/{name}")
    assert client.get(f"{APPS}/replicasets")["items"] == []


def test_orphans_stay_when_asked(plane: Running, client: Client) -> None:
    """propagationPolicy=Orphan removes the reference, not the pod."""
    client.create(f"{APPS}/replicasets", workload(replicas=1))
    until(plane, f"{APPS}/replicasets/w", lambda one: one.get("status", {}).get("availableReplicas") == 1)
    (name,) = [one["metadata"]["name"] for one in client.get(PODS)["items"]]
    client.delete(f"{APPS}/replicasets/w?propagationPolicy=Orphan")
    assert "ownerReferences" not in client.get(f"{PODS}/{name}")["metadata"]


def test_an_orphan_is_adopted(plane: Running, client: Client) -> None:
    """A new Deployment takes over the set and the pods that another left behind."""
    client.create(f"{APPS}/deployments", workload(replicas=2))
    until(plane, f"{APPS}/deployments/w", lambda one: one.get("status", {}).get("availableReplicas") == 2)
    pods = {one["metadata"]["name"] for one in client.get(PODS)["items"]}
    (left,) = client.get(f"{APPS}/replicasets")["items"]
    client.delete(f"{APPS}/deployments/w?propagationPolicy=Orphan")
    until(plane, f"{APPS}/replicasets", lambda one: "ownerReferences" not in one["metadata"])
    client.delete(f"{APPS}/replicasets/{left['metadata']['name']}?propagationPolicy=Orphan")
    until_gone(plane, f"{APPS}/replicasets/{left['metadata']['name']}")
    client.create(f"{APPS}/deployments", workload(replicas=2))
    until(plane, f"{APPS}/deployments/w", lambda one: one.get("status", {}).get("availableReplicas") == 2)
    assert {one["metadata"]["name"] for one in client.get(PODS)["items"]} == pods
    client.delete(f"{APPS}/deployments/w?propagationPolicy=Orphan")
    again = client.create(f"{APPS}/deployments", workload(replicas=2))
    adopted = until(plane, f"{APPS}/replicasets", lambda one: one["metadata"].get("ownerReferences"))
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


def test_a_bare_pod_that_fits_is_adopted(plane: Running, client: Client) -> None:
    """Whether it was there before the set or comes later; one too many is deleted."""
    client.create(
        PODS, {"metadata": {"name": "early", "labels": LABELS}, "spec": workload()["spec"]["template"]["spec"]}
    )
    owner = client.create(f"{APPS}/replicasets", workload(replicas=1))
    early = until(plane, f"{PODS}/early", lambda one: one["metadata"].get("ownerReferences"))
    assert early["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    client.create(
        PODS, {"metadata": {"name": "late", "labels": LABELS}, "spec": {"containers": pod()["spec"]["containers"]}}
    )
    until_gone(plane, f"{PODS}/late")
    assert [one["metadata"]["name"] for one in client.get(PODS)["items"]] == ["early"]


def test_a_pod_whose_labels_change_is_let_go(plane: Running, client: Client) -> None:
    """It stays, for somebody to look at, and another takes its place."""
    client.create(f"{APPS}/replicasets", workload(replicas=1))
    until(plane, f"{APPS}/replicasets/w", lambda one: one.get("status", {}).get("availableReplicas") == 1)
    (name,) = [one["metadata"]["name"] for one in client.get(PODS)["items"]]
    client.patch(f"{PODS}/{name}", {"metadata": {"labels": {"app": "debug"}}})
    until(plane, f"{PODS}/{name}", lambda one: "ownerReferences" not in one["metadata"])
    until(plane, f"{PODS}?labelSelector=app%3Dw", lambda one: one["metadata"]["name"] != name)


def test_foreground_deletion_waits_for_dependents(plane: Running, client: Client) -> None:
    """The owner goes last."""
    client.create(f"{APPS}/replicasets", workload(replicas=1))
    until(plane, f"{APPS}/replicasets/w", lambda one: one.get("status", {}).get("availableReplicas") == 1)
    pods = plane.watch(f"{PODS}?watch=1&resourceVersion={client.get(PODS)['metadata']['resourceVersion']}")
    sets = plane.watch(f"{APPS}/replicasets?watch=1&resourceVersion={client.get(PODS)['metadata']['resourceVersion']}")
    client.delete(f"{APPS}/replicasets/w?propagationPolicy=Foreground")
    gone = pods.until(lambda event: event["type"] == "DELETED")["object"]["metadata"]["resourceVersion"]
    last = sets.until(lambda event: event["type"] == "DELETED")["object"]["metadata"]["resourceVersion"]
    assert int(gone) < int(last)


def test_an_object_whose_owner_never_was_is_collected(plane: Running, client: Client) -> None:
    """Unless the owner's kind is not served here, since then nobody can know."""
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "never"}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "never"}
    maps = f"{DEFAULT}/configmaps"
    client.create(maps, {"metadata": {"name": "kept", "ownerReferences": [unknown]}})
    client.create(maps, {"metadata": {"name": "lost", "ownerReferences": [gone]}})
    until_gone(plane, f"{maps}/lost")
    assert client.call("GET", f"{maps}/kept")[0] == 200


def job(**spec: Any) -> dict[str, Any]:
    """A Job; its pods go straight to a node."""
    pod_spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", "nodeName": "node-0"}
    return {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod_spec}, **spec}}


def test_a_job_runs_to_completion(plane: Running, client: Client) -> None:
    """As many pods as wanted finish, no more than allowed at once."""
    client.create(JOBS, job(completions=4, parallelism=2))
    finished = until(plane, f"{JOBS}/j", lambda one: "completionTime" in one.get("status", {}))
    assert finished["status"]["succeeded"] == 4
    assert [one["type"] for one in finished["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]


def test_a_job_gives_up(plane: Running, client: Client) -> None:
    """After more failures than backoffLimit."""
    wanted = job(backoffLimit=1)
    wanted["spec"]["template"]["metadata"] = {"annotations": {"kubestow.dev/exit-code": "3"}}
    client.create(JOBS, wanted)
    failed = until(plane, f"{JOBS}/j", lambda one: one.get("status", {}).get("conditions"))
    assert (failed["status"]["failed"], failed["status"]["conditions"][-1]["reason"]) == (2, "BackoffLimitExceeded")


def test_an_indexed_job_numbers_its_pods(plane: Running, client: Client) -> None:
    """Each index finishes once."""
    client.create(JOBS, job(completions=3, parallelism=3, completionMode="Indexed"))
    until(plane, f"{JOBS}/j", lambda one: "completionTime" in one.get("status", {}))
    key = "batch.kubernetes.io/job-completion-index"
    assert sorted(one["metadata"]["labels"][key] for one in client.get(PODS)["items"]) == ["0", "1", "2"]


def test_a_suspended_job_waits(plane: Running, client: Client) -> None:
    """No pods until it is resumed."""
    client.create(JOBS, job(suspend=True))
    until(plane, f"{JOBS}/j", lambda one: one.get("status", {}).get("conditions"))
    assert client.get(PODS)["items"] == []
    client.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    until(plane, f"{JOBS}/j", lambda one: "completionTime" in one.get("status", {}))


def test_a_namespace_is_emptied_before_it_goes(plane: Running, client: Client) -> None:
    """Nothing can be created in it meanwhile; a new namespace has its service account."""
    client.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    until(plane, "/api/v1/namespaces/x/serviceaccounts/default", lambda _: True)
    held = {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}}
    client.create("/api/v1/namespaces/x/configmaps", held)
    client.create("/api/v1/namespaces/x/pods", pod("a", nodeName="node-0"))
    assert client.delete("/api/v1/namespaces/x")["status"]["phase"] == "Terminating"
    status, body = client.call("POST", "/api/v1/namespaces/x/configmaps", {"metadata": {"name": "d"}})
    assert (status, "being terminated" in body["message"]) == (403, True)
    until_gone(plane, "/api/v1/namespaces/x/pods/a")
    client.patch("/api/v1/namespaces/x/configmaps/c", {"metadata": {"finalizers": None}})
    until_gone(plane, "/api/v1/namespaces/x")


def test_the_default_namespace_stays(client: Client) -> None:
    """403."""
    assert client.call("DELETE", "/api/v1/namespaces/default")[0] == 403


def test_a_budget_counts_healthy_pods(plane: Running, client: Client) -> None:
    """Disruptions allowed = healthy - needed, percentages of what the owner wants."""
    client.create(f"{APPS}/replicasets", workload(replicas=4))
    client.create(
        BUDGETS, {"metadata": {"name": "b"}, "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": LABELS}}}
    )
    budget = until(plane, f"{BUDGETS}/b", lambda one: one.get("status", {}).get("currentHealthy") == 4)
    status = budget["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (4, 2, 2)


def test_claims_and_volumes_find_each_other(plane: Running, client: Client) -> None:
    """Immediate binding to the smallest volume that fits; a class with a provisioner makes one."""
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    claims, volumes = f"{DEFAULT}/persistentvolumeclaims", "/api/v1/persistentvolumes"
    for name, size in (("big", "10Gi"), ("fits", "2Gi"), ("small", "1Gi")):
        spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        client.create(volumes, {"metadata": {"name": name}, "spec": {**spec, "storageClassName": "manual"}})
    client.create(classes, {"metadata": {"name": "fast"}, "provisioner": "example.com/p"})
    for name, storage_class in (("static", "manual"), ("dynamic", "fast")):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500Mi"}}}
        client.create(claims, {"metadata": {"name": name}, "spec": {**spec, "storageClassName": storage_class}})
    bound = until(plane, f"{claims}/static", lambda one: one["status"]["phase"] == "Bound")
    assert bound["spec"]["volumeName"] == "fits"
    until(plane, f"{volumes}/fits", lambda one: one["status"]["phase"] == "Bound")
    made = until(plane, f"{claims}/dynamic", lambda one: one["status"]["phase"] == "Bound")["spec"]["volumeName"]
    until(plane, f"{volumes}/{made}", lambda one: one["status"]["phase"] == "Bound")
    client.delete(f"{claims}/dynamic")
    until_gone(plane, f"{volumes}/{made}")


def test_a_waiting_class_binds_where_the_scheduler_says(plane: Running, client: Client) -> None:
    """The claim stays pending until a node is chosen; the volume can be reached from that node's zone."""
    body = {"metadata": {"name": "late"}, "provisioner": "example.com/p", "volumeBindingMode": "WaitForFirstConsumer"}
    client.create("/apis/storage.k8s.io/v1/storageclasses", body)
    claims = f"{DEFAULT}/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "late"}
    client.create(claims, {"metadata": {"name": "c"}, "spec": spec})
    client.patch(f"{claims}/c", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}})
    name = until(plane, f"{claims}/c", lambda one: one["status"]["phase"] == "Bound")["spec"]["volumeName"]
    term = client.get(f"/api/v1/persistentvolumes/{name}")["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    assert term["matchExpressions"][0]["values"] == ["zone-b"]


def test_device_claims_are_made_from_templates(plane: Running, client: Client) -> None:
    """The pod learns the name of its claim, which goes with it."""
    devices = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}
    templates = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    client.create(templates, {"metadata": {"name": "t"}, "spec": devices})
    client.create(PODS, pod("a", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}]))
    ready = until(plane, f"{PODS}/a", lambda one: one.get("status", {}).get("resourceClaimStatuses"))
    name = ready["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = f"/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/{name}"
    (request,) = client.get(claim)["spec"]["devices"]["requests"]
    assert request == {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}
    client.delete(f"{PODS}/a")
    until_gone(plane, claim)
