"""Pods that share the work of equal pods are placed exactly where they would be without."""

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cycle.random_clusters import NODES, PROFILES, clusters, kinds, nodes, pod_of, profile_on
from kubestow.cluster import order
from kubestow.cluster.arrays import IntArray
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cycle.evaluation import Evaluation
from kubestow.cycle.outcome import Outcome, Placed
from kubestow.cycle.scheduling import Judge, SchedulingCycles, choose_at_random
from kubestow.cycle.sharing import Upcoming
from kubestow.extenders.extender import Conversation
from kubestow.framework.results import SKIP
from kubestow.model.node import Node
from kubestow.model.pod import Pod
from kubestow.queue.nominator import Nominator
from kubestow.testing.handles import settled


class Schedule(NamedTuple):
    kind: str
    cpu: int
    """Thousandths; 0: as the kind has it."""
    priority: int
    nominated: str
    timed: bool

    def pod(self, name: str) -> Pod:
        return pod_of(self.kind, name, priority=self.priority, nominated=self.nominated, cpu=self.cpu)


class SetNode(NamedTuple):
    node: Node


class RemoveNode(NamedTuple):
    name: str


class Run(NamedTuple):
    """A pod that somebody else hook."""

    kind: str
    node: str


class Remove(NamedTuple):
    which: int


class Forget(NamedTuple):
    which: int


class Confirm(NamedTuple):
    which: int


class Nominate(NamedTuple):
    kind: str
    node: str
    priority: int


class EndNomination(NamedTuple):
    which: int


names = st.sampled_from(NODES)
priorities = st.integers(0, 2)
numbers = st.integers(0, 30)


nominations = st.sampled_from(["", "", "", "", "n0", "n9"])
seldom = st.sampled_from([False, False, False, True])


@st.composite
def stories(draw: st.DrawFn) -> list[Any]:
    """What happens to a cluster; most pods are of a few kinds, so that there is something to share."""
    usual = st.sampled_from(draw(st.lists(kinds, min_size=2, max_size=3)))
    schedules = st.builds(Schedule, usual, st.just(0), priorities, nominations, seldom)
    return draw(_told_with(schedules))


@st.composite
def stories_of_many_sizes(draw: st.DrawFn) -> list[Any]:
    """What happens to a cluster; no two pods want the same."""
    kind = draw(st.sampled_from(["plain", "toleration", "preferred node affinity", "soft zone spread", "port", "gpu"]))
    story = draw(_told_with(st.just(Schedule(kind, 0, 0, "", False))))
    return [
        what._replace(cpu=20 * number + 1, timed=draw(seldom)) if isinstance(what, Schedule) else what
        for number, what in enumerate(story)
    ]


@st.composite
def _told_with(draw: st.DrawFn, schedules: st.SearchStrategy[Schedule]) -> list[Any]:
    first = draw(st.lists(names.flatmap(nodes), min_size=2, max_size=8))
    events = st.one_of(
        # Ten in eighteen: what is the same strategy would count once.
        *(schedules.map(lambda what: what) for _ in range(10)),
        names.flatmap(nodes).map(SetNode),
        st.builds(RemoveNode, names),
        st.builds(Run, kinds, st.sampled_from([*NODES, "unseen"])),
        st.builds(Remove, numbers),
        st.builds(Forget, numbers),
        st.builds(Confirm, numbers),
        st.builds(Nominate, kinds, names, priorities),
        st.builds(EndNomination, numbers),
    )
    return [*map(SetNode, first), *draw(st.lists(events, min_size=20, max_size=40))]


class Watched(SchedulingCycles):
    """Remembers the totals that each choice was made from."""

    totals: dict[str, int] | None = None

    def _best(self, evaluation: Evaluation, judge: Judge, rows: IntArray) -> Conversation[str]:
        totals = judge.score(rows)
        self.totals = {self._cluster.nodes.names[row]: int(total) for row, total in zip(rows, totals, strict=True)}
        scored = SimpleNamespace(score=lambda _rows: totals)
        return (yield from super()._best(evaluation, scored, rows))


class World:
    """A cluster that is scheduled with or without sharing; the same events make the same cluster."""

    def __init__(self, profile: str, percentage: int, *, sharing: bool, upcoming: Upcoming = lambda _most: ()) -> None:
        self.cluster = Cluster()
        self.nominator = Nominator()
        self.profile = profile_on(self.cluster, self.nominator, profile)
        choose = choose_at_random(random.Random(7))
        self.cycles = Watched(
            self.cluster, self.nominator, choose, percentage, share_among_equal_pods=sharing, upcoming=upcoming
        )
        self._sharing = sharing
        self._pods: list[Pod] = []
        self._placed: list[Placed] = []
        self._nominated: list[Pod] = []

    def happen(self, what: Any, name: str, to_schedule: PodInfo | None) -> Any:
        """Carry out an event; returns what a cycle came to."""
        match what:
            case Schedule(timed=timed) if to_schedule is not None:
                return self._schedule(to_schedule, timed)
            case SetNode(node):
                self.cluster.set_node(node)
            case RemoveNode(node):
                self.cluster.remove_node(node)
            case Run(kind, node):
                self._pods.append(pod_of(kind, name, node=node))
                self.cluster.set_pod(self._pods[-1])
            case Remove(which) if self._pods:
                self.cluster.remove_pod(self._pods.pop(which % len(self._pods)).metadata.uid)
            case Forget(which) if self._placed:
                self.cycles.give_back(self.profile, self._placed.pop(which % len(self._placed)))
            case Confirm(which) if self._placed:
                pod = self._placed.pop(which % len(self._placed)).pod.pod
                self._pods.append(pod)
                self.cluster.set_pod(pod)
            case Nominate(kind, node, priority):
                self._nominated.append(pod_of(kind, name, priority=priority))
                self.nominator.nominate(self._nominated[-1], node)
            case EndNomination(which) if self._nominated:
                self.nominator.remove(self._nominated.pop(which % len(self._nominated)).metadata.uid)
        return None

    def _schedule(self, pod: PodInfo, timed: bool) -> Any:
        self.profile.caller.timing = timed and self._sharing
        self.cycles.totals = None
        outcome = settled(self.cycles.run(self.profile, pod))
        if isinstance(outcome, Placed):
            self._placed.append(outcome)
        return told(outcome), self.cycles.totals


def told(outcome: Outcome) -> Any:
    """What an outcome says, in plain values."""
    if isinstance(outcome, Placed):
        return outcome.node, outcome.evaluated, outcome.feasible, sorted(outcome.states)
    victims = [pod.key for pod in outcome.victims], [pod.key for pod in outcome.to_unnominate]
    return outcome.code, outcome.message, outcome.plugins, outcome.nominated_node, victims


def compare(
    profile: str, sample: tuple[int, int], story: list[Any], upcoming: Callable[[list[PodInfo]], list[PodInfo]]
) -> None:
    """Let a story happen with and without sharing; `upcoming` makes of the pods to come those that are told of."""
    fewest, percentage = sample
    pods = [PodInfo(what.pod(f"p{i}")) if isinstance(what, Schedule) else None for i, what in enumerate(story)]
    coming: list[PodInfo] = []
    with pytest.MonkeyPatch.context() as patch:
        # So that not all nodes of a small cluster are looked at.
        patch.setattr(order, "MIN_FEASIBLE_NODES", fewest)
        sharing = World(profile, percentage, sharing=True, upcoming=lambda most: coming[:most])
        alone = World(profile, percentage, sharing=False)
        for number, what in enumerate(story):
            coming = upcoming([pod for pod in pods[number + 1 :] if pod is not None])
            expected = alone.happen(what, f"p{number}", pods[number])
            assert sharing.happen(what, f"p{number}", pods[number]) == expected
            if expected is not None:
                event("placed" if expected[1] else "failed")


@given(
    profile=st.sampled_from(sorted(PROFILES)),
    sample=st.sampled_from([(100, 0), (2, 0), (1, 30)]),
    story=stories(),
)
@settings(max_examples=150, deadline=None)
def test_decisions_are_the_same(profile: str, sample: tuple[int, int], story: list[Any]) -> None:
    """Same node with the same luck, same totals, same counts, or the same failure: for any pods, after any events."""
    compare(profile, sample, story, lambda coming: coming)


@given(
    profile=st.sampled_from(["default", "by shape, ignoring gpus"]),
    sample=st.sampled_from([(2, 0), (1, 30), (1, 15)]),
    story=stories_of_many_sizes(),
    is_right=st.sampled_from([True, True, False]),
)
@settings(max_examples=150, deadline=None)
def test_pods_of_many_sizes_are_judged_ahead(
    profile: str, sample: tuple[int, int], story: list[Any], is_right: bool
) -> None:
    """The same for pods that are judged before their turn, also if others come then."""
    compare(profile, sample, story, lambda coming: coming if is_right else coming[::-2])


@given(cluster=clusters(), kind=kinds, profile=st.sampled_from(sorted(PROFILES)))
@settings(max_examples=150, deadline=None)
def test_single_rows_in_plain_numbers(cluster: Cluster, kind: str, profile: str) -> None:
    """`row_rejection` and `row_score` say of every row what the vector form says."""
    made, pod, table = profile_on(cluster, Nominator(), profile), PodInfo(pod_of(kind, "p")), cluster.nodes
    everywhere = slice(0, table.size)
    asked = 0
    for hook in made.filter:
        if not hasattr(hook.plugin, "row_rejection"):
            continue
        state = hook.plugin.pre_filter(pod)
        answer = hook.function(state, pod, table, everywhere)
        kinds = [0] * table.size if answer is None else answer.kinds.tolist()
        expected = [None if answer is None or not kind else answer.words(kind) for kind in kinds]
        assert [hook.plugin.row_rejection(state, table, row) for row in range(table.size)] == expected
        asked += 1
    for hook in made.score:
        if not hasattr(hook.plugin, "row_score"):
            continue
        state = hook.plugin.pre_score(pod, table, np.arange(table.size))
        if state is SKIP:
            continue
        scores = hook.function(state, pod, table, everywhere).tolist()
        found = [hook.plugin.row_score(state, table, row) for row in range(table.size)]
        assert [score if alone is None else alone for score, alone in zip(scores, found, strict=True)] == scores
        asked += 1
    assert asked
