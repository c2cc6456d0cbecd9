"""NodeUnschedulable: cordoned nodes take only pods that tolerate that."""

from typing import Any

import pytest

from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubestow.testing.builders import make_node, make_pod
from plugins.asking import cluster_of, hint, make, refused

CORDONED = unresolvable("node(s) were unschedulable")
TAINT = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "refusals"),
    [
        ([], {"b": CORDONED}),
        (["other"], {"b": CORDONED}),
        ([f"{TAINT}:NoExecute"], {"b": CORDONED}),
        ([TAINT], {}),
        ([f"{TAINT}:NoSchedule"], {}),
    ],
)
def test_cordoned_nodes(tolerations: list[str], refusals: Any) -> None:
    """Are refused unless the pod tolerates the taint that stands for it, with the effect NoSchedule."""
    cluster = cluster_of(make_node("a"), make_node("b", unschedulable=True))
    assert refused(make(NodeUnschedulable), cluster, make_pod("p", tolerations=tolerations)) == refusals


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [(None, False, True), (None, True, False), (True, False, True), (False, True, None)],
)
def test_nodes_worth_another_attempt(before: bool | None, after: bool, worth: bool | None) -> None:
    """A node that is added without a cordon, or loses it; a cordon is not even told."""
    old = None if before is None else make_node("n", unschedulable=before)
    assert hint(make(NodeUnschedulable), make_pod("p"), old, make_node("n", unschedulable=after)) is worth


def test_tolerations_worth_another_attempt() -> None:
    """The pod's own, if they now tolerate the cordon."""
    plugin, pod = make(NodeUnschedulable), make_pod("p")
    assert hint(plugin, pod, pod, make_pod("p", tolerations=[TAINT])) is True
    assert hint(plugin, pod, pod, make_pod("p", tolerations=["other"])) is False
    assert hint(plugin, make_pod("q"), pod, make_pod("p", tolerations=[TAINT])) is False
