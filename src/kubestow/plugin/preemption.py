"""Preemption by the rules of a plugin: which pods may be evicted, which are spared, and what must hold afterwards.

    class QuotaGuard(PreFilter[None], PostFilter):
        def __init__(self, args, handle):
            self._preemption = Preemption(self.name, handle, candidates=self._borrowers, fits=self._fits)

        def post_filter(self, pod, cycle):
            return self._preemption.run(pod, cycle)

The rest is as with DefaultPreemption: nodes are tried from a random one on, until there are enough candidates. On each,
all pods that may be evicted are removed. If the pod then fits, they are added back one by one by importance, first
those whose eviction violates a disruption budget; those without which the pod fits only are the victims. The candidate
with the least cost is nominated, and the scheduler evicts its victims.

A plugin that rejects pods as a whole in PreFilter, such as one with quotas, is taken to allow the pod while nodes are
tried: its `fits` decides instead.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.arrays import BoolArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import NOT_STARTED
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import Change, FailedEvaluation
from kubestow.scheduler.framework.results import Candidates, Code, PostFilterResult, Victims, WeighedCandidates
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets, budgets_of
from kubestow.scheduler.plugins.default_preemption.choice import cost_of, least_costly, preempt
from kubestow.scheduler.plugins.default_preemption.eligibility import Awaits, awaits_preempted, ineligibility_reason

_BATCH = 64
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"


class SelectCandidates(Protocol):
    """Returns which of the pods on a node may be evicted for a pod; given and returned by increasing importance."""

    def __call__(self, pod: PodInfo, others: Sequence[PodInfo], /) -> Sequence[PodInfo]: ...


class Fits(Protocol):
    """Returns whether the rules of the plugin allow a pod on a node if some pods are evicted from that node."""

    def __call__(self, pod: PodInfo, node: str, victims: Sequence[PodInfo], /) -> bool: ...


def of_lower_priority(pod: PodInfo, others: Sequence[PodInfo]) -> Sequence[PodInfo]:
    """Return the pods that have a lower priority than the one that needs their place."""
    return [other for other in others if other.priority < pod.priority]


def priority_and_age(pod: PodInfo) -> tuple[float, ...]:
    """Return the importance of a pod: its priority, and among equal ones the time for which it has been running."""
    return pod.priority, -pod_start_time(pod.pod, NOT_STARTED)


class _Node(msgspec.Struct):
    """A node that is tried."""

    row: int
    name: str
    victims: list[PodInfo]
    """The pods that are removed: at first all that may be evicted, those first that are added back first."""
    breaking: dict[str, bool]
    """By UID, whether the eviction of a pod violates a disruption budget."""


class Preemption:
    """Finds victims for pods by the rules of a plugin."""

    def __init__(
        self,
        plugin: str,
        handle: Handle,
        *,
        candidates: SelectCandidates = of_lower_priority,
        awaits: Awaits = awaits_preempted,
        fits: Fits | None = None,
        importance: Callable[[PodInfo], Any] = priority_and_age,
        min_candidate_nodes_percentage: int = 10,
        min_candidate_nodes_absolute: int = 100,
    ) -> None:
        """`plugin` is the name of the plugin. Of several pods, those with the larger `importance` are spared first."""
        self._plugin = plugin
        self._handle = handle
        self._select = candidates
        self._awaits = awaits
        self._fits = fits
        self._importance = importance
        self._share = min_candidate_nodes_percentage
        self._least = min_candidate_nodes_absolute

    def run(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        """Return the node and the victims, or why there are none; the result of `post_filter`."""
        self._handle.metrics.preemption_attempts.inc()
        reason = ineligibility_reason(pod, cycle.cluster, cycle, self._awaits)
        if not reason and self._handle.is_preempting(pod.uid):
            reason = "not eligible due to an ongoing preemption."
        if reason:
            return PostFilterResult(Code.UNSCHEDULABLE, f"preemption: {reason}")
        rejected = cycle.rejected
        if rejected is not None and rejected.plugin == self._plugin and rejected.code is Code.UNSCHEDULABLE:
            cycle = cycle.ignoring(self._plugin)
        rows = _rows(cycle)
        start = self._handle.rng.randrange(len(rows)) if rows else 0
        reasons: Counter[str] = Counter()
        found = self._candidates(pod, cycle, rows[start:] + rows[:start], reasons)
        if found and self._handle.extenders_judge_preemption(pod):
            return Candidates(found, lambda left: self._choose(pod, cycle, left))
        if found:
            return self._choose(pod, cycle, found)
        count = cycle.cluster.nodes.count
        reasons[_NOT_HELPFUL] += count - len(rows)
        counted = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items() if number))
        message = f"preemption: 0/{count} nodes are available: {counted}."
        return PostFilterResult(Code.UNSCHEDULABLE, message, nominated_node="")

    def _candidates(
        self, pod: PodInfo, cycle: FailedEvaluation, rows: Sequence[int], reasons: Counter[str]
    ) -> dict[str, Victims]:
        """Return the victims by node; count the reasons of the other nodes."""
        budgets = budgets_of(cycle.cluster.listers.disruption_budgets)
        wanted = max(len(rows) * self._share // 100, self._least)
        found: dict[str, Victims] = {}
        for begin in range(0, len(rows), _BATCH):
            batch = [self._node(pod, cycle, row, budgets) for row in rows[begin : begin + _BATCH]]
            tried = [node for node in batch if node.victims and self._is_allowed(pod, node, node.victims)]
            reasons[_NO_VICTIMS] += len(batch) - len(tried)
            passing = _passing(cycle, tried, [node.victims for node in tried], reasons)
            fitting = [node for node, passes in zip(tried, passing.tolist(), strict=True) if passes]
            self._reprieve(pod, cycle, fitting)
            for node in fitting:
                if not node.victims:
                    reasons[_NO_VICTIMS] += 1
                    continue
                evicted = tuple(sorted(node.victims, key=self._importance, reverse=True))
                found[node.name] = Victims(evicted, sum(node.breaking[one.uid] for one in evicted))
            if len(found) >= wanted and not all(victims.budgets_broken for victims in found.values()):
                break
        return found

    def _node(self, pod: PodInfo, cycle: FailedEvaluation, row: int, budgets: Budgets) -> _Node:
        nodes = cycle.cluster.nodes
        victims = [*self._select(pod, sorted(nodes.pods[row].values(), key=self._importance))][::-1]
        breaking = {one.uid: breaks for one, breaks in zip(victims, budgets.broken_by(victims), strict=True)}
        victims.sort(key=lambda one: not breaking[one.uid])
        return _Node(row, nodes.names[row], victims, breaking)

    def _is_allowed(self, pod: PodInfo, node: _Node, victims: Sequence[PodInfo]) -> bool:
        return self._fits is None or self._fits(pod, node.name, victims)

    def _reprieve(self, pod: PodInfo, cycle: FailedEvaluation, nodes: Sequence[_Node]) -> None:
        """Remove from the victims those with which the pod still fits, one turn on all nodes at once."""
        turns = [tuple(node.victims) for node in nodes]
        for turn in range(max(map(len, turns), default=0)):
            tried, removed = [], []
            for node, order in zip(nodes, turns, strict=True):
                if turn < len(order):
                    left = [one for one in node.victims if one is not order[turn]]
                    if self._is_allowed(pod, node, left):
                        tried.append(node)
                        removed.append(left)
            for node, left, passes in zip(tried, removed, _passing(cycle, tried, removed).tolist(), strict=True):
                if passes:
                    node.victims = left

    def _choose(self, pod: PodInfo, cycle: FailedEvaluation, left: Mapping[str, Victims]) -> PostFilterResult:
        if not left:
            return PostFilterResult(Code.UNSCHEDULABLE, "preemption: no candidate node for preemption")
        cost = np.array([cost_of(victims) for victims in left.values()]).T
        node = list(left)[least_costly(cost, self._handle.clock.now())]
        weighed = WeighedCandidates(np.array([cycle.cluster.nodes.row_of[name] for name in left]), cost)
        return preempt(self._handle, pod, node, left[node], weighed)


def _rows(cycle: FailedEvaluation) -> list[int]:
    """Return the rows where eviction may help: those that pass, and those rejected for a reason that may change."""
    if cycle.rejected is not None or cycle.verdicts is None:
        return []
    return sorted({*cycle.verdicts.feasible().tolist(), *cycle.verdicts.summary().resolvable_rows.tolist()})


def _passing(
    cycle: FailedEvaluation,
    nodes: Sequence[_Node],
    removed: Sequence[Sequence[PodInfo]],
    reasons: Counter[str] | None = None,
) -> BoolArray:
    """Return on which nodes the pod passes all filters without some pods; nominated pods must not be in its way."""
    passing = np.ones(len(nodes), np.bool_)
    nominated = cycle.nominated
    rows = np.array([node.row for node in nodes], np.int64)
    awaited = np.zeros(len(nodes), np.bool_) if nominated is None else nominated.are_on(rows)
    # The states of filters that count pods on many nodes differ from node to node.
    alone = np.zeros(len(nodes), np.bool_)
    if cycle.has_adapting_states and len(nodes):
        alone = cycle.counted_rows[rows] | awaited
    together: list[int] = np.flatnonzero(~alone).tolist()
    groups = [together, *([position] for position in np.flatnonzero(alone).tolist())]
    for group in groups:
        for with_nominated in (True, False):
            tried = [at for at in group if passing[at] and (awaited[at] or not with_nominated)]
            if not tried:
                continue
            competing = nominated if with_nominated else None
            view, changes = what_if(cycle.cluster.nodes, rows[tried], competing), []
            for position, at in enumerate(tried):
                row = int(rows[at])
                for pod in removed[at]:
                    view.remove_pod(position, pod)
                    changes.append(Change(pod, row, added=False))
                if competing is not None:
                    changes += [Change(pod, row, added=True) for pod in competing.pods(row)]
            states = cycle.states_after(changes) if alone[tried[0]] else cycle.states
            verdicts = cycle.refuses(states, view)
            passing[tried] = verdicts.passing
            if reasons is not None:
                reasons.update(verdicts.summary().reasons)
    return passing
