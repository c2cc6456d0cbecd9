"""The memory of decisions: one limit in bytes for records and the history that their details need."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from kubestow.insight.decisions import schema
from kubestow.insight.decisions.details import DROPPED
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import Placed
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.insight.records import archive_of, nodes_of


def world_of(limit: int, nodes: int = 20) -> SchedulerHarness:
    """Return a harness with nodes of one CPU each; `limit` is in bytes."""
    world = SchedulerHarness(record_bytes=limit)
    for number in range(nodes):
        world.cluster.add(make_node(f"n{number}", cpu="1"))
    return world


def schedule(world: SchedulerHarness, name: str, cpu: str = "1m") -> None:
    world.cluster.add(make_pod(name, cpu=cpu))
    world.run_for(0.1)


def summaries(world: SchedulerHarness) -> list[schema.Decision]:
    """Return the decisions without details, newest first."""
    archive = archive_of(world)
    return [archive.decision(record, nodes=False) for record in archive]


def test_the_oldest_records_are_dropped_first() -> None:
    """The newest records within the limit are kept."""
    with world_of(100_000) as world:
        for number in range(200):
            schedule(world, f"p{number}")
            assert archive_of(world).recorder.bytes <= 100_000
        kept = [decision.pod for decision in summaries(world)]
    assert kept == [f"default/p{number}" for number in range(199, 199 - len(kept), -1)]
    assert 5 < len(kept) < 100


def test_details_of_all_records_in_the_ring_can_be_derived() -> None:
    """The changes that a record needs are not dropped before the record."""
    with world_of(200_000) as world:
        for number in range(300):
            schedule(world, f"p{number}")
        archive = archive_of(world)
        found = [archive.decision(record) for record in archive]
    assert len(found) > 10
    assert {len(nodes_of(decision)) for decision in found} == {20}


def test_many_changes_and_few_decisions() -> None:
    """Changes without a following decision are dropped, too, and with them the details of earlier decisions."""
    with world_of(150_000) as world:
        schedule(world, "waits", cpu="2")
        world.cluster.add(make_node("changes", cpu="1"))
        for number in range(500):
            world.cluster.update(make_node("changes", cpu="1", labels={"number": str(number)}))
            world.run_for(0.01)
        archive = archive_of(world)
        assert archive.recorder.bytes <= 150_000
        old = archive.decision(min(archive, key=lambda record: record.id))
    assert (old.pod, old.nodes, old.nodesDropped) == ("default/waits", {}, DROPPED)
    assert old.message.startswith("0/20 nodes are available")


def test_the_last_record_of_a_waiting_pod_is_kept() -> None:
    """It is kept longer than newer records of bound pods, without details about nodes."""
    with world_of(150_000) as world:
        schedule(world, "waits", cpu="2")
        (record,) = archive_of(world)
        for number in range(200):
            schedule(world, f"p{number}")
        archive = archive_of(world)
        found = archive.recorder.last(record.uid)
        assert found is not None
        assert [one.id for one in archive if one.uid == record.uid] == [found.id]
        decision = archive.decision(found)
    assert (decision.pod, decision.outcome) == ("default/waits", "unschedulable")
    assert (decision.nodes, decision.nodesDropped) == ({}, DROPPED)


def test_the_last_record_of_a_deleted_pod_is_dropped_in_the_end() -> None:
    """Records of waiting pods share the limit with all others."""
    with world_of(60_000, nodes=1) as world:
        for number in range(100):
            schedule(world, f"big{number}", cpu="2")
        assert archive_of(world).recorder.bytes <= 60_000
        assert len(archive_of(world).recorder) < 15


def test_deleted_pods_do_not_displace_newer_decisions() -> None:
    """After deleted pods that did not fit, decisions have their details."""
    with world_of(400_000, nodes=5) as world:
        for number in range(300):
            schedule(world, f"big{number}", cpu="2")
            world.cluster.delete(world.cluster.pod(f"big{number}"), grace_seconds=0)
            world.run_for(0.1)
        for number in range(20):
            schedule(world, f"p{number}")
        archive = archive_of(world)
        newest = [archive.decision(record) for record in archive][:10]
        recorder = archive.recorder
        known = {record.uid for record in recorder}
        assert all(recorder.last(uid) is not None for uid in known)
        assert recorder._last.keys() <= known
    assert [decision.nodesDropped for decision in newest] == [""] * 10


def test_many_pods_in_the_queue_do_not_displace_records() -> None:
    """Their moves may only take a part of the limit."""
    with world_of(400_000, nodes=1) as world:
        for number in range(2_000):
            world.cluster.add(make_pod(f"gated{number}", gates=["g"]))
        world.run_for(0.1)
        for number in range(20):
            schedule(world, f"p{number}")
        archive = archive_of(world)
        assert [archive.decision(record).nodesDropped for record in archive][:10] == [""] * 10


def test_the_last_record_of_a_pod() -> None:
    """It is found at any time, also after the oldest records were dropped."""
    with world_of(150_000) as world:
        for name in ("a", "b"):
            schedule(world, name)
        recorder = archive_of(world).recorder
        uids = {record.name: record.uid for record in recorder}
        assert [found and found.id for found in map(recorder.last, uids.values())] == [2, 1]
        for number in range(200):
            schedule(world, f"p{number}")
        assert [recorder.last(uid) for uid in uids.values()] == [None, None]
        for record in recorder:
            assert recorder.last(record.uid) is record


def test_listeners_are_notified_of_bindings_whose_record_was_dropped() -> None:
    """The log is complete even if the limit is too small for one record."""
    with world_of(1) as world:
        heard: list[tuple[str, str]] = []
        archive_of(world).recorder.listeners.append(lambda record: heard.append((record.name, record.binding)))
        schedule(world, "p")
        assert list(archive_of(world)) == []
    assert heard == [("p", "binding"), ("p", "bound")]


def memory_of(world: SchedulerHarness, work: Callable[[], None]) -> tuple[int, int]:
    """Return the bytes that a function allocates, and the bytes that the recorder counts for them."""
    recorder = archive_of(world).recorder
    recorder.history.settle()
    counted = recorder.bytes
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    recorder.history.settle()
    return taken, recorder.bytes - counted


def add_and_delete(world: SchedulerHarness, size: int, prefix: str, annotations: int = 0) -> None:
    """Add and delete pods with annotations of a given length."""
    like = make_pod("like", cpu="1m")
    for number in range(size):
        meta = replace(
            like.metadata,
            name=f"some-deployment-{prefix}-{number}",
            uid=f"{prefix}{number:036}",
            annotations={"a": f"{number:0{annotations}}"} if annotations else {},
        )
        world.cluster.add(replace(like, metadata=meta))
        world.run_until_idle()
        world.cluster.delete(world.cluster.pod(meta.name))


def test_bytes_are_not_counted_too_low() -> None:
    """The real memory of decisions is at most the counted memory."""
    with world_of(1 << 30, nodes=100) as world:
        add_and_delete(world, 200, "a")
        world.run_for(1.0)
        taken, counted = memory_of(world, lambda: add_and_delete(world, 1_000, "b"))
    assert 0.2 * counted < taken <= counted


def test_nodes_that_are_added_and_deleted() -> None:
    """A decision does not keep the order of all nodes, which changes each time."""
    with world_of(1 << 30, nodes=1_000) as world:

        def churn(size: int) -> None:
            for number in range(size):
                world.cluster.add(make_node("temporary", cpu="1"))
                add_and_delete(world, 1, f"c{number}-")
                world.cluster.delete(world.cluster.node("temporary"))

        churn(20)
        taken, counted = memory_of(world, lambda: churn(200))
    assert taken <= counted


def test_pods_with_long_annotations() -> None:
    """The annotations are kept with the pod, and counted."""
    with world_of(1 << 30) as world:
        add_and_delete(world, 20, "a", annotations=50_000)
        taken, counted = memory_of(world, lambda: add_and_delete(world, 100, "b", annotations=50_000))
    assert 0.2 * counted < taken <= counted


def test_large_pods_do_not_exceed_the_limit() -> None:
    """The limit is checked by the size of records, not by their number."""
    with world_of(4_000_000) as world:
        for number in range(20):
            add_and_delete(world, 10, f"c{number}-", annotations=50_000)
            archive_of(world).recorder.history.settle()
            assert archive_of(world).recorder.bytes <= 5_000_000


class Talkative:
    """A plugin that rejects every node for a different reason, and draws a random number for each."""

    name = "Talkative"

    def __init__(self, args: Any, handle: Any) -> None:
        self._rng = handle.rng

    def requeue_on(self) -> Any:
        return []

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        return f"{pod.name} is rejected on {node.name} since {self._rng.randrange(1 << 60)} is drawn" * 3


def test_answers_of_plugins_that_are_not_pure() -> None:
    """Their reasons and random numbers are kept with the decision."""
    with SchedulerHarness(record_bytes=1 << 30, plugins=[Talkative]) as world:
        for number in range(100):
            world.cluster.add(make_node(f"n{number}", cpu="1"))

        def reject(size: int, prefix: str) -> None:
            for number in range(size):
                world.cluster.add(make_pod(f"{prefix}{number}", cpu="1m"))
                world.run_for(0.01)
                world.cluster.delete(world.cluster.pod(f"{prefix}{number}"), grace_seconds=0)

        reject(5, "a")
        taken, counted = memory_of(world, lambda: reject(30, "b"))
    assert 0.2 * counted < taken <= counted


def test_evaluations_are_freed_after_a_cycle() -> None:
    """They are freed without the garbage collector, even if a plugin fails."""

    def evaluations() -> list[Evaluation]:
        return [found for found in gc.get_objects() if isinstance(found, Evaluation)]

    gc.collect()
    gc.disable()
    before = {id(found) for found in evaluations()}
    try:
        with world_of(1) as world:
            for name, cpu in (("placed", "100m"), ("rejected", "2"), ("placed-again", "100m")):
                schedule(world, name, cpu)
            world.cluster.add(make_pod("wrong", cpu="1", claims=["missing"]))
            world.run_for(0.1)
            assert [type(outcome) is Placed for outcome in world.attempts.about("placed")] == [True]
            assert not [found for found in evaluations() if id(found) not in before]
    finally:
        gc.enable()
