"""Who could be evicted for a pod group, and in which order they are spared if the group fits in spite of them."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.placements import VictimUnit
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets

_Unit: TypeAlias = tuple[tuple[PodInfo, ...], int]
"""Pods that leave together, and their priority."""


def units_to_spare(cluster: Cluster, priority: int, budgets: Budgets, now: float) -> Sequence[VictimUnit]:
    """All that may be evicted for a priority: first those whose eviction breaks a budget, the most important first.

    Groups whose disruption mode says so are evicted all or none, and count by the priority of the group.
    """
    lower = [*_single_pods(cluster, priority), *_whole_groups(cluster, priority)]
    lower.sort(key=lambda unit: _importance(unit[0], unit[1], now))
    broken = budgets.units_broken_by([pods for pods, _ in lower])
    order = sorted(range(len(lower)), key=lambda number: not broken[number])
    return [VictimUnit(lower[number][0]) for number in order]


def _single_pods(cluster: Cluster, priority: int) -> Iterator[_Unit]:
    """The pods of a lower priority that are evicted one by one."""
    for row in cluster.rows_with_less_important(priority).tolist():
        for pod in cluster.nodes.pods[row].values():
            if pod.priority < priority and not _is_evicted_with_others(cluster, pod):
                yield (pod,), pod.priority


def _is_evicted_with_others(cluster: Cluster, pod: PodInfo) -> bool:
    if cluster.groups is None or not group_key(pod.pod):
        return False
    group = cluster.groups.group_of(pod.pod)
    return group is not None and group.is_disrupted_together


def _whole_groups(cluster: Cluster, priority: int) -> Iterator[_Unit]:
    """The pods of each group of a lower priority that is evicted all or none."""
    if cluster.groups is None:
        return
    for group in cluster.listers.pod_groups:
        if group.is_disrupted_together and group.priority < priority:
            found = (cluster.pod(uid) for uid in cluster.groups.members(group.key).scheduled)
            pods = tuple(pod for pod in found if pod is not None)
            if pods:
                yield pods, group.priority


def _importance(pods: Sequence[PodInfo], priority: int, now: float) -> tuple[bool, int, bool, int, float]:
    """The smaller, the more important. Who is on the way out already need not be spared."""
    is_leaving = all(pod.terminating for pod in pods)
    in_group = bool(group_key(pods[0].pod))
    started = min(pod_start_time(pod.pod, now) for pod in pods)
    return is_leaving, -priority, not in_group, -len(pods) if in_group else 0, started
