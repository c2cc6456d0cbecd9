"""Who could be evicted for a pod group, and in which order they are spared if the group fits in spite of them."""

from collections.abc import Sequence

from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.framework.placements import VictimUnit
from kubestow.model.pod_groups import group_key
from kubestow.model.standing import pod_start_time
from kubestow.plugins.default_preemption.budgets import Budgets


def units_to_spare(cluster: Cluster, priority: int, budgets: Budgets, now: float) -> Sequence[VictimUnit]:
    """All that may be evicted for a priority: first those whose eviction breaks a budget, the most important first.

    Groups whose disruption mode says so are evicted all or none, and count by the priority of the group.
    """
    units, priorities = _units(cluster)
    lower = [key for key in units if priorities[key] < priority]
    lower.sort(key=lambda key: _importance(units[key], priorities[key], now))
    broken = budgets.units_broken_by([units[key] for key in lower])
    order = sorted(range(len(lower)), key=lambda number: not broken[number])
    return [VictimUnit(tuple(units[lower[number]])) for number in order]


def _units(cluster: Cluster) -> tuple[dict[str, list[PodInfo]], dict[str, int]]:
    """The pods on nodes by what is evicted together, with its priority."""
    units: dict[str, list[PodInfo]] = {}
    priorities: dict[str, int] = {}
    for _, pod in cluster.placed_pods():
        group = None if cluster.groups is None or not group_key(pod.pod) else cluster.groups.group_of(pod.pod)
        if group is not None and group.is_disrupted_together:
            units.setdefault(group.metadata.uid, []).append(pod)
            priorities[group.metadata.uid] = group.priority
        else:
            units[pod.uid] = [pod]
            priorities[pod.uid] = pod.priority
    return units, priorities


def _importance(pods: Sequence[PodInfo], priority: int, now: float) -> tuple[bool, int, bool, int, float]:
    """The smaller, the more important. Who is on the way out already need not be spared."""
    is_leaving = all(pod.terminating for pod in pods)
    in_group = bool(group_key(pods[0].pod))
    started = min(pod_start_time(pod.pod, now) for pod in pods)
    return is_leaving, -priority, not in_group, -len(pods) if in_group else 0, started
