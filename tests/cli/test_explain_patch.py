"""`kubestow explain --patch`: the printed commands, executed by kubectl, let pending pods get a node."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.apiserver.kubectl import PROBLEM
from support.cli.explain_files import Files, node, pod, run_explain
from support.cli.up_running import Up
from support.polling import until

NAMESPACE = "/api/v1/namespaces/default"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
ZONE = "topology.kubernetes.io/zone"
NODES = """
nodes:
- {name: "plain-{}", count: 3, cpu: 4, labels: {topology.kubernetes.io/zone: zone-a}}
- name: dedicated
  cpu: 8
  labels: {topology.kubernetes.io/zone: zone-b}
  taints: [{key: dedicated, value: batch, effect: NoSchedule}]
"""


class Case(NamedTuple):
    """A pod template that cannot be placed, and the objects that it needs."""

    spec: dict[str, Any]
    change: str
    """The first suggestion."""
    cpu: str = "100m"
    objects: tuple[tuple[str, dict[str, Any]], ...] = ()
    kinds: tuple[str, ...] = ("Pod", "Deployment")
    """The second one finds what the first one has changed, so some are for one kind only."""


def required(kind: str, **term: Any) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def claim(name: str, storage_class: str) -> tuple[str, dict[str, Any]]:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
    return CLAIMS, {"metadata": {"name": name}, "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}}}


def volumes(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


CASES = {
    "request": Case({}, "request of cpu lowered from 9 to ", "9"),
    "selector": Case(
        {"nodeSelector": {ZONE: "zone-A"}},
        f"node selector {ZONE}=zone-A changed to {ZONE}=zone-a",
        kinds=("Pod", "Deployment", "StatefulSet", "ReplicaSet", "Job"),
    ),
    "key": Case({"nodeSelector": {f"{ZONE}s": "zone-a"}}, f"node selector {ZONE}s=zone-a changed to {ZONE}=zone-a"),
    "affinity": Case(
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-A"]}]}
                        ]
                    }
                }
            }
        },
        f"node affinity {ZONE} In zone-A changed to {ZONE} In zone-a",
    ),
    "toleration": Case(
        {
            "nodeSelector": {ZONE: "zone-b"},
            "tolerations": [{"key": "dedicatd", "value": "batch", "effect": "NoSchedule"}],
        },
        "toleration of dedicatd=batch:NoSchedule changed to dedicated=batch:NoSchedule",
    ),
    "taint": Case({"nodeSelector": {ZONE: "zone-b"}}, "toleration of dedicated=batch:NoSchedule added"),
    "label": Case({"nodeSelector": {"disk": "ssd"}}, "label disk=ssd added to node ", kinds=("Deployment",)),
    "missing-claim": Case(
        volumes("data-missing"), "claim default/data-missing created with storageclass ", kinds=("Pod",)
    ),
    "misspelt-claim": Case(
        volumes("cache-dta"),
        "volume data: claim cache-dta changed to cache-data",
        objects=(claim("cache-data", "standard"),),
        kinds=("Pod",),
    ),
    "misspelt-class": Case(
        volumes("logs"),
        "claim default/logs created again with storageclass standard",
        objects=(claim("logs", "standrad"),),
        kinds=("Pod",),
    ),
    "manual-class": Case(
        volumes("disk"),
        "claim default/disk created again with storageclass standard",
        objects=(claim("disk", "local"),),
        kinds=("Pod",),
    ),
    "affinity-label": Case(
        required("podAffinity", topologyKey=ZONE, labelSelector={"matchLabels": {"app": "chache"}}),
        f"affinity to pods app=chache by {ZONE}: app=chache changed to app=cache",
    ),
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster with a running pod, and two storage classes."""
    folder = tmp_path_factory.mktemp("up")
    nodes = folder / "nodes.yaml"
    nodes.write_text(NODES)
    started = Up(folder, "--nodes-file", str(nodes))
    for name, provisioner in (("standard", "csi.example.com"), ("local", "kubernetes.io/no-provisioner")):
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        started.create(CLASSES, body)
    cache = pod("cache", "100m")
    cache["metadata"]["labels"] = {"app": "cache"}
    started.create(f"{NAMESPACE}/pods", cache)
    started.pods_when("Running", 1)
    yield started
    started.stop()


def execute(up: Up, text: str) -> None:
    """Execute printed commands as a user would."""
    environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig), "HOME": str(up.kubeconfig.parent)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail"], input=text, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{text}\n{done.stderr}"


def patch_of(up: Up, *arguments: str) -> str:
    done = run_explain(*arguments, "--patch", "--kubeconfig", str(up.kubeconfig))
    assert done.exit_code == 0, done.output
    return done.output


def pods_of(up: Up, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = up.get(f"{NAMESPACE}/pods?labelSelector=case%3D{name}")["items"]
    return items


def is_rejected(up: Up, name: str) -> bool:
    return any(
        one.get("reason") == "Unschedulable"
        for item in pods_of(up, name)
        for one in item["status"].get("conditions", ())
    )


@pytest.mark.kubectl
@pytest.mark.skipif(PROBLEM is not None, reason=str(PROBLEM))
@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, case in CASES.items() for kind in case.kinds])
def test_the_commands_let_the_pod_get_a_node(up: Up, name: str, kind: str) -> None:
    """For a pod by itself, which is created again, and by way of a Deployment."""
    case, label = CASES[name], f"{name}-{kind.lower()}"
    manifest = pod(label, case.cpu, **case.spec)
    manifest["metadata"]["labels"] = {"case": label}
    for path, body in case.objects:
        up.create(path, body)
    if kind == "Pod":
        up.create(f"{NAMESPACE}/pods", manifest)
    else:
        template = {"metadata": {"labels": {"case": label}}, "spec": manifest["spec"]}
        spec: dict[str, Any] = {"replicas": 1, "selector": {"matchLabels": {"case": label}}, "template": template}
        if kind == "Job":
            spec = {"template": {**template, "spec": {**manifest["spec"], "restartPolicy": "Never"}}}
        group = "batch" if kind == "Job" else "apps"
        path = f"/apis/{group}/v1/namespaces/default/{kind.lower()}s"
        up.create(path, {"metadata": {"name": label}, "spec": spec})
    until(lambda: is_rejected(up, label))
    (waiting,) = pods_of(up, label)
    text = patch_of(up, waiting["metadata"]["name"])
    assert text.removeprefix("# ").startswith(case.change)
    execute(up, text)
    until(lambda: any(item["spec"].get("nodeName") for item in pods_of(up, label)))


@pytest.mark.kubectl
@pytest.mark.skipif(PROBLEM is not None, reason=str(PROBLEM))
def test_nodes_are_uncordoned_and_gates_removed(up: Up) -> None:
    """Both at once, because no single change is enough."""
    made = pod("both", nodeSelector={ZONE: "zone-c"}, schedulingGates=[{"name": "wait"}])
    made["metadata"]["labels"] = {"case": "both"}
    up.create(f"{NAMESPACE}/pods", made)
    body = {"metadata": {"name": "cordoned", "labels": {ZONE: "zone-c"}}, "spec": {"unschedulable": True}}
    up.create("/api/v1/nodes", {**body, "status": {"allocatable": {"cpu": "4", "pods": "10"}}})
    text = patch_of(up, "both")
    assert text.splitlines()[0] == "# scheduling gate wait removed, node cordoned uncordoned"
    execute(up, text)
    until(lambda: any(item["spec"].get("nodeName") for item in pods_of(up, "both")))


def test_pending_pods_have_a_patch_for_each_group(tmp_path: Path) -> None:
    """A comment names the owner and the change."""
    files = Files(tmp_path, node("a", "4"), pod("x", "9", schedulerName="default-scheduler"), pod("y", nodeName="a"))
    lines = files.explain("--patch").output.splitlines()
    assert lines[0] == "# Pod default/x: request of cpu lowered from 9 to 3"
    assert lines[1].startswith("kubectl get pod x -n default -o json | kubectl patch --local")


@pytest.mark.parametrize(
    ("cpu", "spec", "message"),
    [
        ("1", {}, "pod default/x needs no patch: it fits"),
        ("0", {"hostNetwork": True, "nodeName": ""}, "pod default/x needs no patch: it fits"),
    ],
)
def test_there_is_nothing_to_patch(tmp_path: Path, cpu: str, spec: dict[str, Any], message: str) -> None:
    done = Files(tmp_path, node("a")).explain_pod(pod("x", cpu, **spec), "--patch")
    assert (done.exit_code, done.stderr) == (1, f"Error: {message}\n")


def test_patches_of_groups_and_other_forms_are_refused() -> None:
    done = run_explain("podgroup/train", "--patch")
    assert (done.exit_code, "not to pod groups" in done.stderr) == (2, True)
    done = run_explain("web", "--patch", "-o", "json")
    assert (done.exit_code, "give --patch or -o, not both" in done.stderr) == (2, True)
