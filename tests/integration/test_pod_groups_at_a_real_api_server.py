"""Pod groups at a real kube-apiserver: preemption, Jobs, devices, and the scenarios recorded with kube-scheduler."""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from support.integration.cluster import node, pod
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
from support.integration.real_control_plane import (
    EMBEDDED,
    RealControlPlane,
    RefusedError,
    control_plane,
    needs_version,
)
from support.integration.real_scheduler import Scheduler, Start, start
from support.polling import until
from support.project_scripts import load_script
from support.reference import case_file

__all__ = ["start"]
"""Fixtures."""

FILE = case_file("gang")
GANG = load_script("conformance_kinds/gang")
QUIET_SECONDS = 2.5
SLOW_SECONDS = 20.0

GATES = ",".join(f"{gate}=true" for gate in GANG.GATES.split())
FLAGS = (f"--feature-gates={GATES}", "--runtime-config=scheduling.k8s.io/v1beta1=true")
SCHEDULER_FLAGS = ("--leader-elect=false", f"--feature-gates={GATES.replace(',WorkloadWithJob=true', '')}")
AT_THE_EMBEDDED = ("gang-1-0-fit", "gang-1-7-preempt")
"""Scenarios that are also run at the embedded API server, where conformance replays all of them in virtual time."""


@pytest.fixture(scope="module")
def plane(server: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    """With all feature gates of pod groups."""
    needs_version(server, 37, "pod groups in scheduling.k8s.io/v1beta1")
    running = control_plane(server, tmp_path_factory.mktemp("groups"), *FLAGS)
    for name, value in GANG.PRIORITIES.items():
        running.create(GANG.PATHS["PriorityClass"], {"metadata": {"name": name}, "value": value})
        until(partial(_admits, running, name))
    yield running
    running.close()


def _admits(plane: RealControlPlane, priority: str) -> bool:
    """Return whether the server, which watches priority classes, knows a new one."""
    with suppress(RefusedError):
        plane.create(f"{GANG.PATHS['Pod']}?dryRun=All", pod("p", priorityClassName=priority))
        return True
    return False


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


@pytest.mark.skipif(not FILE.exists(), reason=f"no recorded cases at {FILE}")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_recorded_scenarios(plane: RealControlPlane, start: Start, server: Path, case: dict[str, Any]) -> None:
    """After each step, bound pods, pending pods with their messages, conditions of groups, and events."""
    if server == EMBEDDED and case["id"] not in AT_THE_EMBEDDED:
        pytest.skip("conformance replays it at the embedded API server")
    scheduler = start(*SCHEDULER_FLAGS)
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
    scheduler = start(*SCHEDULER_FLAGS)
    until(lambda: observed_state(plane)["bound"] == {"a": 3}, scheduler.output)
    shared = plane.get(f"{CLAIMS}/shared")
    assert sorted(reserved_for(shared)) == names
    assert {one["spec"]["nodeName"] for one in plane.get(GANG.PATHS["Pod"])["items"]} == {
        one["pool"] for one in shared["status"]["allocation"]["devices"]["results"]
    }


def test_a_group_preempts_pods(plane: RealControlPlane, start: Start) -> None:
    """Victims have the condition and the event of kube-scheduler; when they are gone, the whole group is bound."""
    pods, groups = GANG.PATHS["Pod"], GANG.PATHS["PodGroup"]
    plane.create(GANG.PATHS["Node"], node("n0"))
    for number in range(4):
        low = pod(f"low{number}", cpu="1", priorityClassName="p1", terminationGracePeriodSeconds=30)
        plane.create(pods, low)
    scheduler = start(*SCHEDULER_FLAGS)
    until(lambda: observed_state(plane)["bound"] == {"-": 4}, scheduler.output)
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "priorityClassName": "p9"}
    group = plane.create(groups, {"metadata": {"name": "vip"}, "spec": spec})
    for number in range(3):
        plane.create(
            pods, pod(f"vip{number}", cpu="1", priorityClassName="p9", schedulingGroup={"podGroupName": "vip"})
        )

    def victims() -> list[dict[str, Any]]:
        # Without a kubelet, they do not end.
        return [one for one in plane.get(pods)["items"] if one["metadata"].get("deletionTimestamp")]

    until(lambda: len(victims()) == 3, scheduler.output)
    targeted = [one for victim in victims() for one in victim["status"]["conditions"] if one["type"] != "PodScheduled"]
    assert [(one["type"], one["status"], one["reason"]) for one in targeted] == [
        ("DisruptionTarget", "True", "PreemptionByScheduler")
    ] * 3
    assert {one["message"] for one in targeted} == {
        "default-scheduler: preempting to accommodate a higher priority podgroup"
    }

    def preempted() -> list[dict[str, Any]]:
        return [event for event in plane.get(GANG.PATHS["Event"])["items"] if event["reason"] == "Preempted"]

    until(lambda: len(preempted()) == 3, scheduler.output)
    note = f"Preempted by podgroup {group['metadata']['uid']} on node cluster"
    assert {(one["type"], one["action"], one["note"]) for one in preempted()} == {("Normal", "Preempting", note)}
    (condition,) = plane.get(f"{groups}/vip")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    for victim in victims():
        plane.delete(f"{pods}/{victim['metadata']['name']}")
    until(lambda: observed_state(plane)["bound"] == {"-": 1, "vip": 3}, scheduler.output)
    until(lambda: plane.get(f"{groups}/vip")["status"]["conditions"][0]["status"] == "True", scheduler.output)


def test_a_job_runs_as_a_gang(server: Path, tmp_path: Path) -> None:
    """Its controller creates the group and the pods; they are bound once all of them fit."""
    needs_version(server, 37, "Jobs with pod groups")
    plane = control_plane(server, tmp_path, *FLAGS)
    try:
        plane.start_controllers("job-controller")
        plane.create(GANG.PATHS["Node"], node("n0", cpu="2"))
        template = {"spec": {**pod("x", cpu="1", restartPolicy="Never")["spec"]}}
        policy: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
        spec = {"parallelism": 3, "completions": 3, "scheduling": policy, "template": template}
        plane.create("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "train"}, "spec": spec})
        scheduler = Scheduler(plane, tmp_path, "scheduler", "system:kube-scheduler", "", *SCHEDULER_FLAGS)
        try:
            until(lambda: _reasons(plane) == ["Unschedulable"] * 3, scheduler.output)
            (group,) = plane.get(GANG.PATHS["PodGroup"])["items"]
            assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
            assert group["status"]["conditions"][0]["reason"] == "Unschedulable"
            plane.create(GANG.PATHS["Node"], node("n1", cpu="2"))
            until(
                lambda: all(one["spec"].get("nodeName") for one in plane.get(GANG.PATHS["Pod"])["items"]),
                scheduler.output,
            )
        finally:
            scheduler.close()
    finally:
        plane.close()


def _reasons(plane: RealControlPlane) -> list[str]:
    """Return the reason for which each pod is not scheduled."""
    return [
        one["reason"]
        for found in plane.get(GANG.PATHS["Pod"])["items"]
        for one in found["status"].get("conditions") or ()
        if one["type"] == "PodScheduled" and one["status"] == "False"
    ]
