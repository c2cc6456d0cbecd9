"""Nodes without heartbeats or with taints, and the pods on them."""

from typing import Any

import pytest

from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.podgc import PodGarbageCollector
from kubestow.apiserver.controllers.pods import Pods
from kubestow.apiserver.controllers.queue import Controllers
from kubestow.apiserver.store.records import Change
from support.apiserver.world import World, template, workload

PREFIX = "node.kubernetes.io/"

pytestmark = pytest.mark.world(nodes=2)


def annotate(world: World, node: str, **annotations: str) -> None:
    """Annotate a node for its simulated kubelet."""
    texts = {f"kubestow.dev/{key}": value for key, value in annotations.items()}
    world.update("nodes", node, lambda one: one["metadata"].setdefault("annotations", {}).update(texts))


def taints(world: World, node: str) -> set[tuple[str, str]]:
    """Return the taints of a node, without their prefix."""
    found = world.get("nodes", node).get("spec", {}).get("taints", ())
    return {(one["key"].removeprefix(PREFIX), one["effect"]) for one in found}


def create_pod(world: World, name: str, **spec: Any) -> None:
    """Create a pod on node-0."""
    world.create("pods", name, {**template(nodeName="node-0")["spec"], **spec})


def test_a_node_without_heartbeats_becomes_unknown(world: World) -> None:
    """After fifty seconds; its pods are not ready, and are evicted five minutes later."""
    create_pod(world, "p")
    world.run(5)
    annotate(world, "node-0", ready="unknown")
    world.run(45)
    assert world.condition("nodes", "node-0", "Ready")["status"] == "True"
    world.run(10)
    assert world.condition("nodes", "node-0", "Ready")["reason"] == "NodeStatusUnknown"
    assert taints(world, "node-0") == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert world.condition("pods", "p", "Ready")["status"] == "False"
    assert ("NodeNotReady", "Node is not ready") in world.events("Pod")
    world.run(280)
    assert "deletionTimestamp" not in world.get("pods", "p")["metadata"]
    world.run(30)
    assert "deletionTimestamp" in world.get("pods", "p")["metadata"]
    assert ("TaintManagerEviction", "Marking for deletion Pod default/p") in world.events("Pod")
    assert world.condition("pods", "p", "DisruptionTarget")["reason"] == "DeletionByTaintManager"


def test_a_node_recovers(world: World) -> None:
    """It is ready without taints, and its pods are ready again."""
    create_pod(world, "p")
    world.run(5)
    annotate(world, "node-0", ready="unknown")
    world.run(100)
    annotate(world, "node-0", ready="true")
    world.run(5)
    assert taints(world, "node-0") == set()
    assert world.condition("pods", "p", "Ready")["status"] == "True"
    statuses = {one["type"]: one["status"] for one in world.status("nodes", "node-0")["conditions"]}
    assert statuses == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


def test_nodes_recover_when_their_heartbeats_were_late(world: World) -> None:
    """As after a suspension of the machine: their simulated kubelets report again, and so do pods."""
    create_pod(world, "p")
    world.run(5)
    unknown = []
    world.watch("nodes", lambda change: unknown.append(b"NodeStatusUnknown" in change.record.body))
    world.clock.time += 3600
    world.run(30)
    assert any(unknown)
    for node in ("node-0", "node-1"):
        assert world.condition("nodes", node, "Ready")["status"] == "True"
        assert taints(world, node) == set()
    assert world.condition("pods", "p", "Ready")["status"] == "True"


def test_a_node_that_never_had_a_heartbeat_keeps_its_status() -> None:
    """Nodes without a kubelet are not changed."""
    world = World(1, kubelets=False)
    world.run(600)
    assert taints(world, "node-0") == set()


@pytest.mark.parametrize(
    ("type_", "key"), [("MemoryPressure", "memory-pressure"), ("NetworkUnavailable", "network-unavailable")]
)
def test_taints_follow_conditions(world: World, type_: str, key: str) -> None:
    """They are removed with them."""
    world.run(1)

    def report(status: str) -> None:
        def alter(node: dict[str, Any]) -> None:
            others = [one for one in node["status"]["conditions"] if one["type"] != type_]
            node["status"]["conditions"] = [*others, {"type": type_, "status": status}]

        world.update("nodes", "node-0", alter, sub="status")
        world.run(1)

    report("True")
    assert taints(world, "node-0") == {(key, "NoSchedule")}
    report("False")
    assert taints(world, "node-0") == set()


def test_pods_are_evicted_when_their_toleration_ends(world: World) -> None:
    """At once without a toleration, later with a limited one, else never."""
    fire = {"key": "fire", "effect": "NoExecute"}
    create_pod(world, "never")
    create_pod(
        world,
        "awhile",
        tolerations=[{"key": "fire", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
    )
    create_pod(world, "always", tolerations=[{"key": "fire", "operator": "Exists"}])
    world.run(5)
    gone: dict[str, float] = {}

    def note(change: Change) -> None:
        if b'"deletionTimestamp"' in change.record.body:
            gone.setdefault(change.record.name, world.clock.time)

    world.watch("pods", note)
    begun = world.clock.time
    world.update("nodes", "node-0", lambda one: one.setdefault("spec", {}).update(taints=[fire]))
    world.run(120)
    assert {name: round(at - begun) for name, at in gone.items()} == {"never": 0, "awhile": 60}
    assert world.phases() == ["Running"]


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param([], marks=pytest.mark.world(nodes=2)),
        pytest.param(["above"], marks=pytest.mark.world(nodes=2, gates="TaintTolerationComparisonOperators=true")),
    ],
)
def test_tolerations_compare_numbers_with_the_gate(world: World, kept: list[str]) -> None:
    """A taint of 5 is greater than 4, and not than 5."""
    for name, value in (("above", "4"), ("equal", "5")):
        create_pod(world, name, tolerations=[{"key": "fire", "operator": "Gt", "value": value, "effect": "NoExecute"}])
    world.run(5)
    fire = {"key": "fire", "value": "5", "effect": "NoExecute"}
    world.update("nodes", "node-0", lambda one: one.setdefault("spec", {}).update(taints=[fire]))
    world.run(60)
    assert [name for name in ("above", "equal") if world.find("pods", name)] == kept


def test_removing_a_taint_cancels_the_eviction(world: World) -> None:
    """The time starts again with the next taint."""
    create_pod(
        world, "p", tolerations=[{"key": "fire", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    )
    world.run(5)
    for _ in range(2):
        world.update(
            "nodes", "node-0",
            lambda one: one.setdefault("spec", {}).update(taints=[{"key": "fire", "effect": "NoExecute"}]),
        )  # fmt: skip
        world.run(40)
        world.update("nodes", "node-0", lambda one: one["spec"].pop("taints"))
        world.run(5)
    assert world.phases() == ["Running"]


def test_pods_of_a_deleted_node_are_deleted(world: World) -> None:
    """After a delay, since the node may be created late; their owner replaces them."""
    world.create("replicasets.apps", "w", workload(replicas=2))
    world.run(5)
    world.delete("nodes", "node-0")
    world.run(30)
    assert len(world.all("pods")) == 2
    world.run(60)
    assert {one["spec"]["nodeName"] for one in world.all("pods")} == {"node-1"}


def test_the_number_of_finished_pods_is_limited() -> None:
    """The oldest are deleted."""
    world = World(1, wanted="node-lifecycle-controller")
    collector = Controllers(
        world.store, [PodGarbageCollector(Pods(Api(world.writer, world.remover)), finished_limit=3)]
    )
    for number in range(5):
        world.create("pods", f"p{number}", template(restartPolicy="Never")["spec"])
        world.run(15)
    while collector.next_due() is not None:
        collector.reconcile_next()
    assert [one["metadata"]["name"] for one in world.all("pods")] == ["p2", "p3", "p4"]
