"""The ranking of pods follows the cluster, whatever changes between two calls."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubestow.api.conditions import DISRUPTION_TARGET
from kubestow.api.pod import PodCondition
from kubestow.api.priority import pod_start_time
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.ranking import NOT_STARTED
from kubestow.scheduler.cluster.state import Cluster
from kubestow.testing.builders import make_node, make_pod

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "take", "drop node", "look"]),
        st.integers(0, 90),
        st.integers(0, 12),
        st.integers(-2, 2),
        st.sampled_from(["cpu", "memory", "example.com/gpu"]),
        st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
    ),
    max_size=60,
)


def expect_ranked(cluster: Cluster) -> None:
    """Check that every row is ranked as its pods are."""
    nodes, ranking = cluster.nodes, cluster.ranking
    rows = np.flatnonzero(nodes.live)
    ranking.refresh(rows)
    for row in rows.tolist():
        ranked = ranking.pods(row)
        keys = [(-pod.priority, pod_start_time(pod.pod, NOT_STARTED)) for pod in ranked]
        assert {pod.uid for pod in ranked} == set(nodes.pods[row])
        assert keys == sorted(keys)
        count = int(ranking.count[row])
        assert count == len(ranked)
        assert [(-int(p), s) for p, s in zip(ranking.priority[row], ranking.start[row], strict=True)][:count] == keys
        assert (ranking.priority[row, count:] > 2**31).all()
        for rank in range(count + 1):
            freed = {name: int(ranking.freed[row, rank, column]) for name, column in nodes.resource_index.items()}
            assert freed == {
                name: sum(pod.requests.amounts.get(name, 0) for pod in ranked[rank:]) for name in nodes.resource_index
            }
        lowest = min((pod.priority for pod in ranked), default=None)
        assert lowest is None or ranking.lowest[row] == lowest
        above = ranking.known_above(np.array([row]), 0)
        assert bool(above[0]) == (lowest is None or lowest >= 0)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_the_ranking_follows_the_cluster(steps: list[tuple[str, int, int, int, str, str | None]]) -> None:
    """Order, priorities, start times and requests are those of the pods on the row, also after rows were reused."""
    cluster = Cluster()
    for what, node, number, priority, resource, started in steps:
        name = f"n{node}"
        if what == "put":
            cluster.set_node(make_node(name))
            status = {"startTime": started} if started else {}
            cluster.remove_pod(f"pod-default-p{number}")
            cluster.set_pod(
                make_pod(f"p{number}", node=name, priority=priority, resources={resource: 1}, status=status)
            )
        elif what == "take":
            cluster.remove_pod(f"pod-default-p{number}")
        elif what == "drop node":
            cluster.remove_node(name)
        else:
            expect_ranked(cluster)
    expect_ranked(cluster)


def test_nothing_is_known_of_rows_that_have_changed() -> None:
    """A row that has got another pod must be ranked again."""
    cluster = Cluster()
    cluster.set_node(make_node("a"))
    rows = np.array([0])
    assert not cluster.ranking.known_above(rows, 5).any()
    cluster.ranking.refresh(rows)
    assert cluster.ranking.known_above(rows, 5).all()
    cluster.assume(PodInfo(make_pod("new", priority=1)), "a")
    assert not cluster.ranking.known_above(rows, 5).any()


def test_pods_are_returned_in_their_latest_versions() -> None:
    """That includes versions that are no change of their row."""
    cluster = Cluster()
    cluster.set_node(make_node("a"))
    cluster.set_pod(make_pod("high", node="a", priority=2))
    cluster.set_pod(low := make_pod("low", node="a", priority=1))
    cluster.ranking.refresh(np.array([0]))
    marked = replace(low, status=replace(low.status, conditions=(PodCondition(DISRUPTION_TARGET, "True"),)))
    cluster.set_pod(marked)
    assert cluster.ranking.known_above(np.array([0]), 1).all()
    assert [pod.pod for pod in cluster.ranking.latest(0, [1])] == [marked]
