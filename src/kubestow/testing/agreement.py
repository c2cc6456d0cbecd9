"""Compares the plain and fast forms of a plugin on random clusters.

        check_forms(MyPlugin)

If a plugin has both `filter` and `filter_rows`, or `score` and `score_rows`, the scheduler calls the vector form; here
its results are compared with those of the plain form. `row_rejection`, `row_score` and `passing_rows` are compared with
the vector form; so are the results for a subset of the rows, and those of pods with equal signatures. The first
difference raises an AssertionError that names method, pod and node.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework import plain
from kubestow.scheduler.framework.results import SKIP, Narrowed, Rejection
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.testing.random_clusters import MakeNode, MakePod, random_cluster, random_node, random_pod

_CLUSTERS = 30
_PODS = 8


def check_forms(
    plugin: Any,
    args: Any = None,
    *,
    seed: int = 0,
    node: MakeNode = random_node,
    pod: MakePod = random_pod,
    objects: Iterable[Any] = (),
) -> int:
    """Compare the forms of a plugin class and return the number of results compared. Raises AssertionError.

    `node` and `pod` create random objects, for plugins that ignore the features of the default ones. `objects` of
    other kinds, such as those that the plugin watches, are in every cluster.
    """
    rng, compared = Random(seed), 0
    others = list(objects)
    for number in range(_CLUSTERS):
        cluster = random_cluster(rng, node, pod)
        for one in others:
            cluster.set_object(one)
        pods = [PodInfo(pod(f"p{number}-{other}", rng)) for other in range(_PODS)]
        compared += compare_forms_in(cluster, plugin, args, pods, rng)
    if not compared:
        raise AssertionError(f"{plugin.name} has no two forms to compare, or skips every pod")
    return compared


def compare_forms_in(cluster: Cluster, plugin: Any, args: Any, pods: Sequence[PodInfo], rng: Random) -> int:
    """Compare the forms of a plugin class for pods of one cluster, as `check_forms` does."""
    return _Comparison(plugin(args, offline_handle(cluster)), cluster).run(pods, rng)


class _Comparison:
    def __init__(self, plugin: Any, cluster: Cluster) -> None:
        self._plugin = plugin
        self._table = cluster.nodes
        self._rows = np.flatnonzero(cluster.nodes.live[: cluster.nodes.size])
        self._compared = 0

    def run(self, pods: Sequence[PodInfo], rng: Random) -> int:
        signed: dict[Any, tuple[Any, Any]] = {}
        for pod in pods:
            state = self._plugin.pre_filter(pod) if hasattr(self._plugin, "pre_filter") else None
            if isinstance(state, Narrowed):
                state = state.state
            if isinstance(state, Rejection):
                continue
            results = (self._filters(state, pod, rng), self._scores(state, pod, rng))
            sign = self._plugin.sign(pod) if hasattr(self._plugin, "sign") else None
            if sign is not None:
                for mine, others in zip(results, signed.setdefault(sign, results), strict=True):
                    self._compare("pods with the same signature", pod, others, mine, self._rows)
        return self._compared

    def _filters(self, state: Any, pod: PodInfo, rng: Random) -> list[Any] | None:
        plugin = self._plugin
        if state is SKIP:
            return None
        results = None
        if hasattr(plugin, "filter_rows"):
            results = self._rejections(plugin.filter_rows, state, pod, self._rows)
            some = self._some(rng)
            rows = self._rows[some]
            subset = self._rejections(plugin.filter_rows, state, pod, rows)
            self._compare("filter_rows on all rows and on some", pod, [results[i] for i in some], subset, rows)
        if hasattr(plugin, "filter"):
            by_node = self._rejections(plain.filter_rows_of(plugin), state, pod, self._rows)
            self._compare("filter and filter_rows", pod, by_node, results, self._rows)
            results = by_node
        if results is not None and hasattr(plugin, "row_rejection"):
            single = [plugin.row_rejection(state, self._table, row) for row in self._rows.tolist()]
            self._compare("filter and row_rejection", pod, results, single, self._rows)
        if results is not None and hasattr(plugin, "passing_rows") and state is not None:
            passing = plugin.passing_rows(state, pod, self._table, self._rows).tolist()
            self._compare("filter and passing_rows", pod, [reason is None for reason in results], passing, self._rows)
        return results

    def _rejections(self, function: Any, state: Any, pod: PodInfo, rows: Any) -> list[Rejection | None]:
        answer = function(state, pod, self._table, rows)
        if answer is None:
            return [None] * len(rows)
        return [answer.words(kind) if kind else None for kind in answer.kinds.tolist()]

    def _scores(self, state: Any, pod: PodInfo, rng: Random) -> list[int] | None:
        plugin, table, rows = self._plugin, self._table, self._rows
        if hasattr(plugin, "pre_score"):
            state = plugin.pre_score(pod, table, rows)
            if state is SKIP:
                return None
        elif state is SKIP:
            state = None
        results = None
        if hasattr(plugin, "score_rows"):
            results = plugin.score_rows(state, pod, table, rows).tolist()
            some = self._some(rng)
            subset = plugin.score_rows(state, pod, table, rows[some]).tolist()
            self._compare("score_rows on all rows and on some", pod, [results[i] for i in some], subset, rows[some])
        if hasattr(plugin, "score"):
            by_node = plain.score_rows_of(plugin)(state, pod, table, rows).tolist()
            self._compare("score and score_rows", pod, by_node, results, rows)
            results = by_node
        if results is not None and hasattr(plugin, "row_score"):
            by_row = [plugin.row_score(state, table, row) for row in rows.tolist()]
            actual = [score if single is None else single for score, single in zip(results, by_row, strict=True)]
            self._compare("score and row_score", pod, results, actual, rows)
        return results

    def _some(self, rng: Random) -> list[int]:
        return sorted(rng.sample(range(len(self._rows)), rng.randint(0, len(self._rows))))

    def _compare(self, what: str, pod: PodInfo, one: Any, other: Any, rows: IntArray) -> None:
        if one is None or other is None:
            return
        self._compared += len(one)
        for row, mine, others in zip(rows.tolist(), one, other, strict=True):
            if mine != others:
                name, node = self._plugin.name, self._table.names[row]
                raise AssertionError(
                    f"{name}: {what} disagree about pod {pod.key} on node {node}: {mine!r} and {others!r}"
                )
