"""Devices that must be made ready before a pod is bound: waited for, given up, and tried elsewhere."""

from collections.abc import Callable
from typing import Any

import msgspec

from kubestow.api.codec import convert
from kubestow.api.devices import ResourceClaim
from kubestow.testing import SchedulerHarness, make_node
from plugins.device_world import DRIVER, claim, claiming, device, device_class, device_slice, devices_of, exactly

Start = Callable[..., SchedulerHarness]

READY, BROKEN = "example.com/ready", "example.com/broken"
ATTACHED: dict[str, Any] = {"bindingConditions": [READY], "bindingFailureConditions": [BROKEN], "bindsToNode": True}


def with_attachable(start: Start, nodes: int = 1, **options: Any) -> SchedulerHarness:
    """Nodes n0, n1... with a device each that must be attached first."""
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
    """The driver says how far the device of the claim is."""
    current = found(harness)
    assert current.status.allocation is not None
    result = current.status.allocation.devices.results[0]
    manifest = msgspec.json.decode(current.source)
    said = {"type": condition, "status": status, "reason": "Because", "message": 'it is "so"'}
    manifest["status"]["devices"] = [
        {"driver": DRIVER, "pool": result.pool, "device": result.device, "conditions": [said]}
    ]
    harness.cluster.update(convert(ResourceClaim, manifest))


def test_the_pod_waits_until_its_device_is_ready(start: Start) -> None:
    """It is bound only when the driver says so; that it waits is told in an event."""
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


def test_a_device_that_cannot_be_made_ready(start: Start) -> None:
    """The claim gives it up, and gets another one, on another node if need be."""
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
    """After the binding timeout of the arguments the claim is given up and allocated anew."""
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


def test_a_claim_that_waits_too_long_for_somebody_else(start: Start) -> None:
    """A pod that shares a claim gives up when the claim has waited too long, not when it has itself."""
    harness = with_attachable(start)
    harness.run_for(300)
    harness.cluster.add(claiming("late", "c"))
    harness.run_for(310)
    notes = [event.note for event in harness.events.about("late") if event.reason == "FailedScheduling"]
    assert 'running PreBind plugin "DynamicResources": device binding timeout: claim=c' in notes


def test_a_claim_that_vanishes_meanwhile(start: Start) -> None:
    """Nobody waits for a claim that is gone."""
    harness = with_attachable(start)
    harness.run_for(10)
    harness.cluster.delete(found(harness))
    harness.run_until_idle()
    assert 'could not find ResourceClaim "default/c"' in harness.events.notes("FailedScheduling")[0]


def test_pools_without_conditions_come_first(start: Start) -> None:
    """Devices that are ready at once are preferred to those that must be attached."""
    harness = start()
    harness.cluster.add(device_class())
    harness.cluster.add(make_node("n0"))
    harness.cluster.add(device_slice("n0", [device("gpu-0", **ATTACHED)], pool="a"))
    harness.cluster.add(device_slice("n0", [device("gpu-0")], pool="b"))
    harness.cluster.add(claim("c", exactly()))
    harness.cluster.add(claiming("p", "c"))
    harness.run_until_idle()
    assert devices_of(found(harness)) == ["b/gpu-0"]


def test_a_node_that_offers_an_extended_resource_itself(start: Start) -> None:
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
