"""ServiceAffinity: pods of a service use equal values of some labels and spread over those of others."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.workloads import Service
from kubestow.config.plugin_args import ServiceAffinityArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.plugin import Change
from kubestow.scheduler.framework.results import SKIP, unschedulable
from kubestow.scheduler.plugins.legacy.service_affinity import ServiceAffinity
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected, scores

REJECTED = unschedulable("node(s) didn't match service affinity")
WEB = {"app": "web"}
NODES = [
    make_node("a1", labels={"rack": "a", "disk": "ssd"}),
    make_node("a2", labels={"rack": "a"}),
    make_node("b1", labels={"rack": "b", "disk": "ssd"}),
    make_node("bare"),
]


def service(name: str = "web", **selector: str) -> Service:
    manifest = {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector or WEB}}
    return convert(Service, manifest)


def cluster_with_service(*pods: Pod, serving: bool = True) -> Cluster:
    cluster = cluster_of(*NODES, *pods)
    if serving:
        cluster.set_object(service())
    return cluster


def rejections(cluster: Cluster, pod: Pod, *labels: str) -> list[str]:
    found = rejected(make(ServiceAffinity, ServiceAffinityArgs(labels), cluster), cluster, pod)
    assert set(found.values()) <= {REJECTED}
    return sorted(found)


@pytest.mark.parametrize(
    ("labels", "rejecting"),
    [(("rack",), ["b1", "bare"]), (("disk",), ["a2", "bare"]), (("rack", "disk"), ["a2", "b1", "bare"])],
)
def test_a_pod_follows_its_service(labels: tuple[str, ...], rejecting: list[str]) -> None:
    """Nodes must have the label values of the node with an existing pod of the service."""
    assert (
        rejections(cluster_with_service(make_pod("first", node="a1", labels=WEB)), make_pod("p", labels=WEB), *labels)
        == rejecting
    )


def test_a_label_that_the_other_node_lacks_is_free() -> None:
    """A label that the node lacks has no required value."""
    assert (
        rejections(cluster_with_service(make_pod("first", node="a2", labels=WEB)), make_pod("p", labels=WEB), "disk")
        == []
    )


def test_the_node_selector_takes_precedence() -> None:
    """Its labels are required independently of other pods; the other labels follow the service."""
    cluster = cluster_with_service(make_pod("first", node="a1", labels=WEB))
    pod = make_pod("p", labels=WEB, node_selector={"rack": "b", "x": "y"})
    assert rejections(cluster, pod, "rack") == ["a1", "a2", "bare"]
    assert rejections(cluster, pod, "rack", "disk") == ["a1", "a2", "bare"]


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [make_pod("first", node="a1", labels={"app": "other"})],
        [make_pod("first", node="a1", labels=WEB, namespace="other")],
    ],
)
def test_without_other_pods_every_node_passes(pods: list[Pod]) -> None:
    """Pods that lack a label of this one, or are in another namespace, do not count."""
    assert rejections(cluster_with_service(*pods), make_pod("p", labels=WEB), "rack") == []


def test_without_a_service_every_node_passes() -> None:
    """Pods with the same labels do not suffice."""
    cluster = cluster_with_service(make_pod("first", node="a1", labels=WEB), serving=False)
    assert rejections(cluster, make_pod("p", labels=WEB), "rack") == []


def test_the_first_pod_in_node_order_is_followed() -> None:
    """The order of creation does not matter."""
    cluster = cluster_with_service(make_pod("late", node="b1", labels=WEB), make_pod("early", node="a1", labels=WEB))
    assert rejections(cluster, make_pod("p", labels=WEB), "rack") == ["b1", "bare"]


def test_filter_is_skipped_without_labels() -> None:
    """PreFilter skips it."""
    assert (
        make(ServiceAffinity, ServiceAffinityArgs(), cluster_with_service()).pre_filter(PodInfo(make_pod("p"))) is SKIP
    )


def test_changes_are_followed() -> None:
    """A removed pod is no longer followed; an added pod is followed after the existing ones."""
    first = make_pod("first", node="a1", labels=WEB)
    cluster = cluster_with_service(first, make_pod("second", node="b1", labels=WEB))
    plugin, pod = make(ServiceAffinity, ServiceAffinityArgs(("rack",)), cluster), PodInfo(make_pod("p", labels=WEB))
    rows = cluster.nodes.row_of
    state = plugin.pre_filter(pod)
    assert state.wanted == {"rack": "a"}
    gone = [Change(PodInfo(first), rows["a1"], added=False)]
    assert plugin.with_changes(state, pod, gone).wanted == {"rack": "b"}
    second = Change(PodInfo(make_pod("second", node="b1", labels=WEB)), rows["b1"], added=False)
    without_pods = plugin.with_changes(state, pod, [*gone, second])
    assert without_pods.wanted == {}
    third = Change(PodInfo(make_pod("third", labels=WEB)), rows["a2"], added=True)
    assert plugin.with_changes(without_pods, pod, [third]).wanted == {"rack": "a"}
    assert plugin.with_changes(state, pod, [third]).wanted == {"rack": "a"}
    back = third._replace(added=False)
    assert plugin.with_changes(plugin.with_changes(without_pods, pod, [third]), pod, [back]).wanted == {}
    stranger = Change(PodInfo(make_pod("x", labels={"app": "other"})), rows["a1"], added=False)
    assert plugin.with_changes(state, pod, [stranger]) is state
    assert plugin.counted_rows(state, pod).tolist() == [True, False, True, False]


def prefers(cluster: Cluster, pod: Pod, *labels: str) -> list[int]:
    plugin = make(ServiceAffinity, ServiceAffinityArgs(antiAffinityLabelsPreference=labels), cluster)
    return list((scores(plugin, cluster, pod) or {}).values())


THREE = [
    make_pod("1", node="a1", labels=WEB),
    make_pod("2", node="a2", labels=WEB),
    make_pod("3", node="b1", labels=WEB),
]


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (("rack",), [33, 33, 66, 0]),
        (("disk",), [33, 0, 33, 0]),
        (("rack", "disk"), [33, 16, 49, 0]),
        ((), [0, 0, 0, 0]),
    ],
)
def test_pods_of_a_service_spread(labels: tuple[str, ...], wanted: list[int]) -> None:
    """The score is the fraction of the service's pods elsewhere, averaged over the labels of the node."""
    assert prefers(cluster_with_service(*THREE), make_pod("p", labels=WEB), *labels) == wanted


def test_pods_that_do_not_count_for_spreading() -> None:
    """Pods of other services and namespaces, and terminating ones; nodes without the label score 0."""
    leaving = convert(
        Pod,
        {
            "metadata": {"name": "l", "uid": "l", "namespace": "default", "labels": WEB, "deletionTimestamp": "2024"},
            "spec": {"nodeName": "a1"},
        },
    )
    others = [make_pod("o", node="a1", labels={"app": "o"}), make_pod("n", node="a1", labels=WEB, namespace="n")]
    assert prefers(cluster_with_service(leaving, *others), make_pod("p", labels=WEB), "rack") == [100, 100, 100, 0]
    assert prefers(cluster_with_service(*THREE), make_pod("p"), "rack") == [100, 100, 100, 0]


def labelled(**labels: str) -> Node:
    return make_node("n", labels=labels)


@pytest.mark.parametrize(
    ("old", "new", "worth"),
    [
        (None, labelled(), True),
        (labelled(), labelled(rack="a"), True),
        (labelled(rack="a"), labelled(rack="b"), True),
        (labelled(), labelled(disk="ssd"), False),
        (None, make_pod("o", node="a1", labels=WEB), True),
        (make_pod("o", node="a1", labels=WEB), None, True),
        (None, make_pod("o", node="a1", labels={"app": "o"}), False),
        (make_pod("o", node="a1", labels=WEB), make_pod("o", node="a1"), True),
        (make_pod("p"), make_pod("p", labels=WEB), True),
    ],
)
def test_events_that_requeue(old: Any, new: Any, worth: bool) -> None:
    """New nodes and label values; pods that are or were followed; and the pod itself."""
    plugin = make(ServiceAffinity, ServiceAffinityArgs(("rack",)), cluster_with_service())
    assert hint(plugin, make_pod("p", labels=WEB), old, new) is worth
