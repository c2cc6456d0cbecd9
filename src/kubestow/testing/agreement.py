"""Shows that the fast forms of a plugin say what its plain form says, on random clusters.

    check_forms(MyPlugin)

A plugin may have `filter` and `filter_rows`, `score` and `score_rows`: then the scheduler uses the vector form, and the
plain form is what it is held against here. `row_rejection`, `row_score` and `passing_rows` are held against the vector
form; so are answers on some of the rows, and those that pods with equal signatures get. The first difference is an
AssertionError that names method, pod and node.
"""

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
    plugin: Any, args: Any = None, *, seed: int = 0, node: MakeNode = random_node, pod: MakePod = random_pod
) -> int:
    """Hold the forms of a plugin (its class) against each other; returns how many answers were compared.

    `node` and `pod` make random ones that the plugin has something to say about, if the usual ones are not enough.
    """
    rng, compared = Random(seed), 0
    for number in range(_CLUSTERS):
        cluster = random_cluster(rng, node, pod)
        compared += _Comparison(plugin(args, offline_handle(cluster)), cluster).run(
            [PodInfo(pod(f"p{number}-{other}", rng)) for other in range(_PODS)], rng
        )
    if not compared:
        raise AssertionError(f"{plugin.name} has no two forms to compare, or skips every pod")
    return compared


class _Comparison:
    """One plugin on one cluster."""

    def __init__(self, plugin: Any, cluster: Cluster) -> None:
        self._plugin = plugin
        self._table = cluster.nodes
        self._rows = np.flatnonzero(cluster.nodes.live[: cluster.nodes.size])
        self._compared = 0

    def run(self, pods: list[PodInfo], rng: Random) -> int:
        signed: dict[Any, tuple[Any, Any]] = {}
        for pod in pods:
            said = (self._filters(pod, rng), self._scores(pod, rng))
            sign = self._plugin.sign(pod) if hasattr(self._plugin, "sign") else None
            if sign is not None:
                for mine, others in zip(said, signed.setdefault(sign, said), strict=True):
                    self._same("pods with the same signature", pod, others, mine, self._rows)
        return self._compared

    def _filters(self, pod: PodInfo, rng: Random) -> list[Any] | None:
        plugin = self._plugin
        state = plugin.pre_filter(pod) if hasattr(plugin, "pre_filter") else None
        if state is SKIP or isinstance(state, Rejection):
            return None
        if isinstance(state, Narrowed):
            state = state.state
        said = None
        if hasattr(plugin, "filter_rows"):
            said = self._refusals(plugin.filter_rows, state, pod, self._rows)
            some = self._some(rng)
            alone = self._refusals(plugin.filter_rows, state, pod, self._rows[some])
            self._same("filter_rows on all rows and on some", pod, [said[i] for i in some], alone, self._rows[some])
        if hasattr(plugin, "filter"):
            by_node = self._refusals(plain.filter_rows_of(plugin), state, pod, self._rows)
            self._same("filter and filter_rows", pod, by_node, said, self._rows)
            said = by_node
        if said is not None and hasattr(plugin, "row_rejection"):
            single = [plugin.row_rejection(state, self._table, row) for row in self._rows.tolist()]
            self._same("filter and row_rejection", pod, said, single, self._rows)
        if said is not None and hasattr(plugin, "passing_rows") and state is not None:
            passing = plugin.passing_rows(state, pod, self._table, self._rows).tolist()
            self._same("filter and passing_rows", pod, [refusal is None for refusal in said], passing, self._rows)
        return said

    def _refusals(self, function: Any, state: Any, pod: PodInfo, rows: Any) -> list[Rejection | None]:
        answer = function(state, pod, self._table, rows)
        if answer is None:
            return [None] * len(rows)
        return [answer.words(kind) if kind else None for kind in answer.kinds.tolist()]

    def _scores(self, pod: PodInfo, rng: Random) -> list[int] | None:
        plugin, table, rows = self._plugin, self._table, self._rows
        state = plugin.pre_score(pod, table, rows) if hasattr(plugin, "pre_score") else None
        if state is SKIP:
            return None
        said = None
        if hasattr(plugin, "score_rows"):
            said = plugin.score_rows(state, pod, table, rows).tolist()
            some = self._some(rng)
            alone = plugin.score_rows(state, pod, table, rows[some]).tolist()
            self._same("score_rows on all rows and on some", pod, [said[i] for i in some], alone, rows[some])
        if hasattr(plugin, "score"):
            by_node = plain.score_rows_of(plugin)(state, pod, table, rows).tolist()
            self._same("score and score_rows", pod, by_node, said, rows)
            said = by_node
        if said is not None and hasattr(plugin, "row_score"):
            found = [plugin.row_score(state, table, row) for row in rows.tolist()]
            told = [score if single is None else single for score, single in zip(said, found, strict=True)]
            self._same("score and row_score", pod, said, told, rows)
        return said

    def _some(self, rng: Random) -> list[int]:
        return sorted(rng.sample(range(len(self._rows)), rng.randint(0, len(self._rows))))

    def _same(self, what: str, pod: PodInfo, one: Any, other: Any, rows: IntArray) -> None:
        if one is None or other is None:
            return
        self._compared += len(one)
        for row, mine, others in zip(rows.tolist(), one, other, strict=True):
            if mine != others:
                name, node = self._plugin.name, self._table.names[row]
                raise AssertionError(
                    f"{name}: {what} disagree about pod {pod.key} on node {node}: {mine!r} and {others!r}"
                )
