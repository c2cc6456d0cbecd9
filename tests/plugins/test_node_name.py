"""NodeName: a pod that names its node runs there or nowhere."""

from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.plugins.node_name import NodeName
from kubestow.testing.builders import make_node, make_pod
from plugins.asking import cluster_of, hint, make, refused

OTHER = unresolvable("node(s) didn't match the requested node name")


def test_every_other_node_is_refused() -> None:
    """For good: no pod that leaves could change it."""
    cluster = cluster_of(make_node("a"), make_node("b"), make_node("c"))
    assert refused(make(NodeName), cluster, make_pod("p", node="b")) == {"a": OTHER, "c": OTHER}


def test_a_pod_that_names_no_node() -> None:
    """May run anywhere."""
    assert refused(make(NodeName), cluster_of(make_node("a")), make_pod("p")) == {}


def test_what_is_worth_another_attempt() -> None:
    """A new node; other changes are not heard of."""
    plugin, waiting = make(NodeName), make_pod("p", node="b")
    assert hint(plugin, waiting, None, make_node("b")) is True
    assert hint(plugin, waiting, make_node("b"), make_node("b", labels={"x": "y"})) is None
