"""PodTopologySpread: what hard constraints refuse, what soft ones prefer, and where defaults come from."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.pod import Pod, TopologySpreadConstraint
from kubestow.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubestow.config.features import Features
from kubestow.config.plugin_args import PodTopologySpreadArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cluster.whatif import what_if
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import SKIP
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.pod_topology_spread import PodTopologySpread
from plugins.selecting import HOSTNAME, ZONE, app, cluster_of, node, pod, refusals, refusals_for, scores

SKEWED = "Unschedulable: node(s) didn't match pod topology spread constraints"
UNLABELLED = (
    "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
)


def plugin_for(cluster: Cluster, features: Features | None = None, **args: Any) -> PodTopologySpread:
    return PodTopologySpread(PodTopologySpreadArgs(**args), offline_handle(cluster, features))


def constraint(key: str = ZONE, skew: int = 1, action: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action, "labelSelector": app("web"), **more}


def web(name: str, *constraints: dict[str, Any], on: str = "", **more: Any) -> Pod:
    return pod(name, {"app": "web"}, on=on, topologySpreadConstraints=list(constraints), **more)


def two_zones() -> Cluster:
    """Zone a has one node with two web pods; zone b has one node with none."""
    return cluster_of(node("a1", zone="a"), node("b1", zone="b"), web("p1", on="a1"), web("p2", on="a1"))


def test_a_domain_that_would_be_skewed_is_refused() -> None:
    """Two pods in a, none in b: a third in a would make a skew of three."""
    cluster = two_zones()
    assert refusals(plugin_for(cluster), cluster, web("new", constraint())) == {"a1": SKEWED}
    assert refusals(plugin_for(cluster), cluster, web("new", constraint(skew=3))) == {}


def test_a_pod_that_its_own_selector_leaves_out_does_not_count() -> None:
    """The pod adds nothing to the skew when its labels do not match."""
    cluster = two_zones()
    stranger = pod("new", {"app": "other"}, topologySpreadConstraints=[constraint(skew=2)])
    assert refusals(plugin_for(cluster), cluster, stranger) == {}
    assert refusals(plugin_for(cluster), cluster, web("new", constraint(skew=2))) == {"a1": SKEWED}


def test_a_node_without_the_topology_label_is_refused_for_good() -> None:
    """Preempting pods would not give it a label."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"))
    assert refusals(plugin_for(cluster), cluster, web("new", constraint())) == {"nowhere": UNLABELLED}


def test_the_constraint_that_comes_first_gives_the_reason() -> None:
    """A node that breaks one constraint and lacks the label of another is told the first."""
    cluster = cluster_of(node("a1", zone="a"), node("a2", zone="a", hostname=None), *[web("p", on="a1")])
    by_zone_first = web("new", constraint(skew=1, minDomains=2), constraint(HOSTNAME))
    by_host_first = web("new", constraint(HOSTNAME), constraint(skew=1, minDomains=2))
    assert refusals(plugin_for(cluster), cluster, by_zone_first)["a2"] == SKEWED
    assert refusals(plugin_for(cluster), cluster, by_host_first)["a2"] == UNLABELLED


def test_too_few_domains_make_the_emptiest_count_as_empty() -> None:
    """With minDomains 3 and two zones, one pod in each is already a skew of one."""
    cluster = cluster_of(node("a1", zone="a"), node("b1", zone="b"), web("p1", on="a1"), web("p2", on="b1"))
    assert refusals(plugin_for(cluster), cluster, web("new", constraint(minDomains=2))) == {}
    assert refusals(plugin_for(cluster), cluster, web("new", constraint(minDomains=3))) == {"a1": SKEWED, "b1": SKEWED}


@pytest.mark.parametrize(("policy", "refused"), [("Honor", {}), ("Ignore", {"a1": SKEWED})])
def test_nodes_the_pod_may_not_run_on_count_only_when_affinity_is_ignored(policy: str, refused: dict[str, str]) -> None:
    """The empty zone b is excluded by the node selector: with Honor it is no domain to be compared with."""
    cluster = cluster_of(
        node("a1", zone="a", labels={"disk": "ssd"}), node("b1", zone="b"), web("p1", on="a1"), web("p2", on="a1")
    )
    waiting = web("new", constraint(nodeAffinityPolicy=policy), nodeSelector={"disk": "ssd"})
    assert refusals(plugin_for(cluster), cluster, waiting) == refused


def test_a_node_without_the_label_is_no_domain_to_compare_with() -> None:
    """Neither when all nodes count, nor when a node selector leaves some out."""
    ssd = {"disk": "ssd"}
    cluster = cluster_of(node("a1", zone="a", labels=ssd), node("nowhere", labels=ssd), web("p1", on="a1"))
    assert refusals(plugin_for(cluster), cluster, web("new", constraint())) == {"nowhere": UNLABELLED}
    cluster.set_node(node("b1", zone="b"))
    waiting = web("new", constraint(), nodeSelector=ssd)
    assert refusals(plugin_for(cluster), cluster, waiting) == {"nowhere": UNLABELLED}


@pytest.mark.parametrize(("policy", "refused"), [("Honor", {}), ("Ignore", {"a1": SKEWED})])
def test_nodes_with_untolerated_taints_count_only_when_taints_are_ignored(policy: str, refused: dict[str, str]) -> None:
    """The empty zone b is tainted: with Honor it is no domain to be compared with."""
    tainted = node("b1", zone="b", taints=[{"key": "dedicated", "effect": "NoExecute"}])
    cluster = cluster_of(node("a1", zone="a"), tainted, web("p1", on="a1"), web("p2", on="a1"))
    assert refusals(plugin_for(cluster), cluster, web("new", constraint(nodeTaintsPolicy=policy))) == refused
    tolerating = web("new", constraint(nodeTaintsPolicy=policy), tolerations=[{"operator": "Exists"}])
    assert refusals(plugin_for(cluster), cluster, tolerating) == {"a1": SKEWED}


def test_match_label_keys_narrow_the_selector_to_pods_like_this_one() -> None:
    """Pods of another revision do not count, unless the gate is off."""
    old = pod("old", {"app": "web", "revision": "1"}, on="a1")
    cluster = cluster_of(node("a1", zone="a"), node("b1", zone="b"), old)
    waiting = pod(
        "new", {"app": "web", "revision": "2"}, topologySpreadConstraints=[constraint(matchLabelKeys=["revision"])]
    )
    assert refusals(plugin_for(cluster), cluster, waiting) == {}
    without = Features.parse(
        "MatchLabelKeysInPodTopologySpread=false,MatchLabelKeysInPodTopologySpreadSelectorMerge=false"
    )
    assert refusals(plugin_for(cluster, without), cluster, waiting) == {"a1": SKEWED}


def test_there_is_nothing_to_filter_or_score_without_constraints() -> None:
    """Only the kind of constraint that is there is looked at."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    assert plugin.pre_filter(PodInfo(web("plain"))) is SKIP
    assert plugin.pre_filter(PodInfo(web("soft", constraint(action="ScheduleAnyway")))) is SKIP
    assert scores(plugin, cluster, web("hard", constraint())) is None


def test_soft_constraints_prefer_the_emptier_domain() -> None:
    """Two pods in a, weighted with the number of zones: ln(4) each, rounded; b gets the most."""
    cluster = two_zones()
    assert scores(plugin_for(cluster), cluster, web("new", constraint(action="ScheduleAnyway"))) == {
        "a1": (3, 0),
        "b1": (0, 100),
    }


def test_a_node_that_lacks_a_soft_constraints_label_scores_nothing() -> None:
    """It is left out of the comparison, too."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"))
    found = scores(plugin_for(cluster), cluster, web("new", constraint(action="ScheduleAnyway")))
    assert found == {"a1": (0, 100), "nowhere": (0, 0)}


def test_nothing_to_compare_gives_every_node_the_most() -> None:
    """All scores zero: all are as good as can be."""
    cluster = cluster_of(node("a1", zone="a"), node("b1", zone="b"))
    found = scores(plugin_for(cluster), cluster, web("new", constraint(action="ScheduleAnyway")))
    assert found == {"a1": (0, 100), "b1": (0, 100)}


SERVICE = convert(Service, {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}})


def _controller(kind: type, selector: dict[str, Any]) -> Any:
    return convert(kind, {"metadata": {"name": "owner", "namespace": "default"}, "spec": {"selector": selector}})


@pytest.mark.parametrize(
    ("known", "owner"),
    [
        (SERVICE, None),
        (
            _controller(ReplicationController, {"app": "web"}),
            {"apiVersion": "v1", "kind": "ReplicationController", "name": "owner"},
        ),
        (_controller(ReplicaSet, app("web")), {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner"}),
        (_controller(StatefulSet, app("web")), {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "owner"}),
    ],
)
def test_system_defaults_spread_what_a_service_or_controller_selects(known: Any, owner: dict[str, str] | None) -> None:
    """Over hostnames (skew 3) and zones (skew 5), softly."""
    cluster = two_zones()
    cluster.set_object(known)
    waiting = web("new") if owner is None else web("new", owner=owner)
    found = scores(plugin_for(cluster), cluster, waiting)
    # Two pods at ln(2 + 2) each, for the hostname and for the zone, and the skews less one.
    assert found == {"a1": (12, 50), "b1": (6, 100)}


def test_without_service_or_controller_there_are_no_defaults() -> None:
    """An owner of another kind, or one that is not known, selects nothing."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    assert scores(plugin, cluster, web("new")) is None
    assert scores(plugin, cluster, web("new", owner={"apiVersion": "batch/v1", "kind": "Job", "name": "owner"})) is None
    unknown = web("new", owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner"})
    assert scores(plugin, cluster, unknown) is None


def test_defaults_follow_services_that_come_and_go() -> None:
    """The selector is found anew when a service changes."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    assert scores(plugin, cluster, web("new")) is None
    cluster.set_object(SERVICE)
    assert scores(plugin, cluster, web("new")) is not None
    cluster.remove_object(SERVICE)
    assert scores(plugin, cluster, web("new")) is None


def test_system_defaults_put_up_with_nodes_that_have_no_zone() -> None:
    """Such a node is scored by its hostname, and its missing zone counts as one more zone."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"), web("p1", on="nowhere"), SERVICE)
    # Hostnames: one pod at ln(2 + 2), plus 2; zones: no pod in a, plus 4, and nothing for the node without a zone.
    assert scores(plugin_for(cluster), cluster, web("new")) == {"a1": (6, 50), "nowhere": (3, 100)}


def test_listed_defaults_apply_to_pods_without_constraints() -> None:
    """A hard default refuses; a pod's own constraints replace the defaults."""
    cluster = two_zones()
    cluster.set_object(SERVICE)
    defaults = (TopologySpreadConstraint(maxSkew=1, topologyKey=ZONE, whenUnsatisfiable="DoNotSchedule"),)
    plugin = plugin_for(cluster, defaultConstraints=defaults, defaultingType="List")
    assert refusals(plugin, cluster, web("new")) == {"a1": SKEWED}
    assert refusals(plugin, cluster, web("new", constraint(skew=3))) == {}


def test_changes_count_terminating_pods_and_pods_of_an_empty_selector() -> None:
    """As in kube-scheduler: the count of the cluster leaves them out, a change in thought does not."""
    leaving = web("leaving", on="b1", terminating=True)
    cluster = cluster_of(node("a1", zone="a"), node("b1", zone="b"), leaving, web("p1", on="a1"))
    plugin = plugin_for(cluster)
    info = PodInfo(web("new", constraint(skew=2)))
    state = plugin.pre_filter(info)
    assert state is not SKIP
    row = cluster.nodes.row_of["b1"]
    after = plugin.with_changes(state, info, [Change(PodInfo(leaving), row, added=False)])
    assert refusals_for(plugin, cluster, after, info) == {"a1": SKEWED}

    info = PodInfo(web("new", constraint(labelSelector={})))
    state = plugin.pre_filter(info)
    assert state is not SKIP
    after = plugin.with_changes(state, info, [Change(PodInfo(web("x")), row, added=True)])
    assert refusals_for(plugin, cluster, after, info) == {"b1": SKEWED}


def test_the_state_is_the_same_if_nobody_who_moves_is_counted() -> None:
    """That nothing has changed can be told without looking closer; pods that come and go are a change nevertheless."""
    cluster = two_zones()
    plugin, info = plugin_for(cluster), PodInfo(web("new", constraint()))
    state = plugin.pre_filter(info)
    assert state is not SKIP
    assert plugin.with_changes(state, info, [Change(PodInfo(pod("other")), 0, added=False)]) is state
    moved = [Change(PodInfo(web("p")), row, added=added) for row, added in ((0, False), (0, True))]
    assert plugin.with_changes(state, info, moved) is not state


def test_a_what_if_is_judged_by_the_domains_of_the_cluster() -> None:
    """One copied row gets the verdict that its domain has in the whole cluster."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    info = PodInfo(web("new", constraint()))
    view = what_if(cluster.nodes, [cluster.nodes.row_of["b1"], cluster.nodes.row_of["a1"]])
    answer = plugin.filter_rows(plugin.pre_filter(info), info, view, slice(0, 2))  # type: ignore[arg-type]
    assert answer is not None
    assert [bool(kind) for kind in answer.kinds] == [False, True]
