"""A part of a what-if shows some of its rows with their changes."""

import numpy as np
import pytest

from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import WhatIf, what_if
from kubestow.testing.builders import make_node, make_pod


@pytest.fixture
def view() -> WhatIf:
    """Nodes b, c and d of four; a pod was removed from c, and one was added to d."""
    cluster = Cluster()
    for name in "abcd":
        cluster.set_node(make_node(name))
        cluster.set_pod(make_pod(f"on-{name}", node=name, cpu="1", host_ports=[80]))
    view = what_if(cluster.nodes, [1, 2, 3])
    view.remove_pod(1, PodInfo(make_pod("on-c", cpu="1", host_ports=[80])))
    view.add_pod(2, PodInfo(make_pod("new", cpu="2")))
    return view


def test_a_part_has_the_contents_of_its_rows(view: WhatIf) -> None:
    """Names, sums, pods and ports are those of the rows."""
    part = view.only(np.array([1, 2]))
    assert part.size == 2
    assert part.names == ["c", "d"]
    assert part.requested[0].tolist() == [0, 3_000]
    assert part.non_zero[0].tolist() == [0, 3_000]
    assert part.pod_count.tolist() == [0, 2]
    assert [sorted(pod.name for pod in pods.values()) for pods in part.pods] == [[], ["new", "on-d"]]
    assert part.source_rows().tolist() == [2, 3]


def test_a_part_with_all_rows_is_the_what_if_itself(view: WhatIf) -> None:
    """Nothing is copied if no row is left out."""
    assert view.only(np.arange(3)) is view
