"""Finds the node and the victims for a pod that does not fit on any node, and the victims for a pod group."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from kubestow.config.plugin_args import DefaultPreemptionArgs
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.placements import GroupVictims, TriedGroup
from kubestow.scheduler.framework.plugin import FailedEvaluation
from kubestow.scheduler.framework.results import (
    Candidates,
    Code,
    PostFilterResult,
    Rejection,
    Victims,
    WeighedCandidates,
    unresolvable,
)
from kubestow.scheduler.plugins.default_preemption.choice import cost_of, least_costly, preempt
from kubestow.scheduler.plugins.default_preemption.findings import BUDGETS_BROKEN, Findings
from kubestow.scheduler.plugins.default_preemption.findings_cache import FindingsCache
from kubestow.scheduler.plugins.default_preemption.group_victims import evictable_units
from kubestow.scheduler.plugins.default_preemption.search import Search, helpful_rows


class Evaluator:
    """Finds victims for pods that may preempt others."""

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._cache = FindingsCache(handle.cluster)

    def for_pod(self, pod: PodInfo, cycle: FailedEvaluation) -> PostFilterResult | Candidates:
        """Return the node with the least cost of eviction and its victims; Candidates if extenders decide."""
        cluster = self._handle.cluster
        rows = helpful_rows(cluster, cycle)
        if len(rows):
            start = self._handle.rng.randrange(len(rows))
            rows = np.concatenate((rows[start:], rows[:start]))
        findings = self._cache.findings(None if cycle.has_adapting_states else cycle.signature, cycle.nominated_row)
        search = Search(cluster, cycle, pod, self._cache.budgets(), findings, rows, self._handle.clock.now())
        candidates = search.run(self._candidates_wanted(len(rows)))
        if len(candidates):
            if self._handle.extenders_judge_preemption(pod):
                return Candidates(self._victims(candidates, findings), partial(self._choose, pod))
            weighed = WeighedCandidates(candidates, findings.cost.take(candidates, axis=1))
            row = int(candidates[least_costly(weighed.cost, self._handle.clock.now())])
            victims = Victims(findings.victims(row, cluster.ranking), int(findings.cost[BUDGETS_BROKEN, row]))
            return preempt(self._handle, pod, cluster.nodes.names[row], victims, weighed)
        problems = search.problems()
        if problems:
            listed = ", ".join(problems)
            return PostFilterResult(Code.ERROR, f"preemption: {f'[{listed}]' if len(problems) > 1 else listed}")
        return PostFilterResult(Code.UNSCHEDULABLE, f"preemption: {search.message()}", nominated_node="")

    def for_group(self, group: TriedGroup) -> GroupVictims | Rejection:
        """Return the pods that may be evicted for a group, or a rejection if there are none."""
        assert group.group is not None
        cluster, now = self._handle.cluster, self._handle.clock.now()
        units = evictable_units(cluster, group.group.priority, self._cache.budgets(), now)
        if not units:
            return unresolvable("pod group preemption: No preemption victims found for incoming preemptor")
        return GroupVictims(units)

    def _candidates_wanted(self, helpful: int) -> int:
        share = helpful * self._args.minCandidateNodesPercentage // 100
        return min(max(share, self._args.minCandidateNodesAbsolute), helpful)

    def _victims(self, candidates: IntArray, findings: Findings) -> dict[str, Victims]:
        names, ranking = self._handle.cluster.nodes.names, self._handle.cluster.ranking
        return {
            names[row]: Victims(findings.victims(row, ranking), int(findings.cost[BUDGETS_BROKEN, row]))
            for row in candidates.tolist()
        }

    def _choose(self, pod: PodInfo, left: Mapping[str, Victims]) -> PostFilterResult:
        """Choose among the candidates that extenders left; extenders may have changed the victims."""
        if not left:
            return PostFilterResult(Code.UNSCHEDULABLE, "preemption: no candidate node for preemption")
        row_of = self._handle.cluster.nodes.row_of
        cost = np.array([cost_of(victims) for victims in left.values()]).T
        node = list(left)[least_costly(cost, self._handle.clock.now())]
        weighed = WeighedCandidates(np.array([row_of[name] for name in left]), cost)
        return preempt(self._handle, pod, node, left[node], weighed)
