"""Pods that are updated or deleted while they wait."""

from typing import Any

import msgspec
import pytest

from kubestow.api.pod import Pod, PodStatus, Toleration
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource, on

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
PLACES = ("active", "backoff", "errorBackoff", "unschedulable", "gated")


def _put(kit: Any, place: str) -> Pod:
    """A pod named p, waiting at that place."""
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
def test_an_update_is_taken_over_wherever_the_pod_waits(kit: Any, place: str) -> None:
    """The pod stays where it is, in its new version."""
    old = _put(kit, place)
    new = kit.changed(old, terminationGracePeriodSeconds=5)
    kit.queue.update(old, new)
    assert kit.where() == {place: ["p"]}
    assert kit.queue.get("uid-p").pod is new


@pytest.mark.parametrize("place", PLACES)
def test_a_deleted_pod_is_gone_wherever_it_waited(kit: Any, place: str) -> None:
    """Nothing of it is left, in gauges either, and no event or flush brings it back."""
    kit.queue.delete(_put(kit, place))
    kit.happens(NODE_ADD)
    kit.advance(1_000)
    assert kit.where() == {}
    assert kit.queue.pop() is None
    assert not any(kit.queue.rejections().values())


def test_deleting_a_pod_in_flight_leaves_it_to_the_attempt(kit: Any) -> None:
    """Whoever popped it finds out, and says done."""
    pod = kit.add("p")
    queued = kit.pop()
    kit.queue.delete(pod)
    assert kit.queue.in_flight_pods() == [pod]
    kit.queue.done(queued.uid)
    assert kit.queue.in_flight_pods() == []


def test_an_update_that_may_help_calls_the_pod_back(make_kit: Any) -> None:
    """A toleration added to a waiting pod concerns the plugin that rejected it for taints; labels do not."""
    kit = make_kit({"Taints": [on(Resource.POD, Action.UPDATE_POD_TOLERATION)]})
    old = kit.reject("p", "Taints").pod
    labelled = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, labels={"a": "b"}))
    kit.queue.update(old, labelled)
    assert kit.where() == {"unschedulable": ["p"]}
    kit.queue.update(labelled, kit.changed(labelled, tolerations=(Toleration(key="k"),)))
    assert kit.where() == {"backoff": ["p"]}
    assert kit.came("backoff", "UnschedulablePodUpdatePodToleration") == 1


def test_an_update_of_one_pod_concerns_no_other(make_kit: Any) -> None:
    """Changes of a waiting pod help that pod alone."""
    kit = make_kit({"Taints": [on(Resource.POD, Action.UPDATE_POD_TOLERATION)]})
    pod = kit.reject("p", "Taints").pod
    kit.reject("q", "Taints")
    kit.queue.update(pod, kit.changed(pod, tolerations=(Toleration(key="k"),)))
    assert kit.where() == {"backoff": ["p"], "unschedulable": ["q"]}


def test_an_update_of_an_unknown_pod_adds_it(kit: Any) -> None:
    """A missed addition is made good."""
    pod = kit.pod("p")
    kit.queue.update(pod, kit.changed(pod, priority=3))
    assert kit.where() == {"active": ["p"]}
    assert kit.metrics.queue_incoming_pods.read() == {("UnschedulablePodUpdate", "active"): 1}


def test_a_pod_replaced_under_its_name_starts_afresh(kit: Any) -> None:
    """An update that changes the uid is a deletion and an addition."""
    old = kit.reject("p", "Fit").pod
    new = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, uid="uid-2"))
    kit.queue.update(old, new)
    assert kit.where() == {"active": ["p"]}
    assert kit.pop().attempts == 1


def test_a_pod_of_no_profile_is_refused(kit: Any) -> None:
    """The message names the pod and the scheduler it wants."""
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
