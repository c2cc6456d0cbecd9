"""After any sequence of events, columns and indexes are the same as in a cluster that was built from scratch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from kubestow.api.conditions import DISRUPTION_TARGET
from kubestow.api.node import Node
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.topology import zone_of
from kubestow.scheduler.cluster.nominated import NominatedPods
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.testing import make_node, make_pod
from support.scheduler.comparing import LABEL_KEYS, described, row_described

NAMES = [f"n{number}" for number in range(5)]
amounts = st.sampled_from(["0", "100m", "1", "3"])
nodes = st.builds(
    make_node,
    st.sampled_from(NAMES),
    cpu=amounts,
    pods=st.integers(0, 20),
    resources=st.dictionaries(st.sampled_from(["example.com/a", "example.com/b"]), st.integers(0, 5)),
    zone=st.sampled_from([None, "z1", "z2"]),
    region=st.sampled_from([None, "r1"]),
    labels=st.dictionaries(st.just("disk"), st.sampled_from(["ssd", "hdd"])),
    taints=st.lists(st.sampled_from(["a:NoSchedule", "b=c:NoExecute"]), unique=True, max_size=2),
    images=st.dictionaries(st.sampled_from(["app", "web", "db"]), st.just(1000)),
    unschedulable=st.booleans(),
)
pods = st.builds(
    make_pod,
    st.sampled_from([f"p{number}" for number in range(8)]),
    cpu=amounts,
    memory=st.sampled_from([None, "1Gi"]),
    resources=st.dictionaries(st.sampled_from(["example.com/a", "example.com/c"]), st.integers(1, 5)),
    node=st.sampled_from([*NAMES, "unknown"]),
    host_ports=st.lists(st.sampled_from([80, 443]), unique=True),
    claims=st.lists(st.sampled_from(["data", "logs"]), unique=True),
)


class Zones:
    """A simple model of the order of nodes: a list of zones, each a list of names."""

    def __init__(self) -> None:
        self._zones: dict[str, list[str]] = {}

    def set(self, node: Node) -> None:
        zone, name = zone_of(node.metadata.labels), node.metadata.name
        if name not in self._zones.get(zone, ()):
            self.remove(name)
            self._zones.setdefault(zone, []).append(name)

    def remove(self, name: str) -> None:
        self._zones = {
            zone: left for zone, names in self._zones.items() if (left := [other for other in names if other != name])
        }

    def order(self) -> list[str]:
        longest = max((len(names) for names in self._zones.values()), default=0)
        return [names[turn] for turn in range(longest) for names in self._zones.values() if turn < len(names)]


class ClusterEvents(RuleBasedStateMachine):
    """Events in any order, applied to a cluster and to a simple model."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        for key in LABEL_KEYS:
            # Columns are updated from the first request on.
            self.cluster.nodes.label_ids(key)
        self.nodes: dict[str, Node] = {}
        self.bound: dict[str, Pod] = {}
        self.assumed: dict[str, Pod] = {}
        self.zones = Zones()
        self.version = 0

    @rule(node=nodes)
    def node_is_set(self, node: Node) -> None:
        self.version += 1
        node = replace(node, metadata=replace(node.metadata, resourceVersion=str(self.version)))
        self.cluster.set_node(node)
        self.nodes[node.metadata.name] = node
        self.zones.set(node)

    @rule(node=nodes)
    def an_invalid_node_changes_nothing(self, node: Node) -> None:
        bad = replace(node, status=replace(node.status, allocatable={"cpu": "plenty"}))
        with pytest.raises(ValueError, match="plenty"):
            self.cluster.set_node(bad)

    @rule(name=st.sampled_from(NAMES))
    def node_is_removed(self, name: str) -> None:
        self.cluster.remove_node(name)
        self.nodes.pop(name, None)
        self.zones.remove(name)

    @rule(pod=pods)
    def pod_is_seen_bound(self, pod: Pod) -> None:
        self.cluster.set_pod(pod)
        self.assumed.pop(pod.metadata.uid, None)
        self.bound[pod.metadata.uid] = pod

    @rule(pod=pods)
    def pod_is_assumed(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if uid in self.bound or uid in self.assumed:
            with pytest.raises(ValueError, match="already on a node"):
                self.cluster.assume(PodInfo(pod), pod.spec.nodeName)
        else:
            self.cluster.assume(PodInfo(pod), pod.spec.nodeName)
            self.assumed[uid] = pod

    @rule(pod=pods)
    def pod_is_forgotten(self, pod: Pod) -> None:
        self.cluster.forget(pod.metadata.uid)
        self.assumed.pop(pod.metadata.uid, None)

    @rule(pod=pods)
    def pod_is_removed(self, pod: Pod) -> None:
        self.cluster.remove_pod(pod.metadata.uid)
        self.bound.pop(pod.metadata.uid, None)
        self.assumed.pop(pod.metadata.uid, None)

    @rule(data=st.data())
    def what_if_changes_nothing(self, data: st.DataObject) -> None:
        """A what-if shows the changes made to it, and the cluster does not change."""
        table = self.cluster.nodes
        if not table.row_of:
            return
        before = described(self.cluster)
        rows = data.draw(st.lists(st.sampled_from(sorted(table.row_of.values())), unique=True, min_size=1))
        view = what_if(table, rows)
        position = data.draw(st.integers(0, len(rows) - 1))
        original = row_described(table, rows[position])
        assert row_described(view, position) == original
        for info in list(view.pods[position].values()):
            view.remove_pod(position, info)
        assert row_described(view, position) == original | {
            "requested": {},
            "non_zero": [0, 0],
            "pod_count": 0,
            "pods": [],
        }
        guest = PodInfo(data.draw(pods))
        view.add_pod(position, guest)
        assert view.pod_count[position] == 1
        assert view.ports.rows_in_conflict(guest.ports) >= ({position} if guest.ports else set())
        assert described(self.cluster) == before

    @rule(
        data=st.data(),
        guests=st.lists(st.tuples(pods, st.integers(0, 2)), unique_by=lambda guest: guest[0].metadata.uid),
        own=st.integers(0, 2),
    )
    def nominated_pods_are_as_added_one_by_one(
        self, data: st.DataObject, guests: list[tuple[Pod, int]], own: int
    ) -> None:
        """The nominated pods besides a pod are the others of at least its priority, in any order of arrival."""
        table = self.cluster.nodes
        rows = sorted(table.row_of.values())
        if not rows or not guests:
            return
        infos = [PodInfo(replace(guest, spec=replace(guest.spec, priority=level))) for guest, level in guests]
        row_of = {info.uid: data.draw(st.sampled_from(rows)) for info in infos}
        expected = NominatedPods(table)
        for info in infos:
            expected.add(table.names[row_of[info.uid]], info)
        gone, *rest = infos
        expected.remove(gone.uid)
        pod = data.draw(st.sampled_from(infos))
        pod = PodInfo(replace(pod.pod, spec=replace(pod.pod.spec, priority=own)))
        others = [info for info in rest if info.priority >= own and info.uid != pod.uid]
        beside, one_by_one = expected.competing_with(pod), what_if(table, rows)
        for other in others:
            one_by_one.add_pod(rows.index(row_of[other.uid]), other)
        together = what_if(table, rows, beside)
        awaited = {row_of[other.uid] for other in others}
        assert {row for row in rows if beside is not None and beside.are_on(np.array([row]))[0]} == awaited
        if beside is not None:
            for position in range(len(rows)):
                assert row_described(together, position) == row_described(one_by_one, position)

    @invariant()
    def state_is_as_built_from_scratch(self) -> None:
        fresh = Cluster()
        for node in self.nodes.values():
            fresh.set_node(node)
        for pod in self.bound.values():
            fresh.set_pod(pod)
        for pod in self.assumed.values():
            fresh.assume(PodInfo(pod), pod.spec.nodeName)
        assert described(self.cluster) == described(fresh)
        assert [self.cluster.nodes.names[row] for row in self.cluster.order.rows()] == self.zones.order()
        assert self.cluster.pod_count == len(self.bound) + len(self.assumed)


ClusterEvents.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestClusterEvents: Any = ClusterEvents.TestCase


@settings(max_examples=30, deadline=None)
@given(st.lists(pods, min_size=1, max_size=8))
def test_a_row_is_reused(placed: list[Pod]) -> None:
    """When neither the node nor pods remain, the row is free, and all its columns are zero."""
    cluster = Cluster()
    for pod in placed:
        cluster.set_pod(pod)
    for pod in placed:
        cluster.remove_pod(pod.metadata.uid)
    assert cluster.nodes.row_of == {}
    assert not cluster.nodes.requested.any()
    assert not cluster.nodes.non_zero.any()
    assert not cluster.nodes.pod_count.any()
    size = cluster.nodes.size
    cluster.set_node(make_node("another"))
    assert cluster.nodes.size == size


@given(pods, pods)
def test_the_newest_version_of_a_pod_replaces_the_others(one: Pod, other: Pod) -> None:
    """It may confirm an assumption, which does not change its row, change its status, or move to another node."""
    cluster = Cluster()
    other = replace(other, metadata=replace(other.metadata, uid=one.metadata.uid, name=one.metadata.name))
    cluster.assume(PodInfo(one), one.spec.nodeName)
    running = replace(one, status=replace(one.status, phase="Running", startTime="2026-01-01T00:00:00Z"))
    for version in (one, running, other):
        before = cluster.nodes.changes.last
        cluster.set_pod(version)
        known = cluster.pod(one.metadata.uid)
        assert known is not None
        assert known.pod is version
        row = cluster.nodes.row_of[version.spec.nodeName]
        assert cluster.nodes.pods[row] == {known.uid: known}
        assert (cluster.nodes.changes.version[row] > before) == (version is not one)
        assert not cluster.is_assumed(known.uid)
    fresh = Cluster()
    fresh.set_pod(other)
    assert described(cluster) == described(fresh)


def test_a_disruption_target_does_not_change_the_row() -> None:
    """The deletion of the pod follows later. All other changes of a pod change its row."""
    cluster = Cluster()
    cluster.set_node(make_node("a"))
    ready, marked = PodCondition(type="Ready", status="True"), PodCondition(type=DISRUPTION_TARGET, status="True")
    pod = make_pod("p", node="a")
    cluster.set_pod(pod)
    for conditions, labels, has_changed in (
        ((marked,), {}, False),
        ((ready, marked), {}, True),
        ((ready,), {}, False),
        ((ready,), {}, True),
        ((ready, marked), {"app": "x"}, True),
    ):
        before = cluster.nodes.changes.last
        pod = replace(
            pod,
            metadata=replace(pod.metadata, labels=labels),
            status=replace(pod.status, conditions=conditions),
        )
        cluster.set_pod(pod)
        assert (cluster.nodes.changes.last > before) == has_changed
        (known,) = cluster.nodes.pods[0].values()
        assert known.pod is pod
