"""Plugins that activate waiting pods themselves."""

from typing import Any

from kubestow.scheduler.cluster.events import Registration
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plain import NodeRow
from kubestow.testing import make_node, make_pod
from support.scenarios.start import Start


class Leader:
    """Rejects followers until their leader has a node, and then activates them; it has no other events."""

    name = "Leader"

    def __init__(self, args: Any, handle: Handle) -> None:
        self._handle = handle
        self._led = False
        self._followers: dict[str, PodInfo] = {}

    def requeue_on(self) -> list[Registration]:
        return []

    def filter(self, state: Any, pod: PodInfo, node: NodeRow) -> str | None:
        if self._led or pod.name == "leader":
            return None
        self._followers[pod.uid] = pod
        return "the leader has no place yet"

    def reserve(self, state: Any, pod: PodInfo, node: str) -> None:
        if pod.name == "leader":
            self._led = True
            self._handle.activate([follower.pod for follower in self._followers.values()])

    def unreserve(self, state: Any, pod: PodInfo, node: str) -> None:
        self._led = self._led and pod.name != "leader"


def test_activated_pods_are_tried_at_once(start: Start) -> None:
    """Neither their backoff nor the hints of the plugins that rejected them matter."""
    harness = start(plugins=[Leader])
    harness.cluster.add(make_node("n1"))
    for number in range(3):
        harness.cluster.add(make_pod(f"f{number}"))
    harness.run_for(10.0)
    assert [harness.place_of(f"f{number}") for number in range(3)] == ["unschedulable"] * 3
    harness.cluster.add(make_pod("leader"))
    harness.run_until_idle()
    assert list(harness.bindings) == ["default/leader", "default/f0", "default/f1", "default/f2"]
    assert harness.time == 10.0


def test_activation_of_deleted_and_bound_pods_is_ignored(start: Start) -> None:
    """A plugin may activate pods that it has stored before."""
    harness = start(plugins=[Leader])
    harness.cluster.add(make_node("n1"))
    gone = harness.cluster.add(make_pod("f0"))
    harness.run_for(1.0)
    harness.cluster.delete(gone)
    harness.cluster.add(make_pod("leader"))
    harness.run_until_idle()
    assert harness.bindings == {"default/leader": "n1"}
    harness.cluster.delete(harness.cluster.pod("leader"), 0)
    harness.cluster.add(make_pod("f0"))
    harness.cluster.add(make_pod("leader"))
    harness.run_until_idle()
    assert len(harness.cluster.bindings) == 3
