"""List attributes at a real kube-apiserver with their feature gate: validation and allocation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow.api.cel import compile_selector
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.rules.devices import max_cost
from support.apiserver.world import World
from support.cel.costly import LISTED, at_the_limit, repeated
from support.integration.cluster import node
from support.integration.device_manifests import CLAIMS, CLASSES, DRIVER, SLICES, claiming, device_class, devices_of
from support.integration.real_control_plane import RealControlPlane, RefusedError, control_plane, needs_version
from support.integration.real_scheduler import PODS, Start, start
from support.polling import until

__all__ = ["start"]
"""Fixtures."""

GATE = "DRAListTypeAttributes=true"


@pytest.fixture(scope="module")
def plane(server: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    needs_version(server, 36, "attributes that are lists")
    running = control_plane(server, tmp_path_factory.mktemp("lists"), f"--feature-gates={GATE}")
    yield running
    running.close()


def offered(name: str, *attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a slice of a node with a device for each of these values of an attribute."""
    devices = [{"name": f"d{number}", "attributes": {"roots": one}} for number, one in enumerate(attributes)]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}


@pytest.mark.parametrize(
    "attribute",
    [
        {"ints": []},
        {"int": 1, "ints": []},
        {"ints": [1], "bools": [True]},
        {"int": 1, "ints": [2]},
        {"int": 1, "bool": True},
        {"strings": ["a", "x" * 65]},
        {"versions": ["1.0.0", "1.2"]},
        {"versions": ["1.0.0-" + "a" * 65]},
        {"ints": [*range(49)]},
    ],
)
def test_invalid_lists_are_rejected_with_the_same_messages(
    plane: RealControlPlane, server: Path, attribute: dict[str, Any]
) -> None:
    """Field by field, with the messages of the embedded API server."""
    needs_version(server, 37, "declarative validation of attributes, which has other messages")
    with pytest.raises(RefusedError) as there:
        plane.create(SLICES, {"metadata": {"name": "n"}, "spec": offered("n", attribute)})
    with pytest.raises(ApiError) as here:
        World(gates=GATE).create("resourceslices.resource.k8s.io", "n", offered("n", attribute))
    assert str(here.value) == json.loads(str(there.value).partition(" ")[2])["message"]


@pytest.mark.parametrize("expression", LISTED)
def test_selectors_of_lists_have_the_servers_cost(plane: RealControlPlane, expression: str) -> None:
    """The largest cost that is accepted here is accepted there, and one round more is rejected."""
    outer, inner = at_the_limit(max_cost(compile_selector(expression, lists=True)))

    def offer(rounds: int) -> None:
        selectors = [{"cel": {"expression": repeated(expression, outer, rounds)}}]
        plane.create(f"{CLASSES}?dryRun=All", device_class(selectors=selectors))

    offer(inner)
    with pytest.raises(RefusedError, match="too complex, exceeds cost limit"):
        offer(inner + 1)


def test_devices_with_a_value_in_common(plane: RealControlPlane, start: Start) -> None:
    """Devices that a selector finds in their lists, and that share one of the values."""
    roots = [["a", "x"], ["b", "x"], ["c"], ["b", "c", "x"]]
    plane.create("/api/v1/nodes", node("n"))
    plane.create(CLASSES, device_class())
    plane.create(SLICES, {"metadata": {"name": "n"}, "spec": offered("n", *({"strings": of} for of in roots))})
    selectors = [{"cel": {"expression": f"device.attributes['{DRIVER}'].roots.includes('x')"}}]
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2, "selectors": selectors}}]
    requests += [{"name": "any", "exactly": {"deviceClassName": "gpu"}}]
    constraints = [{"matchAttribute": f"{DRIVER}/roots"}, {"requests": ["any"], "distinctAttribute": f"{DRIVER}/roots"}]
    spec = {"devices": {"requests": requests, "constraints": constraints}}
    plane.create(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
    plane.create(PODS, claiming("p", "c"))
    scheduler = start("--leader-elect=false", f"--feature-gates={GATE}")
    until(lambda: plane.get(f"{PODS}/p")["spec"].get("nodeName") == "n", scheduler.output)
    assert devices_of(plane.get(f"{CLAIMS}/c")) == ["n/d0", "n/d1", "n/d3"]
