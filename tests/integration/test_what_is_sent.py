"""The scheduler sends the same requests as kube-scheduler: method, path, query, content type, body.

One run goes through all situations; the tests check its recorded requests. KUBESTOW_WIRE may name a recording of
kube-scheduler in the same situations (JSON lines with method, path, headers, body) to compare with.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.client.virtualtime import run
from support.integration.cluster import (
    Cluster,
    eventually,
    node,
    pod,
    priority_class,
    running_cluster,
    running_scheduler,
    settings,
)
from support.integration.wire import ANY, Recorder, Sent, plain

JSON = "application/json"
PATCH = "application/strategic-merge-patch+json"
POD_PATH = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def _claim(name: str, storage_class: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
        },
    }


def _class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _with_claim(name: str, claim: str, **spec: Any) -> dict[str, Any]:
    return pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **spec)


def _on(name: str) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": name}}


async def _go_through_all(cluster: Cluster, recorder: Recorder) -> None:
    async def sent(name: str, method: str, count: int = 1) -> None:
        await eventually(lambda: sum(one.method == method for one in recorder.about(name)) >= count)

    await eventually(lambda: any(one.target.startswith("/api/v1/namespaces/kube-system") for one in recorder.sent))
    await cluster.add(pod("ok", cpu="800m", **_on("n1")))
    await eventually(cluster.all_bound)
    await cluster.add(pod("low1", cpu="800m", priorityClassName="low"))
    await eventually(cluster.all_bound)
    await cluster.add(pod("low2", cpu="800m"))
    await sent("low2", "PATCH")
    await cluster.add(pod("big", cpu="100"))
    await sent("big", "PATCH")
    await cluster.add(pod("vip", cpu="800m", priorityClassName="high"))
    await eventually(lambda: cluster.all_bound("vip"))
    await cluster.add(_with_claim("withvol", "c1"))
    await sent("withvol", "PATCH")
    await cluster.add(_with_claim("withdyn", "c2", **_on("n2")))
    await sent("c2", "PUT")
    await cluster.add(_with_claim("novol", "nosuch"))
    await sent("novol", "PATCH")
    await asyncio.sleep(20.0)
    recorder.close()


@pytest.fixture(scope="module")
def recorded() -> Recorder:
    """All requests of a run through all situations."""
    recorder = Recorder()

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1", cpu="1"), node("n2", cpu="1"), priority_class("low", 10))
            await cluster.add(priority_class("high", 1000), _class("static", "kubernetes.io/no-provisioner"))
            await cluster.add(_class("dyn", "example.com/dyn"), _claim("c1", "static"), _claim("c2", "dyn"))
            async with running_scheduler(cluster, settings(elects=True), wrap=recorder):
                await _go_through_all(cluster, recorder)

    run(main())
    return recorder


def _event(name: str, reason: str, action: str, note: str, kind: str = "Normal") -> Sent:
    body = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": f"{name}.N", "namespace": "default"},
        "eventTime": ANY,
        "reportingController": "default-scheduler",
        "reportingInstance": ANY,
        "action": action,
        "reason": reason,
        "regarding": {
            "kind": "Pod",
            "namespace": "default",
            "name": name,
            "uid": ANY,
            "apiVersion": "v1",
            "resourceVersion": ANY,
        },
        "note": note,
        "type": kind,
    }
    return Sent("POST", EVENTS, JSON, "scheduler", body)


def _binding(name: str, where: str) -> Sent:
    body = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "uid": ANY},
        "target": {"kind": "Node", "name": where},
    }
    return Sent("POST", f"{POD_PATH}/{name}/binding", JSON, "scheduler", body)


def _status(name: str, **status: Any) -> Sent:
    return Sent("PATCH", f"{POD_PATH}/{name}/status", PATCH, "scheduler", {"status": status})


def _unschedulable(message: str) -> dict[str, Any]:
    return {
        "lastProbeTime": None,
        "lastTransitionTime": ANY,
        "message": message,
        "observedGeneration": 1,
        "reason": "Unschedulable",
        "status": "False",
        "type": "PodScheduled",
    }


def test_binding(recorded: Recorder) -> None:
    """A binding and an event."""
    note = "Successfully assigned default/low1 to n2"
    assert recorded.about("low1") == [_binding("low1", "n2"), _event("low1", "Scheduled", "Binding", note)]


def test_a_pod_that_does_not_fit(recorded: Recorder) -> None:
    """An event and a condition with the same message; a failed retry adds no second condition."""
    message = (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are "
        "available: 2 Preemption is not helpful for scheduling."
    )
    event = _event("big", "FailedScheduling", "Scheduling", message, "Warning")
    condition = _status("big", conditions=[_unschedulable(message)])
    assert sorted(map(str, recorded.about("big"))) == sorted(map(str, (event, condition)))


def test_preemption(recorded: Recorder) -> None:
    """The preemptor is nominated, the victim's status contains the reason, it is deleted, and has an event."""
    message = (
        "0/2 nodes are available: 2 Insufficient cpu. "
        "preemption: found a potential placement for pod on node n1, preempting 1 victims"
    )
    expected = [
        _status("vip", conditions=[_unschedulable(message)], nominatedNodeName="n1"),
        _event("vip", "FailedScheduling", "Scheduling", message, "Warning"),
        _binding("vip", "n1"),
        _event("vip", "Scheduled", "Binding", "Successfully assigned default/vip to n1"),
    ]
    assert sorted(map(str, recorded.about("vip"))) == sorted(map(str, expected))
    target = {
        "lastProbeTime": None,
        "lastTransitionTime": ANY,
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "observedGeneration": 1,
        "reason": "PreemptionByScheduler",
        "status": "True",
        "type": "DisruptionTarget",
    }
    order = [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}]
    evicted = [
        _status("ok", **{"$setElementOrder/conditions": order, "conditions": [target]}),
        Sent("DELETE", f"{POD_PATH}/ok", JSON, "scheduler", {"kind": "DeleteOptions", "apiVersion": "v1"}),
        _event("ok", "Preempted", "Preempting", f"Preempted by pod {ANY} on node n1"),
    ]
    assert recorded.about("ok")[2:] == evicted


def test_a_volume_to_be_provisioned(recorded: Recorder) -> None:
    """The selected node is annotated to the claim, which is sent as a whole."""
    assert recorded.about("withdyn") == [_status("withdyn", nominatedNodeName="n2")]
    (put,) = recorded.about("c2")
    assert (put.method, put.target) == ("PUT", "/api/v1/namespaces/default/persistentvolumeclaims/c2")
    assert put.body["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n2"}
    assert put.body["spec"]["storageClassName"] == "dyn"
    assert put.body["spec"]["volumeMode"] == "Filesystem"


def test_the_lease(recorded: Recorder) -> None:
    """Created, renewed with all fields that the server returned, with an event; with a timeout in the query."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    created, renewed = recorded.about("leases")[:2]
    spec = {
        "holderIdentity": ANY,
        "leaseDurationSeconds": 15,
        "acquireTime": ANY,
        "renewTime": ANY,
        "leaseTransitions": 0,
    }
    named = {"name": "kube-scheduler", "namespace": "kube-system"}
    kind = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
    body = {**kind, "metadata": named, "spec": spec}
    assert created == Sent("POST", f"{leases}?timeout=5s", JSON, "leader-election", body)
    meta = {**named, "uid": ANY, "resourceVersion": ANY, "creationTimestamp": ANY}
    body = {**kind, "metadata": meta, "spec": spec}
    assert renewed == Sent("PUT", f"{leases}/kube-scheduler?timeout=5s", JSON, "leader-election", body)


NOT_ALLOCATED = {"withdev", "rc1"}
"""This scheduler does not allocate devices."""


@pytest.mark.skipif("KUBESTOW_WIRE" not in os.environ, reason="KUBESTOW_WIRE names no recording to compare with")
def test_everything_that_kube_scheduler_sent_is_sent(recorded: Recorder) -> None:
    """Every request of the recording is among ours, and we send no other kind."""
    theirs = set()
    for line in Path(os.environ["KUBESTOW_WIRE"]).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        headers = entry["headers"]
        sent = plain(entry["method"], entry["path"], headers["Content-Type"], headers["User-Agent"], entry["body"])
        if not any(name in str(sent) for name in NOT_ALLOCATED):
            theirs.add(str(sent))
    ours = set(map(str, recorded.sent))
    assert not theirs - ours
    assert not ours - theirs
