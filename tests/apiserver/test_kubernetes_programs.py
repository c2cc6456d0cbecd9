"""kube-scheduler and kube-controller-manager work with this API server as with their own.

Skipped unless KUBERNETES_PROGRAMS names a folder with both, of v1.36. What they ask for is what client-go asks for.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kubestow.apiserver import Pace
from support.apiserver.running import Client, Running

FOLDER = os.environ.get("KUBERNETES_PROGRAMS", "")
PROGRAMS = ("kube-scheduler", "kube-controller-manager")
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"
DEVICES = "/apis/resource.k8s.io/v1"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not all(os.access(Path(FOLDER) / name, os.X_OK) for name in PROGRAMS),
        reason="KUBERNETES_PROGRAMS names no folder with kube-scheduler and kube-controller-manager",
    ),
]


@pytest.fixture
def plane(start: Callable[..., Running], tmp_path: Path) -> Iterator[Running]:
    """An API server with nodes that act; scheduler and controllers are Kubernetes' own."""
    plane = start(kubelets=True, nodes=3, pace=Pace(start=0, run=0, stop=0))
    kubeconfig = plane.control_plane.kubeconfig_path
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"clientConnection: {{kubeconfig: {kubeconfig}}}\nleaderElection: {{leaderElect: false}}\n"
    )
    arguments = {
        "kube-scheduler": [f"--config={config}"],
        "kube-controller-manager": [f"--kubeconfig={kubeconfig}", "--controllers=*", "--leader-elect=false"],
    }  # fmt: skip
    with ExitStack() as stack:
        for name in PROGRAMS:
            said = stack.enter_context((tmp_path / f"{name}.log").open("w"))
            command = [str(Path(FOLDER) / name), "--secure-port=0", *arguments[name]]
            process = subprocess.Popen(command, stdout=said, stderr=said)
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield plane


def workload(image: str, replicas: int, **spec: Any) -> dict[str, Any]:
    """A Deployment or StatefulSet."""
    labels = {"app": "w"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}
    chosen = {"selector": {"matchLabels": labels}, "template": template, "replicas": replicas}
    return {"metadata": {"name": "w"}, "spec": chosen}


def available(replicas: int) -> Callable[[Any], bool]:
    """Whether all replicas of the newest kind are available."""

    def holds(one: Any) -> bool:
        status = one.get("status", {})
        names = ("replicas", "updatedReplicas", "availableReplicas")
        seen = status.get("observedGeneration") == one["metadata"]["generation"]
        return seen and [status.get(name, 0) for name in names] == [replicas] * 3

    return holds


def test_a_deployment_rolls_out(plane: Running, client: Client) -> None:
    """Made, scheduled, rolled out again; the revision is counted, which `kubectl rollout undo` needs."""
    client.create(f"{APPS}/deployments", workload("i:1", 3))
    plane.until(f"{APPS}/deployments/w", available(3))
    client.patch(
        f"{APPS}/deployments/w",
        {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}},
        "strategic-merge-patch+json",
    )
    revision = "deployment.kubernetes.io/revision"
    rolled = lambda one: one["metadata"].get("annotations", {}).get(revision) == "2" and available(3)(one)  # noqa: E731
    plane.until(f"{APPS}/deployments/w", rolled)
    nodes = {one["spec"]["nodeName"] for one in client.get(f"{CORE}/pods?labelSelector=app%3Dw")["items"]}
    assert nodes == {"node-0", "node-1", "node-2"}


def test_a_stateful_set_and_what_goes_with_its_namespace(plane: Running, client: Client) -> None:
    """Its pods come one after the other; deleting the namespace takes all."""
    client.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    path = "/apis/apps/v1/namespaces/n/statefulsets"
    client.create(path, workload("i", 2))
    plane.until(f"{path}/w", lambda one: one.get("status", {}).get("availableReplicas") == 2)
    watch = plane.watch("/api/v1/namespaces/n?watch=1&timeoutSeconds=60")
    client.delete("/api/v1/namespaces/n")
    watch.until(lambda event: event["type"] == "DELETED")


def test_a_daemon_set_is_on_every_node(plane: Running, client: Client) -> None:
    """By affinity to each, which its scheduler honours."""
    one = workload("i", 0)
    del one["spec"]["replicas"]
    client.create(f"{APPS}/daemonsets", one)
    plane.until(f"{APPS}/daemonsets/w", lambda one: one.get("status", {}).get("numberAvailable") == 3)


def test_a_cron_job_runs_a_job_to_completion(plane: Running, client: Client) -> None:
    """Its status has the time of the last success."""
    containers = [{"name": "c", "image": "i", "command": ["true"]}]
    job = {"template": {"spec": {"restartPolicy": "OnFailure", "containers": containers}}, "completions": 2}
    spec = {"schedule": "@every 2s", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job}}
    client.create(f"{BATCH}/cronjobs", {"metadata": {"name": "w"}, "spec": spec})
    plane.until(f"{BATCH}/cronjobs/w", lambda one: "lastSuccessfulTime" in one.get("status", {}))
    done = client.get(f"{BATCH}/jobs")["items"][0]
    assert (done["status"]["succeeded"], done["metadata"]["ownerReferences"][0]["kind"]) == (2, "CronJob")


def test_a_quota_and_a_budget_are_kept(plane: Running, client: Client) -> None:
    """Counted by one program, honoured by the other."""
    client.create(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}})
    plane.until(f"{CORE}/resourcequotas/q", lambda one: one.get("status", {}).get("hard") == {"pods": "2"})
    selector = {"matchLabels": {"app": "w"}}
    budget = {"metadata": {"name": "b"}, "spec": {"selector": selector, "minAvailable": 2}}
    client.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    client.create(f"{APPS}/deployments", workload("i", 3))
    full = lambda one: one.get("status", {}).get("availableReplicas") == 2  # noqa: E731
    plane.until(f"{APPS}/deployments/w", full)
    counted = lambda one: one.get("status", {}).get("currentHealthy") == 2  # noqa: E731
    plane.until("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b", counted)
    name = client.get(f"{CORE}/pods")["items"][0]["metadata"]["name"]
    assert client.call("POST", f"{CORE}/pods/{name}/eviction", {"metadata": {"name": name}})[0] == 429


def test_a_pod_gets_its_device(plane: Running, client: Client) -> None:
    """A claim is made from a template, allocated by the scheduler and reserved for the pod, until it is tainted."""
    client.create(f"{DEVICES}/deviceclasses", {"metadata": {"name": "c"}, "spec": {}})
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "d.example.com", "nodeName": "node-1", "pool": pool, "devices": [{"name": "d0"}]}
    client.create(f"{DEVICES}/resourceslices", {"metadata": {"name": "s"}, "spec": devices})
    wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    template = {"metadata": {"name": "t"}, "spec": {"spec": wanted}}
    client.create(f"{DEVICES}/namespaces/default/resourceclaimtemplates", template)
    claims = [{"name": "x", "resourceClaimTemplateName": "t"}]
    containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]}}]
    spec = {"containers": containers, "resourceClaims": claims}
    client.create(f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": spec})
    bound = plane.until(f"{CORE}/pods/p", lambda one: one.get("status", {}).get("phase") == "Running")
    assert bound["spec"]["nodeName"] == "node-1"
    watch = plane.watch(f"{CORE}/pods/p?watch=1&timeoutSeconds=60")
    taint = {"key": "broken", "effect": "NoExecute"}
    tainted = {"spec": {"devices": [{"name": "d0", "taints": [taint]}]}}
    client.patch(f"{DEVICES}/resourceslices/s", tainted, "merge-patch+json")
    watch.until(lambda event: "DeletionByDeviceTaintManager" in str(event["object"]["status"]))
