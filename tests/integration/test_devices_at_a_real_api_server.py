"""Claims at a real kube-apiserver, which validates all writes: allocated, reserved, freed, contended for, generated."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.cel import CompileError, compile_selector
from kubestow.apiserver.rules.devices import max_cost
from support.cel.costly import EXPRESSIONS, at_the_limit, repeated
from support.integration.cluster import node, pod
from support.integration.conflicting_proxy import conflicting
from support.integration.device_manifests import (
    CLAIMS,
    CLASSES,
    DRIVER,
    SLICES,
    claim,
    claiming,
    device_class,
    device_slice,
    devices_of,
    reserved_for,
)
from support.integration.real_control_plane import RealControlPlane, RefusedError, needs_version
from support.integration.real_scheduler import PODS, Start, plane, start
from support.polling import until

__all__ = ["plane", "start"]
"""Fixtures."""

RESOURCE = "example.com/gpu"


@pytest.fixture(scope="module", autouse=True)
def _new_enough(server: Path) -> None:
    needs_version(server, 34, "resource.k8s.io/v1")


@pytest.fixture(autouse=True)
def _clean(plane: RealControlPlane) -> Iterator[None]:
    """Start every test with an empty cluster."""
    yield
    for path in (PODS, SLICES, CLASSES, "/api/v1/nodes"):
        plane.delete(path)
    for name in _claims(plane):
        _free(plane, name)
        plane.patch(f"{CLAIMS}/{name}", {"metadata": {"finalizers": None}})
    plane.delete(CLAIMS)
    until(lambda: not plane.get(PODS)["items"] and not _claims(plane))


def _claims(plane: RealControlPlane) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in plane.get(CLAIMS)["items"]}


def _free(plane: RealControlPlane, name: str) -> None:
    """Release a claim, as its controller does when no pod uses it."""
    plane.patch(f"{CLAIMS}/{name}/status", {"status": {"reservedFor": None}})
    plane.patch(f"{CLAIMS}/{name}/status", {"status": {"allocation": None}})


def _nodes_of(plane: RealControlPlane) -> dict[str, str]:
    return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in plane.get(PODS)["items"]}


def _message(plane: RealControlPlane, name: str) -> str:
    conditions = plane.get(f"{PODS}/{name}")["status"].get("conditions") or ()
    return next((str(of.get("message", "")) for of in conditions if of["type"] == "PodScheduled"), "")


def _offer(plane: RealControlPlane, *counts: int, **spec: Any) -> None:
    plane.create(CLASSES, device_class(**spec))
    for number, count in enumerate(counts):
        plane.create("/api/v1/nodes", node(f"n{number}"))
        plane.create(SLICES, device_slice(f"n{number}", count))


def test_claims_are_allocated_shared_and_freed(plane: RealControlPlane, start: Start) -> None:
    """Two pods share a claim; a third waits for its own until the device is free."""
    _offer(plane, 1)
    plane.create(CLAIMS, claim("c"))
    plane.create(PODS, claiming("first", "c"))
    scheduler = start("--leader-elect=false")
    until(lambda: _nodes_of(plane)["first"] == "n0", scheduler.output)
    plane.create(PODS, claiming("second", "c"))
    plane.create(CLAIMS, claim("d"))
    plane.create(PODS, claiming("third", "d"))
    until(lambda: _nodes_of(plane)["second"] == "n0", scheduler.output)
    until(lambda: "cannot allocate all claims" in _message(plane, "third"), scheduler.output)
    assert reserved_for(_claims(plane)["c"]) == ["first", "second"]
    for name in ("first", "second"):
        plane.delete(f"{PODS}/{name}")
    _free(plane, "c")
    until(lambda: _nodes_of(plane).get("third") == "n0", scheduler.output)
    assert devices_of(_claims(plane)["d"]) == ["n0/gpu-0"]


def test_parameters_returned_in_another_form(plane: RealControlPlane, start: Start) -> None:
    """The server stores their spaces, returns them without, and rejects changes: this must not block a claim.

    The finalizer cannot be removed again with JSON, so the claim stays, in a namespace and pool of its own.
    """
    plane.create("/api/v1/namespaces", {"metadata": {"name": "spacious"}})
    plane.create(CLASSES, device_class())
    plane.create("/api/v1/nodes", node("spacious"))
    plane.create(SLICES, device_slice("spacious", 1))
    claims, pods = CLAIMS.replace("default", "spacious"), PODS.replace("default", "spacious")
    wanted = claim("c")
    wanted["metadata"]["namespace"] = "spacious"
    wanted["spec"]["devices"]["config"] = [{"opaque": {"driver": DRIVER, "parameters": {"a": [1, 2], "b": "<"}}}]
    assert ", " in json.dumps(wanted), "as it is sent"
    plane.create(claims, wanted)
    scheduler = start("--leader-elect=false")
    for name in ("first", "second"):
        using = claiming(name, "c")
        using["metadata"]["namespace"] = "spacious"
        plane.create(pods, using)
        until(lambda: all(item["spec"].get("nodeName") for item in plane.get(pods)["items"]), scheduler.output)
    assert reserved_for(plane.get(f"{claims}/c")) == ["first", "second"]
    plane.delete(pods)


def test_pods_race_for_devices(plane: RealControlPlane, start: Start) -> None:
    """Twenty pods, eight devices: eight pods get one each, and no device is allocated twice."""
    _offer(plane, 4, 4)
    scheduler = start("--leader-elect=false")
    for number in range(20):
        plane.create(CLAIMS, claim(f"c{number}"))
        plane.create(PODS, claiming(f"p{number}", f"c{number}"))
    until(lambda: sum(map(bool, _nodes_of(plane).values())) == 8, scheduler.output)
    until(lambda: sum("cannot allocate" in _message(plane, name) for name in _nodes_of(plane)) == 12, scheduler.output)
    held = [device for found in _claims(plane).values() for device in devices_of(found)]
    assert len(held) == len(set(held)) == 8


def test_conflicts_with_a_client_that_keeps_changing_claims(plane: RealControlPlane, start: Start) -> None:
    """Claims that change all the time are read and written again, until they are reserved."""
    _offer(plane, 8)
    for number in range(8):
        plane.create(CLAIMS, claim(f"c{number}"))
        plane.create(PODS, claiming(f"p{number}", f"c{number}"))
    scheduler, turn = start("--leader-elect=false"), iter(range(100_000))

    def all_bound() -> bool:
        for name in _claims(plane):
            plane.patch(f"{CLAIMS}/{name}", {"metadata": {"annotations": {"turn": str(next(turn))}}})
        return all(_nodes_of(plane).values())

    until(all_bound, scheduler.output)
    assert all(len(reserved_for(found)) == 1 for found in _claims(plane).values())


def test_every_write_meets_a_conflict_once(plane: RealControlPlane, start: Start) -> None:
    """Generated claims, finalizers, allocations, the pod's status, bindings: each write is retried."""
    _offer(plane, 4, extendedResourceName=RESOURCE)
    for number in range(3):
        plane.create(CLAIMS, claim(f"c{number}"))
        plane.create(PODS, claiming(f"p{number}", f"c{number}"))
    plane.create(PODS, _extended("x", 1))
    with conflicting(plane) as (address, refused):
        scheduler = start("--leader-elect=false", f"--master={address}")
        until(lambda: all(_nodes_of(plane).values()), scheduler.output)
        assert scheduler.stop() == 0
    claims = _claims(plane)
    held = [device for found in claims.values() for device in devices_of(found)]
    assert len(held) == len(set(held)) == 4
    assert sorted(name for found in claims.values() for name in reserved_for(found)) == ["p0", "p1", "p2", "x"]
    writes = {f"{method} {path.rpartition('/default/')[2]}" for method, path in refused}
    assert {
        "PUT resourceclaims/c0",
        "PUT resourceclaims/c0/status",
        "POST pods/p0/binding",
        "POST resourceclaims",
        "PATCH pods/x/status",
    } <= writes


def test_two_pods_race_for_the_last_device(plane: RealControlPlane, start: Start) -> None:
    """One gets it; the other does when it is free again."""
    _offer(plane, 1)
    for name in ("a", "b"):
        plane.create(CLAIMS, claim(name))
        plane.create(PODS, claiming(name, name))
    scheduler = start("--leader-elect=false")
    until(lambda: sum("cannot allocate" in _message(plane, name) for name in "ab") == 1, scheduler.output)
    until(lambda: sum(map(bool, _nodes_of(plane).values())) == 1, scheduler.output)
    (winner,) = (name for name, node_name in _nodes_of(plane).items() if node_name)
    (loser,) = {"a", "b"} - {winner}
    assert not devices_of(_claims(plane)[loser])
    plane.delete(f"{PODS}/{winner}")
    _free(plane, winner)
    until(lambda: _nodes_of(plane)[loser] == "n0", scheduler.output)


def test_pods_that_cannot_be_bound_free_their_devices(plane: RealControlPlane, start: Start) -> None:
    """A pod that is deleted while its claim is written leaves the device to the next one."""
    _offer(plane, 1)
    scheduler = start("--leader-elect=false")
    for number in range(10):
        plane.create(CLAIMS, claim(f"c{number}"))
        plane.create(PODS, claiming(f"p{number}", f"c{number}"))
        plane.delete(f"{PODS}/p{number}")
        _free(plane, f"c{number}")
    plane.create(CLAIMS, claim("last"))
    plane.create(PODS, claiming("last", "last"))

    def is_bound() -> bool:
        # The controller frees claims that no pod uses.
        for name, found in _claims(plane).items():
            if name != "last" and found.get("status", {}).get("allocation"):
                _free(plane, name)
        return _nodes_of(plane).get("last") == "n0"

    until(is_bound, scheduler.output)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_selectors_have_the_servers_cost(plane: RealControlPlane, expression: str) -> None:
    """The largest cost that is accepted here is accepted there, and one round more is rejected."""
    outer, inner = at_the_limit(max_cost(compile_selector(expression)))

    def offer(rounds: int) -> None:
        selectors = [{"cel": {"expression": repeated(expression, outer, rounds)}}]
        plane.create(f"{CLASSES}?dryRun=All", device_class(selectors=selectors))

    offer(inner)
    with pytest.raises(RefusedError, match="too complex, exceeds cost limit"):
        offer(inner + 1)


@pytest.mark.parametrize(
    "expression",
    ['device.attributes["a"].b.includes(1)', "[1].includes(1)", 'device.attributes["a"].b.all(x, true)', "dyn(true)"],
)
def test_selectors_reject_gated_features(plane: RealControlPlane, expression: str) -> None:
    """Lists as attributes, and the function that searches them: rejected with the same messages."""
    with pytest.raises(RefusedError) as there:
        plane.create(f"{CLASSES}?dryRun=All", device_class(selectors=[{"cel": {"expression": expression}}]))
    with pytest.raises(CompileError) as here:
        compile_selector(expression)
    assert str(here.value) in json.loads(str(there.value).partition(" ")[2])["message"]


def _extended(name: str, count: int) -> dict[str, Any]:
    asking = pod(name)
    amounts = {"cpu": "100m", RESOURCE: str(count)}
    asking["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return asking


def test_extended_resources(plane: RealControlPlane, start: Start) -> None:
    """The claim is generated for the pod, and the pod's status names it."""
    _offer(plane, 1, 2, extendedResourceName=RESOURCE)
    plane.create(PODS, _extended("p", 2))
    scheduler = start("--leader-elect=false")
    until(lambda: _nodes_of(plane)["p"] == "n1", scheduler.output)
    ((name, made),) = _claims(plane).items()
    assert devices_of(made) == ["n1/gpu-0", "n1/gpu-1"]
    assert plane.get(f"{PODS}/p")["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == name


def test_a_rule_keeps_pods_from_the_devices_it_taints(plane: RealControlPlane, start: Start, server: Path) -> None:
    """The rule selects a pool; its device is used once the rule is gone, as is that of the other pool before."""
    needs_version(server, 37, "DeviceTaintRules in resource.k8s.io/v1")
    rules = "/apis/resource.k8s.io/v1/devicetaintrules"
    _offer(plane, 1, 1)
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": DRIVER, "pool": "n1"}, "taint": taint}
    plane.create(
        rules, {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": spec}
    )
    scheduler = start("--leader-elect=false")
    for name in ("first", "second"):
        plane.create(CLAIMS, claim(name))
        plane.create(PODS, claiming(name, name))
    until(lambda: sorted(_nodes_of(plane).values()) == ["", "n0"], scheduler.output)
    (waiting,) = (name for name, where in _nodes_of(plane).items() if not where)
    until(lambda: "2 cannot allocate all claims" in _message(plane, waiting), scheduler.output)
    plane.delete(f"{rules}/r")
    until(lambda: _nodes_of(plane)[waiting] == "n1", scheduler.output)
