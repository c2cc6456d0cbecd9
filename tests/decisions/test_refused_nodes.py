"""Finding the decisions in which a node was refused: what is found is what is told."""

from hypothesis import given
from hypothesis import strategies as st

from kubestow.decisions.refused import RefusedNode
from kubestow.decisions.telling import node_results
from kubestow.testing import SchedulerHarness, make_node, make_pod
from scenarios.extending import FakeExtenders, only

NODES = [f"n{number}" for number in range(6)]
PODS = st.lists(st.tuples(st.sampled_from(["100m", "1", "1500m", "4"]), st.booleans()), min_size=1, max_size=12)


@given(PODS, st.booleans())
def test_a_refusal_is_found_where_it_is_told(pods: list[tuple[str, bool]], extended: bool) -> None:
    """Whatever a record knows it from: its own refusals, a journal that has moved on since, or an extender."""
    extenders = FakeExtenders(a="filterVerb: filter, nodeCacheCapable: true")
    extenders.replies["a/filter"] = only("n1", "n2")
    options = {"configuration": extenders.configuration, "ask": extenders.ask} if extended else {}
    with SchedulerHarness(record_bytes=1 << 24, **options) as world:  # type: ignore[arg-type]
        for number, name in enumerate(NODES):
            world.cluster.add(make_node(name, cpu=str(1 + number % 3), unschedulable=number == 4))
        for number, (cpu, is_alike) in enumerate(pods):
            world.cluster.add(make_pod(f"p{number}", cpu=cpu, labels={} if is_alike else {"own": str(number)}))
            world.run_for(0.1)
        assert world.decisions is not None
        for name in (*NODES, "unknown"):
            finder = RefusedNode(name)
            for record in world.decisions:
                told = node_results(record).get(name)
                expected = None if told is None or told.rejected is None else (told.rejected.plugin,)
                found = finder.by(record)
                assert (found or None) == (expected if expected != ("",) else None)
                assert (found is None) == (expected is None)


def test_a_node_that_came_back_in_the_place_of_another() -> None:
    """Each record is about the node where it was then."""
    with SchedulerHarness(record_bytes=1 << 24) as world:
        nodes = {name: make_node(name, cpu="64", unschedulable=name == "n0") for name in NODES}
        for node in nodes.values():
            world.cluster.add(node)
        for number in range(12):
            if number == 6:
                world.cluster.delete(nodes["n0"])
                world.run_until_idle()
                for node in (make_node("another", cpu="64"), nodes["n0"]):
                    world.cluster.add(node)
                    world.run_until_idle()
            world.cluster.add(make_pod(f"p{number}", cpu="1"))
            world.run_until_idle()
        assert world.decisions is not None
        records = list(world.decisions)
        rows = {tuple(record.found.names.of_row).index("n0") for record in records if record.found.names is not None}
        for name in NODES:
            finder = RefusedNode(name)
            assert {finder.by(record) for record in records} == {("NodeUnschedulable",) if name == "n0" else None}
    assert len(rows) == 2
