"""The sums of nominated pods by row follow the versions of these pods."""

from msgspec.structs import replace

from kubestow.scheduler.cluster.nodes import CPU
from kubestow.scheduler.cluster.nominated import NominatedPods
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.testing import make_node, make_pod

NODES = [f"n{number}" for number in range(4)]


def nominated_pods() -> NominatedPods:
    cluster = Cluster()
    for name in NODES:
        cluster.set_node(make_node(name))
    return NominatedPods(cluster.nodes)


def pod_info(number: int, priority: int = 0) -> PodInfo:
    return PodInfo(make_pod(f"p{number}", priority=priority))


def test_a_new_version_with_equal_requests_changes_no_row() -> None:
    """The status that the scheduler has written is received back: cached results for the row stay valid."""
    nominated, before = nominated_pods(), make_pod("p", cpu="1")
    nominated.add("n1", PodInfo(before))
    nominated.add("n1", pod_info(1))
    changes = nominated.table.changes.last
    received = PodInfo(replace(before, status=replace(before.status, nominatedNodeName="n1")))
    nominated.replace("n1", received)
    assert nominated.table.changes.last == changes
    beside = nominated.competing_with(pod_info(2))
    assert beside is not None
    assert [one.name for one in beside.pods(1)] == ["p1", "p"]
    assert beside.pods(1)[1] is received


def test_a_new_version_with_larger_requests_changes_the_row() -> None:
    """The row has changed, and the reserved capacity has grown; an invalid version is not counted."""
    nominated = nominated_pods()
    nominated.add("n1", PodInfo(make_pod("p", cpu="1")))
    changes = nominated.table.changes.last
    nominated.replace("n1", PodInfo(make_pod("p", cpu="2")))
    assert nominated.table.changes.last > changes
    assert what_if(nominated.table, [1], nominated.competing_with(pod_info(2))).requested[CPU, 0] == 2000
    nominated.replace("n1", PodInfo(make_pod("p", cpu="two")))
    assert nominated.competing_with(pod_info(2)) is None
