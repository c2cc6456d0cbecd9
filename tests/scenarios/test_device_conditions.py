"""Devices that must be prepared before a pod is bound: awaited, released, and replaced."""

from typing import Any

import msgspec

from kubestow.api.codec import convert
from kubestow.api.devices import ResourceClaim
from kubestow.testing import SchedulerHarness, make_node
from support.plugins.device_world import (
    DRIVER,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    devices_of,
    exactly,
)
from support.scenarios.start import Start

READY, BROKEN = "example.com/ready", "example.com/broken"
ATTACHED: dict[str, Any] = {"bindingConditions": [READY], "bindingFailureConditions": [BROKEN], "bindsToNode": True}


def with_attachable(start: Start, nodes: int = 1, **options: Any) -> SchedulerHarness:
    """Start a scheduler with nodes n0, n1... that have one device each, which must be attached first."""
    harness = start(**options)
    harness.cluster.add(device_class())
    for number in range(nodes):
        harness.cluster.add(make_node(f"n{number}"))
        harness.cluster.add(device_slice(f"n{number}", [device("gpu-0", **ATTACHED)]))
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c"))
    return harness


def found(harness: SchedulerHarness) -> ResourceClaim:
    claim = harness.cluster.get(ResourceClaim, "default/c")
    assert claim is not None
    return claim


def report(harness: SchedulerHarness, condition: str, status: str = "True") -> None:
    """Report a condition of the claim's device, as the driver does."""
    current = found(harness)
    assert current.status.allocation is not None
    result = current.status.allocation.devices.results[0]
    manifest = msgspec.json.decode(current.source)
    reported = {"type": condition, "status": status, "reason": "Because", "message": 'it is "so"'}
    manifest["status"]["devices"] = [
        {"driver": DRIVER, "pool": result.pool, "device": result.device, "conditions": [reported]}
    ]
    harness.cluster.update(convert(ResourceClaim, manifest))


def test_the_pod_waits_until_its_device_is_ready(start: Start) -> None:
    """It is bound after the driver reports that; an event shows that it waits."""
    harness = with_attachable(start)
    harness.run_for(30)
    assert not harness.bindings
    assert harness.place_of("p") == "binding"
    assert harness.events.notes("BindingConditionsPending") == ["waiting for binding conditions for device on node n0"]
    report(harness, READY, "False")
    harness.run_for(30)
    assert not harness.bindings
    report(harness, READY)
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    got = found(harness).status.allocation
    assert got is not None
    assert got.devices.results[0].bindingConditions == (READY,)
    assert got.devices.results[0].bindingFailureConditions == (BROKEN,)


def test_a_device_that_cannot_be_prepared(start: Start) -> None:
    """The claim releases it, and gets another one, if necessary on another node."""
    harness = with_attachable(start, 2)
    harness.run_for(10)
    first = devices_of(found(harness))
    broken = "n0" if first == ["n0/gpu-0"] else "n1"
    harness.cluster.update(device_slice(broken, [device("gpu-0", taints=["broken:NoSchedule"], **ATTACHED)]))
    report(harness, BROKEN)
    harness.run_until(lambda: devices_of(found(harness)) not in (first, []))
    report(harness, READY)
    harness.run_until_idle()
    assert list(harness.bindings) == ["default/p"]
    notes = harness.events.notes("FailedScheduling")
    wanted = 'device binding failed: claim=c, reason=Because, message="it is \\"so\\""'
    assert notes[0] == f'running PreBind plugin "DynamicResources": {wanted}'
    assert "2 resourceclaim not available on the node. deallocation of ResourceClaim completed" in notes[1]


def test_a_device_that_takes_too_long(start: Start) -> None:
    """After the binding timeout of the arguments the claim is released and allocated again."""
    configuration = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {bindingTimeout: 60s}
"""
    harness = with_attachable(start, configuration=configuration)
    harness.run_for(59)
    assert harness.place_of("p") == "binding"
    harness.run_for(5)
    assert harness.events.notes("FailedScheduling")[0] == (
        'running PreBind plugin "DynamicResources": device binding timeout: context deadline exceeded'
    )
    harness.run_for(10)
    report(harness, READY)
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}


def test_a_claim_of_another_pod_that_waits_too_long(start: Start) -> None:
    """A pod that shares a claim gives up when the claim has waited too long, not the pod."""
    harness = with_attachable(start)
    harness.run_for(300)
    harness.cluster.add(claiming("late", "c"))
    harness.run_for(310)
    notes = [event.note for event in harness.events.about("late") if event.reason == "FailedScheduling"]
    assert 'running PreBind plugin "DynamicResources": device binding timeout: claim=c' in notes


def test_a_claim_that_is_deleted_meanwhile(start: Start) -> None:
    """The pod does not wait for a claim that does not exist."""
    harness = with_attachable(start)
    harness.run_for(10)
    harness.cluster.delete(found(harness))
    harness.run_until_idle()
    assert 'could not find ResourceClaim "default/c"' in harness.events.notes("FailedScheduling")[0]


def test_pools_without_conditions_come_first(start: Start) -> None:
    """Devices without binding conditions are preferred to those that must be attached."""
    harness = start()
    harness.cluster.add(device_class())
    harness.cluster.add(make_node("n0"))
    harness.cluster.add(device_slice("n0", [device("gpu-0", **ATTACHED)], pool="a"))
    harness.cluster.add(device_slice("n0", [device("gpu-0")], pool="b"))
    harness.cluster.add(claim("c", exactly()))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert devices_of(found(harness)) == ["b/gpu-0"]


def test_a_node_with_its_own_extended_resource(start: Start) -> None:
    """There is no claim for the resource to wait for, only the one that the pod names."""
    harness = start()
    harness.cluster.add(device_class(extendedResourceName="example.com/gpu"))
    harness.cluster.add(make_node("n0", resources={"example.com/gpu": 1}))
    harness.cluster.add(device_slice("n0", [device("gpu-0", **ATTACHED)]))
    harness.cluster.add(claim("c"))
    harness.cluster.add(claiming("p", "c", resources={"example.com/gpu": 1}))
    harness.run_for(5)
    report(harness, READY)
    harness.run_until_idle()
    assert harness.bindings == {"default/p": "n0"}
    assert not harness.events.notes("FailedScheduling")
