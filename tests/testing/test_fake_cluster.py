"""The fake cluster: the API server behavior that it emulates, its notifications and its faults."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.failures import ConflictError, ConnectError, ForbiddenError, NotFoundError, TimedOutError
from kubestow.api.pod import Pod, PodCondition
from kubestow.testing import FakeCluster, VirtualLoop, make_node, make_object, make_pod
from support.plugins.careless_plugins import Limit


class Recorder:
    """Records notifications."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def added(self, obj: Any) -> None:
        self.log.append(f"+{obj.metadata.name}")

    def updated(self, old: Any, new: Any) -> None:
        assert old.metadata.uid == new.metadata.uid
        assert old.metadata.resourceVersion != new.metadata.resourceVersion
        self.log.append(f"~{new.metadata.name}")

    def deleted(self, obj: Any) -> None:
        self.log.append(f"-{obj.metadata.name}")

    def access_changed(self, kind: type, problem: str) -> None:
        self.log.append(f"{kind.__name__}: {problem}")


class World:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.cluster = FakeCluster(self.loop, self.loop.clock)
        self.recorder = Recorder()
        self.cluster.feed.listen(self.recorder)

    def settle(self) -> list[str]:
        """Deliver pending notifications; return those since the last call."""
        self.loop.run_for(0.0)
        changes, self.recorder.log = self.recorder.log, []
        return changes


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.loop.close()


def test_objects_get_identity(world: World) -> None:
    """Every object has a unique UID, even under a reused name, and an increasing version."""
    first = world.cluster.add(make_pod("p"))
    changed = world.cluster.update(replace(first, metadata=replace(first.metadata, labels={"a": "b"})))
    world.cluster.delete(changed)
    second = world.cluster.add(make_pod("p"))
    assert first.metadata.uid == changed.metadata.uid != second.metadata.uid
    versions = [int(pod.metadata.resourceVersion) for pod in (first, changed, second)]
    assert versions == sorted(set(versions))
    with pytest.raises(ValueError, match="exists already"):
        world.cluster.add(make_pod("p"))


def test_changes_are_reported_in_order(world: World) -> None:
    """Existing objects first, then every change; after the delay, not before."""
    world.cluster.feed.delay = 2.0
    pod = world.cluster.add(make_pod("p"))
    world.cluster.add(make_node("n"))
    world.loop.run(world.cluster.bind(pod, "n"))
    world.cluster.delete(pod, 0)
    world.loop.run_for(1.9)
    assert world.settle() == []
    world.loop.run_for(0.1)
    assert world.settle() == ["+p", "+n", "~p", "-p"]


def test_after_an_outage_only_the_result_is_reported(world: World) -> None:
    """Deletions come first; an object replaced by another of its name is deleted and added."""
    pods = [world.cluster.add(make_pod(name)) for name in ("kept", "gone", "replaced", "changed")]
    assert world.settle() == ["+kept", "+gone", "+replaced", "+changed"]
    world.cluster.go_away_for(60.0)
    with pytest.raises(ConnectError):
        world.loop.run(world.cluster.bind(pods[0], "n"))
    world.cluster.delete(pods[1])
    world.cluster.delete(pods[2])
    world.cluster.add(make_pod("replaced"))
    world.cluster.add(make_pod("brief"))
    world.cluster.delete(make_pod("brief"))
    for label in ("1", "2"):
        world.cluster.update(make_pod("changed", labels={"n": label}))
    world.loop.run_for(59.0)
    assert world.settle() == []
    world.loop.run_for(1.0)
    assert world.settle() == ["-gone", "~changed", "-replaced", "+replaced"]


def test_the_server_returns_at_any_time(world: World) -> None:
    """Timers are rounded to nanoseconds, and may fire slightly before a time that is a sum of floats."""
    for number in range(200):
        world.loop.run_for(0.01 + number * 0.003)
        world.cluster.go_away_for(0.1 + number * 0.007)
        world.loop.run_for(3.0)
        assert not world.cluster.is_busy


def test_an_outage_can_be_shortened(world: World) -> None:
    """The last duration applies."""
    world.cluster.go_away_for(60.0)
    world.loop.run_for(1.0)
    world.cluster.go_away_for(5.0)
    world.loop.run_for(4.0)
    assert world.cluster.is_busy
    world.loop.run_for(1.0)
    assert not world.cluster.is_busy


def test_a_bound_pod_terminates_before_it_is_removed(world: World) -> None:
    """Deletion marks a bound pod until its grace period ends. A pod without a node is removed at once."""
    bound = world.cluster.add(make_pod("bound", node="n", grace_seconds=20))
    free = world.cluster.add(make_pod("free"))
    world.settle()
    world.cluster.delete(bound)
    world.cluster.delete(free)
    assert world.settle() == ["~bound", "-free"]
    assert world.cluster.pod("bound").metadata.deletionTimestamp == "2026-01-01T00:00:20Z"
    world.loop.run_for(20.0)
    assert world.settle() == ["-bound"]
    assert world.cluster.all(Pod) == []


def test_a_pod_is_bound_once(world: World) -> None:
    """The first binding sets the node; a second one, and those of terminating and unknown pods, are rejected."""
    pod, run = world.cluster.add(make_pod("p", status={"nominatedNodeName": "n1"})), world.loop.run
    run(world.cluster.bind(pod, "n1"))
    assert world.cluster.node_of("p") == "n1"
    assert world.cluster.conditions("p")["PodScheduled"].status == "True"
    assert world.cluster.pod("p").status.nominatedNodeName == ""
    with pytest.raises(ConflictError, match="already assigned to node 'n1'"):
        run(world.cluster.bind(pod, "n2"))
    world.cluster.delete(pod, 0)
    with pytest.raises(NotFoundError):
        run(world.cluster.bind(pod, "n1"))
    world.cluster.add(make_pod("p"))
    with pytest.raises(ConflictError, match="uid"):
        run(world.cluster.bind(pod, "n1"))
    assert [binding[:2] for binding in world.cluster.bindings] == [("default/p", "n1")]


def test_status_patches_keep_the_other_conditions(world: World) -> None:
    """A condition replaces the one of its type; a nominated node is set and cleared."""
    pod, cluster = world.cluster.add(make_pod("p")), world.cluster
    for condition in (PodCondition("A", "True"), PodCondition("B", "True"), PodCondition("A", "False")):
        world.loop.run(cluster.patch_pod_status(pod, condition=condition, nominated_node="n"))
    assert {kind: found.status for kind, found in cluster.conditions("p").items()} == {"A": "False", "B": "True"}
    assert cluster.pod("p").status.nominatedNodeName == "n"
    world.loop.run(cluster.patch_pod_status(pod, nominated_node=""))
    assert cluster.pod("p").status.nominatedNodeName == ""


def test_faults_affect_the_configured_calls(world: World) -> None:
    """The n-th call of a kind, every call, or one that is carried out nevertheless."""
    cluster, run = world.cluster, world.loop.run
    pod = cluster.add(make_pod("p"))
    cluster.faults.fail("patch_pod_status", "Forbidden", skip=1)
    run(cluster.patch_pod_status(pod, nominated_node="a"))
    with pytest.raises(ForbiddenError):
        run(cluster.patch_pod_status(pod, nominated_node="b"))
    run(cluster.patch_pod_status(pod, nominated_node="c"))
    assert cluster.pod("p").status.nominatedNodeName == "c"

    cluster.faults.fail("bind", "Timeout", takes_effect=True)
    before = world.loop.time()
    with pytest.raises(TimedOutError):
        run(cluster.bind(pod, "n"))
    assert world.loop.time() == before + 10.0
    assert cluster.node_of("p") == "n"

    cluster.faults.fail("*", "NotFound", times=None)
    for call in (cluster.delete_pod(pod), cluster.bind(pod, "n"), cluster.delete_pod(pod)):
        with pytest.raises(NotFoundError):
            run(call)
    cluster.faults.clear()
    run(cluster.delete_pod(pod))
    with pytest.raises(ValueError, match="there are: BadRequest"):
        cluster.faults.fail("bind", "Sunspots")


def test_a_removed_definition_takes_its_objects_along(world: World) -> None:
    """Objects can be added again when it is installed again."""
    world.cluster.add(make_object(Limit, "a"))
    assert world.settle() == ["+a"]
    world.cluster.remove_crd(Limit)
    assert world.settle() == ["-a", "Limit: limits.example.com: the API server does not have them"]
    with pytest.raises(LookupError, match=r"limits\.example\.com are not served: call install_crd"):
        world.cluster.add(make_object(Limit, "b"))
    world.cluster.install_crd(Limit)
    world.cluster.add(make_object(Limit, "b"))
    assert world.settle() == ["Limit: ", "+b"]
    with pytest.raises(ValueError, match="Pod is not declared with @custom_resource"):
        world.cluster.remove_crd(Pod)
