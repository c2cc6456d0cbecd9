"""Resource scores, calculated in floats for all rows at once, equal those of integer arithmetic."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubestow.config.plugin_args import NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, ResourceSpec
from kubestow.scheduler.cluster.nodes import EXACT_IN_FLOAT
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubestow.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, make

RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
PLUGINS = [
    make(NodeResourcesFit, NodeResourcesFitArgs()),
    make(NodeResourcesBalancedAllocation, NodeResourcesBalancedAllocationArgs(RESOURCES)),
]

CPU = st.integers(0, 1_000)
MEMORY = st.one_of(st.integers(0, 1 << 40), st.integers(EXACT_IN_FLOAT - 5, EXACT_IN_FLOAT + 5))


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@given(
    nodes=st.lists(st.tuples(CPU, MEMORY), min_size=1, max_size=6),
    held=st.tuples(CPU, st.integers(0, 1 << 41)),
    wanted=st.tuples(st.integers(1, 1_000), st.integers(1, 1 << 40)),
)
def test_arrays_and_plain_numbers_agree(
    plugin: Any, nodes: list[tuple[int, int]], held: tuple[int, int], wanted: tuple[int, int]
) -> None:
    """All rows at once, some of them by number, and each row separately."""
    cluster = cluster_of(*(make_node(f"n{n}", cpu=f"{cpu}m", memory=memory) for n, (cpu, memory) in enumerate(nodes)))
    cluster.set_pod(make_pod("x", node="n0", cpu=f"{held[0]}m", memory=held[1]))
    pod, table = PodInfo(make_pod("p", cpu=f"{wanted[0]}m", memory=wanted[1])), cluster.nodes
    rows = np.arange(table.size)
    state = plugin.pre_score(pod, table, rows)
    expected = [plugin.row_score(state, table, row) for row in rows.tolist()]
    assert plugin.score_rows(state, pod, table, slice(0, table.size)).tolist() == expected
    assert plugin.score_rows(state, pod, table, rows[::-1]).tolist() == expected[::-1]
