"""Pods that are updated or deleted while they wait."""

from typing import Any

import msgspec
import pytest

from kubestow.api.pod import Pod, PodStatus, Toleration
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource, on

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
PLACES = ("active", "backoff", "errorBackoff", "unschedulable", "gated")


def _put(kit: Any, place: str) -> Pod:
    """Return a pod named p that waits at a place."""
    pod: Pod
    if place in ("active", "gated"):
        pod = kit.add("p", gates=["g"] if place == "gated" else [])
    elif place == "errorBackoff":
        pod = kit.reject("p").pod
    else:
        pod = kit.reject("p", "Fit").pod
        if place == "backoff":
            kit.happens(NODE_ADD)
    assert kit.where() == {place: ["p"]}
    return pod


@pytest.mark.parametrize("place", PLACES)
def test_an_update_is_applied_wherever_the_pod_waits(kit: Any, place: str) -> None:
    """The pod keeps its place, in its new version."""
    old = _put(kit, place)
    new = kit.changed(old, terminationGracePeriodSeconds=5)
    kit.queue.update(old, new)
    assert kit.where() == {place: ["p"]}
    assert kit.queue.get("uid-p").pod is new


@pytest.mark.parametrize("place", PLACES)
def test_a_deleted_pod_is_removed_from_every_place(kit: Any, place: str) -> None:
    """Gauges do not count it any more, and no event or flush adds it again."""
    kit.queue.delete(_put(kit, place))
    kit.happens(NODE_ADD)
    kit.advance(1_000)
    assert kit.where() == {}
    assert kit.queue.pop() is None
    assert not any(kit.queue.rejections().values())


def test_a_pod_deleted_in_flight_stays_in_flight_until_done(kit: Any) -> None:
    """The scheduling loop calls `done` when its attempt ends."""
    pod = kit.add("p")
    queued = kit.pop()
    kit.queue.delete(pod)
    assert kit.queue.in_flight_pods() == [pod]
    kit.queue.done(queued.uid)
    assert kit.queue.in_flight_pods() == []


def test_an_update_that_may_help_retries_the_pod(make_kit: Any) -> None:
    """An added toleration is an event for the plugin that rejected the pod for taints; labels are not."""
    kit = make_kit({"Taints": [on(Resource.POD, Action.UPDATE_POD_TOLERATION)]})
    old = kit.reject("p", "Taints").pod
    labelled = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, labels={"a": "b"}))
    kit.queue.update(old, labelled)
    assert kit.where() == {"unschedulable": ["p"]}
    kit.queue.update(labelled, kit.changed(labelled, tolerations=(Toleration(key="k"),)))
    assert kit.where() == {"backoff": ["p"]}
    assert kit.arrivals("backoff", "TargetPodUpdatePodToleration") == 1


def test_an_update_of_one_pod_affects_no_other(make_kit: Any) -> None:
    """Changes of a waiting pod may help that pod alone."""
    kit = make_kit({"Taints": [on(Resource.POD, Action.UPDATE_POD_TOLERATION)]})
    pod = kit.reject("p", "Taints").pod
    kit.reject("q", "Taints")
    kit.queue.update(pod, kit.changed(pod, tolerations=(Toleration(key="k"),)))
    assert kit.where() == {"backoff": ["p"], "unschedulable": ["q"]}


def test_an_update_of_an_unknown_pod_adds_it(kit: Any) -> None:
    """A missed addition is compensated."""
    pod = kit.pod("p")
    kit.queue.update(pod, kit.changed(pod, priority=3))
    assert kit.where() == {"active": ["p"]}
    assert kit.metrics.queue_incoming_pods.read() == {("UnscheduledPodAdd", "active"): 1}


def test_a_pod_recreated_with_its_name_is_a_new_pod(kit: Any) -> None:
    """An update that changes the UID is a deletion and an addition."""
    old = kit.reject("p", "Fit").pod
    new = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, uid="uid-2"))
    kit.queue.update(old, new)
    assert kit.where() == {"active": ["p"]}
    assert kit.pop().attempts == 1


def test_a_pod_without_a_profile_is_rejected(kit: Any) -> None:
    """The message names the pod and its scheduler."""
    with pytest.raises(ValueError, match=r"ns/p requires scheduler 'someone-else'"):
        kit.add("p", profile="someone-else")


def test_nominations_follow_the_pod(kit: Any) -> None:
    """A pod is nominated by its status when it is added or updated, and not once it is deleted."""
    old = kit.add("p", nominated="n1")
    assert [info.uid for info in kit.queue.nominator.nominated_on("n1")] == ["uid-p"]
    new = kit.changed(old, status=PodStatus(nominatedNodeName="n2"))
    kit.queue.update(old, new)
    assert list(kit.queue.nominator.nodes) == ["n2"]
    kit.queue.delete(new)
    assert list(kit.queue.nominator.nodes) == []
