"""Resource claims of pod groups: one claim for all pods that list it in the same way as their group."""

from typing import Any

import pytest

from support.apiserver.world import World, template

GROUPS = "podgroups.scheduling.k8s.io"
DEVICES, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
REQUEST = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
GATES = "GenericWorkload=true,DRAWorkloadResourceClaims=true"

pytestmark = pytest.mark.world(gates=GATES)


def add_group(world: World) -> None:
    world.create(GROUPS, "g", {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": CLAIMS})


def member(world: World, name: str, **spec: Any) -> None:
    group = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": CLAIMS, "restartPolicy": "Never"}
    world.create("pods", name, template(**{**group, **spec})["spec"])


def made_for(world: World, pod: str) -> str:
    (status,) = world.status("pods", pod)["resourceClaimStatuses"]
    name: str = status["resourceClaimName"]
    return name


@pytest.mark.parametrize("group_first", [True, False])
def test_a_group_has_one_claim(group_first: bool) -> None:
    """It is created for the group, and the status of each pod names it; pods wait for their group and its claim."""
    world = World(schedules=False, gates=GATES)
    if group_first:
        add_group(world)
    for name in "ab":
        member(world, name)
    world.run(1)
    if not group_first:
        add_group(world)
        world.run(1)
    assert world.all(DEVICES) == []
    world.create(TEMPLATES, "t", {"spec": REQUEST})
    world.run(1)
    (claim,) = world.all(DEVICES)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("PodGroup", "g")
    assert {made_for(world, name) for name in "ab"} == {claim["metadata"]["name"]}
    assert [one["resourceClaimName"] for one in world.status(GROUPS, "g")["resourceClaimStatuses"]] == [
        claim["metadata"]["name"]
    ]
    world.delete(DEVICES, claim["metadata"]["name"])
    world.run(1)
    (again,) = world.all(DEVICES)
    assert again["metadata"]["uid"] != claim["metadata"]["uid"]
    assert made_for(world, "a") == again["metadata"]["name"]


def test_a_claim_that_the_group_lists_differently_is_created_for_the_pod() -> None:
    world = World(schedules=False, gates=GATES)
    world.create(TEMPLATES, "t", {"spec": REQUEST})
    add_group(world)
    member(world, "a", resourceClaims=[{"name": "own", "resourceClaimTemplateName": "t"}])
    world.run(1)
    assert {one["metadata"]["ownerReferences"][0]["kind"] for one in world.all(DEVICES)} == {"Pod", "PodGroup"}


def test_pods_run_with_a_claim_that_is_reserved_for_their_group(world: World) -> None:
    """It is reserved for the group if a pod was bound by hand, and released when the group is deleted."""
    world.create(TEMPLATES, "t", {"spec": REQUEST})
    add_group(world)
    world.run(1)
    (claim,) = world.all(DEVICES)
    name = claim["metadata"]["name"]
    allocation: dict[str, Any] = {"allocation": {"devices": {"results": []}}}
    world.update(DEVICES, name, lambda one: one.update(status=dict(allocation)), sub="status")
    for pod in "ab":
        member(world, pod, nodeName="node-1")
    world.run(5)
    (consumer,) = world.get(DEVICES, name)["status"]["reservedFor"]
    uid = world.get(GROUPS, "g")["metadata"]["uid"]
    assert consumer == {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": uid}
    assert {world.status("pods", pod)["phase"] for pod in "ab"} == {"Running"}
    world.run(60)
    assert {world.status("pods", pod)["phase"] for pod in "ab"} == {"Succeeded"}
    assert world.get(DEVICES, name)["status"]["reservedFor"] == [consumer]
    world.delete(GROUPS, "g")
    world.run(5)
    assert world.all(DEVICES) == []


@pytest.mark.world(gates="GenericWorkload=true")
def test_without_the_gate_each_pod_has_its_own_claim(world: World) -> None:
    """The claims of a group are dropped."""
    world.create(TEMPLATES, "t", {"spec": REQUEST})
    add_group(world)
    for name in "ab":
        member(world, name)
    world.run(1)
    assert "resourceClaims" not in world.get(GROUPS, "g")["spec"]
    assert {one["metadata"]["ownerReferences"][0]["kind"] for one in world.all(DEVICES)} == {"Pod"}
