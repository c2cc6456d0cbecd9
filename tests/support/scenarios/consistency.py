"""Invariants of a scheduler that hold at any time."""

from contextlib import suppress
from typing import Any

from kubestow.api.devices import ResourceClaim
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_is_terminal
from kubestow.api.requests import resize_is_deferred
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.testing import SchedulerHarness
from support.plugins.device_world import given_twice
from support.scheduler.comparing import described


def check(harness: SchedulerHarness) -> None:
    """Check the invariants that hold at any time."""
    check_places(harness)
    check_columns(harness)
    check_groups(harness)


def check_places(harness: SchedulerHarness) -> None:
    """Check that every pending pod is in exactly one place, and no other pod is in the queue."""
    places = harness.places()
    delivered_pods = [obj for obj in harness.cluster.feed.delivered.values() if isinstance(obj, Pod)]
    pending = {pod.metadata.uid: pod for pod in delivered_pods if _is_ours_to_place(harness, pod)}
    for uid, pod in pending.items():
        found = places.get(uid, [])
        if not found:
            # Bound, but not received yet; or terminating, and removed from the queue when it was popped.
            assert harness.core.cluster.is_assumed(uid) or pod.metadata.deletionTimestamp, f"{pod.key} is lost"
        else:
            assert len(found) == 1, f"{pod.key} is in {found}"
    resized = {pod.metadata.uid for pod in delivered_pods if pod.spec.nodeName and resize_is_deferred(pod)}
    for uid, found in places.items():
        if uid not in pending and uid not in resized:
            assert found in (["waiting"], ["binding"], ["in flight"]), f"{uid} is no more, but in {found}"
    assert {pod.metadata.uid for pod in harness.core.intake.pending_pods()} == pending.keys()


def check_columns(harness: SchedulerHarness) -> None:
    """Check that the columns are the same as in a cluster built from scratch."""
    cluster, fresh = harness.core.cluster, Cluster()
    for obj in harness.cluster.feed.delivered.values():
        if isinstance(obj, Node):
            fresh.set_node(obj)
        elif isinstance(obj, Pod):
            if obj.spec.nodeName and not pod_is_terminal(obj):
                fresh.set_pod(obj)
        else:
            _set(fresh, obj)
    assumed = [cluster._placed[uid].pod for uid in cluster._assumed]
    assert cluster.assumed_count == len(assumed)
    for info in assumed:
        fresh.assume(PodInfo(info.pod), info.pod.spec.nodeName)
    assert described(cluster) == described(fresh)


def check_groups(harness: SchedulerHarness) -> None:
    """Check the pending and scheduled members of every group."""
    groups = harness.core.cluster.groups
    if groups is None:
        return
    pending: dict[str, set[str]] = {}
    scheduled: dict[str, dict[str, str]] = {}
    for pod in harness.core.intake.pending_pods():
        pending.setdefault(group_key(pod), set()).add(pod.metadata.uid)
    for placed in harness.core.cluster._placed.values():
        node = harness.core.cluster.nodes.names[placed.row]
        scheduled.setdefault(group_key(placed.pod.pod), {})[placed.pod.uid] = node
    known = {*pending, *scheduled} - {""}
    assert groups._members.keys() == known
    for key in known:
        members = groups.members(key)
        assert members.pending.keys() == pending.get(key, set())
        assert members.scheduled == scheduled.get(key, {})
        assert members.count == len(members.pending.keys() | members.scheduled.keys())


def _set(cluster: Cluster, obj: Any) -> None:
    """Set an object; an invalid one is ignored, as by the intake."""
    with suppress(ValueError):
        cluster.set_object(obj)


def check_devices(harness: SchedulerHarness) -> None:
    """Check that no devices are reserved, allocations are counted, and no device is allocated twice."""
    fresh = Cluster()
    for obj in harness.cluster.feed.delivered.values():
        if not isinstance(obj, Node | Pod):
            _set(fresh, obj)
    assert harness.core.cluster.devices._pending == {}
    assert _held(harness.core.cluster) == _held(fresh)
    assert not given_twice(harness.cluster.all(ResourceClaim))


def _held(cluster: Cluster) -> dict[tuple[str, str], Any]:
    usages = {key: pool.usage for key, pool in cluster.devices._pools.items()}
    return {key: (usage.dedicated, usage.shares, usage.capacity) for key, usage in usages.items()}


def check_settled(harness: SchedulerHarness) -> None:
    """Check that an idle scheduler has no assumed pods and no recorded events, and bound no pod twice."""
    check(harness)
    check_devices(harness)
    assert harness.core.cluster.assumed_count == 0
    assert harness.core.queue.in_flight_counts() == {}
    assert len(harness.core.waiting_pods) == 0
    uids = [binding.uid for binding in harness.cluster.bindings]
    assert len(uids) == len(set(uids))


def _is_ours_to_place(harness: SchedulerHarness, pod: Pod) -> bool:
    return not pod.spec.nodeName and not pod_is_terminal(pod) and pod.spec.schedulerName in harness.core.profiles
