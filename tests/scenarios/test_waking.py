"""What happens in the cluster wakes the pods it may help, and no others."""

from collections.abc import Callable

from msgspec.structs import replace

from kubestow.api.node import Node
from kubestow.testing import SchedulerHarness, make_node, make_pod

Start = Callable[..., SchedulerHarness]

WISHES = {
    "wants-zone-b": {"node_selector": {"topology.kubernetes.io/zone": "b"}},
    "wants-a-gpu": {"resources": {"example.com/gpu": 1}},
    "wants-much-cpu": {"cpu": "8"},
    "wants-an-ssd": {"node_selector": {"disk": "ssd"}},
    "wants-port-80": {"host_ports": [80]},
}


def crowd(start: Start) -> SchedulerHarness:
    """A pod for each wish, none of which can be met, and one pod that runs."""
    harness = start()
    harness.cluster.add(make_node("n1", zone="a"))
    harness.cluster.add(make_pod("web", host_ports=[80], node="n1", labels={"app": "web"}))
    harness.run_until_idle()
    for name, wish in WISHES.items():
        harness.cluster.add(make_pod(name, **wish))  # type: ignore[arg-type]
    harness.run_until_idle()
    assert harness.core.queue.lengths()["unschedulable"] == len(WISHES)
    return harness


def woken(harness: SchedulerHarness) -> list[str]:
    """Who was tried again because of what has just happened."""
    before = len(harness.attempts.decisions)
    harness.run_until_idle()
    return sorted(key.removeprefix("default/") for key, _ in harness.attempts.decisions[before:])


def test_a_new_node_wakes_those_it_could_hold(start: Start) -> None:
    """A small one without labels concerns whoever only lacked a free port; one in zone b whoever wants that zone."""
    harness = crowd(start)
    harness.cluster.add(make_node("n2", zone="c", cpu="2"))
    assert woken(harness) == ["wants-port-80"]
    harness.cluster.add(make_node("n3", zone="b", cpu="2"))
    assert woken(harness) == ["wants-zone-b"]
    assert harness.bindings == {"default/wants-port-80": "n2", "default/wants-zone-b": "n3"}


def test_a_node_that_grows_wakes_those_that_were_too_large(start: Start) -> None:
    """More CPU helps whoever lacked CPU; a GPU whoever lacked that."""
    harness = crowd(start)
    grown(harness, "n1", cpu="16")
    assert woken(harness) == ["wants-much-cpu"]
    grown(harness, "n1", **{"example.com/gpu": 2})
    assert woken(harness) == ["wants-a-gpu"]


def test_a_lost_taint_wakes_those_it_kept_away(start: Start) -> None:
    """A node that matched all along becomes usable."""
    harness = crowd(start)
    node = harness.cluster.add(make_node("n2", labels={"disk": "ssd"}, taints=["broken:NoSchedule"], cpu="1"))
    harness.run_until_idle()
    assert harness.place_of("wants-an-ssd") == "unschedulable"
    harness.cluster.update(replace(node, spec=replace(node.spec, taints=())))
    assert "wants-an-ssd" in woken(harness)
    assert harness.cluster.node_of("wants-an-ssd") == "n2"


def test_a_pod_that_goes_wakes_those_who_lacked_something_that_pods_take(start: Start) -> None:
    """A port or resources; not those who look for labels."""
    harness = crowd(start)
    harness.cluster.delete(harness.cluster.pod("web"), 0)
    assert woken(harness) == ["wants-a-gpu", "wants-much-cpu", "wants-port-80"]
    assert harness.cluster.node_of("wants-port-80") == "n1"


def test_what_changes_nothing_wakes_nobody(start: Start) -> None:
    """A heartbeat, a label of a running pod, an annotation, a pod of another scheduler."""
    harness = crowd(start)
    node = harness.cluster.node("n1")
    harness.cluster.update(replace(node, metadata=replace(node.metadata, annotations={"seen": "now"})))
    web = harness.cluster.pod("web")
    harness.cluster.update(replace(web, metadata=replace(web.metadata, labels={"app": "site"})))
    harness.cluster.add(make_pod("foreign", scheduler="somebody-else"))
    assert woken(harness) == []


def grown(harness: SchedulerHarness, name: str, **more: str | int) -> None:
    node: Node = harness.cluster.node(name)
    allocatable = node.status.allocatable | more
    harness.cluster.update(replace(node, status=replace(node.status, allocatable=allocatable)))
