"""Events of the cluster requeue the pods that they may help, and no others."""

from msgspec.structs import replace

from kubestow.api.node import Node
from kubestow.testing import SchedulerHarness, make_node, make_pod
from support.scenarios.start import Start

WISHES = {
    "wants-zone-b": {"node_selector": {"topology.kubernetes.io/zone": "b"}},
    "wants-a-gpu": {"resources": {"example.com/gpu": 1}},
    "wants-much-cpu": {"cpu": "8"},
    "wants-an-ssd": {"node_selector": {"disk": "ssd"}},
    "wants-port-80": {"host_ports": [80]},
}


def crowd(start: Start) -> SchedulerHarness:
    """Start a scheduler with a pod for each unfulfilled requirement, and one pod that runs."""
    harness = start()
    harness.cluster.add(make_node("n1", zone="a"))
    harness.cluster.add(make_pod("web", host_ports=[80], node="n1", labels={"app": "web"}))
    harness.run_until_idle()
    for name, wish in WISHES.items():
        harness.cluster.add(make_pod(name, **wish))  # type: ignore[arg-type]
    harness.run_until_idle()
    assert harness.core.queue.lengths()["unschedulable"] == len(WISHES)
    return harness


def retried(harness: SchedulerHarness) -> list[str]:
    """Return the pods that were retried because of the last event."""
    before = len(harness.attempts.decisions)
    harness.run_until_idle()
    return sorted(key.removeprefix("default/") for key, _ in harness.attempts.decisions[before:])


def test_a_new_node_requeues_pods_that_it_may_hold(start: Start) -> None:
    """A small one without labels helps pods that lack a port; one in zone b helps pods that require that zone."""
    harness = crowd(start)
    harness.cluster.add(make_node("n2", zone="c", cpu="2"))
    assert retried(harness) == ["wants-port-80"]
    harness.cluster.add(make_node("n3", zone="b", cpu="2"))
    assert retried(harness) == ["wants-zone-b"]
    assert harness.bindings == {"default/wants-port-80": "n2", "default/wants-zone-b": "n3"}


def test_a_larger_node_requeues_pods_that_were_too_large(start: Start) -> None:
    """More CPU helps pods that lack CPU; a GPU those that lack a GPU."""
    harness = crowd(start)
    grown(harness, "n1", cpu="16")
    assert retried(harness) == ["wants-much-cpu"]
    grown(harness, "n1", **{"example.com/gpu": 2})
    assert retried(harness) == ["wants-a-gpu"]


def test_a_removed_taint_requeues_pods_that_do_not_tolerate_it(start: Start) -> None:
    """A node that matches otherwise becomes feasible."""
    harness = crowd(start)
    node = harness.cluster.add(make_node("n2", labels={"disk": "ssd"}, taints=["broken:NoSchedule"], cpu="1"))
    harness.run_until_idle()
    assert harness.place_of("wants-an-ssd") == "unschedulable"
    harness.cluster.update(replace(node, spec=replace(node.spec, taints=())))
    assert "wants-an-ssd" in retried(harness)
    assert harness.cluster.node_of("wants-an-ssd") == "n2"


def test_a_deleted_pod_requeues_pods_that_lack_ports_or_resources(start: Start) -> None:
    """Pods that require labels are not requeued."""
    harness = crowd(start)
    harness.cluster.delete(harness.cluster.pod("web"), 0)
    assert retried(harness) == ["wants-a-gpu", "wants-much-cpu", "wants-port-80"]
    assert harness.cluster.node_of("wants-port-80") == "n1"


def test_irrelevant_changes_requeue_no_pod(start: Start) -> None:
    """These are a heartbeat, a label of a running pod, an annotation, a pod of another scheduler."""
    harness = crowd(start)
    node = harness.cluster.node("n1")
    harness.cluster.update(replace(node, metadata=replace(node.metadata, annotations={"seen": "now"})))
    web = harness.cluster.pod("web")
    harness.cluster.update(replace(web, metadata=replace(web.metadata, labels={"app": "site"})))
    harness.cluster.add(make_pod("foreign", scheduler="somebody-else"))
    assert retried(harness) == []


def grown(harness: SchedulerHarness, name: str, **more: str | int) -> None:
    node: Node = harness.cluster.node(name)
    allocatable = node.status.allocatable | more
    harness.cluster.update(replace(node, status=replace(node.status, allocatable=allocatable)))
