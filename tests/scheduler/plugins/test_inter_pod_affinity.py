"""InterPodAffinity: rejections by required terms and scores by preferred terms."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.config.plugin_args import InterPodAffinityArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import SKIP, Code, Rejection
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from support.plugins.selectors import (
    HOSTNAME,
    ZONE,
    app,
    cluster_of,
    namespace,
    node,
    pod,
    rejections,
    rejections_for,
    scores,
)

AFFINITY = "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules"
ANTI = "Unschedulable: node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI = "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules"

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(selected: str = "web", key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": app(selected), **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def away(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def prefer_near(weight: int, **more: Any) -> dict[str, Any]:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": term(**more)}]}}


def prefer_away(weight: int, **more: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": term(**more)}]}}


def plugin_for(cluster: Cluster, **args: Any) -> InterPodAffinity:
    return InterPodAffinity(InterPodAffinityArgs(**args), offline_handle(cluster))


def two_zones(*more: Any) -> Cluster:
    """Return zone a with nodes a1, which has a web pod, and a2; zone b with node b1."""
    web = pod("web", {"app": "web"}, on="a1")
    return cluster_of(node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), web, *more)


def test_required_affinity_needs_a_matching_pod_in_the_domain() -> None:
    """All nodes of zone a pass; zone b has no web pod."""
    cluster = two_zones()
    assert rejections(plugin_for(cluster), cluster, pod("new", affinity=near(term()))) == {"b1": AFFINITY}


def test_one_pod_must_match_all_terms() -> None:
    """Two pods that match one term each do not suffice."""
    cluster = two_zones(pod("back", {"tier": "back"}, on="a1"))
    back = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "back"}}}
    everywhere = dict.fromkeys(("a1", "a2", "b1"), AFFINITY)
    assert rejections(plugin_for(cluster), cluster, pod("new", affinity=near(term(), back))) == everywhere
    cluster.set_pod(pod("both", {"app": "web", "tier": "back"}, on="a2"))
    assert rejections(plugin_for(cluster), cluster, pod("new", affinity=near(term(), back))) == {"b1": AFFINITY}


def test_the_first_pod_of_a_group_passes_all_labelled_nodes() -> None:
    """No matching pod exists, but the pod matches its own terms."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"))
    first = pod("first", {"app": "web"}, affinity=near(term()))
    assert rejections(plugin_for(cluster), cluster, first) == {"nowhere": AFFINITY}
    stranger = pod("stranger", {"app": "db"}, affinity=near(term()))
    assert rejections(plugin_for(cluster), cluster, stranger) == {"a1": AFFINITY, "nowhere": AFFINITY}


def test_matching_pods_outside_all_domains_do_not_count() -> None:
    """With a matching pod on a node without the topology label, the next pod is still the first of its group."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"), pod("web", {"app": "web"}, on="nowhere"))
    waiting = pod("first", {"app": "web"}, affinity=near(term()))
    assert rejections(plugin_for(cluster), cluster, waiting) == {"nowhere": AFFINITY}


def test_required_anti_affinity_rejects_domains_with_matching_pods() -> None:
    """By hostname only the pod's node, by zone all of zone a; a node without the label always passes."""
    cluster = two_zones(node("nowhere"), pod("lost", {"app": "web"}, on="nowhere"))
    plugin = plugin_for(cluster)
    assert rejections(plugin, cluster, pod("new", affinity=away(term(key=HOSTNAME)))) == {"a1": ANTI, "nowhere": ANTI}
    assert rejections(plugin, cluster, pod("new", affinity=away(term()))) == {"a1": ANTI, "a2": ANTI}


def test_anti_affinity_of_placed_pods_rejects_their_domain() -> None:
    """Required anti-affinity is symmetric."""
    loner = pod("loner", on="b1", affinity=away(term("db")))
    cluster = two_zones(loner)
    assert rejections(plugin_for(cluster), cluster, pod("new", {"app": "db"})) == {"b1": EXISTING_ANTI}
    assert plugin_for(cluster).pre_filter(PodInfo(pod("new", {"app": "web"}))) is SKIP


def test_reasons_of_the_pods_own_terms_come_first() -> None:
    """Affinity first, then anti-affinity, then that of placed pods."""
    loner = pod("loner", {"app": "web"}, on="a1", affinity=away(term("db")))
    cluster = two_zones(loner)
    plugin = plugin_for(cluster)
    own_anti = pod("new", {"app": "db"}, affinity=away(term(key=HOSTNAME)))
    assert rejections(plugin, cluster, own_anti) == {"a1": ANTI, "a2": EXISTING_ANTI}
    own_both = pod("new", {"app": "db"}, affinity={**near(term("nobody")), **away(term())})
    assert rejections(plugin, cluster, own_both) == dict.fromkeys(("a1", "a2", "b1"), AFFINITY)


@pytest.mark.parametrize(
    ("scope", "rejected"),
    [
        ({}, []),
        ({"namespaces": ["red-1"]}, ["a1"]),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}}, ["a1", "b1"]),
        ({"namespaces": ["blue"], "namespaceSelector": {"matchLabels": {"team": "red"}}}, ["a1", "a2", "b1"]),
        ({"namespaceSelector": {}}, ["a1", "a2", "b1"]),
        ({"namespaceSelector": {"matchLabels": {"team": "green"}}}, []),
        ({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}, []),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}},
            ["a2"],
        ),
    ],
)
def test_namespaces_of_a_term(scope: dict[str, Any], rejected: list[str]) -> None:
    """Namespaces are named, selected by label, or default to the pod's own."""
    cluster = cluster_of(
        namespace("red-1", {"team": "red"}),
        namespace("red-2", {"team": "red"}),
        namespace("blue", {"team": "blue"}),
        *(node(name) for name in ("a1", "a2", "b1")),
        pod("p", {"app": "web"}, on="a1", namespace="red-1"),
        pod("p", {"app": "web"}, on="b1", namespace="red-2"),
        pod("p", {"app": "web"}, on="a2", namespace="blue"),
    )
    waiting = pod("new", affinity=away(term(key=HOSTNAME, **scope)))
    assert rejections(plugin_for(cluster), cluster, waiting) == dict.fromkeys(rejected, ANTI)


def test_namespace_selectors_follow_label_changes() -> None:
    """The pods of a namespace match after its labels do."""
    cluster = cluster_of(node("n"), namespace("x", {}), pod("p", {"app": "web"}, on="n", namespace="x"))
    plugin = plugin_for(cluster)
    waiting = pod("new", affinity=away(term(key=HOSTNAME, namespaceSelector={"matchLabels": {"team": "red"}})))
    assert rejections(plugin, cluster, waiting) == {}
    cluster.set_object(namespace("x", {"team": "red"}))
    assert rejections(plugin, cluster, waiting) == {"n": ANTI}


def test_terms_of_placed_pods_select_the_namespace_of_the_waiting_pod() -> None:
    """They select it by its labels; an unknown namespace has none."""
    selecting = away(term("db", namespaceSelector={"matchLabels": {"team": "red"}}))
    cluster = two_zones(namespace("x", {"team": "red"}), pod("loner", on="b1", affinity=selecting))
    plugin = plugin_for(cluster)
    assert rejections(plugin, cluster, pod("new", {"app": "db"}, namespace="x")) == {"b1": EXISTING_ANTI}
    assert rejections(plugin, cluster, pod("new", {"app": "db"}, namespace="unknown")) == {}


def test_an_invalid_selector_rejects_the_pod() -> None:
    """No event in the cluster can change that."""
    bad = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Maybe"}]}}
    answer = plugin_for(two_zones()).pre_filter(PodInfo(pod("new", affinity=near(bad))))
    assert isinstance(answer, Rejection)
    assert answer.code is Code.UNRESOLVABLE
    assert answer.message.startswith("parsing pod: ")
    assert "Maybe" in answer.message


def test_preferred_terms_score_their_weight_per_matching_pod() -> None:
    """Zone a has one web pod: its nodes get the weight, positive or negative."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    liking = pod("new", affinity=prefer_near(40))
    assert scores(plugin, cluster, liking) == {"a1": (40, 100), "a2": (40, 100), "b1": (0, 0)}
    disliking = pod("new", affinity=prefer_away(40))
    assert scores(plugin, cluster, disliking) == {"a1": (-40, 0), "a2": (-40, 0), "b1": (0, 100)}


def test_terms_of_placed_pods_are_scored() -> None:
    """Their preferred terms count, and their required affinity with the configured weight."""
    cluster = two_zones(
        pod("fan", on="b1", affinity=prefer_near(5, selected="db")),
        pod("foe", on="a1", affinity=prefer_away(7, selected="db", key=HOSTNAME)),
        pod("needy", on="a2", affinity=near(term("db", HOSTNAME))),
    )
    waiting = pod("new", {"app": "db"})
    assert scores(plugin_for(cluster), cluster, waiting) == {"a1": (-7, 0), "a2": (1, 66), "b1": (5, 100)}
    heavier = plugin_for(cluster, hardPodAffinityWeight=5)
    assert scores(heavier, cluster, waiting) == {"a1": (-7, 0), "a2": (5, 100), "b1": (5, 100)}
    without = plugin_for(cluster, hardPodAffinityWeight=0)
    assert scores(without, cluster, waiting) == {"a1": (-7, 0), "a2": (0, 58), "b1": (5, 100)}


def test_preferred_terms_of_placed_pods_can_be_ignored() -> None:
    """They still count if the pod has preferred terms of its own."""
    cluster = two_zones(pod("fan", on="b1", affinity=prefer_near(5, selected="db")))
    plugin = plugin_for(cluster, ignorePreferredTermsOfExistingPods=True)
    assert scores(plugin, cluster, pod("new", {"app": "db"})) is None
    choosy = pod("new", {"app": "db"}, affinity=prefer_near(2))
    assert scores(plugin, cluster, choosy) == {"a1": (2, 0), "a2": (2, 0), "b1": (5, 100)}


def test_scoring_is_skipped_without_matching_pods() -> None:
    """Matching pods on nodes without the topology label do not count."""
    cluster = cluster_of(node("nowhere"), pod("web", {"app": "web"}, on="nowhere"))
    plugin = plugin_for(cluster)
    assert scores(plugin, cluster, pod("new")) is None
    assert scores(plugin, cluster, pod("new", affinity=prefer_near(3))) is None


def test_equal_scores_are_normalized_to_zero() -> None:
    """No node is preferred."""
    cluster = cluster_of(node("a1", zone="a"), pod("web", {"app": "web"}, on="a1"))
    assert scores(plugin_for(cluster), cluster, pod("new", affinity=prefer_near(3))) == {"a1": (3, 0)}


def test_changes_can_add_a_topology_key() -> None:
    """A nominated pod rejects others by a topology key that no other pod uses."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    info = PodInfo(pod("new", {"app": "db"}, affinity=away(term("nobody"))))
    state: Any = plugin.pre_filter(info)
    expected: Pod = pod("expected", affinity=away(term("db", HOSTNAME)))
    after = plugin.with_changes(state, info, [Change(PodInfo(expected), cluster.nodes.row_of["a2"], added=True)])
    assert rejections_for(plugin, cluster, after, info) == {"a2": EXISTING_ANTI}


def test_equal_changes_share_a_state() -> None:
    """Removing any pod of a zone has the same effect; nodes with the same state are evaluated together."""
    placed = {name: pod(f"web-{name}", {"app": "web"}, on=name) for name in ("a1", "a2", "b1")}
    cluster = two_zones(*placed.values())
    plugin, info = plugin_for(cluster), PodInfo(pod("waiting", affinity=away(term())))
    state: Any = plugin.pre_filter(info)
    after = {
        name: plugin.with_changes(state, info, [Change(PodInfo(gone), cluster.nodes.row_of[name], added=False)])
        for name, gone in placed.items()
    }
    assert after["a1"] is after["a2"]
    assert after["a1"] is not after["b1"]
    again: Any = plugin.pre_filter(info)
    gone = Change(PodInfo(placed["a1"]), cluster.nodes.row_of["a1"], added=False)
    assert plugin.with_changes(again, info, [gone]) is not after["a1"]


def test_what_if_views_use_the_domains_of_the_cluster() -> None:
    """A copied row gets the verdict of its domain in the whole cluster."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    info = PodInfo(pod("new", affinity=near(term())))
    view = what_if(cluster.nodes, [cluster.nodes.row_of["b1"], cluster.nodes.row_of["a2"]])
    answer = plugin.filter_rows(plugin.pre_filter(info), info, view, slice(0, 2))  # type: ignore[arg-type]
    assert answer is not None
    assert [bool(kind) for kind in answer.kinds] == [True, False]
