"""The recorded scenarios of pod groups, run with this scheduler at a real kube-apiserver."""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from support.integration.cluster import node
from support.integration.device_manifests import (
    CLAIMS,
    CLASSES,
    SLICES,
    claim,
    claiming,
    device_class,
    device_slice,
    reserved_for,
)
from support.integration.real_control_plane import RealControlPlane, RefusedError, needs_version
from support.integration.real_scheduler import Start, start
from support.polling import until
from support.project_scripts import load_script
from support.reference import case_file

__all__ = ["start"]
"""Fixtures."""

FILE = case_file("gang")
GANG = load_script("conformance_kinds/gang")
QUIET_SECONDS = 2.5
SLOW_SECONDS = 20.0

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not FILE.exists(), reason=f"no recorded cases at {FILE}"),
]


GATES = ",".join(f"{gate}=true" for gate in GANG.GATES.split())


@pytest.fixture(scope="module")
def plane(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    """With all feature gates of pod groups."""
    needs_version(assets, 37, "pod groups")
    flags = (f"--feature-gates={GATES}", "--runtime-config=scheduling.k8s.io/v1beta1=true")
    running = RealControlPlane(assets, tmp_path_factory.mktemp("groups"), *flags)
    for name, value in GANG.PRIORITIES.items():
        running.create(GANG.PATHS["PriorityClass"], {"metadata": {"name": name}, "value": value})
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _clean(plane: RealControlPlane) -> Iterator[None]:
    """Start every scenario with an empty cluster."""
    yield
    for kind in ("Pod", "PodGroup", "Node", "Event"):
        plane.delete(GANG.PATHS[kind])
    for group in plane.get(GANG.PATHS["PodGroup"])["items"]:
        # No controller removes the protection finalizer.
        plane.patch(f"{GANG.PATHS['PodGroup']}/{group['metadata']['name']}", {"metadata": {"finalizers": None}})
    until(lambda: not plane.get(GANG.PATHS["Pod"])["items"] and not plane.get(GANG.PATHS["PodGroup"])["items"])


def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.open(FILE)] if FILE.exists() else []


def observed_state(plane: RealControlPlane) -> dict[str, Any]:
    items = {kind: plane.get(GANG.PATHS[kind])["items"] for kind in GANG.OBSERVED_KINDS}
    return dict(GANG.observed_state(items))


def difference(plane: RealControlPlane, expected: dict[str, Any]) -> str | None:
    """Return the difference to the expected state once nothing changes any more; slow machines get more time."""
    last, since = observed_state(plane), time.monotonic()
    while True:
        differs: str | None = GANG.difference(last, expected)
        if time.monotonic() - since > (QUIET_SECONDS if differs is None else SLOW_SECONDS):
            return differs
        time.sleep(0.1)
        now = observed_state(plane)
        if now != last:
            last, since = now, time.monotonic()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_recorded_scenarios(plane: RealControlPlane, start: Start, case: dict[str, Any]) -> None:
    """After each step, bound pods, pending pods with their messages, and conditions of groups."""
    scheduler = start("--leader-elect=false", f"--feature-gates={GATES.replace(',WorkloadWithJob=true', '')}")
    until(lambda: scheduler.get("/readyz")[0] == HTTPStatus.OK, scheduler.output)
    for step, expected in zip(case["steps"], case["expect"], strict=True):
        for obj in step.get("apply", ()):
            plane.create(GANG.PATHS[obj["kind"]], obj)
        for kind, name in step.get("delete", ()):
            # An evicted pod is already gone.
            with suppress(RefusedError):
                plane.delete(f"{GANG.PATHS[kind]}/{name}")
        assert difference(plane, expected) is None


def test_a_gang_that_shares_a_claim(plane: RealControlPlane, start: Start) -> None:
    """All of its pods reserve the claim, on the node of its device."""
    plane.create(CLASSES, device_class())
    for name in ("n0", "n1"):
        plane.create(GANG.PATHS["Node"], node(name))
        plane.create(SLICES, device_slice(name, 1))
    plane.create(CLAIMS, claim("shared"))
    plane.create(
        GANG.PATHS["PodGroup"], {"metadata": {"name": "a"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    )
    names = ["a0", "a1", "a2"]
    for name in names:
        member = claiming(name, "shared")
        member["spec"]["schedulingGroup"] = {"podGroupName": "a"}
        plane.create(GANG.PATHS["Pod"], member)
    scheduler = start("--leader-elect=false", f"--feature-gates={GATES.replace(',WorkloadWithJob=true', '')}")
    until(lambda: observed_state(plane)["bound"] == {"a": 3}, scheduler.output)
    shared = plane.get(f"{CLAIMS}/shared")
    assert sorted(reserved_for(shared)) == names
    assert {one["spec"]["nodeName"] for one in plane.get(GANG.PATHS["Pod"])["items"]} == {
        one["pool"] for one in shared["status"]["allocation"]["devices"]["results"]
    }
