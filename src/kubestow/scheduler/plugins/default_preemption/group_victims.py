"""The units that may be evicted if there are pod groups: a pod, or a group whose pods are evicted together.

In a tree of groups, the highest group whose pods are evicted together counts, and the priority is that of the root.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kubestow.api.pod_groups import CompositePodGroup, group_key
from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.pod_groups import MOST_LEVELS
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.placements import VictimUnit
from kubestow.scheduler.plugins.default_preemption.budgets import Budgets

_POD, _GROUP, _COMPOSITE = range(3)
Unit: TypeAlias = tuple[tuple[PodInfo, ...], int, int]
"""Pods that are evicted together, their priority, and the rank of their kind."""


def unit_of(cluster: Cluster, pod: PodInfo) -> tuple[str, Unit]:
    """Return what identifies the unit of a pod, and the unit."""
    groups = cluster.groups
    group = None if groups is None else groups.group_of(pod.pod)
    if groups is None or group is None:
        return pod.uid, ((pod,), pod.priority, _GROUP if group_key(pod.pod) and groups is not None else _POD)
    path = [one for one in groups.path(group) if one is not None][:MOST_LEVELS]
    together = [one for one in path if one.is_disrupted_together]
    if not together:
        return pod.uid, ((pod,), path[-1].priority, _GROUP)
    found = (cluster.pod(uid) for uid in groups.scheduled(together[-1]))
    pods = tuple(one for one in found if one is not None)
    rank = _COMPOSITE if isinstance(together[-1], CompositePodGroup) else _GROUP
    return together[-1].key, (pods, path[-1].priority, rank)


def evictable_units(cluster: Cluster, priority: int, budgets: Budgets, now: float) -> Sequence[VictimUnit]:
    """Return all units with a lower priority: those that violate a budget first, then by importance."""
    found: dict[str, Unit] = {}
    for _, pod in cluster.placed_pods():
        if group_key(pod.pod) and cluster.groups is not None:
            key, unit = unit_of(cluster, pod)
            if unit[1] < priority:
                found[key] = unit
        elif pod.priority < priority:
            found[pod.uid] = ((pod,), pod.priority, _POD)
    return in_order(found.values(), budgets, now)


def in_order(units: Iterable[Unit], budgets: Budgets, now: float) -> list[VictimUnit]:
    """Return units in the order in which to reprieve them."""
    ranked = sorted(units, key=lambda unit: _importance_key(unit, now))
    broken = budgets.number_broken_by([pods for pods, _, _ in ranked])
    found = [
        VictimUnit(pods, bool(group_key(pods[0].pod)), number)
        for (pods, _, _), number in zip(ranked, broken, strict=True)
    ]
    return sorted(found, key=lambda unit: not unit.budgets_broken)


def _importance_key(unit: Unit, now: float) -> tuple[int, int, int, float]:
    """Return a sort key of a unit, smaller for more important ones."""
    pods, priority, rank = unit
    return -priority, -rank, -len(pods), min(pod_start_time(pod.pod, now) for pod in pods)
