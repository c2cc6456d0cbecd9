"""Searches in large clusters: their limit, start and order."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from kubestow.config import configuration
from kubestow.config.configuration import Plugin, Plugins, PluginSet
from kubestow.scheduler.cluster.order import feasible_nodes_to_find
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.outcome import Placed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles
from kubestow.scheduler.framework.detached import NoNominations
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Narrowed
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.testing.builders import make_node, make_pod
from support.scheduler.troupe import Binder, Refuses, Scores, Sorter, registry_of


@pytest.mark.parametrize(
    ("nodes", "percentage", "enough"),
    [
        (10, 0, 10),
        (99, 1, 99),
        (100, 0, 100),
        (100, 40, 100),
        (1000, 40, 400),
        (1000, 5, 100),
        (1000, 100, 1000),
        (1000, 0, 420),
        (5000, 0, 500),
        (5600, 0, 336),
        (6000, 0, 300),
        (50_000, 0, 2500),
        (50_000, None, 2500),
    ],
)
def test_the_limit_of_a_search(nodes: int, percentage: int | None, enough: int) -> None:
    """It is a percentage of all nodes, by default 50 less one per 125 nodes, at least 5; and at least 100 nodes."""
    assert feasible_nodes_to_find(nodes, percentage) == enough


def cluster_of(count: int, *zones: str) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        cluster.set_node(make_node(f"n{number}", zone=zones[number * len(zones) // count] if zones else None))
    return cluster


class Search:
    """Schedules pods, and stores which nodes were scored for the last one, in searching order."""

    def __init__(
        self, cluster: Cluster, *plugins: Any, percentage: int = 0, of_profile: int | None = None, scores: bool = True
    ) -> None:
        self.cluster = cluster
        self.scored: list[str] = []
        self.profile = Profile(
            _config(*plugins, *([_StoreScored(self)] if scores else []), percentage=of_profile),
            registry_of(*plugins, _StoreScored(self)),
            offline_handle(cluster),
            lambda: 0.0,
        )
        self.cycles = SchedulingCycles(
            cluster, NoNominations(), lambda best: int(best[0]), percentage, share_among_equal_pods=False
        )

    def run(self, name: str = "p") -> Placed:
        placed = self.cycles.run(self.profile, PodInfo(make_pod(name)))
        assert isinstance(placed, Placed)
        self.cycles.unreserve(self.profile, placed)
        return placed


class _StoreScored(Scores):
    def __init__(self, search: Search) -> None:
        super().__init__("StoreScored", {})
        self._search = search

    def pre_score(self, pod: PodInfo, view: Any, rows: Any) -> None:
        self._search.scored = [view.names[row] for row in rows]


def _config(*plugins: Any, percentage: int | None) -> configuration.Profile:
    enabled = tuple(Plugin(plugin.name) for plugin in (*plugins, Sorter, Binder))
    return configuration.Profile("troupe", percentage, Plugins(multiPoint=PluginSet(enabled)))


def test_a_small_cluster_is_searched_whole() -> None:
    """All of fewer than 100 nodes are scored, at any percentage."""
    search = Search(cluster_of(99), percentage=10)
    placed = search.run()
    assert len(search.scored) == placed.searched.feasible == placed.searched.evaluated == 99


@pytest.mark.parametrize(
    ("of_all", "of_profile", "scored"), [(50, None, 150), (50, 40, 120), (0, None, 144), (50, 0, 144)]
)
def test_the_percentage_of_the_profile_takes_precedence(of_all: int, of_profile: int | None, scored: int) -> None:
    """That of the configuration applies to profiles without one; 0 is the default in either."""
    search = Search(cluster_of(300), percentage=of_all, of_profile=of_profile)
    search.run()
    assert len(search.scored) == scored


def test_the_next_search_starts_where_the_last_one_stopped() -> None:
    """Every node is searched at some time; after the last node the search continues with the first."""
    search = Search(cluster_of(250), percentage=40)
    expected = 0
    for _ in range(6):
        search.run()
        assert search.scored == [f"n{number % 250}" for number in range(expected, expected + 100)]
        expected += 100


def test_rejected_nodes_are_searched_but_not_counted() -> None:
    """The search continues until enough nodes have passed, and the next one starts after them."""
    refuses = Refuses("Even", {f"n{number}": "even" for number in range(0, 400, 2)})
    search = Search(cluster_of(400), refuses, percentage=25)
    placed = search.run()
    assert (placed.searched.evaluated, placed.searched.feasible) == (200, 100)
    assert search.scored == [f"n{number}" for number in range(1, 200, 2)]
    search.run()
    assert search.scored == [f"n{number}" for number in range(201, 400, 2)]


def test_zones_take_turns() -> None:
    """A sample is spread over zones, even if the nodes were added zone by zone."""
    search = Search(cluster_of(300, "a", "b", "c"), percentage=1)
    search.run()
    zone_of = {f"n{number}": "abc"[number // 100] for number in range(300)}
    assert Counter(zone_of[name] for name in search.scored) == {"a": 34, "b": 33, "c": 33}
    assert search.scored[:4] == ["n0", "n100", "n200", "n1"]


def test_the_order_follows_changes() -> None:
    """A node that is removed is not searched; one that changes its zone is searched with its new zone."""
    cluster = cluster_of(4, "a", "b")
    assert [cluster.nodes.names[row] for row in cluster.order.rows()] == ["n0", "n2", "n1", "n3"]
    cluster.set_node(make_node("n1", zone="b"))
    assert [cluster.nodes.names[row] for row in cluster.order.rows()] == ["n0", "n2", "n3", "n1"]
    cluster.remove_node("n0")
    assert [cluster.nodes.names[row] for row in cluster.order.rows()] == ["n2", "n3", "n1"]


def test_the_percentage_applies_to_the_nodes_left_by_pre_filter() -> None:
    """Only nodes that PreFilter left are searched."""

    class Half(Refuses):
        def pre_filter(self, pod: PodInfo) -> Narrowed:
            return Narrowed(frozenset(f"n{number}" for number in range(200)))

    search = Search(cluster_of(400), Half("Half", {}), percentage=60)
    placed = search.run()
    assert (placed.searched.evaluated, placed.searched.feasible) == (120, 120)
    assert set(search.scored) == {f"n{number}" for number in range(120)}


def test_without_scores_the_first_feasible_node_is_chosen() -> None:
    """All feasible nodes are equal: the search ends with the first one."""
    search = Search(cluster_of(5), Refuses("A", {"n0": "no"}), scores=False)
    assert [search.run().node for _ in range(4)] == ["n1", "n2", "n3", "n4"]


def test_the_start_of_a_search_after_removals() -> None:
    """The start is reduced modulo the number of nodes."""
    cluster = cluster_of(300)
    search = Search(cluster, percentage=50)
    search.run()
    for number in range(150, 300):
        cluster.remove_node(f"n{number}")
    search.run()
    assert search.scored[0] == "n0"
    assert len(search.scored) == len(np.unique(search.scored)) == 100
