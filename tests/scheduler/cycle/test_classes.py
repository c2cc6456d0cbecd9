"""Classes of equal pods: which rows are evaluated again for the next pod."""

import random
from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from kubestow import config
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.outcome import Failed, Outcome, Placed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles, choose_at_random
from kubestow.scheduler.cycle.sharing import sharing as sharing_module
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, Rejection, Rejections, unschedulable
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing.builders import make_node, make_pod
from support.scheduler.troupe import Scores, nodes, profile_of
from support.settled import settled

MEGABYTE = 1024 * 1024


class Room:
    """Allows two pods on a node, and prefers nodes with one. Signs, and supports single rows."""

    name = "Room"
    reads_pods = PodsRead.SUMS
    limit = 2

    def __init__(self) -> None:
        self.evaluated: list[int] = []
        self.single: list[int] = []

    def sign(self, pod: PodInfo) -> Hashable:
        return ""

    def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Rejections:
        full = view.pod_count[rows] >= self.limit
        self.evaluated.append(len(full))
        return Rejections(full.astype(np.int64), lambda _: unschedulable("full"))

    def row_rejection(self, state: Any, view: Any, row: int) -> Rejection | None:
        self.single.append(row)
        return None if view.pod_count[row] < self.limit else unschedulable("full")

    def score_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> IntArray:
        scores: IntArray = 10 * view.pod_count[rows]
        return scores

    def row_score(self, state: Any, view: Any, row: int) -> int:
        return 10 * int(view.pod_count[row])


def cycles_on(cluster: Cluster, **how: Any) -> SchedulingCycles:
    return SchedulingCycles(cluster, Nominator(), choose_at_random(random.Random(1)), **how)


def schedule(cycles: SchedulingCycles, profile: Profile, name: str, **pod: Any) -> Outcome:
    return settled(cycles.run(profile, PodInfo(make_pod(name, **pod))))


def default_profile(cluster: Cluster) -> Profile:
    handle = offline_handle(cluster)
    made = build_profiles(config.default(), in_tree_registry(), handle, lambda: 0.0)
    return made["default-scheduler"]


def both_ways(cluster_of: Any, pods: int, between: Any = None, **pod: Any) -> list[list[str]]:
    """Return where equal pods are placed with sharing, and without."""
    found = []
    for sharing in (True, False):
        cluster = cluster_of()
        cycles, profile = cycles_on(cluster, share_among_equal_pods=sharing), default_profile(cluster)
        placed = []
        for number in range(pods):
            if between is not None:
                between(cluster, number)
            outcome = schedule(cycles, profile, f"p{number}", **pod)
            placed.append(outcome.node if isinstance(outcome, Placed) else outcome.message)
        found.append(placed)
    return found


def test_only_changed_rows_are_evaluated_again() -> None:
    """The second equal pod makes a class of all rows; for the next ones only the changed rows are evaluated."""
    plugin, cluster = Room(), nodes(50)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    for number in range(10):
        assert isinstance(schedule(cycles, profile, f"p{number}"), Placed)
    assert plugin.evaluated == [50, 50]
    assert len(plugin.single) == 8
    assert profile.filter[0].all_evaluations == 2 * 50 + 8


def test_many_changed_rows_are_evaluated_together() -> None:
    """They are evaluated as an array, not one by one."""
    plugin, cluster = Room(), nodes(50)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    schedule(cycles, profile, "first")
    schedule(cycles, profile, "second")
    for number in range(10, 20):
        cluster.set_pod(make_pod(f"other-{number}", node=f"n{number}"))
    schedule(cycles, profile, "third")
    assert plugin.evaluated in ([50, 50, 10], [50, 50, 11])
    assert plugin.single == []


def test_nothing_is_evaluated_without_changes() -> None:
    """A pod that was unreserved has changed its row, nothing else."""
    plugin, cluster = Room(), nodes(5)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    schedule(cycles, profile, "first")
    placed = schedule(cycles, profile, "second")
    assert isinstance(placed, Placed)
    cycles.unreserve(profile, placed)
    schedule(cycles, profile, "third")
    assert plugin.evaluated == [5, 5]
    assert plugin.single == [cluster.nodes.row_of[placed.node]]


def test_after_a_rejection_of_all_rows_a_changed_row_is_evaluated_once() -> None:
    """A further pod without a feasible row costs one call per changed row; one with a feasible row is placed."""
    plugin, cluster = Room(), nodes(50)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    for number in range(100):
        assert isinstance(schedule(cycles, profile, f"p{number}"), Placed)
    assert isinstance(schedule(cycles, profile, "late"), Failed)
    cluster.set_pod(make_pod("more", node="n7"))
    plugin.evaluated.clear()
    plugin.single.clear()
    assert isinstance(schedule(cycles, profile, "later"), Failed)
    assert (plugin.evaluated, len(plugin.single)) == ([], 1)
    for uid in list(cluster.nodes.pods[7]):
        cluster.remove_pod(uid)
    outcome = schedule(cycles, profile, "last")
    assert isinstance(outcome, Placed)
    assert outcome.node == "n7"


class Fragile:
    """Allows two pods on a node, and fails for a node with three."""

    name = "Fragile"

    def sign(self, pod: PodInfo) -> Hashable:
        return ""

    def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Rejections:
        count = view.pod_count[rows]
        rejections = [Rejection(()), unschedulable("full"), Rejection(("too much",), Code.ERROR)]
        kinds = (count >= 2).astype(np.int64) + (count == 3)
        return Rejections(kinds, rejections.__getitem__, rejections[2] if (count == 3).any() else None)


def test_after_a_rejection_of_all_rows_a_failure_is_reported() -> None:
    """A plugin that fails for a row has not rejected it."""
    cluster = nodes(5)
    profile, cycles = profile_of(Fragile(), cluster=cluster), cycles_on(cluster)
    for number in range(10):
        assert isinstance(schedule(cycles, profile, f"p{number}"), Placed)
    for code, more in ((Code.UNSCHEDULABLE, 1), (Code.ERROR, 0), (Code.ERROR, 1), (Code.UNSCHEDULABLE, 0)):
        outcome = schedule(cycles, profile, "late")
        assert isinstance(outcome, Failed)
        assert outcome.code is code
        for number in range(more):
            cluster.set_pod(make_pod(f"more{cluster.pod_count + number}", node="n3"))


def test_for_a_nominated_pod_no_other_row_is_evaluated() -> None:
    """Other changed rows are left to the next pod that searches."""
    plugin, cluster = Room(), nodes(50)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    schedule(cycles, profile, "first")
    schedule(cycles, profile, "second")
    for number in range(10, 20):
        cluster.set_pod(make_pod(f"other-{number}", node=f"n{number}"))
    placed = schedule(cycles, profile, "nominated", status={"nominatedNodeName": "n15"})
    assert isinstance(placed, Placed)
    assert placed.node == "n15"
    assert plugin.evaluated == [50, 50]
    assert plugin.single == [cluster.nodes.row_of["n15"]]


def test_a_nominated_pod_goes_elsewhere_when_its_node_is_full() -> None:
    """It then searches like any other pod, and sees all changes."""
    plugin, cluster = Room(), nodes(2)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    first, second = schedule(cycles, profile, "first"), schedule(cycles, profile, "second")
    assert isinstance(first, Placed)
    assert isinstance(second, Placed)
    assert first.node == second.node
    placed = schedule(cycles, profile, "nominated", status={"nominatedNodeName": first.node})
    assert isinstance(placed, Placed)
    assert placed.node != first.node


def test_nodes_fill_up_one_after_the_other() -> None:
    """Rows that are not feasible any more leave the normalized scores, too; in the end no node is feasible."""

    def cluster_of() -> Cluster:
        cluster = Cluster()
        for number, size in enumerate((1, 2, 3, 3)):
            cluster.set_node(make_node(f"n{number}", pods=size, taints=["slow:PreferNoSchedule"] if size == 1 else []))
        return cluster

    shared, alone = both_ways(cluster_of, 10, cpu="10m")
    assert shared == alone
    assert shared[-1].startswith("0/4 nodes are available: 4 Too many pods.")
    assert sorted(shared[:9]) == sorted(["n0"] + ["n1"] * 2 + ["n2"] * 3 + ["n3"] * 3)


def test_an_image_that_spreads() -> None:
    """A node's score for an image depends on how many others have it; each new one changes all scores."""

    def between(cluster: Cluster, number: int) -> None:
        name = f"n{number}"
        cluster.set_node(make_node(name, cpu="64", images={"app:latest": 800 * MEGABYTE}))

    def cluster_of() -> Cluster:
        cluster = Cluster()
        for number in range(8):
            cluster.set_node(make_node(f"n{number}", cpu="64"))
        return cluster

    shared, alone = both_ways(cluster_of, 8, between)
    assert shared == alone


def test_a_node_that_changes_under_a_class() -> None:
    """The node is cordoned, tainted, removed, and added: the next equal pod sees each change."""

    def between(cluster: Cluster, number: int) -> None:
        if number == 1:
            cluster.set_node(make_node("n0", unschedulable=True))
        elif number == 2:
            cluster.set_node(make_node("n1", taints=["dedicated:NoSchedule"]))
        elif number == 3:
            cluster.remove_node("n2")
        elif number == 4:
            cluster.set_node(make_node("n2"))

    shared, alone = both_ways(lambda: nodes(3), 6, between)
    assert shared == alone
    refused = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. "
    assert shared[3].startswith(refused)
    assert shared[4] == "n2"


def test_pods_with_different_signatures_are_in_different_classes() -> None:
    """A plugin may sign the name of a pod."""

    class ByName(Room):
        def sign(self, pod: PodInfo) -> Hashable:
            return pod.name

    plugin, cluster = ByName(), nodes(5)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    for name in ("a", "b", "a", "b", "a", "b"):
        placed = schedule(cycles, profile, name)
        assert isinstance(placed, Placed)
        cycles.unreserve(profile, placed)
    assert plugin.evaluated == [5, 5, 5, 5]


class Undecided(Room):
    """Returns None as the signature of every pod."""

    name = "Undecided"

    def sign(self, pod: PodInfo) -> Hashable:
        return None


class Unsigned:
    """Has no `sign`."""

    name = "Unsigned"

    def __init__(self) -> None:
        self.evaluated: list[int] = []

    def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> None:
        self.evaluated.append(len(np.arange(view.size)[rows]))


@pytest.mark.parametrize("plugin", [Undecided(), Unsigned()], ids=["undecided", "unsigned"])
def test_plugins_without_signatures_are_always_called(plugin: Any) -> None:
    """They are called for every row and every pod, besides plugins with shared results."""
    room, cluster = Room(), nodes(5)
    profile, cycles = profile_of(room, plugin, cluster=cluster), cycles_on(cluster)
    for number in range(3):
        schedule(cycles, profile, f"p{number}")
    assert plugin.evaluated == [5, 5, 5]
    assert room.evaluated == [5, 5]


def test_plain_plugins_are_called_for_the_remaining_rows() -> None:
    """A call per node is expensive: only rows that pass the class are evaluated."""

    class Plain:
        name = "Plain"
        seen: list[str] = []

        def filter(self, state: Any, pod: PodInfo, node: Any) -> str | None:
            self.seen.append(node.name)
            return "not this one" if node.name == "n1" else None

    room, plain, cluster = Room(), Plain(), nodes(3)
    for number in range(2):
        cluster.set_pod(make_pod(f"other-{number}", node="n0"))
    profile, cycles = profile_of(room, plain, cluster=cluster), cycles_on(cluster)
    for name in ("full", "shared"):
        placed = schedule(cycles, profile, name)
        assert isinstance(placed, Placed)
        assert placed.node == "n2"
    assert plain.seen == ["n1", "n2", "n1", "n2"]


def test_timed_cycles_time_single_rows() -> None:
    """Every call is measured, including calls for single rows."""

    plugin, cluster = Room(), nodes(5)
    metrics = SchedulerMetrics()
    profile, cycles = profile_of(plugin, cluster=cluster, metrics=metrics), cycles_on(cluster)
    schedule(cycles, profile, "first")
    schedule(cycles, profile, "second")
    profile.caller.timing = True
    schedule(cycles, profile, "third")
    assert plugin.evaluated == [5, 5]
    assert len(plugin.single) == 1
    assert list(metrics.plugin_execution_seconds.read()) == [("Filter", "Room", "Unschedulable")]


class Broken(Room):
    """Fails in the given method."""

    limit = 9

    def __init__(self, where: str, error: Any) -> None:
        super().__init__()
        self._where, self._error = where, error

    def _fail(self, where: str) -> Any:
        if where == self._where:
            if isinstance(self._error, Exception):
                raise self._error
            return self._error
        return None

    def sign(self, pod: PodInfo) -> Hashable:
        return self._fail("sign") or super().sign(pod)

    def row_rejection(self, state: Any, view: Any, row: int) -> Rejection | None:
        return self._fail("row_rejection") or super().row_rejection(state, view, row)

    def row_score(self, state: Any, view: Any, row: int) -> int:
        return self._fail("row_score") or super().row_score(state, view, row)

    def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Rejections:
        return self._fail("filter_rows") or super().filter_rows(state, pod, view, rows)

    def score_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> IntArray:
        scores = super().score_rows(state, pod, view, rows)
        wrong = self._fail("score_rows")
        return scores if wrong is None else scores + wrong


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("sign", KeyError("x"), "running sign plugin \"Room\": KeyError('x')"),
        ("filter_rows", KeyError("x"), "running Filter plugin \"Room\": KeyError('x')"),
        ("row_rejection", KeyError("x"), "running Filter plugin \"Room\": KeyError('x')"),
        ("row_score", KeyError("x"), "running Score plugin \"Room\": KeyError('x')"),
        ("row_score", 101, 'running Score plugin "Room": row_score must score from 0 to 100, not 101'),
        ("score_rows", 200, 'running Score plugin "Room": score_rows must score from 0 to 100: score 200 of node '),
    ],
)
def test_failures_are_attributed(where: str, error: Any, message: str) -> None:
    """A plugin that fails in shared work fails the cycle, is named, and fails again the next time."""
    cluster = nodes(5)
    profile, cycles = profile_of(Broken(where, error), cluster=cluster), cycles_on(cluster)
    schedule(cycles, profile, "first")
    schedule(cycles, profile, "second")
    for name in ("third", "fourth"):
        outcome = schedule(cycles, profile, name)
        assert isinstance(outcome, Failed)
        assert outcome.code is Code.ERROR
        assert outcome.message.startswith(message)


def test_the_number_of_classes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used class is dropped; its pods are evaluated again."""

    class ByName(Room):
        def sign(self, pod: PodInfo) -> Hashable:
            return pod.name

    plugin, cluster = ByName(), nodes(5)
    monkeypatch.setattr(sharing_module, "_CACHED_ROWS_LIMIT", 2 * cluster.nodes.capacity)
    profile, cycles = profile_of(plugin, cluster=cluster), cycles_on(cluster)
    evaluated = []
    for name in "aabbaccab":
        before = len(plugin.evaluated)
        placed = schedule(cycles, profile, name)
        assert isinstance(placed, Placed)
        cycles.unreserve(profile, placed)
        evaluated.append(len(plugin.evaluated) > before)
    made_again = {name: [did for did, of in zip(evaluated, "aabbaccab", strict=True) if of == name] for name in "abc"}
    assert made_again == {"a": [True, True, False, False], "b": [True, True, True], "c": [True, True]}


def test_a_pod_that_is_rejected_as_a_whole_is_not_shared() -> None:
    """It is evaluated in full every time, for its message."""

    class Never(Room):
        def pre_filter(self, pod: PodInfo) -> Any:
            return unschedulable("never")

    cluster = nodes(3)
    profile, cycles = profile_of(Never(), cluster=cluster), cycles_on(cluster)
    for name in ("a", "b"):
        outcome = schedule(cycles, profile, name)
        assert isinstance(outcome, Failed)
        assert outcome.message == "0/3 nodes are available: never."


def recorded_points(metrics: SchedulerMetrics) -> Counter[str]:
    recorded: Counter[str] = Counter()
    for (point, _, _), observed in metrics.extension_point_seconds.read().items():
        recorded[point] += sum(observed.counts)
    return recorded


def test_points_are_recorded_once() -> None:
    """A cycle that has to be evaluated in full after all does not count twice in metrics."""

    cluster, metrics = nodes(1), SchedulerMetrics()
    profile, cycles = profile_of(Room(), cluster=cluster, metrics=metrics), cycles_on(cluster)
    for name in ("first", "second"):
        assert isinstance(schedule(cycles, profile, name), Placed)
    before = recorded_points(metrics)
    assert isinstance(schedule(cycles, profile, "third"), Failed)
    assert recorded_points(metrics) - before == {"PreFilter": 1, "Filter": 1}


def test_scores_that_normalize_and_read_pods() -> None:
    """They are evaluated again for all changed rows, and normalized again."""

    class Share(Scores):
        reads_pods = PodsRead.SUMS

        def sign(self, pod: PodInfo) -> Hashable:
            return ""

        def score_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> IntArray:
            counts: IntArray = view.pod_count[rows].copy()
            return counts

        def normalize(self, state: Any, pod: PodInfo, view: Any, rows: Any, scores: Any) -> Any:
            return 100 - 100 * scores // max(int(scores.max()), 1)

    cluster = nodes(3)
    profile, cycles = profile_of(Share("Share", {}), cluster=cluster), cycles_on(cluster)
    placed = [schedule(cycles, profile, f"p{number}") for number in range(6)]
    on = [outcome.node for outcome in placed if isinstance(outcome, Placed)]
    assert sorted(on[:3]) == sorted(on[3:]) == ["n0", "n1", "n2"]
