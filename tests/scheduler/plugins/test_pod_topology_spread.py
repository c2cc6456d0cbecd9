"""PodTopologySpread: rejections by hard constraints, scores by soft ones, and default constraints."""

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
from support.plugins.selectors import HOSTNAME, ZONE, app, cluster_of, node, pod, rejections, rejections_for, scores

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
    """Return zone a with one node and two web pods; zone b with one empty node."""
    return cluster_of(node("a1", zone="a"), node("b1", zone="b"), web("p1", on="a1"), web("p2", on="a1"))


def test_a_domain_with_too_much_skew_is_rejected() -> None:
    """With two pods in a and none in b, a third pod in a would make the skew three."""
    cluster = two_zones()
    assert rejections(plugin_for(cluster), cluster, web("new", constraint())) == {"a1": SKEWED}
    assert rejections(plugin_for(cluster), cluster, web("new", constraint(skew=3))) == {}


def test_a_pod_outside_its_own_selector_does_not_count() -> None:
    """The pod adds nothing to the skew if its labels do not match."""
    cluster = two_zones()
    stranger = pod("new", {"app": "other"}, topologySpreadConstraints=[constraint(skew=2)])
    assert rejections(plugin_for(cluster), cluster, stranger) == {}
    assert rejections(plugin_for(cluster), cluster, web("new", constraint(skew=2))) == {"a1": SKEWED}


def test_a_node_without_the_topology_label_is_unresolvable() -> None:
    """Preemption does not add a label."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"))
    assert rejections(plugin_for(cluster), cluster, web("new", constraint())) == {"nowhere": UNLABELLED}


def test_the_first_constraint_determines_the_reason() -> None:
    """A node that violates one constraint and lacks the label of another gets the reason of the first."""
    cluster = cluster_of(node("a1", zone="a"), node("a2", zone="a", hostname=None), *[web("p", on="a1")])
    by_zone_first = web("new", constraint(skew=1, minDomains=2), constraint(HOSTNAME))
    by_host_first = web("new", constraint(HOSTNAME), constraint(skew=1, minDomains=2))
    assert rejections(plugin_for(cluster), cluster, by_zone_first)["a2"] == SKEWED
    assert rejections(plugin_for(cluster), cluster, by_host_first)["a2"] == UNLABELLED


def test_fewer_than_min_domains_set_the_minimum_to_zero() -> None:
    """With minDomains 3 and two zones, one pod in each zone is a skew of one."""
    cluster = cluster_of(node("a1", zone="a"), node("b1", zone="b"), web("p1", on="a1"), web("p2", on="b1"))
    assert rejections(plugin_for(cluster), cluster, web("new", constraint(minDomains=2))) == {}
    assert rejections(plugin_for(cluster), cluster, web("new", constraint(minDomains=3))) == {
        "a1": SKEWED,
        "b1": SKEWED,
    }


@pytest.mark.parametrize(("policy", "rejected"), [("Honor", {}), ("Ignore", {"a1": SKEWED})])
def test_excluded_nodes_count_only_if_affinity_is_ignored(policy: str, rejected: dict[str, str]) -> None:
    """The node selector excludes the empty zone b: with Honor it is not a domain."""
    cluster = cluster_of(
        node("a1", zone="a", labels={"disk": "ssd"}), node("b1", zone="b"), web("p1", on="a1"), web("p2", on="a1")
    )
    waiting = web("new", constraint(nodeAffinityPolicy=policy), nodeSelector={"disk": "ssd"})
    assert rejections(plugin_for(cluster), cluster, waiting) == rejected


def test_a_node_without_the_label_is_no_domain() -> None:
    """Neither if all nodes count, nor if a node selector excludes some."""
    ssd = {"disk": "ssd"}
    cluster = cluster_of(node("a1", zone="a", labels=ssd), node("nowhere", labels=ssd), web("p1", on="a1"))
    assert rejections(plugin_for(cluster), cluster, web("new", constraint())) == {"nowhere": UNLABELLED}
    cluster.set_node(node("b1", zone="b"))
    waiting = web("new", constraint(), nodeSelector=ssd)
    assert rejections(plugin_for(cluster), cluster, waiting) == {"nowhere": UNLABELLED}


@pytest.mark.parametrize(("policy", "rejected"), [("Honor", {}), ("Ignore", {"a1": SKEWED})])
def test_tainted_nodes_count_only_if_taints_are_ignored(policy: str, rejected: dict[str, str]) -> None:
    """The empty zone b is tainted: with Honor it is not a domain."""
    tainted = node("b1", zone="b", taints=[{"key": "dedicated", "effect": "NoExecute"}])
    cluster = cluster_of(node("a1", zone="a"), tainted, web("p1", on="a1"), web("p2", on="a1"))
    assert rejections(plugin_for(cluster), cluster, web("new", constraint(nodeTaintsPolicy=policy))) == rejected
    tolerating = web("new", constraint(nodeTaintsPolicy=policy), tolerations=[{"operator": "Exists"}])
    assert rejections(plugin_for(cluster), cluster, tolerating) == {"a1": SKEWED}


def test_match_label_keys_narrow_the_selector() -> None:
    """Pods of another revision do not count, unless the gate is off."""
    old = pod("old", {"app": "web", "revision": "1"}, on="a1")
    cluster = cluster_of(node("a1", zone="a"), node("b1", zone="b"), old)
    waiting = pod(
        "new", {"app": "web", "revision": "2"}, topologySpreadConstraints=[constraint(matchLabelKeys=["revision"])]
    )
    assert rejections(plugin_for(cluster), cluster, waiting) == {}
    without = Features.parse(
        "MatchLabelKeysInPodTopologySpread=false,MatchLabelKeysInPodTopologySpreadSelectorMerge=false"
    )
    assert rejections(plugin_for(cluster, without), cluster, waiting) == {"a1": SKEWED}


def test_filter_and_score_are_skipped_without_constraints() -> None:
    """Each is skipped separately."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    assert plugin.pre_filter(PodInfo(web("plain"))) is SKIP
    assert plugin.pre_filter(PodInfo(web("soft", constraint(action="ScheduleAnyway")))) is SKIP
    assert scores(plugin, cluster, web("hard", constraint())) is None


def test_soft_constraints_prefer_domains_with_fewer_pods() -> None:
    """Two pods in a, weighted by the number of zones: ln(4) each, rounded; b has the highest score."""
    cluster = two_zones()
    assert scores(plugin_for(cluster), cluster, web("new", constraint(action="ScheduleAnyway"))) == {
        "a1": (3, 0),
        "b1": (0, 100),
    }


def test_a_node_without_the_label_of_a_soft_constraint_scores_zero() -> None:
    """It is also ignored by normalization."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"))
    found = scores(plugin_for(cluster), cluster, web("new", constraint(action="ScheduleAnyway")))
    assert found == {"a1": (0, 100), "nowhere": (0, 0)}


def test_equal_scores_of_zero_are_normalized_to_the_maximum() -> None:
    """Without pods to count, every node gets the maximum."""
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
def test_system_defaults_use_selectors_of_services_and_controllers(known: Any, owner: dict[str, str] | None) -> None:
    """They are soft constraints over hostnames (skew 3) and zones (skew 5)."""
    cluster = two_zones()
    cluster.set_object(known)
    waiting = web("new") if owner is None else web("new", owner=owner)
    found = scores(plugin_for(cluster), cluster, waiting)
    # Two pods at ln(2 + 2) each, for the hostname and for the zone, and the skews less one.
    assert found == {"a1": (12, 50), "b1": (6, 100)}


def test_without_service_or_controller_there_are_no_defaults() -> None:
    """An unknown owner, or one of another kind, selects nothing."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    assert scores(plugin, cluster, web("new")) is None
    assert scores(plugin, cluster, web("new", owner={"apiVersion": "batch/v1", "kind": "Job", "name": "owner"})) is None
    unknown = web("new", owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner"})
    assert scores(plugin, cluster, unknown) is None


def test_defaults_follow_changes_of_services() -> None:
    """The selector is computed again when a service changes."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    assert scores(plugin, cluster, web("new")) is None
    cluster.set_object(SERVICE)
    assert scores(plugin, cluster, web("new")) is not None
    cluster.remove_object(SERVICE)
    assert scores(plugin, cluster, web("new")) is None


def test_system_defaults_score_nodes_without_a_zone() -> None:
    """Such a node is scored by its hostname, and the missing zone counts as one more zone."""
    cluster = cluster_of(node("a1", zone="a"), node("nowhere"), web("p1", on="nowhere"), SERVICE)
    # Hostnames: one pod at ln(2 + 2), plus 2; zones: no pod in a, plus 4, and nothing for the node without a zone.
    assert scores(plugin_for(cluster), cluster, web("new")) == {"a1": (6, 50), "nowhere": (3, 100)}


def test_listed_defaults_apply_to_pods_without_constraints() -> None:
    """A hard default rejects nodes; a pod's own constraints replace the defaults."""
    cluster = two_zones()
    cluster.set_object(SERVICE)
    defaults = (TopologySpreadConstraint(maxSkew=1, topologyKey=ZONE, whenUnsatisfiable="DoNotSchedule"),)
    plugin = plugin_for(cluster, defaultConstraints=defaults, defaultingType="List")
    assert rejections(plugin, cluster, web("new")) == {"a1": SKEWED}
    assert rejections(plugin, cluster, web("new", constraint(skew=3))) == {}


def test_changes_count_terminating_pods_and_pods_of_an_empty_selector() -> None:
    """As in kube-scheduler, `with_changes` counts pods that PreFilter ignores."""
    leaving = web("leaving", on="b1", terminating=True)
    cluster = cluster_of(node("a1", zone="a"), node("b1", zone="b"), leaving, web("p1", on="a1"))
    plugin = plugin_for(cluster)
    info = PodInfo(web("new", constraint(skew=2)))
    state = plugin.pre_filter(info)
    assert state is not SKIP
    row = cluster.nodes.row_of["b1"]
    after = plugin.with_changes(state, info, [Change(PodInfo(leaving), row, added=False)])
    assert rejections_for(plugin, cluster, after, info) == {"a1": SKEWED}

    info = PodInfo(web("new", constraint(labelSelector={})))
    state = plugin.pre_filter(info)
    assert state is not SKIP
    after = plugin.with_changes(state, info, [Change(PodInfo(web("x")), row, added=True)])
    assert rejections_for(plugin, cluster, after, info) == {"b1": SKEWED}


def test_changes_of_uncounted_pods_keep_the_state() -> None:
    """The same object is returned; added and removed pods that are counted create a new one."""
    cluster = two_zones()
    plugin, info = plugin_for(cluster), PodInfo(web("new", constraint()))
    state = plugin.pre_filter(info)
    assert state is not SKIP
    assert plugin.with_changes(state, info, [Change(PodInfo(pod("other")), 0, added=False)]) is state
    moved = [Change(PodInfo(web("p")), row, added=added) for row, added in ((0, False), (0, True))]
    assert plugin.with_changes(state, info, moved) is not state


def test_what_if_views_use_the_domains_of_the_cluster() -> None:
    """A copied row gets the verdict of its domain in the whole cluster."""
    cluster = two_zones()
    plugin = plugin_for(cluster)
    info = PodInfo(web("new", constraint()))
    view = what_if(cluster.nodes, [cluster.nodes.row_of["b1"], cluster.nodes.row_of["a1"]])
    answer = plugin.filter_rows(plugin.pre_filter(info), info, view, slice(0, 2))  # type: ignore[arg-type]
    assert answer is not None
    assert [bool(kind) for kind in answer.kinds] == [False, True]
