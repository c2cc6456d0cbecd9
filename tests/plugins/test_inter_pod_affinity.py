"""InterPodAffinity: what required terms refuse, and what preferred ones are worth."""

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
from plugins.selecting import HOSTNAME, ZONE, app, cluster_of, namespace, node, pod, refusals, refusals_for, scores

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


def rather_near(weight: int, **more: Any) -> dict[str, Any]:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": term(**more)}]}}


def rather_away(weight: int, **more: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": term(**more)}]}}


def plugin_for(cluster: Cluster, **args: Any) -> InterPodAffinity:
    return InterPodAffinity(InterPodAffinityArgs(**args), offline_handle(cluster))


def two_zones(*more: Any) -> Cluster:
    """Zone a has nodes a1, with a web pod, and a2; zone b has node b1."""
    web = pod("web", {"app": "web"}, on="a1")
    return cluster_of(node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), web, *more)


def test_required_affinity_wants_a_matching_pod_in_the_same_domain() -> None:
    """Any node of zone a will do; zone b has no web pod."""
    cluster = two_zones()
    assert refusals(plugin_for(cluster), cluster, pod("new", affinity=near(term()))) == {"b1": AFFINITY}


def test_one_pod_must_match_all_terms() -> None:
    """Two pods that match a term each are not enough."""
    cluster = two_zones(pod("back", {"tier": "back"}, on="a1"))
    back = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "back"}}}
    everywhere = dict.fromkeys(("a1", "a2", "b1"), AFFINITY)
    assert refusals(plugin_for(cluster), cluster, pod("new", affinity=near(term(), back))) == everywhere
    cluster.set_pod(pod("both", {"app": "web", "tier": "back"}, on="a2"))
    assert refusals(plugin_for(cluster), cluster, pod("new", affinity=near(term(), back))) == {"b1": AFFINITY}


def test_the_first_of_a_group_may_go_anywhere_that_has_the_labels() -> None:
    """Nobody it wants to be with exists, but it is one of them itself."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"))
    first = pod("first", {"app": "web"}, affinity=near(term()))
    assert refusals(plugin_for(cluster), cluster, first) == {"nowhere": AFFINITY}
    stranger = pod("stranger", {"app": "db"}, affinity=near(term()))
    assert refusals(plugin_for(cluster), cluster, stranger) == {"a1": AFFINITY, "nowhere": AFFINITY}


def test_a_member_of_the_group_that_is_in_no_domain_does_not_count() -> None:
    """A matching pod on a node without the topology label leaves the next one the first."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"), pod("web", {"app": "web"}, on="nowhere"))
    waiting = pod("first", {"app": "web"}, affinity=near(term()))
    assert refusals(plugin_for(cluster), cluster, waiting) == {"nowhere": AFFINITY}


def test_required_anti_affinity_keeps_out_of_domains_with_matching_pods() -> None:
    """By hostname only the pod's node, by zone all of zone a; a node without the label is always fine."""
    cluster = two_zones(node("nowhere"), pod("lost", {"app": "web"}, on="nowhere"))
    plugin = plugin_for(cluster)
    assert refusals(plugin, cluster, pod("new", affinity=away(term(key=HOSTNAME)))) == {"a1": ANTI, "nowhere": ANTI}
    assert refusals(plugin, cluster, pod("new", affinity=away(term()))) == {"a1": ANTI, "a2": ANTI}


def test_placed_pods_keep_others_out_of_their_domain() -> None:
    """Their required anti-affinity works both ways."""
    loner = pod("loner", on="b1", affinity=away(term("db")))
    cluster = two_zones(loner)
    assert refusals(plugin_for(cluster), cluster, pod("new", {"app": "db"})) == {"b1": EXISTING_ANTI}
    assert plugin_for(cluster).pre_filter(PodInfo(pod("new", {"app": "web"}))) is SKIP


def test_the_pods_own_rules_give_the_reason_before_those_of_others() -> None:
    """Affinity first, then anti-affinity, then that of placed pods."""
    loner = pod("loner", {"app": "web"}, on="a1", affinity=away(term("db")))
    cluster = two_zones(loner)
    plugin = plugin_for(cluster)
    own_anti = pod("new", {"app": "db"}, affinity=away(term(key=HOSTNAME)))
    assert refusals(plugin, cluster, own_anti) == {"a1": ANTI, "a2": EXISTING_ANTI}
    own_both = pod("new", {"app": "db"}, affinity={**near(term("nobody")), **away(term())})
    assert refusals(plugin, cluster, own_both) == dict.fromkeys(("a1", "a2", "b1"), AFFINITY)


@pytest.mark.parametrize(
    ("scope", "refused"),
    [
        ({}, []),
        ({"namespaces": ["red-1"]}, ["a1"]),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}}, ["a1", "b1"]),
        ({"namespaces": ["blue"], "namespaceSelector": {"matchLabels": {"team": "red"}}}, ["a1", "a2", "b1"]),
        ({"namespaceSelector": {}}, ["a1", "a2", "b1"]),
        ({"namespaceSelector": {"matchLabels": {"team": "green"}}}, []),
    ],
)
def test_a_term_speaks_of_pods_in_its_namespaces(scope: dict[str, Any], refused: list[str]) -> None:
    """Named, selected by label, or, with neither, the pod's own."""
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
    assert refusals(plugin_for(cluster), cluster, waiting) == dict.fromkeys(refused, ANTI)


def test_namespaces_are_selected_anew_when_their_labels_change() -> None:
    """A namespace that joins the team brings its pods."""
    cluster = cluster_of(node("n"), namespace("x", {}), pod("p", {"app": "web"}, on="n", namespace="x"))
    plugin = plugin_for(cluster)
    waiting = pod("new", affinity=away(term(key=HOSTNAME, namespaceSelector={"matchLabels": {"team": "red"}})))
    assert refusals(plugin, cluster, waiting) == {}
    cluster.set_object(namespace("x", {"team": "red"}))
    assert refusals(plugin, cluster, waiting) == {"n": ANTI}


def test_terms_of_placed_pods_select_the_namespace_of_the_waiting_pod() -> None:
    """By its labels; a namespace that is not known has none."""
    selecting = away(term("db", namespaceSelector={"matchLabels": {"team": "red"}}))
    cluster = two_zones(namespace("x", {"team": "red"}), pod("loner", on="b1", affinity=selecting))
    plugin = plugin_for(cluster)
    assert refusals(plugin, cluster, pod("new", {"app": "db"}, namespace="x")) == {"b1": EXISTING_ANTI}
    assert refusals(plugin, cluster, pod("new", {"app": "db"}, namespace="unknown")) == {}


def test_a_selector_that_makes_no_sense_refuses_the_pod() -> None:
    """Nothing that happens in the cluster would mend it."""
    bad = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Maybe"}]}}
    answer = plugin_for(two_zones()).pre_filter(PodInfo(pod("new", affinity=near(bad))))
    assert isinstance(answer, Rejection)
    assert answer.code is Code.UNRESOLVABLE
    assert answer.message.startswith("parsing pod: ")
    assert "Maybe" in answer.message


def test_preferred_terms_are_worth_their_weight_per_matching_pod() -> None:
    """Zone a has one web pod: its nodes get the weight, for or against."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    liking = pod("new", affinity=rather_near(40))
    assert scores(plugin, cluster, liking) == {"a1": (40, 100), "a2": (40, 100), "b1": (0, 0)}
    disliking = pod("new", affinity=rather_away(40))
    assert scores(plugin, cluster, disliking) == {"a1": (-40, 0), "a2": (-40, 0), "b1": (0, 100)}


def test_placed_pods_have_a_say_in_the_score() -> None:
    """Their preferred terms, and their required affinity at the configured weight."""
    cluster = two_zones(
        pod("fan", on="b1", affinity=rather_near(5, selected="db")),
        pod("foe", on="a1", affinity=rather_away(7, selected="db", key=HOSTNAME)),
        pod("needy", on="a2", affinity=near(term("db", HOSTNAME))),
    )
    waiting = pod("new", {"app": "db"})
    assert scores(plugin_for(cluster), cluster, waiting) == {"a1": (-7, 0), "a2": (1, 66), "b1": (5, 100)}
    heavier = plugin_for(cluster, hardPodAffinityWeight=5)
    assert scores(heavier, cluster, waiting) == {"a1": (-7, 0), "a2": (5, 100), "b1": (5, 100)}
    without = plugin_for(cluster, hardPodAffinityWeight=0)
    assert scores(without, cluster, waiting) == {"a1": (-7, 0), "a2": (0, 58), "b1": (5, 100)}


def test_the_say_of_placed_pods_can_be_switched_off() -> None:
    """Unless the pod has preferences itself."""
    cluster = two_zones(pod("fan", on="b1", affinity=rather_near(5, selected="db")))
    plugin = plugin_for(cluster, ignorePreferredTermsOfExistingPods=True)
    assert scores(plugin, cluster, pod("new", {"app": "db"})) is None
    choosy = pod("new", {"app": "db"}, affinity=rather_near(2))
    assert scores(plugin, cluster, choosy) == {"a1": (2, 0), "a2": (2, 0), "b1": (5, 100)}


def test_there_is_nothing_to_score_when_no_term_finds_anybody() -> None:
    """Nor when all it finds is on nodes without the topology label."""
    cluster = cluster_of(node("nowhere"), pod("web", {"app": "web"}, on="nowhere"))
    plugin = plugin_for(cluster)
    assert scores(plugin, cluster, pod("new")) is None
    assert scores(plugin, cluster, pod("new", affinity=rather_near(3))) is None


def test_equal_scores_are_all_normalised_to_nothing() -> None:
    """There is nothing to tell the nodes apart."""
    cluster = cluster_of(node("a1", zone="a"), pod("web", {"app": "web"}, on="a1"))
    assert scores(plugin_for(cluster), cluster, pod("new", affinity=rather_near(3))) == {"a1": (3, 0)}


def test_changes_can_bring_a_topology_key_that_nobody_used() -> None:
    """A pod that is expected keeps others away by a key of its own."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    info = PodInfo(pod("new", {"app": "db"}, affinity=away(term("nobody"))))
    state: Any = plugin.pre_filter(info)
    expected: Pod = pod("expected", affinity=away(term("db", HOSTNAME)))
    after = plugin.with_changes(state, info, [Change(PodInfo(expected), cluster.nodes.row_of["a2"], added=True)])
    assert refusals_for(plugin, cluster, after, info) == {"a2": EXISTING_ANTI}


def test_changes_that_come_to_the_same_share_a_state() -> None:
    """A pod that leaves its zone is like any other of that zone; nodes with the same state are judged together."""
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


def test_a_what_if_is_judged_by_the_domains_of_the_cluster() -> None:
    """A copied row gets the verdict that its domain has in the whole cluster."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    info = PodInfo(pod("new", affinity=near(term())))
    view = what_if(cluster.nodes, [cluster.nodes.row_of["b1"], cluster.nodes.row_of["a2"]])
    answer = plugin.filter_rows(plugin.pre_filter(info), info, view, slice(0, 2))  # type: ignore[arg-type]
    assert answer is not None
    assert [bool(kind) for kind in answer.kinds] == [True, False]
