"""Pod groups with custom plugins, extenders and devices."""

from collections.abc import Sequence

import numpy as np
import pytest

from kubestow.api.devices import ResourceClaim
from kubestow.plugin import Handle, PlacedPods, Placement, PodInfo, TriedGroup, Wait
from kubestow.testing import make_node, make_pod_group
from support.plugins.device_world import claim, claiming, device_class, device_slice, exactly, gpus
from support.scenarios.extending import HEAD, FakeExtenders, only
from support.scenarios.gangs import add_gang, add_nodes, bound, condition, features, message
from support.scenarios.start import Start


class LastRack:
    """Prefers the placement whose name is last, and reads the nodes of the pods."""

    name = "LastRack"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> list[int]:
        assert all(len(set(placed.nodes)) <= len(placed.pods) for placed in candidates)
        last = max(placed.placement.name for placed in candidates)
        return [100 if placed.placement.name == last else 0 for placed in candidates]


class OneNode:
    """Places a group on a single node."""

    name = "OneNode"

    def __init__(self, args: object, handle: Handle) -> None:
        self._nodes = handle.cluster.nodes

    def generate_placements(self, group: TriedGroup, within: Placement) -> list[Placement]:
        return [Placement(self._nodes.names[row], np.array([row])) for row in within.rows.tolist()]


class Nowhere:
    """Returns a placement without existing nodes."""

    name = "Nowhere"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def generate_placements(self, group: TriedGroup, within: Placement) -> list[Placement]:
        return [Placement("far away", np.array([1_000]))]


class Broken:
    """Returns invalid scores of placements."""

    name = "Broken"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def score_placements(self, group: TriedGroup, candidates: Sequence[PlacedPods]) -> list[int]:
        return [1000] * len(candidates)


class Patient:
    """Makes every pod wait for permission."""

    name = "Patient"

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle

    def permit(self, state: None, pod: PodInfo, node: str) -> Wait:
        return Wait(1.0)


class Undecided:
    """Fails to decide whether a group is feasible when some of its pods remain."""

    name = "Undecided"
    remaining = 0

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def permit(self, state: None, pod: PodInfo, node: str) -> None:
        pass

    def placement_feasible(self, group: TriedGroup, scheduled: int, remaining: int) -> None:
        if remaining == self.remaining:
            raise RuntimeError("unknown")


@pytest.mark.parametrize("pods", [2, 4])
def test_a_plugin_scores_placements(start: Start, pods: int) -> None:
    """Its scores are added to the others, whether placements are tried or counted."""
    harness = start(features=features(), plugins=[LastRack])
    add_nodes(harness, 6, racks=3)
    add_gang(harness, "a", pods, topology_key="rack")
    harness.run_until_idle()
    racks = {harness.cluster.node(name).metadata.labels["rack"] for name in bound(harness, "a")}
    assert racks == {"r2"}


def test_a_plugin_generates_placements(start: Start) -> None:
    """It replaces the built-in plugin."""
    plugins = "{disabled: [{name: TopologyPlacementGenerator}], enabled: [{name: OneNode}]}"
    harness = start(
        f"{HEAD}profiles: [{{plugins: {{multiPoint: {plugins}}}}}]\n", features=features(), plugins=[OneNode]
    )
    add_nodes(harness, 3, cpu="2")
    harness.cluster.add(make_node("large", cpu="4"))
    add_gang(harness, "a", pods=4)
    harness.run_until_idle()
    assert bound(harness, "a") == ["large"] * 4


def test_a_placement_of_nodes_that_do_not_exist(start: Start) -> None:
    """It is rejected with a message, without other effects."""
    plugins = "{disabled: [{name: TopologyPlacementGenerator}], enabled: [{name: Nowhere}]}"
    harness = start(
        f"{HEAD}profiles: [{{plugins: {{multiPoint: {plugins}}}}}]\n", features=features(), plugins=[Nowhere]
    )
    add_nodes(harness, 3)
    add_gang(harness, "a", pods=4)
    harness.run_for(0.5)
    found = condition(harness, "a")
    assert found.reason == "SchedulerError"
    assert found.message.endswith("placement 'far away' has rows that are no nodes")


def test_a_plugin_that_fails_is_named(start: Start) -> None:
    """The group waits with the message; no capacity is used."""
    harness = start(features=features(), plugins=[Broken])
    add_nodes(harness, 4, racks=2)
    add_gang(harness, "a", pods=2, topology_key="rack")
    harness.run_for(0.5)
    found = condition(harness, "a")
    assert found.reason == "SchedulerError"
    assert found.message.startswith('running PlacementScore plugins: plugin "Broken" failed with: ')
    assert message(harness, "a0") == found.message
    assert harness.core.cluster.assumed_count == 0


@pytest.mark.parametrize(("remaining", "cpu"), [(3, "9"), (1, "9"), (0, "9"), (2, "1"), (3, "1")])
def test_a_group_is_not_placed_if_a_plugin_fails_to_decide(
    start: Start, monkeypatch: pytest.MonkeyPatch, remaining: int, cpu: str
) -> None:
    """That applies before its first pod is tried, too, and if the pods that fit are only counted."""
    monkeypatch.setattr(Undecided, "remaining", remaining)
    harness = start(plugins=[Undecided], features=features())
    add_nodes(harness, 1, cpu=cpu)
    add_gang(harness, "a", pods=3)
    harness.run_for(0.5)
    assert bound(harness, "a") == []
    assert condition(harness, "a").message == (
        'failed to evaluate placement feasibility: running PlacementFeasible plugin "Undecided": unknown'
    )


def test_permission_that_another_plugin_withholds(start: Start) -> None:
    """A group whose pods must all wait for another plugin is not placed: no pod has permission."""
    harness = start(features=features(), plugins=[Patient])
    add_nodes(harness, 2)
    add_gang(harness, "a", pods=2)
    harness.run_for(5.0)
    assert bound(harness, "a") == []
    assert harness.core.cluster.assumed_count == 0


@pytest.mark.parametrize(("allowed", "fits"), [(("n0", "n1"), True), (("n0",), False)])
def test_extenders_are_called_for_every_pod(start: Start, allowed: tuple[str, ...], fits: bool) -> None:
    """A group without enough nodes of the extender is not placed."""
    extenders = FakeExtenders(a="filterVerb: filter, nodeCacheCapable: true")
    extenders.replies["a/filter"] = only(*allowed)
    extenders.delays["a/filter"] = 0.1
    harness = start(extenders.configuration, ask=extenders.ask, features=features())
    add_nodes(harness, 3, cpu="1")
    add_gang(harness, "a", pods=2)
    harness.run_for(1.0)
    assert sorted(bound(harness, "a")) == (sorted(allowed) if fits else [])
    assert harness.core.cluster.assumed_count == 0
    assert len(extenders.calls) >= 2


@pytest.mark.parametrize(("devices", "fits"), [(4, True), (3, False)])
def test_devices_are_allocated_to_all_pods_or_none(start: Start, devices: int, fits: bool) -> None:
    """A group that lacks a device allocates none."""
    harness = start(features=features())
    harness.cluster.add(device_class())
    for name, count in (("n0", 2), ("n1", devices - 2)):
        harness.cluster.add(make_node(name))
        harness.cluster.add(device_slice(name, gpus(count)))
    harness.cluster.add(make_pod_group("a", 4))
    for number in range(4):
        harness.cluster.add(claim(f"c{number}", exactly()))
        harness.cluster.add(claiming(f"a{number}", f"c{number}", group="a"))
    harness.run_for(5.0)
    allocated = [one.status.allocation is not None for one in harness.cluster.all(ResourceClaim)]
    assert len(bound(harness, "a")) == (4 if fits else 0)
    assert allocated == [fits] * 4


@pytest.mark.parametrize(("cpu", "fits"), [("4", True), ("1", False)])
def test_pods_of_a_group_share_a_claim(start: Start, cpu: str, fits: bool) -> None:
    """All are placed on the node of its devices; if not all of them fit there, nothing stays reserved."""
    harness = start(features=features())
    harness.cluster.add(device_class())
    for name in ("n0", "n1"):
        harness.cluster.add(make_node(name, cpu=cpu))
        harness.cluster.add(device_slice(name, gpus(1)))
    harness.cluster.add(claim("shared", exactly()))
    harness.cluster.add(make_pod_group("a", 3))
    for number in range(3):
        harness.cluster.add(claiming(f"a{number}", "shared", group="a", cpu="1"))
    harness.run_for(5.0)
    (shared,) = harness.cluster.all(ResourceClaim)
    assert len(bound(harness, "a")) == (3 if fits else 0)
    assert (shared.status.allocation is not None) == fits
    if fits:
        assert len(set(bound(harness, "a"))) == 1
        assert {one.name for one in shared.status.reservedFor} == {"a0", "a1", "a2"}
    assert harness.core.cluster.devices.pending(shared.metadata.uid) is None


def test_a_shared_claim_survives_a_binding_that_fails(start: Start) -> None:
    """The pod whose write failed is bound after the others, with the same devices."""
    harness = start(features=features())
    harness.cluster.add(device_class())
    harness.cluster.add(make_node("n0"))
    harness.cluster.add(device_slice("n0", gpus(1)))
    harness.cluster.add(claim("shared", exactly()))
    harness.cluster.add(make_pod_group("a", 2))
    harness.cluster.faults.fail("update_resource_claim_status", "InternalError")
    for number in range(2):
        harness.cluster.add(claiming(f"a{number}", "shared", group="a"))
    harness.run_for(60.0)
    (shared,) = harness.cluster.all(ResourceClaim)
    assert len(harness.attempts.about("a0") + harness.attempts.about("a1")) == 3
    assert bound(harness, "a") == ["n0", "n0"]
    assert {one.name for one in shared.status.reservedFor} == {"a0", "a1"}


def test_pods_of_another_group_wait_for_a_claim(start: Start) -> None:
    """Reserved devices are shared within the group only; after the write, other pods may share the claim."""
    harness = start(features=features(), latency=1.0)
    harness.cluster.add(device_class())
    harness.cluster.add(make_node("n0"))
    harness.cluster.add(device_slice("n0", gpus(1)))
    harness.cluster.add(claim("shared", exactly()))
    for group in ("a", "b"):
        harness.cluster.add(make_pod_group(group, 2))
        for number in range(2):
            harness.cluster.add(claiming(f"{group}{number}", "shared", group=group))
    harness.run_for(0.5)
    assert "is in the process of being allocated" in harness.attempts.about("b0")[0].message  # type: ignore[union-attr]
    harness.run_for(60.0)
    assert bound(harness, "a") == bound(harness, "b") == ["n0", "n0"]


def test_the_tightest_placement(start: Start) -> None:
    """The smallest sufficient rack is chosen, although the larger one would have a higher utilization."""
    enabled = "[{name: TightestPlacement, weight: 10}]"
    harness = start(f"{HEAD}profiles: [{{plugins: {{placementScore: {{enabled: {enabled}}}}}}}]\n", features=features())
    for rack, count, cpu in (("small", 2, "3"), ("large", 4, "1")):
        for number in range(count):
            harness.cluster.add(make_node(f"{rack}{number}", cpu=cpu, labels={"rack": rack}))
    add_gang(harness, "a", pods=4, topology_key="rack")
    harness.run_until_idle()
    assert {harness.cluster.node(name).metadata.labels["rack"] for name in bound(harness, "a")} == {"small"}
