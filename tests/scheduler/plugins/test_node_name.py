"""NodeName: a pod that names a node runs on that node only."""

from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.plugins.node_name import NodeName
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected

OTHER = unresolvable("node(s) didn't match the requested node name")


def test_every_other_node_is_rejected() -> None:
    """Preemption does not help."""
    cluster = cluster_of(make_node("a"), make_node("b"), make_node("c"))
    assert rejected(make(NodeName), cluster, make_pod("p", node="b")) == {"a": OTHER, "c": OTHER}


def test_a_pod_without_node_name_passes_all_nodes() -> None:
    """No node is rejected."""
    assert rejected(make(NodeName), cluster_of(make_node("a")), make_pod("p")) == {}


def test_events_that_requeue() -> None:
    """A new node; the plugin is not registered for other events."""
    plugin, waiting = make(NodeName), make_pod("p", node="b")
    assert hint(plugin, waiting, None, make_node("b")) is True
    assert hint(plugin, waiting, make_node("b"), make_node("b", labels={"x": "y"})) is None
