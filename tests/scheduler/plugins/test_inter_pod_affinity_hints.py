"""InterPodAffinity: events that requeue a pod it rejected."""

from typing import Any

import msgspec
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from support.plugins.plugin_calls import hint
from support.plugins.selectors import ZONE, app, cluster_of, node, pod

TERMS = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, "labelSelector": app("web")}]}
SEEKING = pod("waiting", {"app": "db"}, affinity={"podAffinity": TERMS})
AVOIDING = pod("waiting", {"app": "db"}, affinity={"podAntiAffinity": TERMS})
PLAIN = pod("waiting", {"app": "web"})

WEB = pod("p", {"app": "web"}, on="n")
OTHER = pod("p", {"app": "x"}, on="n")
UNPLACED = pod("p", {"app": "web"})
LONER = pod("p", on="n", affinity={"podAntiAffinity": TERMS})
IN_A, IN_B, NOWHERE = node("n", zone="a"), node("n", zone="b"), node("n")


def is_requeued(waiting: Pod, old: Any, new: Any) -> bool | None:
    """Return the result of the hint for a change; None if the plugin is not registered for it."""
    return hint(InterPodAffinity(InterPodAffinityArgs(), offline_handle(cluster_of())), waiting, old, new)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "worth"),
    [
        (SEEKING, None, WEB, True),
        (SEEKING, None, OTHER, False),
        (SEEKING, None, UNPLACED, None),
        (SEEKING, WEB, None, False),
        (SEEKING, OTHER, WEB, True),
        (SEEKING, WEB, OTHER, False),
        (AVOIDING, None, WEB, False),
        (AVOIDING, WEB, None, True),
        (AVOIDING, WEB, OTHER, True),
        (AVOIDING, OTHER, WEB, False),
        (AVOIDING, OTHER, None, False),
        (PLAIN, LONER, None, True),
        (SEEKING, LONER, None, False),
    ],
)
def test_pods_that_a_term_matches_requeue(waiting: Pod, old: Pod | None, new: Pod | None, worth: bool) -> None:
    """A matching pod is added, one that anti-affinity matches is deleted, or one whose anti-affinity matches."""
    assert is_requeued(waiting, old, new) is worth


def test_one_of_several_anti_affinity_terms_is_enough() -> None:
    """A pod that one term matched is deleted or relabelled, or its anti-affinity had a term that matched."""
    terms = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": app("web")},
            {"topologyKey": ZONE, "labelSelector": app("cache")},
        ]
    }
    affinity = {"podAntiAffinity": terms}
    waiting = pod("waiting", {"app": "db"}, affinity=affinity)
    assert is_requeued(waiting, WEB, None) is True
    assert is_requeued(waiting, WEB, OTHER) is True
    assert is_requeued(waiting, WEB, pod("p", {"app": "cache"}, on="n")) is False
    assert is_requeued(PLAIN, pod("p", on="n", affinity=affinity), None) is True


def test_new_labels_of_the_waiting_pod_requeue() -> None:
    """The anti-affinity of other pods may no longer match."""
    relabelled = msgspec.structs.replace(PLAIN, metadata=msgspec.structs.replace(PLAIN.metadata, labels={"app": "y"}))
    assert is_requeued(PLAIN, PLAIN, relabelled) is True


@pytest.mark.parametrize(
    ("waiting", "old", "new", "worth"),
    [
        (SEEKING, None, IN_A, True),
        (SEEKING, None, NOWHERE, False),
        (SEEKING, NOWHERE, IN_A, True),
        (SEEKING, IN_A, IN_B, True),
        (SEEKING, IN_A, NOWHERE, False),
        (AVOIDING, None, IN_A, True),
        (AVOIDING, None, NOWHERE, True),
        (AVOIDING, NOWHERE, IN_A, False),
        (AVOIDING, IN_A, IN_B, True),
        (AVOIDING, IN_A, NOWHERE, True),
        (PLAIN, None, IN_A, False),
        (SEEKING, IN_A, None, None),
    ],
)
def test_nodes_that_change_domains_requeue(
    waiting: Pod, old: Node | None, new: Node | None, worth: bool | None
) -> None:
    """Affinity needs nodes in a domain; anti-affinity also passes nodes in none. A deleted node never helps."""
    assert is_requeued(waiting, old, new) is worth


def test_registered_events() -> None:
    """Pods that are added, deleted or relabelled; nodes that are added or relabelled."""
    plugin = InterPodAffinity(InterPodAffinityArgs(), offline_handle(cluster_of()))
    assert [registration.event for registration in plugin.requeue_on()] == [
        ClusterEvent(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE),
        ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    ]
