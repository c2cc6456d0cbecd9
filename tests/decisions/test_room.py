"""How much room records take: a limit in bytes, what is shared counted once, pods that wait remembered longest."""

import gc
import tracemalloc
from array import array

from msgspec.structs import replace

from kubestow import config
from kubestow.binding.binder import Attempt
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.outcome import Outcome, Placed
from kubestow.cycle.scheduling import SchedulingCycles
from kubestow.cycle.trace import Trace
from kubestow.decisions.record import Record
from kubestow.decisions.recorder import DEFAULT_BYTES, Recorder
from kubestow.decisions.telling import DROPPED, tell
from kubestow.framework.results import Code, PostFilterResult
from kubestow.offline.handles import StillClock, offline_handle, settled
from kubestow.queue.nominator import Nominator
from kubestow.queue.queued_pod import QueuedPod
from kubestow.testing.builders import make_node, make_pod
from kubestow.wiring.profiles import build_profiles
from kubestow.wiring.registry import in_tree_registry

SOFT = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}


class World:
    """A cluster of full nodes, cycles on it, and a recorder for which all pods wait."""

    def __init__(self, limit: int, node_count: int = 100) -> None:
        self.cluster, nominator = Cluster(), Nominator()
        for number in range(node_count):
            self.cluster.set_node(make_node(f"n{number}", cpu="1"))
        handle = offline_handle(self.cluster, nominator=nominator)
        (self.profile,) = build_profiles(config.default(), in_tree_registry(), handle, lambda: 0.0).values()
        self.cycles = SchedulingCycles(self.cluster, nominator, lambda best: int(best[0]), 100, traces=True)
        self.recorder = Recorder(StillClock(), limit)
        self.waiting: set[str] = set()
        self.recorder.is_pending = self.waiting.__contains__
        self.recorder.journal_bytes = self.cycles.journal_bytes

    def schedule(self, name: str, cpu: str = "2", *, spread: bool = False) -> Record:
        self.schedule_and_forget(name, cpu, spread=spread)
        return next(iter(self.recorder))

    def schedule_and_forget(self, name: str, cpu: str, *, spread: bool = False) -> Outcome:
        pod = make_pod(name, cpu=cpu, spec={"topologySpreadConstraints": [SOFT]} if spread else None)
        queued = QueuedPod(pod, 0.0)
        self.waiting.add(queued.uid)
        outcome = settled(self.cycles.run(self.profile, queued.info))
        self.recorder.decided(Attempt(queued, self.profile, 0.0), outcome, 0.0, self.cycles.trace)
        return outcome


def test_equal_pods_share_arrays() -> None:
    """Of pods that are refused alike, and of pods that are placed, one after the other."""
    world = World(1 << 24)
    refused = [world.schedule(f"big-{number}") for number in range(5)]
    assert len({id(record.found.refusals) for record in refused}) == 1
    before = world.recorder.kept().bytes
    world.schedule("one-more")
    assert world.recorder.kept().bytes - before < 1500
    placed = [world.schedule(f"small-{number}", "100m") for number in range(6)]
    chapters = {id(chapter) for record in placed[2:] if record.trace for chapter, _, _ in record.trace.moments}
    assert len(chapters) == 2


def test_another_refusal_of_one_node_is_not_shared() -> None:
    """What was said before stays as it was."""
    world = World(1 << 24)
    first = world.schedule("a")
    world.cluster.set_node(make_node("n7", cpu="1", unschedulable=True))
    second = world.schedule("b")
    assert first.found.refusals is not second.found.refusals
    said = [tell(record, world.recorder).nodes for record in (first, second)]
    plugins = [nodes["n7"].rejected.plugin for nodes in said]  # type: ignore[index, union-attr]
    assert plugins == ["NodeResourcesFit", "NodeUnschedulable"]


def test_the_oldest_go_first() -> None:
    """A ring: so many bytes, and no more."""
    world = World(40_000)
    for number in range(200):
        world.waiting.clear()
        world.schedule(f"p{number}")
    assert world.recorder.kept().bytes <= 40_000
    kept = [record.name for record in world.recorder]
    assert kept == [f"p{number}" for number in range(199, 199 - len(kept), -1)]
    assert 10 < len(kept) < 200


def test_pods_that_wait_are_remembered() -> None:
    """Their last record outlives newer ones of pods that do not wait; an earlier one of theirs does not."""
    world = World(40_000)
    world.schedule("waits")
    world.schedule("waits")
    uid = next(iter(world.recorder)).uid
    for number in range(200):
        record = world.schedule(f"p{number}")
        world.waiting = {uid}
        world.recorder.is_pending = world.waiting.__contains__
    assert record.name == "p199"
    assert [record.id for record in world.recorder if record.uid == uid] == [2]
    world.schedule("waits")
    assert next(record.uid for record in world.recorder) == uid
    assert [record.id for record in world.recorder if record.uid == uid] == [203]


def test_the_last_of_a_pod_is_known_whenever_somebody_asks() -> None:
    """Also after others came that nobody asked about, and after the oldest have gone."""
    world = World(40_000)
    uids = [world.schedule(name).uid for name in ("a", "b", "a")]
    assert [found and found.id for found in map(world.recorder.last, uids)] == [3, 2, 3]
    world.schedule("b", "100m")
    world.waiting.clear()
    assert [found and found.id for found in map(world.recorder.last, uids)] == [3, 4, 3]
    for number in range(200):
        world.schedule_and_forget(f"p{number}", "100m")
        world.waiting.clear()
    assert [world.recorder.last(uid) for uid in uids] == [None, None, None]
    for record in world.recorder:
        assert world.recorder.last(record.uid) is record


def test_the_end_of_a_binding_is_told_of_a_record_that_is_gone() -> None:
    """There was no room for it; whoever writes a log wants to know all the same."""
    world, heard = World(1), list[tuple[str, str]]()
    world.recorder.listeners.append(lambda record: heard.append((record.name, record.binding)))
    placed = world.schedule_and_forget("p", "100m")
    assert isinstance(placed, Placed)
    assert not list(world.recorder)
    world.recorder.step(placed, ("Bind", "DefaultBinder", 0.0, 0.0, True))
    assert heard == [("p", "binding"), ("p", "bound")]


def test_too_many_that_wait_lose_their_nodes_first() -> None:
    """Then the oldest go; a record that lost its nodes says so."""
    world = World(100_000)
    for number in range(90):
        world.cluster.set_node(make_node(f"n{number}", cpu="1", unschedulable=True))
        world.schedule(f"p{number}")
    records = list(world.recorder)
    assert world.recorder.kept().bytes <= 100_000
    assert len(records) == 90
    oldest = tell(records[-1], world.recorder)
    assert (oldest.nodes, oldest.nodesDropped) == ({}, DROPPED)
    assert oldest.message.startswith("0/100 nodes are available")
    assert len(tell(records[0], world.recorder).nodes) == 100  # type: ignore[arg-type]


def test_the_count_does_not_drift() -> None:
    """After thousands of records came and went, what is counted is what is there."""
    world = World(300_000, node_count=20)
    for number in range(3_000):
        world.cluster.set_node(make_node(f"n{number % 30}", cpu="1k"))
        record = world.schedule(f"p{number}", ("100m", "200m", "2k")[number % 3], spread=number % 4 == 0)
        if number % 100:
            world.waiting.discard(record.uid)
    records = list(world.recorder)
    findings = {id(record.found): record.found for record in records}.values()
    shared = {id(part): part.size for found in findings for part in (found.names, found.refusals) if part}
    chapters = {id(chapter): chapter for found in findings if found.layers for chapter, _, _ in found.layers.at(0)}
    counted = sum(chapter.counted for chapter in chapters.values())
    assert chapters
    own_bytes = sum(record.own_bytes for record in records) + sum(found.own_bytes for found in findings)
    assert world.recorder.kept().bytes == own_bytes + sum(shared.values()) + counted


def test_what_pods_share_is_in_the_limit() -> None:
    """Each kind of pods takes a journal, which leaves less room for records."""
    world = World(120_000)
    for number in range(120):
        world.schedule(f"p{number}", f"{number % 6 + 1}m")
        world.waiting.clear()
    taken = world.cycles.journal_bytes()
    assert taken >= 7 * 10 * 100
    assert world.recorder.kept().bytes + taken <= 120_000
    assert len(world.recorder.kept()) > 10


def crowd(world: World, size: int) -> None:
    """Pods that wait, each with many moves, refused in a hundred ways; nobody else remembers them."""
    like = make_pod("like", cpu="2")
    world.recorder.is_pending = lambda _uid: True
    for number in range(size):
        if number % (size // 100) == 0:
            row = number // (size // 100)
            world.cluster.set_node(make_node(f"n{row}", cpu="1", unschedulable=True))
            outcome = settled(world.cycles.run(world.profile, PodInfo(like)))
            assert isinstance(world.cycles.trace, Trace)
            evaluation = world.cycles.trace.evaluation
        meta = replace(like.metadata, name=f"some-deployment-{number}", uid=f"{number:036}")
        queued = QueuedPod(replace(like, metadata=meta), 0.0, attempts=5, history=array("d", range(17)))
        trace = Trace(evaluation, post_filter=PostFilterResult(Code.UNSCHEDULABLE, "nothing helps"))
        world.recorder.decided(Attempt(queued, world.profile, 0.0), outcome, 0.0, trace)


def test_a_hundred_thousand_pods_that_wait() -> None:
    """All have their record within the default limit; within a lower one, as many as there is room for."""
    world = World(DEFAULT_BYTES, node_count=1000)
    crowd(world, 100_000)
    assert (len(world.recorder.kept()), world.recorder.kept().bytes <= DEFAULT_BYTES) == (100_000, True)
    small = World(DEFAULT_BYTES // 16, node_count=1000)
    crowd(small, 20_000)
    assert small.recorder.kept().bytes <= DEFAULT_BYTES // 16
    assert len(small.recorder.kept()) > 5_000


def test_bytes_are_not_counted_too_low() -> None:
    """What records really take is no more than what is counted."""
    world = World(DEFAULT_BYTES, node_count=1000)
    crowd(world, 1_000)
    counted = world.recorder.kept().bytes
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        crowd(world, 10_000)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    counted = world.recorder.kept().bytes - counted
    assert 0.5 * counted < taken <= counted


def _evaluations() -> list[Evaluation]:
    return [found for found in gc.get_objects() if isinstance(found, Evaluation)]


def test_nothing_is_kept_alive_by_itself() -> None:
    """What a cycle leaves goes with its record, without a garbage collector: also where a plugin fails."""
    gc.collect()
    gc.disable()
    before = {id(found) for found in _evaluations()}
    try:
        world = World(1)
        for name, cpu in (("placed", "100m"), ("refused", "2"), ("placed-again", "100m")):
            world.schedule_and_forget(name, cpu)
        world.cycles.run(world.profile, PodInfo(make_pod("wrong", cpu="1", claims=["missing"])))
        world.cycles.trace = None
        assert not [found for found in _evaluations() if id(found) not in before]
    finally:
        gc.enable()
