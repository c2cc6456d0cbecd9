"""The search for decisions in which a node was rejected agrees with the details of each decision."""

from hypothesis import given
from hypothesis import strategies as st

from kubestow.testing import make_node, make_pod
from support.insight.records import archive_of, nodes_of, recorded
from support.scenarios.extending import FakeExtenders, only

NODES = [f"n{number}" for number in range(6)]
PODS = st.lists(st.tuples(st.sampled_from(["100m", "1", "1500m", "4"]), st.booleans()), min_size=1, max_size=12)


@given(PODS, st.booleans())
def test_a_rejection_is_found_if_the_details_have_it(pods: list[tuple[str, bool]], extended: bool) -> None:
    """Plugins and extenders may have rejected the node."""
    extenders = FakeExtenders(a="filterVerb: filter, nodeCacheCapable: true")
    extenders.replies["a/filter"] = only("n1", "n2")
    options = {"configuration": extenders.configuration, "ask": extenders.ask} if extended else {}
    with recorded(**options) as world:
        for number, name in enumerate(NODES):
            world.cluster.add(make_node(name, cpu=str(1 + number % 3), unschedulable=number == 4))
        for number, (cpu, is_alike) in enumerate(pods):
            world.cluster.add(make_pod(f"p{number}", cpu=cpu, labels={} if is_alike else {"own": str(number)}))
            world.run_for(0.1)
        archive = archive_of(world)
        details = archive.details()
        for name in (*NODES, "unknown"):
            for record in archive:
                node = nodes_of(archive.decision(record)).get(name)
                expected = None if node is None or node.rejected is None else node.rejected.plugin
                found = details.rejection(record, name)
                assert (None if found is None else found.plugin) == expected


def test_a_node_that_was_added_again_in_another_row() -> None:
    """Each decision uses the row that the node had at its time."""
    with recorded() as world:
        nodes = {name: make_node(name, cpu="64", unschedulable=name == "n0") for name in NODES}
        for node in nodes.values():
            world.cluster.add(node)
        rows = set()
        for number in range(12):
            if number == 6:
                world.cluster.delete(nodes["n0"])
                world.run_until_idle()
                for node in (make_node("another", cpu="64"), nodes["n0"]):
                    world.cluster.add(node)
                    world.run_until_idle()
            world.cluster.add(make_pod(f"p{number}", cpu="1"))
            world.run_until_idle()
            rows.add(world.core.cluster.nodes.row_of["n0"])
        archive = archive_of(world)
        details = archive.details()
        for name in NODES:
            found = {rejection and rejection.plugin for one in archive for rejection in [details.rejection(one, name)]}
            assert found == {"NodeUnschedulable" if name == "n0" else None}
    assert len(rows) == 2
