"""The units that may be evicted if there are pod groups: a pod, or a group whose pods are evicted together."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kubestow.api.pod_groups import group_key
from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.placements import VictimUnit
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets

_Unit: TypeAlias = tuple[tuple[PodInfo, ...], int]
"""Pods that are evicted together, and their priority."""


def unit_of(cluster: Cluster, pod: PodInfo) -> tuple[str, tuple[PodInfo, ...], int]:
    """Return what identifies the unit of a pod, its pods, and its priority, which is that of the group."""
    groups = cluster.groups
    group = None if groups is None else groups.group_of(pod.pod)
    if groups is None or group is None:
        return pod.uid, (pod,), pod.priority
    if not group.is_disrupted_together:
        return pod.uid, (pod,), group.priority
    found = (cluster.pod(uid) for uid in groups.members(group.key).scheduled)
    return group.key, tuple(one for one in found if one is not None), group.priority


def evictable_units(cluster: Cluster, priority: int, budgets: Budgets, now: float) -> Sequence[VictimUnit]:
    """Return all units with a lower priority: those that violate a budget first, then by importance."""
    found: dict[str, _Unit] = {}
    for _, pod in cluster.placed_pods():
        if group_key(pod.pod) and cluster.groups is not None:
            key, pods, of_unit = unit_of(cluster, pod)
            if of_unit < priority:
                found[key] = (pods, of_unit)
        elif pod.priority < priority:
            found[pod.uid] = ((pod,), pod.priority)
    return in_order(found.values(), budgets, now)


def in_order(units: Iterable[_Unit], budgets: Budgets, now: float) -> list[VictimUnit]:
    """Return units in the order in which to reprieve them."""
    ranked = sorted(units, key=lambda unit: _importance_key(unit[0], unit[1], now))
    broken = budgets.number_broken_by([pods for pods, _ in ranked])
    found = [
        VictimUnit(pods, bool(group_key(pods[0].pod)), number) for (pods, _), number in zip(ranked, broken, strict=True)
    ]
    return sorted(found, key=lambda unit: not unit.budgets_broken)


def _importance_key(pods: Sequence[PodInfo], priority: int, now: float) -> tuple[int, bool, int, float]:
    """Return a sort key of pods that are evicted together, smaller for more important ones."""
    in_group = bool(group_key(pods[0].pod))
    return -priority, not in_group, -len(pods), min(pod_start_time(pod.pod, now) for pod in pods)
