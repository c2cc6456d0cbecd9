"""Simulated nodes: pods run, finish and end; nodes become ready, lose their heartbeats, and are deleted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubestow.apiserver import Pace, StartError
from support.apiserver.running import Client, Running, pod
from support.apiserver.world import World

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
AT_ONCE = Pace(start=0, run=0, stop=0)

pytestmark = pytest.mark.control_plane(controllers=True, kubelets=True, nodes=2, pace=AT_ONCE)


def is_running(one: Any) -> bool:
    """Return whether a pod is running."""
    return bool(one["status"]["phase"] == "Running")


def condition(obj: Any, type_: str) -> str:
    """Return the status of a condition."""
    return next((one["status"] for one in obj.get("status", {}).get("conditions", ()) if one["type"] == type_), "")


def test_a_bound_pod_runs(plane: Running, client: Client) -> None:
    """With addresses, ready containers and all conditions true."""
    client.create(PODS, pod())
    client.create(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "node-1"}})
    status = plane.until(f"{PODS}/a", is_running)["status"]
    assert status["podIP"] != status["hostIP"]
    assert status["containerStatuses"][0]["ready"]
    assert {one["status"] for one in status["conditions"]} == {"True"}


def test_pods_have_addresses_of_their_own(plane: Running, client: Client) -> None:
    """Unless they use the host network."""
    for name, spec in (("a", {}), ("b", {}), ("host", {"hostNetwork": True})):
        client.create(PODS, pod(name, nodeName="node-0", **spec))
    statuses = {name: plane.until(f"{PODS}/{name}", is_running)["status"] for name in ("a", "b", "host")}
    assert statuses["a"]["podIP"] != statuses["b"]["podIP"]
    assert statuses["host"]["podIP"] == statuses["host"]["hostIP"]


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
def test_a_pod_that_is_not_restarted_ends(plane: Running, client: Client, code: str, phase: str) -> None:
    """restartPolicy Never: it succeeds or fails."""
    wanted = pod("a", nodeName="node-0", restartPolicy="Never")
    wanted["metadata"]["annotations"] = {"kubestow.dev/exit-code": code}
    client.create(PODS, wanted)
    ended = plane.until(f"{PODS}/a", lambda one: one["status"]["phase"] == phase)
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(code)


def test_a_pod_ends_gracefully(plane: Running, client: Client) -> None:
    """Deletion marks it, its kubelet removes it."""
    client.create(PODS, pod("a", nodeName="node-0"))
    plane.until(f"{PODS}/a", is_running)
    watch = plane.watch(f"{PODS}?watch=1")
    client.delete(f"{PODS}/a")
    marked = watch.until(lambda event: "deletionTimestamp" in event["object"]["metadata"])
    assert marked["type"] == "MODIFIED"
    watch.until(lambda event: event["type"] == "DELETED")


def test_a_pod_with_a_finalizer_waits_for_it(plane: Running, client: Client) -> None:
    """The kubelet has ended the pod, the finalizer still delays its removal."""
    wanted = pod("a", nodeName="node-0")
    wanted["metadata"]["finalizers"] = ["example.com/hold"]
    client.create(PODS, wanted)
    client.delete(f"{PODS}/a")
    plane.until(f"{PODS}/a", lambda one: one["metadata"].get("deletionGracePeriodSeconds") == 0)
    client.patch(f"{PODS}/a", {"metadata": {"finalizers": None}})
    assert client.call("GET", f"{PODS}/a")[0] == 404


def test_a_minimal_node_is_completed(plane: Running, client: Client) -> None:
    """It gets capacity, addresses, a Ready condition and a lease."""
    client.create(NODES, {"metadata": {"name": "bare"}})
    node = plane.until(f"{NODES}/bare", lambda one: condition(one, "Ready") == "True")
    assert set(node["status"]["allocatable"]) == {"cpu", "memory", "pods", "ephemeral-storage"}
    assert plane.until(f"{LEASES}/bare", lambda _: True)["spec"]["holderIdentity"] == "bare"


def test_a_node_set_to_not_ready_stops_acting(plane: Running, client: Client) -> None:
    """It gets a condition and taints, and its pods do not start until it is ready again."""
    client.patch(f"{NODES}/node-0", {"metadata": {"annotations": {"kubestow.dev/ready": "false"}}})
    down = plane.until(f"{NODES}/node-0", lambda one: len(one["spec"].get("taints", ())) == 2)
    assert condition(down, "Ready") == "False"
    assert {(one["key"], one["effect"]) for one in down["spec"]["taints"]} == {
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
    }
    client.create(PODS, pod("a", nodeName="node-0"))
    client.create(PODS, pod("other", nodeName="node-1"))
    plane.until(f"{PODS}/other", is_running)
    assert client.get(f"{PODS}/a")["status"]["phase"] == "Pending"
    client.patch(f"{NODES}/node-0", {"metadata": {"annotations": {"kubestow.dev/ready": "true"}}})
    plane.until(f"{PODS}/a", is_running)
    plane.until(f"{NODES}/node-0", lambda one: not one["spec"].get("taints"))


def test_a_cordoned_node_is_tainted(plane: Running, client: Client) -> None:
    """The taint is removed when the node is uncordoned."""
    # Before its kubelet has begun, it has another taint.
    plane.until(f"{NODES}/node-0", lambda one: not one["spec"].get("taints"))
    client.patch(f"{NODES}/node-0", {"spec": {"unschedulable": True}})
    tainted = plane.until(f"{NODES}/node-0", lambda one: one["spec"].get("taints"))
    assert tainted["spec"]["taints"] == [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    client.patch(f"{NODES}/node-0", {"spec": {"unschedulable": None}})
    plane.until(f"{NODES}/node-0", lambda one: not one["spec"].get("taints"))


def test_no_execute_evicts_pods(plane: Running, client: Client) -> None:
    """Those that do not tolerate the taint; others continue."""
    client.create(PODS, pod("leaves", nodeName="node-0"))
    client.create(PODS, pod("stays", nodeName="node-0", tolerations=[{"operator": "Exists"}]))
    for name in ("leaves", "stays"):
        plane.until(f"{PODS}/{name}", is_running)
    watch = plane.watch(f"{PODS}?watch=1")
    client.patch(f"{NODES}/node-0", {"spec": {"taints": [{"key": "fire", "effect": "NoExecute"}]}})
    gone = watch.until(lambda event: event["type"] == "DELETED")
    assert gone["object"]["metadata"]["name"] == "leaves"
    assert client.get(f"{PODS}/stays")["status"]["phase"] == "Running"


def test_the_lease_of_a_deleted_node_is_deleted(plane: Running, client: Client) -> None:
    """It is not renewed any more."""
    plane.until(f"{LEASES}/node-0", lambda _: True)
    watch = plane.watch(f"{LEASES}?watch=1")
    client.delete(f"{NODES}/node-0")
    assert watch.until(lambda event: event["type"] == "DELETED")["object"]["metadata"]["name"] == "node-0"


def test_heartbeats_are_renewed_in_slices_without_waking_for_each_node() -> None:
    """A twentieth of the nodes every half second; only time and version of the leases change."""
    world = World(40, wanted="none", schedules=False)
    leases = world.store.collection("leases.coordination.k8s.io").objects
    world.run(0.3)
    before = dict(leases)
    assert len(before) == 40
    world.run(0.5)
    changed = [key for key, record in leases.items() if record.rv != before[key].rv]
    assert len(changed) == 2
    old, new = before[changed[0]].object(), leases[changed[0]].object()
    assert new["metadata"].pop("resourceVersion") == str(leases[changed[0]].rv)
    old["metadata"].pop("resourceVersion")
    assert new["spec"].pop("renewTime") > old["spec"].pop("renewTime")
    assert new == old
    world.run(10)
    assert all(record.rv != before[key].rv for key, record in leases.items())


def test_a_description_of_nodes(start: Callable[..., Running], tmp_path: Path) -> None:
    """Sizes, zones, labels, taints and other resources, together with plain manifests."""
    path = tmp_path / "nodes.yaml"
    path.write_text(
        """
nodes:
  - {count: 3, name: "big-{}", cpu: 64, memory: 256Gi, zones: [a, b], labels: {disk: ssd}}
  - {name: gpu, resources: {example.com/gpu: 2}, taints: [{key: gpu, effect: NoSchedule}]}
---
apiVersion: v1
kind: Node
metadata: {name: manifest}
status: {allocatable: {cpu: 1}}
"""
    )
    client = start(nodes_file=path, nodes=1).client()
    nodes = {one["metadata"]["name"]: one for one in client.get(NODES)["items"]}
    assert sorted(nodes) == ["big-0", "big-1", "big-2", "gpu", "manifest", "node-0"]
    zones = [nodes[f"big-{number}"]["metadata"]["labels"]["topology.kubernetes.io/zone"] for number in range(3)]
    assert zones == ["a", "b", "a"]
    assert nodes["big-0"]["status"]["allocatable"]["cpu"] == "64"
    assert nodes["gpu"]["status"]["capacity"]["example.com/gpu"] == "2"
    assert nodes["gpu"]["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule", "value": ""}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: [{cpus: 4}]", r"nodes\[0\]: Object contains unknown field `cpus`"),
        ("nodes: [{cpu: many}]", r"nodes\[0\]: .*many"),
        ("nodes: [{count: 2, name: x}]", r"nodes\[0\]\.name: needs \{\}"),
        ("nodes: [{name: A_B}]", "node 'A_B': .* metadata.name"),
        ("hello", "expected Node manifests"),
        ("a: [", "not valid YAML"),
        ("", "describes no nodes"),
    ],
)
def test_a_wrong_description_is_explained(
    start: Callable[..., Running], tmp_path: Path, text: str, message: str
) -> None:
    """The message names file, entry and field."""
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(StartError, match=message):
        start(nodes_file=path)
