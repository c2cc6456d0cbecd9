"""InterPodAffinity: which events make a pod it refused worth another attempt."""

from typing import Any

import msgspec
import pytest

from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.scheduler.cluster.events import Action, ClusterEvent, Resource
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from plugins.hints import hint_of
from plugins.selecting import ZONE, app, cluster_of, node, pod

TERMS = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE, "labelSelector": app("web")}]}
SEEKING = pod("waiting", {"app": "db"}, affinity={"podAffinity": TERMS})
AVOIDING = pod("waiting", {"app": "db"}, affinity={"podAntiAffinity": TERMS})
PLAIN = pod("waiting", {"app": "web"})

WEB = pod("p", {"app": "web"}, on="n")
OTHER = pod("p", {"app": "x"}, on="n")
UNPLACED = pod("p", {"app": "web"})
LONER = pod("p", on="n", affinity={"podAntiAffinity": TERMS})
IN_A, IN_B, NOWHERE = node("n", zone="a"), node("n", zone="b"), node("n")


def is_worth_it(waiting: Pod, old: Any, new: Any) -> bool | None:
    """What the plugin says of a change; None if it does not hear of it."""
    return hint_of(InterPodAffinity(InterPodAffinityArgs(), offline_handle(cluster_of())), waiting, old, new)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "worth"),
    [
        (SEEKING, None, WEB, True),
        (SEEKING, None, OTHER, False),
        (SEEKING, None, UNPLACED, False),
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
def test_pods_matter_when_a_term_speaks_of_them(waiting: Pod, old: Pod | None, new: Pod | None, worth: bool) -> None:
    """One to be with appears, one to be away from leaves, one that kept others away leaves."""
    assert is_worth_it(waiting, old, new) is worth


def test_new_labels_of_the_waiting_pod_matter() -> None:
    """Those that kept it away may no longer mean it."""
    relabelled = msgspec.structs.replace(PLAIN, metadata=msgspec.structs.replace(PLAIN.metadata, labels={"app": "y"}))
    assert is_worth_it(PLAIN, PLAIN, relabelled) is True


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
def test_nodes_matter_when_they_change_domains(
    waiting: Pod, old: Node | None, new: Node | None, worth: bool | None
) -> None:
    """Affinity wants nodes in a domain; anti-affinity also likes those in none. A node that goes helps nobody."""
    assert is_worth_it(waiting, old, new) is worth


def test_the_events_it_waits_for_are_registered() -> None:
    """Pods that come, go or change labels; nodes that come or change labels."""
    plugin = InterPodAffinity(InterPodAffinityArgs(), offline_handle(cluster_of()))
    assert [registration.event for registration in plugin.requeue_on()] == [
        ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE),
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    ]
