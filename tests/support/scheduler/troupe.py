"""Profiles of a few fake plugins, and a small cluster to run them on."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kubestow.config import configuration
from kubestow.config.configuration import Plugin, Plugins, PluginSet
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.detached import NoNominations
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.framework.results import Rejection, Rejections, unschedulable
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics
from kubestow.testing.builders import make_node, make_pod


class Sorter:
    """The queue sort plugin that every profile needs."""

    name = "Sorter"

    def sort_key(self, pod: Any, waiting_since: float) -> float:
        return waiting_since


class Binder:
    """The bind plugin that every profile needs."""

    name = "Binder"

    async def bind(self, pod: PodInfo, node: str) -> None:
        pass


class Refuses:
    """Rejects the given nodes for the given reasons."""

    def __init__(self, name: str, reasons: Mapping[str, Rejection | str]) -> None:
        self.name = name
        self._rejections = [w if isinstance(w, Rejection) else unschedulable(w) for w in reasons.values()]
        self._kind = {node: number for number, node in enumerate(reasons, 1)}
        self.calls: list[list[str]] = []
        """The names of the nodes of each call."""

    def filter_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> Rejections:
        names = [view.names[row] for row in np.arange(view.size)[rows]]
        self.calls.append(names)
        kinds = np.array([self._kind.get(name, 0) for name in names], np.int64)
        return Rejections(kinds, lambda kind: self._rejections[kind - 1])


class Scores:
    """Gives the given nodes the given scores, and others 0."""

    def __init__(self, name: str, scores: Mapping[str, int]) -> None:
        self.name = name
        self._scores = scores

    def score_rows(self, state: Any, pod: PodInfo, view: Any, rows: Any) -> IntArray:
        return np.array([self._scores.get(view.names[row], 0) for row in np.arange(view.size)[rows]], np.int64)


def registry_of(*plugins: Any) -> Registry:
    """Return a registry whose factories return these plugins themselves."""
    registry = Registry()
    for plugin in (*plugins, Sorter(), Binder()):
        registry.register(plugin.name, _factory(plugin))
    return registry


def _factory(plugin: Any) -> Callable[[Any, Any], Any]:
    return lambda _args, _handle: plugin


def config_of(*plugins: Any, weights: Mapping[str, int] | None = None, **points: PluginSet) -> configuration.Profile:
    """Return a profile with these plugins at all their points, and with the given sets at single points."""
    names = [*(plugin.name for plugin in plugins), "Sorter", "Binder"]
    enabled = tuple(Plugin(name, (weights or {}).get(name, 0)) for name in names)
    return configuration.Profile("troupe", None, Plugins(multiPoint=PluginSet(enabled), **points))


def profile_of(
    *plugins: Any,
    cluster: Cluster | None = None,
    metrics: SchedulerMetrics | None = None,
    stopwatch: Callable[[], float] = lambda: 0.0,
    **how: Any,
) -> Profile:
    """Return a profile of these plugins; `how` is for `config_of`."""
    handle = offline_handle(cluster or Cluster(), metrics=metrics or SchedulerMetrics())
    return Profile(config_of(*plugins, **how), registry_of(*plugins), handle, stopwatch)


def nodes(count: int = 3) -> Cluster:
    """Return a cluster of nodes n0, n1, ..."""
    cluster = Cluster()
    for number in range(count):
        cluster.set_node(make_node(f"n{number}"))
    return cluster


def evaluation_of(cluster: Cluster, *plugins: Any, nominator: Any = None, **how: Any) -> Evaluation:
    """Return an evaluation of a pod `p`, to be run step by step."""
    profile = profile_of(*plugins, cluster=cluster, **how)
    return Evaluation(profile, cluster, nominator or NoNominations(), PodInfo(make_pod("p")))


def filtered(evaluation: Evaluation) -> list[str]:
    """Run PreFilter and Filter; return the names of the feasible nodes."""
    assert evaluation.pre_filter()
    return [evaluation.cluster.nodes.names[row] for row in evaluation.filter()]
