"""The writes of a live scheduler at the embedded control plane."""

from typing import Any

from support.client.virtualtime import run
from support.integration.cluster import (
    PODS,
    eventually,
    node,
    pod,
    priority_class,
    running_cluster,
    running_scheduler,
    settings,
)


def _condition(obj: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in obj["status"]["conditions"] if c["type"] == kind)
    return found


def test_pods_are_bound_with_events() -> None:
    """Existing and later pods get a node, and one event each."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), node("n2"), pod("before"))
            async with running_scheduler(cluster):
                await cluster.add(pod("after"))
                await eventually(lambda: cluster.all_bound("before", "after"))
                placed = await cluster.nodes_of_pods()

                async def have_events() -> bool:
                    return len(await cluster.events("Scheduled")) == 2

                await eventually(have_events)
                notes = {event["note"] for event in await cluster.events("Scheduled")}
                assert notes == {f"Successfully assigned default/{name} to {where}" for name, where in placed.items()}

    run(main())


def test_an_unschedulable_pod_has_a_reason_and_is_retried() -> None:
    """Condition and event contain the reason; a suitable node lets the pod in."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("small", cpu="1"), pod("big", cpu="3"))
            async with running_scheduler(cluster):

                async def refused() -> bool:
                    return bool(await cluster.events("FailedScheduling"))

                await eventually(refused)
                await eventually(lambda: _has_condition(cluster, "big"))
                condition = _condition((await cluster.pods())["big"], "PodScheduled")
                assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
                assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
                assert (await cluster.events("FailedScheduling"))[0]["note"] == condition["message"]
                await cluster.add(node("large"))
                await eventually(lambda: cluster.all_bound("big"))
                assert (await cluster.nodes_of_pods())["big"] == "large"

    run(main())


async def _has_condition(cluster: Any, name: str) -> bool:
    conditions = (await cluster.pods())[name]["status"].get("conditions", ())
    return any(condition["type"] == "PodScheduled" for condition in conditions)


def test_preemption_evicts_the_less_important() -> None:
    """The victim's status contains the reason, it is deleted, the preemptor is bound, and both have events."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1", cpu="1"), priority_class("high", 100), pod("low", cpu="900m"))
            async with running_scheduler(cluster):
                await eventually(lambda: cluster.all_bound("low"))
                await cluster.add(pod("vip", cpu="900m", priorityClassName="high"))
                await eventually(lambda: cluster.all_bound("vip"))
                assert await cluster.nodes_of_pods() == {"vip": "n1"}

                async def have_events() -> bool:
                    return bool(await cluster.events("Preempted"))

                await eventually(have_events)
                event = (await cluster.events("Preempted"))[0]
                vip = (await cluster.pods())["vip"]
                assert event["regarding"]["name"] == "low"
                assert event["note"] == f"Preempted by pod {vip['metadata']['uid']} on node n1"

    run(main())


def test_spread_pods_share_the_zones() -> None:
    """Hard topology spread applies to bound pods, too."""

    async def main() -> None:
        async with running_cluster() as cluster:
            zone = "topology.kubernetes.io/zone"
            await cluster.add(*(node(f"n{i}", **{zone: f"z{i}"}) for i in range(3)))
            constraint = {
                "maxSkew": 1,
                "topologyKey": zone,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
            for i in range(9):
                wanted = pod(f"p{i}", topologySpreadConstraints=[constraint])
                wanted["metadata"]["labels"] = {"app": "x"}
                await cluster.add(wanted)
            async with running_scheduler(cluster):
                await eventually(cluster.all_bound)
            placed = list((await cluster.nodes_of_pods()).values())
            assert {name: placed.count(name) for name in set(placed)} == {"n0": 3, "n1": 3, "n2": 3}

    run(main())


def test_a_volume_is_bound_before_its_pod() -> None:
    """The volume is reserved for the claim, the pod waits until the claim is bound, then gets the volume's node."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(
                node("n1"),
                node("n2"),
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": "local"},
                    "provisioner": "kubernetes.io/no-provisioner",
                    "volumeBindingMode": "WaitForFirstConsumer",
                },
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": "v1"},
                    "spec": {
                        "capacity": {"storage": "1Gi"},
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "local",
                        "local": {"path": "/disk"},
                        "nodeAffinity": {
                            "required": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}
                                        ]
                                    }
                                ]
                            }
                        },
                    },
                },
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {"name": "c1", "namespace": "default"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                        "storageClassName": "local",
                    },
                },
                pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c1"}}]),
            )
            await cluster.patch("/api/v1/persistentvolumes/v1/status", {"status": {"phase": "Available"}})
            async with running_scheduler(cluster):

                async def reserved() -> bool:
                    return "claimRef" in (await cluster.get("/api/v1/persistentvolumes/v1"))["spec"]

                await eventually(reserved)
                reference = (await cluster.get("/api/v1/persistentvolumes/v1"))["spec"]["claimRef"]
                assert (reference["namespace"], reference["name"]) == ("default", "c1")
                assert not await cluster.all_bound("p")
                claim = "/api/v1/namespaces/default/persistentvolumeclaims/c1"
                await cluster.patch(
                    claim,
                    {
                        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                        "spec": {"volumeName": "v1"},
                    },
                )
                await eventually(lambda: cluster.all_bound("p"))
                assert (await cluster.nodes_of_pods())["p"] == "n2"

    run(main())


def test_pods_of_other_schedulers_are_ignored() -> None:
    """A pod that names another scheduler is ignored; one that names a profile of ours is scheduled."""

    async def main() -> None:
        configuration = settings()
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), pod("theirs", schedulerName="other"), pod("ours"))
            async with running_scheduler(cluster, configuration):
                await eventually(lambda: cluster.all_bound("ours"))
                assert not await cluster.all_bound("theirs")
                assert "conditions" not in (await cluster.get(f"{PODS}/theirs"))["status"]

    run(main())
