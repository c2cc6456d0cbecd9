"""Pods that claim devices: allocation, reservation, sharing and release of claims, and failed writes."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.devices import ResourceClaim
from kubestow.api.pod import Pod
from kubestow.testing import SchedulerHarness, make_node
from support.plugins.device_world import (
    allocated,
    claim,
    claiming,
    device_class,
    device_slice,
    devices_of,
    exactly,
    given_twice,
    gpus,
)
from support.scenarios.start import Start

FINALIZER = "resource.kubernetes.io/delete-protection"
WRITES = ["update_resource_claim", "update_resource_claim_status"]


def with_devices(start: Start, *counts: int, **options: Any) -> SchedulerHarness:
    """Start a scheduler with nodes n0, n1... that have some devices each."""
    harness = start(**options)
    harness.cluster.add(device_class())
    for number, count in enumerate(counts):
        harness.cluster.add(make_node(f"n{number}"))
        harness.cluster.add(device_slice(f"n{number}", gpus(count)))
    return harness


def found(harness: SchedulerHarness, name: str) -> ResourceClaim:
    claim = harness.cluster.get(ResourceClaim, f"default/{name}")
    assert claim is not None
    return claim


def reserved_for(claim: ResourceClaim) -> list[str]:
    return [consumer.name for consumer in claim.status.reservedFor]


def message(harness: SchedulerHarness, name: str) -> str:
    return harness.cluster.conditions(name)["PodScheduled"].message


def failures(harness: SchedulerHarness, name: str) -> list[str]:
    """Return the messages of the failed attempts of a pod."""
    return [event.note for event in harness.events.about(name) if event.reason == "FailedScheduling"]


def test_a_claim_is_allocated_and_reserved(start: Start) -> None:
    """First the finalizer is written, then allocation and reservation, then the binding."""
    harness = with_devices(start, 1, 3)
    harness.cluster.add(claim("c", exactly(2)))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n1"}
    got = found(harness, "c")
    assert devices_of(got) == ["n1/gpu-0", "n1/gpu-1"]
    assert got.metadata.finalizers == (FINALIZER,)
    assert reserved_for(got) == ["p"]
    assert got.status.allocation is not None
    assert got.status.allocation.allocationTimestamp is not None
    assert [call.call for call in harness.cluster.calls] == ["patch_pod_status", *WRITES, "bind"]


def test_a_claim_is_shared(start: Start) -> None:
    """A second pod is placed on the node of the devices, and added to the reservations of the claim."""
    harness = with_devices(start, 2, 2)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("first", "c"))
    harness.run_until_idle()
    harness.cluster.add(claiming("second", "c"))
    harness.run_until_idle()
    assert harness.cluster.node_of("second") == harness.cluster.node_of("first")
    assert reserved_for(found(harness, "c")) == ["first", "second"]


def test_a_claim_that_keeps_its_devices_is_counted_once(start: Start) -> None:
    """Later writes and versions of the claim, for another pod, do not change the usage of the pool."""
    harness = with_devices(start, 2)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("first", "c"))
    harness.run_until_idle()
    (pool,) = harness.core.cluster.devices.pools_of(0)
    version = pool.usage.version
    harness.cluster.add(claiming("second", "c"))
    harness.run_until_idle()
    assert reserved_for(found(harness, "c")) == ["first", "second"]
    assert pool.usage.version == version
    harness.cluster.delete(found(harness, "c"))
    harness.run_until_idle()
    assert pool.usage.version > version
    assert pool.usage.is_empty


def test_a_claim_that_is_being_written_is_awaited(start: Start) -> None:
    """Of two pods with one claim, the second is retried when the claim is allocated."""
    harness = with_devices(start, 2, latency=1.0)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("first", "c"))
    harness.cluster.add(claiming("second", "c"))
    harness.run_for(0.5)
    problem = "resource claim default/c is in the process of being allocated"
    wanted = f"0/1 nodes are available: {problem}. preemption: "
    assert failures(harness, "second")[0].startswith(wanted)
    harness.run_until_idle()
    assert reserved_for(found(harness, "c")) == ["first", "second"]


def test_a_claim_that_is_named_twice(start: Start) -> None:
    """It is allocated once; until that is written, no other claim gets the same devices."""
    harness = with_devices(start, 2, latency=1.0)
    for name in ("c", "d"):
        harness.cluster.add(claim(name))
    names = [{"name": name, "resourceClaimName": "c"} for name in ("one", "other")]
    harness.cluster.add(claiming("twice", spec={"resourceClaims": names}))
    harness.cluster.add(claiming("once", "d"))
    harness.run_until_idle()
    assert len(harness.bindings) == 2
    assert devices_of(found(harness, "c")) == ["n0/gpu-0"]
    assert not given_twice(harness.cluster.all(ResourceClaim))
    assert reserved_for(found(harness, "c")) == ["twice"]


@pytest.mark.parametrize("delay", [0.0, 3.0])
def test_two_pods_race_for_the_last_device(start: Start, delay: float) -> None:
    """One pod gets it, the other is rejected, however late the scheduler receives what it has written."""
    harness = with_devices(start, 1, delay=delay, latency=0.2)
    for name in ("a", "b"):
        harness.cluster.add(claim(name))
        harness.cluster.add(claiming(name, name))
    harness.run_until_idle()
    assert len(harness.bindings) == 1
    loser = "b" if "default/a" in harness.bindings else "a"
    assert message(harness, loser).startswith("0/1 nodes are available: 1 cannot allocate all claims. preemption")
    assert not given_twice(harness.cluster.all(ResourceClaim))


def test_released_devices(start: Start) -> None:
    """A waiting pod is retried when a claim releases its devices."""
    harness = with_devices(start, 1)
    harness.cluster.add(allocated("old", "n0", "gpu-0"))
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert not harness.bindings
    harness.cluster.update(claim("old"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}


def test_devices_that_are_added_later(start: Start) -> None:
    """A waiting pod is retried when its class, and then a slice, is added."""
    harness = start()
    harness.cluster.add(make_node("n0"))
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert "request r: device class gpu does not exist" in message(harness, "p")
    harness.cluster.add(device_class())
    harness.run_until_idle()
    assert "1 cannot allocate all claims" in message(harness, "p")
    harness.cluster.add(device_slice("n0", gpus(1)))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}


def test_a_claim_that_is_created_later(start: Start) -> None:
    """A pod is kept out of the queue until its claim exists."""
    harness = with_devices(start, 1)
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert harness.place_of("p") == "gated"
    harness.cluster.add(claim("c"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}


def test_a_claim_moves_to_another_node(start: Start) -> None:
    """The devices of an unused claim on a node where the pod cannot run are released, and it gets others."""
    harness = with_devices(start, 1, 1)
    harness.cluster.add(allocated("c", "n0", "gpu-0"))
    harness.cluster.add(claiming("p", "c", node_selector={"kubernetes.io/hostname": "n1"}))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n1"}
    assert devices_of(found(harness, "c")) == ["n1/gpu-0"]
    messages = failures(harness, "p")
    assert "1 resourceclaim not available on the node" in messages[0]
    assert "deallocation of ResourceClaim completed" in messages[0]


def test_a_claim_in_use_keeps_its_devices(start: Start) -> None:
    """Devices that other pods use are not released."""
    harness = with_devices(start, 1, 1)
    other = {"resource": "pods", "name": "other", "uid": "uid-of-another-pod"}
    harness.cluster.add(allocated("c", "n0", "gpu-0", reservedFor=[other]))
    harness.cluster.add(claiming("p", "c", node_selector={"kubernetes.io/hostname": "n1"}))
    harness.run_until_idle()
    assert not harness.bindings
    assert "deallocation" not in message(harness, "p")
    assert devices_of(found(harness, "c")) == ["n0/gpu-0"]


def test_a_selector_that_cannot_be_evaluated(start: Start) -> None:
    """The attempt fails with the error, and is retried; other pods are scheduled."""
    harness = with_devices(start, 2)
    harness.cluster.add(claim("bad", exactly(1, "device.attributes['gpu.example.com'].nothing == 1")))
    harness.cluster.add(claiming("bad", "bad"))
    harness.cluster.add(claim("good"))
    harness.cluster.add(claiming("good", "good"))
    harness.run_for(60)
    assert harness.bindings == {"default/good": "n0"}
    wanted = (
        'running "DynamicResources" filter plugin: claim default/bad: selector #0 on device gpu.example.com/n0/gpu-'
    )
    assert all(note.startswith(wanted) for note in failures(harness, "bad"))
    assert len(failures(harness, "bad")) > 3


# When writing fails


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("times", [1, 4])
def test_conflicts_are_retried(start: Start, call: str, times: int) -> None:
    """A claim that another client has changed meanwhile is read and written again at once."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail(call, "Conflict", times=times)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert harness.time < 0.1
    assert harness.bindings == {"default/p": "n0"}
    assert reserved_for(found(harness, "c")) == ["p"]


@pytest.mark.parametrize("call", [*WRITES, "get_resource_claim"])
@pytest.mark.parametrize("problem", ["Conflict", "InternalError", "Timeout"])
def test_failures_release_everything(start: Start, call: str, problem: str) -> None:
    """When a claim cannot be written its devices are free again, and the pod is retried later."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail(call, problem, times=5)
    if call == "get_resource_claim":
        harness.cluster.faults.fail(WRITES[0], "Conflict", times=4)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until(lambda: bool(failures(harness, "p")))
    assert not harness.core.cluster.devices._pending
    assert "claim default/c" in failures(harness, "p")[0]
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    assert reserved_for(found(harness, "c")) == ["p"]


@pytest.mark.parametrize(
    ("call", "objects", "message_start"),
    [
        (WRITES[0], [claim("c")], "add finalizer to claim default/c: "),
        (WRITES[1], [claim("c")], "add allocation and reservation to claim default/c: "),
        (WRITES[1], [allocated("c", "n0", "gpu-0")], "add reservation to claim default/c: "),
        ("get_resource_claim", [claim("c")], "get updated claim default/c after conflict: "),
    ],
)
def test_messages_about_failed_writes(start: Start, call: str, objects: list[Any], message_start: str) -> None:
    """The message names the write."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail(call, "Forbidden")
    if call == "get_resource_claim":
        harness.cluster.faults.fail(WRITES[0], "Conflict")
    for thing in objects:
        harness.cluster.add(thing)
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    wanted = f'running PreBind plugin "DynamicResources": {message_start}Forbidden was asked for'
    assert failures(harness, "p") == [wanted]


def test_a_write_that_was_carried_out_but_not_answered(start: Start) -> None:
    """The claim keeps its device, and the pod gets it."""
    harness = with_devices(start, 2)
    harness.cluster.faults.fail(WRITES[1], "ConnectionLost", takes_effect=True)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    assert devices_of(found(harness, "c")) == ["n0/gpu-0"]


def test_a_failed_binding_releases_the_reservation(start: Start) -> None:
    """The claim keeps its devices, but is not reserved for the pod any more until it is retried."""
    harness = with_devices(start, 1)
    harness.cluster.faults.fail("bind", "TooManyRequests")
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until(lambda: any(call.call == "unreserve_resource_claim" for call in harness.cluster.calls))
    assert reserved_for(found(harness, "c")) == []
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    assert reserved_for(found(harness, "c")) == ["p"]


@pytest.mark.parametrize("delay", [0.0, 4.0])
@pytest.mark.parametrize("problem", [None, "InternalError", "Forbidden"])
def test_a_reservation_is_not_released_twice(start: Start, delay: float, problem: str | None) -> None:
    """A pod that is retried while its reservation is still being released ends up with one."""
    harness = with_devices(start, 1, delay=delay)
    harness.cluster.slow["unreserve_resource_claim"] = 5.0
    harness.cluster.faults.fail("bind", "TooManyRequests")
    if problem is not None:
        harness.cluster.faults.fail("unreserve_resource_claim", problem)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    assert reserved_for(found(harness, "c")) == ["p"]


@pytest.mark.parametrize("rival", ["deleted", "allocated"])
def test_a_claim_that_changes_during_the_attempt(start: Start, rival: str) -> None:
    """A claim that is deleted, or allocated by another client, while it is being written fails the attempt."""
    harness = with_devices(start, 2, latency=1.0)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_for(0.5)
    if rival == "deleted":
        harness.cluster.delete(found(harness, "c"))
    else:
        harness.cluster.update(allocated("c", "n0", "gpu-1"))
    harness.run_until_idle()
    messages = failures(harness, "p")
    if rival == "deleted":
        assert any("not found" in text for text in messages)
        assert harness.place_of("p") == "gated"
    else:
        assert any("claim default/c got allocated elsewhere in the meantime" in text for text in messages)
        assert devices_of(found(harness, "c")) == ["n0/gpu-1"]
        assert harness.bindings == {"default/p": "n0"}


def test_a_claim_that_is_being_deleted_during_the_attempt(start: Start) -> None:
    """It still exists because of a finalizer: nothing more is written to it."""
    harness = with_devices(start, 1, latency=1.0)
    harness.cluster.faults.fail(WRITES[0], "Conflict")
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_for(0.5)
    going = found(harness, "c")
    harness.cluster.update(replace(going, metadata=replace(going.metadata, deletionTimestamp="2026-01-01T00:00:00Z")))
    harness.run_until(lambda: bool(failures(harness, "p")))
    wanted = 'running PreBind plugin "DynamicResources": claim default/c got deleted in the meantime'
    assert failures(harness, "p") == [wanted]


def test_a_claim_that_releases_its_devices_during_the_attempt(start: Start) -> None:
    """The claim had devices when the attempt began, and has none when it is to be reserved."""
    harness = with_devices(start, 1, latency=1.0)
    harness.cluster.faults.fail(WRITES[1], "Conflict")
    harness.cluster.add(allocated("c", "n0", "gpu-0"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_for(0.5)
    harness.cluster.update(claim("c", exactly(1)))
    harness.run_until(lambda: bool(failures(harness, "p")))
    wanted = 'running PreBind plugin "DynamicResources": claim default/c got deallocated elsewhere in the meantime'
    assert failures(harness, "p") == [wanted]
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}


def test_a_pod_that_is_deleted_during_the_attempt(start: Start) -> None:
    """A pod that is deleted while its claim is being written leaves no reserved devices."""
    harness = with_devices(start, 1, latency=1.0)
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    harness.run_for(0.5)
    harness.cluster.delete(harness.cluster.get(Pod, "default/p"))
    harness.run_until_idle()
    assert not harness.core.cluster.devices._pending
    assert reserved_for(found(harness, "c")) == []
