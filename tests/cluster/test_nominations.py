"""Who was nominated at some moment can be told later, however many nominations came and went since."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubestow.cluster.nodes import CPU
from kubestow.cluster.nominated import NominatedPods
from kubestow.cluster.nominations import NominatedThen
from kubestow.cluster.pods import PodInfo
from kubestow.cluster.state import Cluster
from kubestow.cluster.whatif import what_if
from kubestow.testing import make_node, make_pod

NODES = [f"n{number}" for number in range(4)]


def nominated_pods() -> NominatedPods:
    cluster = Cluster()
    for name in NODES:
        cluster.set_node(make_node(name))
    return NominatedPods(cluster.nodes)


def pod(number: int, priority: int = 0) -> PodInfo:
    return PodInfo(make_pod(f"p{number}", priority=priority))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", *NODES]), st.integers(0, 2)), max_size=400),
    st.permutations(range(len(NODES))),
)
def test_what_is_told_later_is_what_was_so_then(steps: list[tuple[int, str, int]], order: list[int]) -> None:
    """Row by row, in the order of nominations: pods at least as important, but not the pod itself."""
    nominated, asking, moments = nominated_pods(), pod(0, priority=1), list[tuple[NominatedThen, object]]()
    rows = np.array(order[:-1])
    for number, node, priority in steps:
        nominated.remove(pod(number).uid)
        if node:
            nominated.add(node, pod(number, priority))
        beside = nominated.beside(asking)
        if beside is not None:
            names = nominated.table.names
            moments.append((beside.then(rows), [(names[row], one) for row in rows for one in beside.pods(row)]))
    for then, expected in moments:
        assert then.pods() == expected


def test_nominations_that_are_over_are_not_kept_for_ever() -> None:
    """Thousands that come and go leave no more than a few behind."""
    nominated = nominated_pods()
    nominated.add("n0", pod(0))
    one = nominated.log.bytes
    for _ in range(1_000):
        nominated.add("n1", pod(1))
        nominated.remove(pod(1).uid)
    assert nominated.log.bytes < 200 * one


def test_a_new_version_that_counts_the_same_changes_no_row() -> None:
    """The status that the scheduler itself has written comes back: what was found out about the row stays true."""
    nominated, before = nominated_pods(), make_pod("p", cpu="1")
    nominated.add("n1", PodInfo(before))
    nominated.add("n1", pod(1))
    changes = nominated.table.changes.last
    told = PodInfo(replace(before, status=replace(before.status, nominatedNodeName="n1")))
    nominated.replace("n1", told)
    assert nominated.table.changes.last == changes
    beside = nominated.beside(pod(2))
    assert beside is not None
    assert [one.name for one in beside.pods(1)] == ["p1", "p"]
    assert beside.pods(1)[1] is told


def test_a_new_version_that_asks_for_more_counts_as_such() -> None:
    """The row has changed, and what is kept free there has grown; a version that makes no sense counts no more."""
    nominated = nominated_pods()
    nominated.add("n1", PodInfo(make_pod("p", cpu="1")))
    changes = nominated.table.changes.last
    nominated.replace("n1", PodInfo(make_pod("p", cpu="2")))
    assert nominated.table.changes.last > changes
    assert what_if(nominated.table, [1], nominated.beside(pod(2))).requested[CPU, 0] == 2000
    nominated.replace("n1", PodInfo(make_pod("p", cpu="two")))
    assert nominated.beside(pod(2)) is None
