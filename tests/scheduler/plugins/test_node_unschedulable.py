"""NodeUnschedulable: rejects cordoned nodes for pods that do not tolerate the taint."""

from typing import Any

import pytest

from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected

CORDONED = unresolvable("node(s) were unschedulable")
TAINT = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "rejections"),
    [
        ([], {"b": CORDONED}),
        (["other"], {"b": CORDONED}),
        ([f"{TAINT}:NoExecute"], {"b": CORDONED}),
        ([TAINT], {}),
        ([f"{TAINT}:NoSchedule"], {}),
    ],
)
def test_cordoned_nodes_are_rejected(tolerations: list[str], rejections: Any) -> None:
    """A toleration of the unschedulable taint with effect NoSchedule passes them."""
    cluster = cluster_of(make_node("a"), make_node("b", unschedulable=True))
    assert rejected(make(NodeUnschedulable), cluster, make_pod("p", tolerations=tolerations)) == rejections


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [(None, False, True), (None, True, False), (True, False, True), (False, True, None)],
)
def test_node_events_that_requeue(before: bool | None, after: bool, worth: bool | None) -> None:
    """A node that is added without a cordon, or uncordoned; the plugin is not registered for a new cordon."""
    old = None if before is None else make_node("n", unschedulable=before)
    assert hint(make(NodeUnschedulable), make_pod("p"), old, make_node("n", unschedulable=after)) is worth


def test_toleration_events_that_requeue() -> None:
    """Only the pod's own tolerations, if they now tolerate the cordon."""
    plugin, pod = make(NodeUnschedulable), make_pod("p")
    assert hint(plugin, pod, pod, make_pod("p", tolerations=[TAINT])) is True
    assert hint(plugin, pod, pod, make_pod("p", tolerations=["other"])) is False
    assert hint(plugin, make_pod("q"), pod, make_pod("p", tolerations=[TAINT])) is None
