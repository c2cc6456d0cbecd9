"""Extended resources that stand for devices: a claim is created for the attempt, and deleted if it fails."""

from typing import Any

import pytest

from kubestow.api.devices import ResourceClaim
from kubestow.api.pod import PodExtendedResourceClaimStatus
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.plugins.device_world import claim, claiming, device_class, device_slice, devices_of, gpus
from support.scenarios.start import Start

RESOURCE = "example.com/gpu"


def with_devices(start: Start, *counts: int, **options: Any) -> SchedulerHarness:
    harness = start(**options)
    harness.cluster.add(device_class(extendedResourceName=RESOURCE))
    for number, count in enumerate(counts):
        harness.cluster.add(make_node(f"n{number}"))
        harness.cluster.add(device_slice(f"n{number}", gpus(count)))
    return harness


def asking(name: str, count: int = 1, **options: Any) -> Any:
    return make_pod(name, resources={options.pop("resource", RESOURCE): count}, **options)


def claims(harness: SchedulerHarness) -> list[ResourceClaim]:
    return harness.cluster.all(ResourceClaim)


def test_a_claim_is_created_for_the_pod(start: Start) -> None:
    """It belongs to the pod, has the devices, and the pod's status maps requests to containers."""
    harness = with_devices(start, 1, 2)
    harness.cluster.add(asking("p", 2))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n1"}
    made = claims(harness)[0]
    assert made.metadata.name.startswith("p-extended-resources-")
    assert made.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [owner.name for owner in made.metadata.ownerReferences] == ["p"]
    assert devices_of(made) == ["n1/gpu-0", "n1/gpu-1"]
    assert [consumer.name for consumer in made.status.reservedFor] == ["p"]
    status = harness.cluster.pod("p").status.extendedResourceClaimStatus
    assert isinstance(status, PodExtendedResourceClaimStatus)
    assert status.resourceClaimName == made.metadata.name
    mapped = [(of.containerName, of.resourceName, of.requestName) for of in status.requestMappings]
    assert mapped == [("main", RESOURCE, "container-0-request-0")]
    assert [call.call for call in harness.cluster.calls] == [
        "patch_pod_status",
        "create_resource_claim",
        "update_resource_claim",
        "update_resource_claim_status",
        "set_extended_resource_claim",
        "bind",
    ]


def test_every_class_has_an_implicit_resource(start: Start) -> None:
    """deviceclass.resource.kubernetes.io/NAME requests devices of the class."""
    harness = with_devices(start, 1)
    harness.cluster.add(asking("p", resource="deviceclass.resource.kubernetes.io/gpu"))
    harness.run_until_idle()
    assert devices_of(claims(harness)[0]) == ["n0/gpu-0"]


def test_a_node_with_its_own_resource(start: Start) -> None:
    """If a device plugin offers the resource no claim is created."""
    harness = with_devices(start)
    harness.cluster.add(make_node("plain", resources={RESOURCE: 4}))
    harness.cluster.add(asking("p", 3))
    harness.cluster.add(asking("too-many", 3))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "plain"}
    assert not claims(harness)
    assert f"1 Insufficient {RESOURCE}" in harness.cluster.conditions("too-many")["PodScheduled"].message


def test_both_kinds_of_claims(start: Start) -> None:
    """A claim that the pod names and one for its extended resources are allocated from the devices of a node."""
    harness = with_devices(start, 2)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c", resources={RESOURCE: 1}))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    assert sorted(device for found in claims(harness) for device in devices_of(found)) == ["n0/gpu-0", "n0/gpu-1"]


def test_too_few_devices(start: Start) -> None:
    """The pod is rejected, and no claim is created."""
    harness = with_devices(start, 1)
    harness.cluster.add(asking("p", 2))
    harness.run_until_idle()
    assert "1 cannot allocate all claims" in harness.cluster.conditions("p")["PodScheduled"].message
    assert not claims(harness)


@pytest.mark.parametrize(
    "call",
    [
        "create_resource_claim",
        "update_resource_claim",
        "update_resource_claim_status",
        "set_extended_resource_claim",
        "bind",
    ],
)
def test_a_failed_attempt_leaves_no_claim(start: Start, call: str) -> None:
    """The created claim is deleted again; the next attempt creates its own."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail(call, "Forbidden")
    harness.cluster.add(asking("p"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    assert len(claims(harness)) == 1
    assert harness.cluster.pod("p").status.extendedResourceClaimStatus is not None
    made = [made for made in harness.cluster.calls if made.call == "create_resource_claim"]
    assert len(made) == 2


@pytest.mark.parametrize(
    ("call", "message_start"),
    [
        ("create_resource_claim", "create claim for extended resources default/: "),
        ("update_resource_claim", "add finalizer to claim default/p-extended-resources-"),
        ("update_resource_claim_status", "add allocation and reservation to claim default/p-extended-resources-"),
        ("set_extended_resource_claim", "update pod default/p ExtendedResourceClaimStatus: "),
    ],
)
def test_messages_about_failed_writes(start: Start, call: str, message_start: str) -> None:
    """The message names the write."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail(call, "Forbidden")
    harness.cluster.add(asking("p"))
    harness.run_until_idle()
    (note,) = harness.events.notes("FailedScheduling")
    assert note.startswith(f'running PreBind plugin "DynamicResources": {message_start}')
    assert note.endswith(": Forbidden was asked for")


def test_a_claim_that_was_left_behind(start: Start) -> None:
    """A claim of an earlier attempt, which could not be deleted then, is deleted before the pod is retried."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail("bind", "Forbidden")
    harness.cluster.faults.fail("delete_resource_claim", "Forbidden")
    harness.cluster.add(asking("p"))
    harness.run_for(20)
    notes = harness.events.notes("FailedScheduling")
    wanted = "0/1 nodes are available: 1 cannot schedule extended resource claim. deletion of ResourceClaim completed"
    assert any(note.startswith(wanted) for note in notes)
    harness.run_for(40)
    assert harness.bindings == {"default/p": "n0"}
    assert len(claims(harness)) == 1


def test_a_claim_that_was_left_behind_without_its_class(start: Start) -> None:
    """It is deleted, too, if another class stands for the resource now."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail("update_resource_claim_status", "Forbidden")
    harness.cluster.faults.fail("delete_resource_claim", "Forbidden")
    harness.cluster.add(asking("p"))
    harness.run_until(lambda: bool(harness.events.notes("FailedScheduling")))
    harness.cluster.delete(device_class(extendedResourceName=RESOURCE))
    harness.cluster.add(device_class("other", extendedResourceName=RESOURCE))
    harness.run_for(60)
    assert harness.bindings == {"default/p": "n0"}
    wanted = claims(harness)[0].spec.devices.requests[0].exactly
    assert wanted is not None
    assert wanted.deviceClassName == "other"
