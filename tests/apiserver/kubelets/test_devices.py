"""Devices of simulated nodes, and pods that wait for their claims."""

from pathlib import Path
from typing import Any

import pytest

from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.kubelets.devices import DRIVER, DeviceDriver, Devices, DevicesError
from support.apiserver.world import World, template

SLICES, CLASSES = "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io"
CLAIMS = "resourceclaims.resource.k8s.io"
REQUEST = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": DRIVER}}]}}
FILE = """
kind: DeviceClass
apiVersion: resource.k8s.io/v1
metadata: {name: nic}
spec: {}
---
kind: List
items:
  - kind: ResourceSlice
    apiVersion: resource.k8s.io/v1
    metadata: {name: nics}
    spec:
      driver: nic.example.com
      nodeName: node-0
      pool: {name: nics, generation: 1, resourceSliceCount: 1}
      devices: [{name: nic-0}]
"""


def offer(world: World, wanted: str) -> list[dict[str, Any]]:
    """Return the slices after every node was reconciled."""
    devices = Devices(wanted)
    devices.add(world.writer)
    driver = DeviceDriver(Api(world.writer, world.remover), devices)
    for node in world.all("nodes"):
        driver.reconcile(("", node["metadata"]["name"]))
    return world.all(SLICES)


@pytest.mark.parametrize(("wanted", "count"), [("gpus", 4), ("2", 2)])
def test_every_node_has_whole_gpus(wanted: str, count: int) -> None:
    """In its own pool, which is deleted with the node; a class selects them."""
    world = World(2)
    slices = offer(world, wanted)
    assert offer(world, wanted) == slices
    assert [one["spec"]["nodeName"] for one in slices] == ["node-0", "node-1"]
    for one in slices:
        assert one["spec"]["pool"]["name"] == one["spec"]["nodeName"]
        assert [device["name"] for device in one["spec"]["devices"]] == [f"gpu-{n}" for n in range(count)]
        assert one["spec"]["devices"][0]["capacity"] == {"memory": {"value": "40Gi"}}
    (made,) = world.all(CLASSES)
    assert made["spec"]["extendedResourceName"] == "example.com/gpu"
    world.delete("nodes", "node-0")
    world.run(1)
    assert [one["spec"]["nodeName"] for one in world.all(SLICES)] == ["node-1"]


def test_other_devices_are_a_new_generation() -> None:
    """In a pool from an earlier run; changes of users to the same devices are kept."""
    world = World(1)
    offer(world, "2")
    taint = {"key": "broken", "effect": "NoSchedule"}
    name = "node-0-gpu.kubestow.dev-0"
    world.update(SLICES, name, lambda one: one["spec"]["devices"][0].update(taints=[taint]))
    (kept,) = offer(world, "2")
    assert kept["spec"]["devices"][0]["taints"] == [taint]
    slices = offer(world, "partitionable-gpus")
    assert [one["spec"]["pool"] for one in slices] == [{"name": "node-0", "generation": 2, "resourceSliceCount": 2}] * 2
    (whole,) = offer(world, "3")
    assert whole["spec"]["pool"] == {"name": "node-0", "generation": 3, "resourceSliceCount": 1}
    assert [one["name"] for one in whole["spec"]["devices"]] == ["gpu-0", "gpu-1", "gpu-2"]


def test_partitions_of_a_gpu_share_its_quarters() -> None:
    """Wholes, halves and quarters each consume the full GPU together."""
    counters, devices = offer(World(1), "partitionable-gpus")
    offered = {one["name"]: one["counters"] for one in counters["spec"]["sharedCounters"]}
    assert list(offered) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    for profile, count in (("whole", 1), ("half", 2), ("quarter", 4)):
        of_first = [
            one
            for one in devices["spec"]["devices"]
            if one["attributes"]["profile"]["string"] == profile and one["attributes"]["index"]["int"] == 0
        ]
        assert len(of_first) == count
        taken = [name for one in of_first for name in one["consumesCounters"][0]["counters"]]
        assert sorted(taken) == sorted(offered["gpu-0"])


def test_a_file_defines_the_objects(tmp_path: Path) -> None:
    """Slices and classes, each created once; no others."""
    path = tmp_path / "devices.yaml"
    path.write_text(FILE)
    world = World(1)
    offer(world, str(path))
    (made,) = offer(world, str(path))
    assert made["metadata"]["name"] == "nics"
    assert [one["metadata"]["name"] for one in world.all(CLASSES)] == ["nic"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("", "has no objects"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}",
            "Pod p: is not a ResourceSlice or DeviceClass",
        ),
        (
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d}",
            'devices.yaml: line 1: ResourceSlice s: ResourceSlice.resource.k8s.io "s" is invalid',
        ),
        (
            "apiVersion: resource.k8s.io/v1beta1\nkind: DeviceClass\nmetadata: {name: c}",
            "line 1: DeviceClass c: is not a ResourceSlice or DeviceClass of resource.k8s.io/v1 with a name",
        ),
        (
            "\n---\n".join(["apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: c}"] * 2),
            "line 5: DeviceClass c: duplicate name",
        ),
    ],
)
def test_an_invalid_file_is_reported(tmp_path: Path, text: str, message: str) -> None:
    """With the problem."""
    path = tmp_path / "devices.yaml"
    path.write_text(text)
    with pytest.raises(DevicesError, match=message):
        Devices(str(path)).add(World(1).writer)


@pytest.mark.parametrize("wanted", ["0", "129", "gpu"])
def test_invalid_devices_are_reported(wanted: str) -> None:
    """A number out of range, or a value that is neither a kind nor a file."""
    with pytest.raises(DevicesError, match=f"--devices: .*{wanted}"):
        Devices(wanted)


def test_a_pod_starts_when_its_claim_is_allocated_and_reserved_for_it(world: World) -> None:
    """Events report what is missing."""
    world.create("pods", "p", template(resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])["spec"])
    world.run(5)
    world.create(CLAIMS, "c", REQUEST)
    world.run(5)
    assert world.status("pods", "p")["phase"] == "Pending"
    (event,) = (message for reason, message in world.events() if reason == "FailedPrepareDynamicResources")
    assert event == "Failed to prepare dynamic resources: ResourceClaim default/c not found"
    uid = world.get("pods", "p")["metadata"]["uid"]
    reserved = [{"resource": "pods", "name": "p", "uid": uid}]
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": reserved}
    world.update(CLAIMS, "c", lambda claim: claim.update(status=status), sub="status")
    world.run(5)
    assert world.status("pods", "p")["phase"] == "Running"


def test_container_statuses_list_their_devices(world: World) -> None:
    """All devices of a claim, or those of one request, each once; none after the end."""
    options = [{"name": "first", "deviceClassName": DRIVER}]
    requests = [
        {"name": "a", "exactly": {"deviceClassName": DRIVER, "count": 2}},
        {"name": "b", "firstAvailable": options},
    ]
    world.create(CLAIMS, "c", {"devices": {"requests": requests}})
    uses: list[list[dict[str, str]]] = [[{"name": "gpu"}], [{"name": "gpu", "request": "b"}], []]
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    made = template(restartPolicy="Never", resourceClaims=claims)["spec"]
    made["containers"] = [
        {"name": f"c{number}", "image": "x", "resources": {"claims": used}} for number, used in enumerate(uses)
    ]
    world.create("pods", "p", made)
    uid = world.get("pods", "p")["metadata"]["uid"]
    devices = [("a", "gpu-0"), ("a", "gpu-0"), ("b/first", "gpu-1")]
    results = [{"request": of, "driver": DRIVER, "pool": "node-0", "device": device} for of, device in devices]
    reserved = [{"resource": "pods", "name": "p", "uid": uid}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    world.update(CLAIMS, "c", lambda claim: claim.update(status=status), sub="status")
    world.run(5)
    reported = [one.get("allocatedResourcesStatus") for one in world.status("pods", "p")["containerStatuses"]]
    gpus = [{"resourceID": f"{DRIVER}/node-0/gpu-{number}", "health": "Healthy"} for number in range(2)]
    assert reported == [
        [{"name": "claim:gpu", "resources": gpus}],
        [{"name": "claim:gpu/b", "resources": gpus[1:]}],
        None,
    ]
    world.run(60)
    ended = world.status("pods", "p")
    assert ended["phase"] == "Succeeded"
    assert all("allocatedResourcesStatus" not in one for one in ended["containerStatuses"])


def test_a_pod_without_its_claim_can_be_deleted(world: World) -> None:
    """The missing claim does not block it."""
    world.create("pods", "p", template(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])["spec"])
    world.run(5)
    assert world.status("pods", "p")["phase"] == "Pending"
    world.delete("pods", "p")
    world.run(5)
    assert world.all("pods") == []
