"""Random sequences of events for hypothesis, and a cluster that they are applied to."""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config import Features
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.history import History
from kubestow.scheduler.cluster.order import Search
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import Outcome, Placed
from kubestow.scheduler.cycle.scheduling import RowEvaluator, SchedulingCycles, choose_at_random
from kubestow.scheduler.cycle.sharing import Upcoming
from kubestow.scheduler.queue.nominator import Nominator
from support.scheduler.random_clusters import NODES, kinds, nodes, pod_of, profile_on
from support.settled import settled


class Schedule(NamedTuple):
    kind: str
    cpu: int
    """Thousandths of a CPU; 0: that of the kind."""
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
    """A pod that is placed by another component."""

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
    """Draw events of a cluster; most pods are of a few kinds, so that results can be shared."""
    usual = st.sampled_from(draw(st.lists(kinds, min_size=2, max_size=3)))
    schedules = st.builds(Schedule, usual, st.just(0), priorities, nominations, seldom)
    return draw(_events_with(schedules))


@st.composite
def stories_of_equal_pods(draw: st.DrawFn) -> list[Any]:
    """Draw events of a cluster; most pods are equal."""
    usual = st.sampled_from(draw(st.lists(st.sampled_from(["plain", "soft host spread"]), min_size=1, max_size=2)))
    return draw(_events_with(st.builds(Schedule, usual, st.just(0), st.just(0), st.just(""), st.just(False))))


@st.composite
def stories_of_many_sizes(draw: st.DrawFn) -> list[Any]:
    """Draw events of a cluster; no two pods have the same requests."""
    kind = draw(st.sampled_from(["plain", "toleration", "preferred node affinity", "soft zone spread", "port", "gpu"]))
    story = draw(_events_with(st.just(Schedule(kind, 0, 0, "", False))))
    return [
        what._replace(cpu=20 * number + 1, timed=draw(seldom)) if isinstance(what, Schedule) else what
        for number, what in enumerate(story)
    ]


@st.composite
def _events_with(draw: st.DrawFn, schedules: st.SearchStrategy[Schedule]) -> list[Any]:
    first = draw(st.lists(names.flatmap(nodes), min_size=2, max_size=8))
    events = st.one_of(
        # Ten in eighteen: `map` makes the strategies distinct, since equal ones count once.
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
    """Stores the totals that each choice was made from, without what all rows have in common."""

    totals: dict[str, int] | None = None

    def _pre_filter(self, evaluation: Evaluation, search: Search) -> RowEvaluator | None:
        evaluator = super()._pre_filter(evaluation, search)
        if evaluator is None:
            return None
        score = evaluator.score

        def reporting(rows: IntArray) -> IntArray:
            totals = score(rows)
            self._store_totals(rows, totals)
            return totals

        evaluator.score = reporting  # type: ignore[method-assign]
        return evaluator

    def _store_totals(self, rows: IntArray, totals: IntArray) -> None:
        named = zip(rows.tolist(), (totals - totals.min()).tolist(), strict=True)
        self.totals = {self._cluster.nodes.names[row]: total for row, total in named}


class World:
    """A cluster that is scheduled with or without sharing; the same events lead to the same cluster."""

    def __init__(
        self,
        profile: str,
        percentage: int,
        *,
        sharing: bool,
        upcoming: Upcoming = lambda _limit: (),
        history: History | None = None,
        plugins: Sequence[Any] = (),
        **parts: Any,
    ) -> None:
        """`plugins` are out-of-tree plugins; `parts` replaces attributes of their handle."""
        self.features = Features()
        self.cluster = Cluster(self.features, history)
        self.nominator = Nominator(history=history)
        self.profile = profile_on(self.cluster, self.nominator, profile, plugins=plugins, **parts)
        choose = choose_at_random(random.Random(7))
        self.cycles = Watched(
            self.cluster,
            self.nominator,
            choose,
            percentage,
            share_among_equal_pods=sharing,
            upcoming=upcoming,
        )
        self._sharing = sharing
        self.outcome: Outcome
        """The outcome of the last cycle."""
        self._pods: list[Pod] = []
        self._placed: list[Placed] = []
        self._nominated: list[Pod] = []

    def happen(self, what: Any, name: str, to_schedule: PodInfo | None) -> Any:
        """Apply an event; return the outcome of a cycle."""
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
                self.cycles.unreserve(self.profile, self._placed.pop(which % len(self._placed)))
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
        self.outcome = outcome = settled(self.cycles.run(self.profile, pod))
        if isinstance(outcome, Placed):
            self._placed.append(outcome)
        return summarized(outcome), self.cycles.totals


def summarized(outcome: Outcome) -> Any:
    """Return an outcome as plain values."""
    if isinstance(outcome, Placed):
        return outcome.node, outcome.searched.evaluated, outcome.searched.feasible, sorted(outcome.states)
    victims = [pod.key for pod in outcome.victims], [pod.key for pod in outcome.to_unnominate]
    return outcome.code, outcome.message, outcome.plugins, outcome.nominated_node, victims
