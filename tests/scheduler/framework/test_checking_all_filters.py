"""alwaysCheckAllPredicates: every filter is called for every node, and all rejections are reported."""

import pytest

from kubestow.config import policy
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.results import Code, Rejection
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.testing.builders import make_node, make_pod
from support.scheduler.random_clusters import configuration_of

CHECKS_ALL = "apiVersion: v1\nkind: Policy\nalwaysCheckAllPredicates: true\n"


def profile_on(cluster: Cluster, nominator: Nominator) -> Profile:
    handle = offline_handle(cluster, nominator=nominator)
    made = build_profiles(policy.load(CHECKS_ALL), in_tree_registry(), handle, lambda: 0.0)
    return made["default-scheduler"]


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for node in (
        make_node("cordoned", unschedulable=True, taints=["busy:NoSchedule"], cpu="1"),
        make_node("gone"),
        make_node("full", cpu="1"),
        make_node("tainted", taints=["busy:NoSchedule"]),
        make_node("good"),
    ):
        cluster.set_node(node)
    cluster.remove_node("gone")
    return cluster


def filtered(cluster: Cluster, nominator: Nominator | None = None) -> Evaluation:
    nominator = nominator or Nominator()
    evaluation = Evaluation(profile_on(cluster, nominator), cluster, nominator, PodInfo(make_pod("p", cpu="2")))
    assert evaluation.pre_filter()
    evaluation.filter()
    return evaluation


def refusals(evaluation: Evaluation) -> dict[str, Rejection | None]:
    verdicts, names = evaluation.verdicts, evaluation.cluster.nodes.names
    assert verdicts is not None
    return {names[row]: verdicts.rejection(position) for position, row in enumerate(verdicts.rows)}


def test_all_rejections_of_a_node_are_reported(cluster: Cluster) -> None:
    """They are one rejection with all reasons and plugins; it is unresolvable if one of them is."""
    found = refusals(filtered(cluster))
    assert found == {
        "cordoned": Rejection(
            ("node(s) were unschedulable", "Insufficient cpu", "node(s) had untolerated taint(s)"),
            Code.UNRESOLVABLE,
            "NodeUnschedulable",
            ("NodeResourcesFit", "TaintToleration"),
        ),
        "full": Rejection(("Insufficient cpu",), Code.UNRESOLVABLE, "NodeResourcesFit"),
        "tainted": Rejection(("node(s) had untolerated taint(s)",), Code.UNRESOLVABLE, "TaintToleration"),
        "good": None,
    }


def test_the_message_counts_every_reason(cluster: Cluster) -> None:
    """All plugins that rejected a node are rejecting plugins for the queue."""
    cluster.remove_node("good")
    evaluation = filtered(cluster)
    assert evaluation.message() == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, 2 node(s) had untolerated taint(s)."
    )
    assert evaluation.rejecting_plugins == {"NodeUnschedulable", "NodeResourcesFit", "TaintToleration"}


def test_nominated_pods_count(cluster: Cluster) -> None:
    """A node without enough capacity besides them is rejected for that, too."""
    nominator = Nominator()
    nominator.nominate(make_pod("first", cpu="3", priority=9, status={"nominatedNodeName": "good"}))
    nominator.nominate(make_pod("other", cpu="3", priority=9, status={"nominatedNodeName": "tainted"}))
    found = refusals(filtered(cluster, nominator))
    assert found["good"] == Rejection(("Insufficient cpu",), Code.UNSCHEDULABLE, "NodeResourcesFit")
    assert found["tainted"] is not None
    assert found["tainted"].plugins == ("NodeResourcesFit", "TaintToleration")


def test_it_is_off_by_default() -> None:
    """In other profiles, each node is rejected by one filter only."""
    assert not configuration_of("default").profiles[0].alwaysCheckAllPredicates
    assert configuration_of("checking all predicates").profiles[0].alwaysCheckAllPredicates
