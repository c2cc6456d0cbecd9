"""PodTopologySpread: events that requeue a pod it rejected."""

from typing import Any

import msgspec
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.pod_topology_spread import PodTopologySpread
from support.plugins.plugin_calls import hint
from support.plugins.selectors import ZONE, app, cluster_of, node, pod


def waiting_pod(**constraint: Any) -> Pod:
    return pod(
        "waiting",
        {"app": "web"},
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": app("web"),
                **constraint,
            }
        ],
    )


def is_requeued(waiting: Pod, old: Any, new: Any) -> bool | None:
    """Return the result of the hint for a change; None if the plugin is not registered for it."""
    return hint(PodTopologySpread(PodTopologySpreadArgs(), offline_handle(cluster_of())), waiting, old, new)


def relabelled(thing: Pod, **labels: str) -> Pod:
    return msgspec.structs.replace(thing, metadata=msgspec.structs.replace(thing.metadata, labels=labels))


PLACED = pod("p", {"app": "web"}, on="n")
STRANGER = pod("p", {"app": "db"}, on="n")
ELSEWHERE = pod("p", {"app": "web"}, on="n", namespace="other")
UNPLACED = pod("p", {"app": "web"})
IN_A, IN_B, NOWHERE = node("n", zone="a"), node("n", zone="b"), node("n")
TAINTED = node("n", zone="a", taints=[{"key": "k", "effect": "NoSchedule"}])


@pytest.mark.parametrize(
    ("old", "new", "worth"),
    [
        (None, PLACED, True),
        (PLACED, None, True),
        (None, STRANGER, False),
        (STRANGER, None, False),
        (None, ELSEWHERE, False),
        (None, UNPLACED, None),
        (STRANGER, PLACED, True),
        (PLACED, relabelled(PLACED, app="web", tier="front"), False),
    ],
)
def test_counted_pods_requeue(old: Pod | None, new: Pod | None, worth: bool | None) -> None:
    """Pods with a node, in the same namespace, and selected before or after the change."""
    assert is_requeued(waiting_pod(), old, new) is worth


@pytest.mark.parametrize(
    ("old", "new", "worth"),
    [
        (None, IN_A, True),
        (IN_A, None, True),
        (None, NOWHERE, False),
        (NOWHERE, None, False),
        (NOWHERE, IN_A, True),
        (IN_A, NOWHERE, True),
        (IN_A, IN_B, True),
        (IN_A, TAINTED, True),
        (IN_A, node("n", zone="a", labels={"disk": "ssd"}), False),
    ],
)
def test_nodes_that_join_leave_or_change_a_domain_requeue(old: Node | None, new: Node | None, worth: bool) -> None:
    """Nodes without the topology label do not."""
    assert is_requeued(waiting_pod(), old, new) is worth


@pytest.mark.parametrize(("policy", "worth"), [("Honor", True), ("Ignore", False)])
def test_a_new_toleration_requeues_if_taints_are_honored(policy: str, worth: bool) -> None:
    """Nodes that the pod now tolerates become domains."""
    waiting = waiting_pod(nodeTaintsPolicy=policy)
    tolerating = msgspec.structs.replace(
        waiting,
        spec=msgspec.structs.replace(waiting.spec, tolerations=pod("x", tolerations=[{"key": "k"}]).spec.tolerations),
    )
    assert is_requeued(waiting, waiting, tolerating) is worth


def test_registered_events() -> None:
    """Pods that are added, deleted or relabelled; the pod's own tolerations; nodes, their labels and taints."""
    plugin = PodTopologySpread(PodTopologySpreadArgs(), offline_handle(cluster_of()))
    assert [registration.event for registration in plugin.requeue_on()] == [
        ClusterEvent(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE),
        ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION),
        ClusterEvent(Resource.NODE, Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT),
    ]
