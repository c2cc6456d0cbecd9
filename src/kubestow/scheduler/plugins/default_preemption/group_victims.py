"""The pods that may be evicted for a pod group, in the order in which they are reprieved."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.placements import VictimUnit
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets

_Unit: TypeAlias = tuple[tuple[PodInfo, ...], int]
"""Pods that are evicted together, and their priority."""


def evictable_units(cluster: Cluster, priority: int, budgets: Budgets, now: float) -> Sequence[VictimUnit]:
    """Return all units with a lower priority: those that violate a budget first, then by importance.

    Groups with a matching disruption mode are evicted as a whole, and have the priority of the group.
    """
    lower = [*_single_pods(cluster, priority), *_whole_groups(cluster, priority)]
    lower.sort(key=lambda unit: _importance_key(unit[0], unit[1], now))
    broken = budgets.units_broken_by([pods for pods, _ in lower])
    order = sorted(range(len(lower)), key=lambda number: not broken[number])
    return [VictimUnit(lower[number][0]) for number in order]


def _single_pods(cluster: Cluster, priority: int) -> Iterator[_Unit]:
    """Yield the pods of lower priority that are evicted individually."""
    for row in cluster.rows_with_lower_priority(priority).tolist():
        for pod in cluster.nodes.pods[row].values():
            if pod.priority < priority and not _is_evicted_with_others(cluster, pod):
                yield (pod,), pod.priority


def _is_evicted_with_others(cluster: Cluster, pod: PodInfo) -> bool:
    if cluster.groups is None or not group_key(pod.pod):
        return False
    group = cluster.groups.group_of(pod.pod)
    return group is not None and group.is_disrupted_together


def _whole_groups(cluster: Cluster, priority: int) -> Iterator[_Unit]:
    """Yield the pods of each group of lower priority that is evicted as a whole."""
    if cluster.groups is None:
        return
    for group in cluster.listers.pod_groups:
        if group.is_disrupted_together and group.priority < priority:
            found = (cluster.pod(uid) for uid in cluster.groups.members(group.key).scheduled)
            pods = tuple(pod for pod in found if pod is not None)
            if pods:
                yield pods, group.priority


def _importance_key(pods: Sequence[PodInfo], priority: int, now: float) -> tuple[bool, int, bool, int, float]:
    """Return a sort key, smaller for more important pods. Terminating pods are the least important."""
    is_leaving = all(pod.terminating for pod in pods)
    in_group = bool(group_key(pods[0].pod))
    started = min(pod_start_time(pod.pod, now) for pod in pods)
    return is_leaving, -priority, not in_group, -len(pods) if in_group else 0, started
