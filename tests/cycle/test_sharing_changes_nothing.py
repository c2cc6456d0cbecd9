"""Pods that share the work of equal pods are placed exactly where they would be without."""

import random
from collections.abc import Callable
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
from kubestow.cycle.outcome import Outcome, Placed
from kubestow.cycle.scheduling import SchedulingCycles, choose_at_random
from kubestow.framework.results import SKIP
from kubestow.model.node import Node
from kubestow.model.pod import Pod
from kubestow.queue.nominator import Nominator


class Schedule(NamedTuple):
    kind: str
    priority: int
    nominated: str
    timed: bool


class SetNode(NamedTuple):
    node: Node


class RemoveNode(NamedTuple):
    name: str


class Run(NamedTuple):
    """A pod that somebody else bound."""

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


@st.composite
def stories(draw: st.DrawFn) -> list[Any]:
    """What happens to a cluster; most pods are of a few kinds, so that there is something to share."""
    usual = st.sampled_from(draw(st.lists(kinds, min_size=2, max_size=3)))
    nominated = st.sampled_from(["", "", "", "", "n0", "n9"])
    schedules = st.builds(Schedule, usual, priorities, nominated, st.sampled_from([False, False, False, True]))
    first = draw(st.lists(names.flatmap(nodes), min_size=2, max_size=8))
    events = st.one_of(
        *[schedules] * 10,
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

    def _best(self, rows: IntArray, score: Callable[[IntArray], IntArray]) -> str:
        totals = score(rows)
        self.totals = {self._cluster.nodes.names[row]: int(total) for row, total in zip(rows, totals, strict=True)}
        return super()._best(rows, lambda _rows: totals)


class World:
    """A cluster that is scheduled with or without sharing; the same events make the same cluster."""

    def __init__(self, profile: str, percentage: int, *, sharing: bool) -> None:
        self.cluster = Cluster()
        self.nominator = Nominator()
        self.profile = profile_on(self.cluster, self.nominator, profile)
        choose = choose_at_random(random.Random(7))
        self.cycles = Watched(self.cluster, self.nominator, choose, percentage, share_among_equal_pods=sharing)
        self._sharing = sharing
        self._pods: list[Pod] = []
        self._placed: list[Placed] = []
        self._nominated: list[Pod] = []

    def happen(self, what: Any, name: str) -> Any:
        """Carry out an event; returns what a cycle came to."""
        match what:
            case Schedule():
                return self._schedule(what, name)
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

    def _schedule(self, what: Schedule, name: str) -> Any:
        self.profile.caller.timing = what.timed and self._sharing
        self.cycles.totals = None
        pod = pod_of(what.kind, name, priority=what.priority, nominated=what.nominated)
        outcome = self.cycles.run(self.profile, PodInfo(pod))
        if isinstance(outcome, Placed):
            self._placed.append(outcome)
        return told(outcome), self.cycles.totals


def told(outcome: Outcome) -> Any:
    """What an outcome says, in plain values."""
    if isinstance(outcome, Placed):
        return outcome.node, outcome.evaluated, outcome.feasible, sorted(outcome.wants)
    victims = [pod.key for pod in outcome.victims], [pod.key for pod in outcome.to_unnominate]
    return outcome.code, outcome.message, outcome.plugins, outcome.nominated_node, victims


@given(
    profile=st.sampled_from(sorted(PROFILES)),
    sample=st.sampled_from([(100, 0), (2, 0), (1, 30)]),
    story=stories(),
)
@settings(max_examples=150, deadline=None)
def test_decisions_are_the_same(profile: str, sample: tuple[int, int], story: list[Any]) -> None:
    """Same node with the same luck, same totals, same counts, or the same failure: for any pods, after any events."""
    fewest, percentage = sample
    with pytest.MonkeyPatch.context() as patch:
        # So that not all nodes of a small cluster are looked at.
        patch.setattr(order, "MIN_FEASIBLE_NODES", fewest)
        sharing, alone = World(profile, percentage, sharing=True), World(profile, percentage, sharing=False)
        for number, what in enumerate(story):
            expected = alone.happen(what, f"p{number}")
            assert sharing.happen(what, f"p{number}") == expected
            if expected is not None:
                event("placed" if expected[1] else "failed")


@given(cluster=clusters(), kind=kinds, profile=st.sampled_from(sorted(PROFILES)))
@settings(max_examples=150, deadline=None)
def test_single_rows_in_plain_numbers(cluster: Cluster, kind: str, profile: str) -> None:
    """`row_passes` and `row_score` say of every row what the vector form says."""
    made, pod, table = profile_on(cluster, Nominator(), profile), PodInfo(pod_of(kind, "p")), cluster.nodes
    everywhere = slice(0, table.size)
    asked = 0
    for bound in made.filter:
        if not hasattr(bound.plugin, "row_passes"):
            continue
        want = bound.plugin.pre_filter(pod)
        answer = bound.function(want, pod, table, everywhere)
        passes = np.ones(table.size, np.bool_) if answer is None else answer.kinds == 0
        assert [bound.plugin.row_passes(want, table, row) for row in range(table.size)] == passes.tolist()
        asked += 1
    for bound in made.score:
        if not hasattr(bound.plugin, "row_score"):
            continue
        want = bound.plugin.pre_score(pod, table, np.arange(table.size))
        if want is SKIP:
            continue
        scores = bound.function(want, pod, table, everywhere).tolist()
        found = [bound.plugin.row_score(want, table, row) for row in range(table.size)]
        assert [score if alone is None else alone for score, alone in zip(scores, found, strict=True)] == scores
        asked += 1
    assert asked
