"""After any sequence of operations: no pod is lost, each is in one place, and each waits for a reason."""

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from kubestow.api.meta import ObjectMeta
from kubestow.api.pod import Pod, PodSchedulingGate, PodSchedulingGroup, PodSpec
from kubestow.api.pod_groups import group_key
from kubestow.scheduler.cluster.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, Action, ClusterEvent, Resource, on
from kubestow.scheduler.framework.results import Code, Rejection
from kubestow.scheduler.queue.group_queue import GroupQueue
from kubestow.scheduler.queue.queued_group import QueuedGroup
from kubestow.scheduler.queue.queued_pod import QueuedPod
from kubestow.scheduler.queue.rules import QueueSettings
from kubestow.scheduler.queue.scheduling_queue import SchedulingQueue

EVENTS = (
    ClusterEvent(Resource.NODE, Action.ADD),
    ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT),
    ClusterEvent(Resource.CSI_NODE, Action.UPDATE),
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
)
REGISTRATIONS = {
    "Nodes": [on(Resource.NODE, Action.ADD)],
    "Pods": [on(Resource.POD, Action.DELETE, lambda pod, _old, _new: pod.spec.priority == 1)],
    "Silent": [],
    "Gates": [on(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)],
}
PLUGINS = st.sets(st.sampled_from(["Nodes", "Pods", "Silent"]), max_size=2)
GATED = (PodSchedulingGate("g"),)


class Time:
    def __init__(self) -> None:
        self.time = 5_000.0

    def now(self) -> float:
        return self.time


class Profile:
    registrations = REGISTRATIONS

    def pre_enqueue(self, pod: Pod, gating_plugin: str | None) -> Rejection | None:
        return Rejection((), plugin="Gates") if pod.spec.schedulingGates else None


class QueueMachine(RuleBasedStateMachine):
    """The queue, and a simple model of which pods exist and which are in flight."""

    pods: Bundle[str] = Bundle("pods")
    popped: Bundle[QueuedPod] = Bundle("popped")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Time()
        self.queue = SchedulingQueue(clock=self.clock, rules={"default": Profile()}, settings=QueueSettings())
        self.known: dict[str, Pod] = {}
        self.in_flight: set[str] = set()
        self.made = 0

    @rule(target=pods, priority=st.integers(0, 3), gated=st.booleans())
    def add(self, priority: int, gated: bool) -> str:
        self.made += 1
        uid = f"u{self.made}"
        spec = PodSpec(schedulerName="default", priority=priority, schedulingGates=GATED if gated else ())
        self.known[uid] = Pod(metadata=ObjectMeta(name=uid, namespace="ns", uid=uid), spec=spec)
        self.queue.add(self.known[uid])
        return uid

    @rule(uid=pods, priority=st.integers(0, 3), ungate=st.booleans())
    def update(self, uid: str, priority: int, ungate: bool) -> None:
        old = self.known.get(uid)
        if old is None:
            return
        gates = () if ungate else old.spec.schedulingGates
        new = msgspec.structs.replace(
            old, spec=msgspec.structs.replace(old.spec, priority=priority, schedulingGates=gates)
        )
        self.known[uid] = new
        self.queue.update(old, new)

    @rule(uid=consumes(pods))
    def delete(self, uid: str) -> None:
        pod = self.known.pop(uid, None)
        if pod is not None:
            self.queue.delete(pod)

    @rule(target=popped)
    def pop(self) -> Any:
        best = self._best_active()
        queued = self.queue.pop()
        if queued is None:
            assert best is None
            return multiple()
        if best is not None:
            key = (-(queued.pod.spec.priority or 0), queued.timestamp)
            assert key == best
        assert queued.pod is self.known[queued.uid]
        self.in_flight.add(queued.uid)
        return queued

    @rule(queued=consumes(popped), plugins=PLUGINS, pending=PLUGINS)
    def fail(self, queued: QueuedPod, plugins: set[str], pending: set[str]) -> None:
        self.in_flight.discard(queued.uid)
        latest = self.known.get(queued.uid)
        if latest is None:
            self.queue.done(queued.uid)
            return
        queued.pod = latest
        self.queue.requeue_failed(queued, plugins, pending)

    @rule(queued=consumes(popped))
    def bind(self, queued: QueuedPod) -> None:
        self.in_flight.discard(queued.uid)
        self.known.pop(queued.uid, None)
        self.queue.done(queued.uid)

    @rule(event=st.sampled_from(EVENTS))
    def happens(self, event: ClusterEvent) -> None:
        self.queue.on_event(event, None, None)

    @rule(uid=pods)
    def activate(self, uid: str) -> None:
        if uid in self.known:
            self.queue.activate([self.known[uid]])
            if uid not in self.in_flight and not self.known[uid].spec.schedulingGates:
                assert self.known[uid] in self.queue.snapshot()["active"]

    @rule(seconds=st.sampled_from([0.001, 0.4, 1.0, 3.7, 12.0, 301.0]))
    def advance(self, seconds: float) -> None:
        self.clock.time += seconds
        self.queue.flush_backoff()
        self.queue.flush_unschedulable()
        wakeup = self.queue.next_wakeup()
        assert wakeup is None or wakeup > self.clock.time

    def _best_active(self) -> tuple[int, float] | None:
        active = [self.queue.get(pod.metadata.uid) for pod in self.queue.snapshot()["active"]]
        return min(((-(q.pod.spec.priority or 0), q.timestamp) for q in active if q), default=None)

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        waiting = [pod.metadata.uid for pods in self.queue.snapshot().values() for pod in pods]
        assert sorted(waiting) == sorted(self.known.keys() - self.in_flight)
        assert {pod.metadata.uid for pod in self.queue.in_flight_pods()} == self.in_flight

    @invariant()
    def every_pod_is_the_latest_version(self) -> None:
        for pods in self.queue.snapshot().values():
            assert all(pod is self.known[pod.metadata.uid] for pod in pods)

    @invariant()
    def lengths_and_counts_agree(self) -> None:
        snapshot = self.queue.snapshot()
        lengths = self.queue.lengths()
        assert lengths["backoff"] == len(snapshot["backoff"]) + len(snapshot["errorBackoff"])
        assert all(lengths[place] == len(snapshot[place]) for place in ("active", "unschedulable", "gated"))
        waiting = [self.queue.get(uid) for uid in self.known.keys() - self.in_flight]
        rejections = sum(len(queued.rejectors) for queued in waiting if queued)
        assert sum(self.queue.rejections().values()) == rejections

    @invariant()
    def events_are_kept_only_while_pods_are_in_flight(self) -> None:
        if not self.in_flight:
            assert not self.queue.in_flight_counts()


PARENTS = {"ns/a": "", "ns/b": "ns/composite/low", "ns/c": "ns/composite/top"} | {
    "ns/composite/low": "ns/composite/top",
    "ns/composite/top": "",
}
"""Of each group that may exist, its parent."""
KEYS = st.sampled_from(sorted(PARENTS))


class GroupQueueMachine(RuleBasedStateMachine):
    """A queue with groups and trees: pods and groups come and go, and groups are popped and fail."""

    pods: Bundle[str] = Bundle("pods")
    popped: Bundle[QueuedGroup] = Bundle("popped")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Time()
        self.queue = GroupQueue(clock=self.clock, rules={"default": Profile()}, settings=QueueSettings())
        self.known: dict[str, Pod] = {}
        self.in_flight: set[str] = set()
        self.groups: set[str] = set()
        self.made = 0

    @rule(target=pods, group=st.sampled_from(["a", "b", "c", ""]), gated=st.booleans())
    def add(self, group: str, gated: bool) -> str:
        self.made += 1
        uid = f"u{self.made}"
        spec = PodSpec(
            schedulerName="default",
            schedulingGates=GATED if gated else (),
            schedulingGroup=PodSchedulingGroup(group) if group else None,
        )
        self.known[uid] = Pod(metadata=ObjectMeta(name=uid, namespace="ns", uid=uid), spec=spec)
        self.queue.add(self.known[uid])
        return uid

    @rule(uid=pods)
    def release(self, uid: str) -> None:
        old = self.known.get(uid)
        if old is not None:
            new = msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, schedulingGates=()))
            self.known[uid] = new
            self.queue.update(old, new)

    @rule(uid=consumes(pods))
    def delete(self, uid: str) -> None:
        pod = self.known.pop(uid, None)
        if pod is not None:
            self.queue.delete(pod)

    @rule(key=KEYS, exists=st.booleans())
    def change_group(self, key: str, exists: bool) -> None:
        if exists:
            self.groups.add(key)
            self.queue.add_group(key, PARENTS[key])
        elif key in self.groups:
            self.groups.discard(key)
            self.queue.remove_group(key)

    def root_of(self, pod: Pod) -> str:
        """Return the key of the root of a pod's tree; empty if a group above it does not exist."""
        key = group_key(pod)
        while key in self.groups and PARENTS[key]:
            key = PARENTS[key]
        return key if key in self.groups else ""

    @rule(data=st.data(), code=st.sampled_from([Code.SUCCESS, Code.UNSCHEDULABLE, Code.ERROR]))
    def schedule(self, data: st.DataObject, code: Code) -> None:
        """Pop an entity; during its cycle other things may happen, then its pods are bound or fail."""
        queued = self.queue.pop()
        if queued is None:
            return
        self.in_flight |= {one.uid for one in queued.pods}
        for key, exists in data.draw(st.lists(st.tuples(KEYS, st.booleans()), max_size=2)):
            self.change_group(key, exists)
            self.add(data.draw(st.sampled_from(["a", "b", "c"])), gated=False)
        for one in queued.pods:
            self.in_flight.discard(one.uid)
            if one.uid not in self.known or data.draw(st.booleans()):
                self.known.pop(one.uid, None)
                self.queue.done(one.uid)
            else:
                one.pod = self.known[one.uid]
                self.queue.requeue_failed(one, data.draw(PLUGINS))
        if isinstance(queued, QueuedGroup):
            self.queue.requeue_group(queued, code)

    @rule(event=st.sampled_from(EVENTS))
    def happens(self, event: ClusterEvent) -> None:
        self.queue.on_event(event, None, None)

    @rule(uid=pods)
    def activate(self, uid: str) -> None:
        if uid in self.known:
            self.queue.activate([self.known[uid]])

    @rule(seconds=st.sampled_from([0.4, 1.0, 12.0, 301.0]))
    def advance(self, seconds: float) -> None:
        self.clock.time += seconds
        self.queue.flush_backoff()
        self.queue.flush_unschedulable()

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        snapshot = self.queue.snapshot()
        waiting = [pod.metadata.uid for pods in snapshot.values() for pod in pods]
        assert sorted(waiting) == sorted(self.known)
        assert sum(self.queue.lengths().values()) == len(waiting)
        assert all(pod is self.known[pod.metadata.uid] for pods in snapshot.values() for pod in pods)
        positions = [uid for place in self.queue.entries() for uid in place]
        assert sorted(positions) == sorted(self.known)
        assert not self.queue.in_flight_pods()

    @invariant()
    def pods_of_a_group_are_together(self) -> None:
        for root in ("ns/a", "ns/composite/top"):
            places = {self.queue.locate(uid)[0] for uid, pod in self.known.items() if self.root_of(pod) == root}
            assert len(places) <= 1
            assert "incomplete" not in places
        without = [uid for uid, pod in self.known.items() if group_key(pod) and not self.root_of(pod)]
        assert all(self.queue.locate(uid)[0] == "incomplete" for uid in without)

    @invariant()
    def a_gated_group_has_a_gated_pod(self) -> None:
        for uid, pod in self.known.items():
            if group_key(pod) and self.queue.locate(uid)[0] == "gated":
                same = [one for one in self.known.values() if self.root_of(one) == self.root_of(pod)]
                assert any(one.spec.schedulingGates for one in same)


TestGroupQueueMachine = GroupQueueMachine.TestCase
TestGroupQueueMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)

TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
