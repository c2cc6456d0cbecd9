"""DaemonSets: one pod on each eligible node."""

import json
from typing import Any

import pytest

from kubestow.apiserver.store.records import Change
from support.apiserver.world import World, template, workload

SETS = "daemonsets.apps"

pytestmark = pytest.mark.world(nodes=4)


def nodes(world: World) -> list[str]:
    """Return the sorted nodes that have a pod."""
    return sorted(one["spec"].get("nodeName", "") for one in world.pods())


def label(world: World, node: str, **labels: str | None) -> None:
    """Set or remove labels of a node."""

    def alter(one: dict[str, Any]) -> None:
        for key, value in labels.items():
            one["metadata"]["labels"][key] = value
            if value is None:
                del one["metadata"]["labels"][key]

    world.update("nodes", node, alter)


def taint(world: World, node: str, effect: str) -> None:
    """Taint a node."""
    world.update("nodes", node, lambda one: one.setdefault("spec", {}).update(taints=[{"key": "t", "effect": effect}]))


def test_each_node_gets_a_pod(world: World) -> None:
    """Also a new node; the pod has an affinity to it, and tolerates the taints of conditions."""
    world.create(SETS, "w", workload())
    world.run(10)
    assert nodes(world) == ["node-0", "node-1", "node-2", "node-3"]
    world.create("nodes", "late")
    world.run(10)
    status = world.status(SETS, "w")
    assert (status["desiredNumberScheduled"], status["numberAvailable"], status["updatedNumberScheduled"]) == (5, 5, 5)
    pod = world.pods()[-1]
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["late"]}]}]
    tolerated = {(one["key"], one["effect"]) for one in pod["spec"]["tolerations"] if "tolerationSeconds" not in one}
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
    assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated


def test_labels_decide_where_pods_run(world: World) -> None:
    """A node that no longer matches loses its pod."""
    world.create(SETS, "w", workload(template=template(nodeSelector={"disk": "ssd"})))
    world.run(5)
    assert nodes(world) == []
    label(world, "node-1", disk="ssd")
    world.run(10)
    assert nodes(world) == ["node-1"]
    label(world, "node-1", disk=None)
    world.run(10)
    assert nodes(world) == []


@pytest.mark.parametrize(("effect", "left"), [("NoSchedule", 4), ("NoExecute", 3), ("PreferNoSchedule", 4)])
def test_a_taint_blocks_or_evicts_pods(world: World, effect: str, left: int) -> None:
    """With NoSchedule the pod is misplaced and continues to run."""
    world.create(SETS, "w", workload())
    world.run(10)
    taint(world, "node-1", effect)
    world.run(10)
    assert len(nodes(world)) == left
    status = world.status(SETS, "w")
    assert status["numberMisscheduled"] == (effect == "NoSchedule")
    assert status["desiredNumberScheduled"] == (4 if effect == "PreferNoSchedule" else 3)


def test_a_cordoned_node_keeps_its_pod_and_gets_one(world: World) -> None:
    """The pods of a DaemonSet tolerate the taint."""
    world.update("nodes", "node-0", lambda one: one.setdefault("spec", {}).update(unschedulable=True))
    world.run()
    world.create(SETS, "w", workload())
    world.run(10)
    assert "node-0" in nodes(world)


def rolling(**limits: Any) -> dict[str, Any]:
    """Return an update strategy."""
    return {"type": "RollingUpdate", "rollingUpdate": limits}


@pytest.mark.parametrize(
    ("limits", "least", "most"),
    [
        ({"maxUnavailable": 1}, 3, 4),
        ({"maxUnavailable": "50%"}, 2, 4),
        ({"maxSurge": 1, "maxUnavailable": 0}, 4, 5),
        ({"maxSurge": 2, "maxUnavailable": 0}, 4, 6),
    ],
)
def test_an_update_keeps_its_bounds(world: World, limits: dict[str, Any], least: int, most: int) -> None:
    """Without a surge old pods are deleted first, with one new pods are created first."""
    world.create(SETS, "w", workload(updateStrategy=rolling(**limits)))
    world.run(10)
    counts = []

    def count(_: Change) -> None:
        alive = world.pods()
        counts.append((sum(1 for one in alive if one["status"]["phase"] == "Running"), len(alive)))

    world.watch("pods", count)
    world.set(SETS, "w", template=template("i:2"))
    world.run(60)
    assert {one["spec"]["containers"][0]["image"] for one in world.pods()} == {"i:2"}
    assert nodes(world) == ["node-0", "node-1", "node-2", "node-3"]
    assert (min(running for running, _ in counts), max(total for _, total in counts)) == (least, most)


def test_on_delete_replaces_only_deleted_pods(world: World) -> None:
    """The new pod has the new template."""
    world.create(SETS, "w", workload(updateStrategy={"type": "OnDelete"}))
    world.run(10)
    world.set(SETS, "w", template=template("i:2"))
    world.run(20)
    assert world.status(SETS, "w").get("updatedNumberScheduled", 0) == 0
    world.delete("pods", world.pods()[0]["metadata"]["name"])
    world.run(20)
    assert world.status(SETS, "w")["updatedNumberScheduled"] == 1


def test_an_update_that_never_becomes_ready_stops(world: World) -> None:
    """At most maxUnavailable nodes have no ready pod."""
    world.create(SETS, "w", workload())
    world.run(10)
    world.set(SETS, "w", template=template("i:2", {"ready-seconds": "inf"}))
    world.run(300)
    status = world.status(SETS, "w")
    assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (1, 3)


def test_a_failed_pod_is_replaced_with_backoff(world: World) -> None:
    """Each replacement records an event."""
    world.create(SETS, "w", workload())
    world.run(10)

    def fail() -> None:
        for one in world.pods():
            if one["spec"].get("nodeName") == "node-0" and one["status"]["phase"] != "Failed":
                world.update(
                    "pods", one["metadata"]["name"], lambda pod: pod["status"].update(phase="Failed"), sub="status"
                )

    fail()
    world.run(0.5)
    fail()
    world.run(0.2)
    assert [one for one in world.pods() if one["status"]["phase"] == "Failed"] != []
    world.run(20)
    assert [one for one in world.pods() if one["status"]["phase"] == "Failed"] == []
    assert [reason for reason, _ in world.events("DaemonSet")].count("FailedDaemonPod") == 2


def test_a_deleted_node_loses_its_pod(world: World) -> None:
    """No new pod is created for it."""
    world.create(SETS, "w", workload())
    world.run(10)
    world.delete("nodes", "node-3")
    world.run(120)
    assert nodes(world) == ["node-0", "node-1", "node-2"]
    assert world.status(SETS, "w")["desiredNumberScheduled"] == 3


def test_a_revision_has_sorted_keys(world: World) -> None:
    """Go clients, such as kubectl, compare the bytes."""
    world.create(SETS, "w", workload())
    world.run(5)
    (revision,) = world.all("controllerrevisions.apps")
    assert json.dumps(revision["data"]) == json.dumps(revision["data"], sort_keys=True)
