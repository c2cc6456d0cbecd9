"""Past decisions are derived from the objects of plugins as they were."""

from typing import Any

import pytest

from kubestow.testing import make_node, make_object, make_pod
from support.insight.records import decisions, nodes_of, recorded
from support.plugins.careless_plugins import KeepsColumns, Limit, ReadsObjects


@pytest.mark.parametrize("plugin", [ReadsObjects, KeepsColumns])
def test_a_decision_shows_the_objects_of_its_time(plugin: Any) -> None:
    """One plugin reads objects, and is called again; the other keeps columns, so that its answers are recorded."""
    with recorded(plugins=[plugin]) as world:
        world.cluster.add(make_node("a"))
        world.cluster.add(make_node("b"))
        refused, allowed = (3, 4) if plugin is ReadsObjects else (7, 8)
        limits = {node: world.cluster.add(make_object(Limit, node, value=refused)) for node in "ab"}
        world.run_for(0.01)
        for number, (a, b) in enumerate([(refused, allowed), (allowed, refused), (refused, allowed)]):
            world.cluster.update(make_object(Limit, "a", value=a))
            world.cluster.update(make_object(Limit, "b", value=b))
            world.cluster.add(make_pod(f"p{number}", cpu=1))
            world.run_for(0.01)
        world.cluster.delete(limits["a"])
        world.run_for(1)
        for _ in range(2):
            rejected = []
            for number in (2, 0, 1):
                results = nodes_of(decisions(world, f"p{number}")[-1])
                rejected.append([name for name, result in results.items() if result.rejected])
            assert rejected == [["a"], ["a"], ["b"]]
