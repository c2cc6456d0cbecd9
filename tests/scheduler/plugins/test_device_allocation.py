"""Allocations of claims: order, taints, partitions, shares, node selectors and configuration."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.node import Node, NodeSelector
from kubestow.config.features import Features
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.testing import make_node
from support.plugins.device_allocation import cluster_of, got, names
from support.plugins.device_world import (
    DRIVER,
    allocated,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    either,
    exactly,
    gpus,
    option,
    taint_rule,
)
from support.plugins.plugin_calls import rejected


def test_pools_slices_and_devices_are_tried_in_order() -> None:
    """Pools are ordered by driver and name, slices by name, devices by position."""
    slices = [
        device_slice("n", [device("b"), device("a")], pool="z"),
        device_slice("n", [device("x")], pool="a", name="2", slices=2),
        device_slice("n", [device("y")], pool="a", name="1", slices=2),
        device_slice("n", [device("w")], pool="zz", driver="a.example.com"),
    ]
    assert names(got(*slices, claim("c", exactly(5)))) == ["zz/w", "a/y", "a/x", "z/b", "z/a"]


def test_claims_and_requests_are_tried_in_order_with_backtracking() -> None:
    """Devices taken first are released if the remaining requests cannot be satisfied otherwise."""
    picky = f"device.attributes['{DRIVER}'].model == 'a'"
    offered = device_slice("n", [device("d0", model="a"), device("d1", model="b")])
    requested = claim("c", exactly(1, name="any"), exactly(1, picky, name="picky"))
    assert names(got(offered, requested)) == ["n/d1", "n/d0"]
    assert names(got(offered, claim("c"), claim("d", exactly(1, picky)), claims=("c", "d"))) == ["n/d1", "n/d0"]


@pytest.mark.parametrize(
    ("slices", "found"),
    [
        ([device_slice("n", gpus(1), name="1", slices=2)], []),
        (
            [
                device_slice("n", gpus(1), name="1", slices=2),
                device_slice("n", [device("late")], name="2", slices=2),
            ],
            ["n/gpu-0"],
        ),
        (
            [device_slice("n", gpus(1), name="1"), device_slice("n", [device("new")], name="2", generation=2)],
            ["n/new"],
        ),
        (
            [
                device_slice("n", gpus(1), pool="p", name="1", slices=2),
                device_slice("other", gpus(1), pool="p", name="2", generation=2, slices=2),
            ],
            [],
        ),
        (
            [
                device_slice("n", gpus(1), pool="p", name="1", slices=2),
                device_slice("other", gpus(1), pool="p", name="2", slices=2),
            ],
            ["p/gpu-0"],
        ),
        ([device_slice("n", [device("twice"), device("twice")])], []),
    ],
    ids=["incomplete", "complete", "newer", "obsolete", "with other nodes' slices", "contradictory"],
)
def test_only_usable_pools_offer_devices(slices: list[Any], found: list[str]) -> None:
    """Only complete pools of the newest generation offer devices."""
    assert names(got(*slices, claim("c"))) == found


ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}
IN_ZONE = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}
ELSEWHERE = {"nodeSelectorTerms": [{"matchExpressions": [{**ZONE, "values": ["elsewhere"]}]}]}
ON_N = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}


@pytest.mark.parametrize(
    ("spec", "devices", "selector"),
    [
        ({"nodeName": "n"}, gpus(1), ON_N),
        ({"allNodes": True}, gpus(1), None),
        ({"nodeSelector": IN_ZONE}, gpus(1), IN_ZONE),
        ({"perDeviceNodeSelection": True}, [device("d", nodeSelector=IN_ZONE)], IN_ZONE),
        ({"perDeviceNodeSelection": True}, [device("e", nodeName="m"), device("d", nodeName="n")], ON_N),
        ({"allNodes": True}, gpus(1, bindsToNode=True), ON_N),
    ],
)
def test_node_selector_of_an_allocation(spec: dict[str, Any], devices: list[Any], selector: Any) -> None:
    """The node selector is the intersection over all allocated devices."""
    found = got(device_slice(devices=devices, pool="p", **spec), claim("c"))
    assert len(found) == 1
    assert found[0].nodeSelector == (None if selector is None else convert(NodeSelector, selector))


@pytest.mark.parametrize(
    "spec",
    [{"nodeName": "m"}, {"nodeSelector": ELSEWHERE}, {"perDeviceNodeSelection": True}, {}],
)
def test_devices_of_other_nodes_are_ignored(spec: dict[str, Any]) -> None:
    """A slice for other nodes offers nothing."""
    assert got(device_slice(devices=gpus(1), pool="p", **spec), claim("c")) == []


def test_per_device_selection_requires_its_gate() -> None:
    """Without the gate, a slice with per-device node selection is ignored."""
    offered = device_slice(devices=[device("d", nodeName="n")], pool="p", perDeviceNodeSelection=True)
    assert got(offered, claim("c"), features=Features(dra_partitionable_devices=False)) == []


def test_allocation_mode_all() -> None:
    """All matching devices are allocated; no match, or one device in use, makes the node infeasible."""
    offered = device_slice("n", gpus(3))
    assert names(got(offered, claim("c", exactly(0)))) == ["n/gpu-0", "n/gpu-1", "n/gpu-2"]
    assert got(offered, claim("c", exactly(0, "false"))) == []
    assert got(offered, allocated("other", "n", "gpu-1"), claim("c", exactly(0))) == []


def test_options_that_exceed_the_claim_limit_are_skipped() -> None:
    """An option that needs fewer devices is used instead."""
    offered = device_slice("n", gpus(40))
    requested = either(option("many", 32), option("few", 1), name="b")
    found = got(offered, claim("c", exactly(1, name="a"), requested))
    assert [of.request for of in found[0].devices.results] == ["a", "b/few"]
    assert got(offered, claim("c", exactly(1, name="a"), either(option("many", 32), name="b"))) == []


def test_admin_access_ignores_usage() -> None:
    """Admin access gets devices in use, and does not block them for others."""
    offered, used = device_slice("n", gpus(1)), allocated("used", "n", "gpu-0")
    found = got(offered, used, claim("c", exactly(adminAccess=True)))
    assert names(found) == ["n/gpu-0"]
    assert found[0].devices.results[0].adminAccess is True
    cluster, plugin = cluster_of(offered, claim("c", exactly(adminAccess=True)), claim("d"))
    for name in ("c", "d"):
        pod = PodInfo(claiming(name, name))
        assert rejected(plugin, cluster, pod.pod) == {}
        plugin.reserve(plugin.pre_filter(pod), pod, "n")  # type: ignore[arg-type]


# Taints


@pytest.mark.parametrize(
    ("taint", "toleration", "allowed"),
    [
        ("k:NoSchedule", None, False),
        ("k:NoExecute", None, False),
        ("k:None", None, True),
        ("k:NoSchedule", {"operator": "Exists"}, True),
        ("k:NoSchedule", {"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ("k:NoSchedule", {"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ("k:NoSchedule", {"key": "other", "operator": "Exists"}, False),
        ("k:NoSchedule", {"key": "k", "operator": "Equal", "value": ""}, True),
        ("k:NoSchedule", {"key": "k", "operator": "Equal", "value": "v"}, False),
        ("k:NoSchedule", {"key": "k", "operator": "Sometimes"}, False),
    ],
)
def test_device_taints(taint: str, toleration: dict[str, str] | None, allowed: bool) -> None:
    """A tainted device is allocated only to requests that tolerate the taint; the result has the toleration."""
    requested = exactly(tolerations=[toleration]) if toleration else exactly()
    found = got(device_slice("n", gpus(1, taints=[taint])), claim("c", requested))
    assert bool(found) is allowed
    if allowed and toleration:
        assert found[0].devices.results[0].tolerations[0].operator == toleration["operator"]


def test_taint_rules() -> None:
    """A rule taints the devices that it selects for as long as the rule exists."""
    cluster, plugin = cluster_of(device_slice("n", gpus(2)), claim("c", exactly(2)))
    pod = claiming("p", "c")
    assert rejected(plugin, cluster, pod) == {}
    rule = taint_rule("r", "k:NoSchedule", driver=DRIVER, pool="n", device="gpu-1")
    cluster.set_object(rule)
    assert "n" in rejected(plugin, cluster, pod)
    cluster.remove_object(rule)
    assert rejected(plugin, cluster, pod) == {}


def test_a_taint_rule_without_a_selector_taints_all_devices() -> None:
    """kube-scheduler treats a missing selector like an empty one."""
    offered, rule = device_slice("n", gpus(2)), taint_rule("r", "k:NoSchedule")
    assert got(offered, rule, claim("c")) == []
    tolerant = claim("c", exactly(tolerations=[{"key": "k", "operator": "Exists"}]))
    assert names(got(offered, rule, tolerant)) == ["n/gpu-0"]


def test_taint_rules_distinguish_equal_devices() -> None:
    """A rule for the devices of one node does not apply to equal devices of another."""
    slices = [device_slice(node, gpus(2)) for node in ("n", "m")]
    cluster, plugin = cluster_of(*slices, claim("c", exactly(2)))
    cluster.set_node(make_node("m"))
    pod, rule = claiming("p", "c"), taint_rule("r", "k:NoSchedule", driver=DRIVER, pool="n")
    cluster.set_object(rule)
    assert rejected(plugin, cluster, pod).keys() == {"n"}
    cluster.remove_object(rule)
    assert rejected(plugin, cluster, pod) == {}


def test_equal_devices_of_two_pools() -> None:
    """Two pools with equal devices on one node offer both."""
    slices = [device_slice("n", gpus(2), pool=pool) for pool in ("a", "b")]
    assert names(got(*slices, claim("c", exactly(3)))) == ["a/gpu-0", "a/gpu-1", "b/gpu-0"]


# Partitions


def partitions(*sizes: int) -> list[dict[str, Any]]:
    return [
        device(f"p{number}", consumesCounters=[{"counterSet": "gpu", "counters": {"units": {"value": str(size)}}}])
        for number, size in enumerate(sizes)
    ]


COUNTERS: dict[str, Any] = {"sharedCounters": [{"name": "gpu", "counters": {"units": {"value": "4"}}}]}


def test_partitions_share_counters() -> None:
    """The counters that one partition consumes are missing for the others, on any node."""
    offered = device_slice("n", partitions(4, 2, 2), pool="p", name="b", slices=2)
    counters = device_slice("elsewhere", pool="p", name="a", slices=2, **COUNTERS)
    assert names(got(offered, counters, claim("c", exactly(2)))) == ["p/p1", "p/p2"]
    assert got(offered, counters, claim("c", exactly(3))) == []
    assert got(offered, claim("c")) == []
    off = Features(dra_partitionable_devices=False)
    assert got(device_slice("n", partitions(1)), claim("c"), features=off) == []
    mixed = device_slice("n", [*partitions(1), device("whole")], pool="p", name="b", slices=2)
    assert names(got(mixed, counters, claim("c"), features=off)) == ["p/whole"]


@pytest.mark.parametrize("spec", [{}, {"nodeName": "other"}, {"nodeSelector": ELSEWHERE}])
def test_a_pool_concerns_the_nodes_of_its_slices_only(spec: dict[str, Any]) -> None:
    """Counters for other nodes do not add an incomplete or invalid pool to this one."""
    half = device_slice(pool="half", slices=2, **COUNTERS, **spec)
    twice = device_slice(pool="twice", sharedCounters=COUNTERS["sharedCounters"] * 2, **spec)
    assert names(got(device_slice("n", gpus(2)), half, twice, claim("c", exactly(0)))) == ["n/gpu-0", "n/gpu-1"]
    here = device_slice(pool="here", slices=2, allNodes=True, **COUNTERS)
    assert got(device_slice("n", gpus(2)), here, claim("c", exactly(0))) == []


def test_admin_access_needs_counters() -> None:
    """Admin access to a partition in use consumes its counters again."""
    counters = device_slice("n", pool="n", name="a", slices=2, **COUNTERS)
    admin = claim("c", exactly(adminAccess=True))
    for size, found in ((2, ["n/p0"]), (3, [])):
        offered = device_slice("n", partitions(size), pool="n", name="b", slices=2)
        assert names(got(offered, counters, allocated("used", "n", "p0"), admin)) == found


def test_unknown_or_duplicate_counters_invalidate_a_pool() -> None:
    """A missing counter set makes the pool invalid, and so does a duplicate one."""
    offered = device_slice("n", partitions(1), pool="p", name="b", slices=2)
    assert got(offered, device_slice("n", pool="p", name="a", slices=2, sharedCounters=[]), claim("c")) == []
    twice: dict[str, Any] = {"sharedCounters": COUNTERS["sharedCounters"] * 2}
    assert got(offered, device_slice("n", pool="p", name="a", slices=2, **twice), claim("c")) == []


GROUPS = Features(dra_device_compatibility_groups=True)


def grouped(*devices: str, first: int = 0) -> list[dict[str, Any]]:
    """Return devices that consume one unit each and have compatibility groups, one per letter."""
    consumed: dict[str, Any] = {"counterSet": "gpu", "counters": {"units": {"value": "1"}}}
    return [
        device(f"d{number}", consumesCounters=[{**consumed, "compatibilityGroups": list(groups)}])
        for number, groups in enumerate(devices, first)
    ]


def grouped_pool(*devices: str, elsewhere: str = "a") -> list[Any]:
    """Return the slices of pool `n`, which another node uses, too."""
    other = device_slice("m", grouped(elsewhere, first=9), pool="n", name="c", slices=3)
    counters = device_slice(pool="n", name="a", slices=3, allNodes=True, **COUNTERS)
    return [device_slice("n", grouped(*devices), name="b", slices=3), other, counters]


@pytest.mark.parametrize(
    ("devices", "count", "found"),
    [
        (["a", "b", "a"], 2, ["n/d0", "n/d2"]),
        (["ab", "bc", "ca"], 3, []),
        (["ab", "bc", "b"], 3, ["n/d0", "n/d1", "n/d2"]),
        (["", "a", ""], 2, ["n/d0", "n/d2"]),
        (["", "a"], 2, []),
        (["ab", "ac", "b", "c"], 2, ["n/d0", "n/d1"]),
        (["ab", "ac", "b", "ab"], 3, ["n/d0", "n/d1", "n/d3"]),
    ],
)
def test_devices_of_a_counter_set_share_a_compatibility_group(devices: list[str], count: int, found: list[str]) -> None:
    """All devices share one group, or none has any."""
    assert names(got(*grouped_pool(*devices), claim("c", exactly(count)), features=GROUPS)) == found


def test_allocated_devices_restrict_the_compatibility_groups() -> None:
    """A device must share a group with those that are allocated, on this node or another."""
    slices = grouped_pool("a", "b", "ab", "a", elsewhere="b")
    assert names(got(*slices, allocated("x", "n", "d3"), claim("c", exactly(2)), features=GROUPS)) == ["n/d0", "n/d2"]
    assert names(got(*slices, allocated("x", "n", "d9"), claim("c", exactly(2)), features=GROUPS)) == ["n/d1", "n/d2"]
    both = allocated("x", "n", "d2"), allocated("y", "n", "d9")
    assert names(got(*slices, *both, claim("c"), features=GROUPS)) == ["n/d1"]
    assert got(*slices, *both, claim("c", exactly(2)), features=GROUPS) == []


def test_without_the_gate_slices_with_compatibility_groups_are_ignored() -> None:
    """The pool is not complete without them, so that nothing is allocated from it."""
    assert got(*grouped_pool("a"), claim("c")) == []
    assert got(*grouped_pool("", elsewhere="a"), claim("c")) == []
    assert names(got(*grouped_pool("", elsewhere=""), claim("c"))) == ["n/d0"]
    alone = device_slice("n", grouped("a"), pool="alone")
    assert names(got(alone, device_slice("n", gpus(1)), claim("c", exactly(0)))) == ["n/gpu-0"]


# Operations on nodes

SKIPPING = Features(dra_optional_node_operations=True, generic_workload=True)


def skipping_node() -> Node:
    """Return node `n`, whose kubelet can skip operations."""
    node = make_node("n")
    return replace(node, status=replace(node.status, declaredFeatures=("DRAOptionalNodeOperations",)))


def test_devices_may_require_that_the_node_skips_operations() -> None:
    """With the gate, they are allocated on nodes that declare the feature, and the result names the operations."""
    offered = device_slice("n", gpus(1), skipNodeOperations=["*"])
    assert got(offered, claim("c"), features=SKIPPING) == []
    cluster, plugin = cluster_of(offered, claim("c"), features=SKIPPING)
    assert "n" in rejected(plugin, cluster, claiming("p", "c"))
    cluster.set_node(skipping_node())
    pod = PodInfo(claiming("p", "c"))
    assert rejected(plugin, cluster, pod.pod) == {}
    state: Any = plugin.pre_filter(pod)
    plugin.reserve(state, pod, "n")
    assert state.allocations[0].devices.results[0].skipNodeOperations == ("*",)


@pytest.mark.parametrize("features", [Features(), Features(dra_list_type_attributes=True)])
def test_without_the_gate_skipped_operations_depend_on_the_allocator(features: Features) -> None:
    """Only the allocator for alpha features knows of them, and leaves out such devices."""
    offered = device_slice("n", gpus(1), skipNodeOperations=["*"])
    found = got(offered, claim("c"), features=features)
    assert names(found) == ([] if features.dra_list_type_attributes else ["n/gpu-0"])
    assert all(not of.devices.results[0].skipNodeOperations for of in found)


def test_an_allocation_that_skips_operations_needs_a_node_that_can() -> None:
    """Whatever the gates are; otherwise the claim is deallocated."""
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": "gpu-0", "skipNodeOperations": ["*"]}
    skipping = claim("c", status={"allocation": {"devices": {"results": [result]}}})
    cluster, plugin = cluster_of(device_slice("n", gpus(1)), skipping)
    assert rejected(plugin, cluster, claiming("p", "c"))["n"].message == "resourceclaim not available on the node"
    cluster.set_node(skipping_node())
    assert rejected(plugin, cluster, claiming("p", "c")) == {}


def test_a_pod_of_a_group_needs_a_node_that_can_skip_what_another_pod_was_given() -> None:
    """The pending allocation of a shared claim restricts the other pods of the group."""
    offered = device_slice(pool="p", devices=gpus(1), allNodes=True, skipNodeOperations=["*"])
    cluster, plugin = cluster_of(offered, claim("c"), features=SKIPPING)
    cluster.set_node(skipping_node())
    cluster.set_node(make_node("m"))
    first, second = (PodInfo(claiming(name, "c", group="g")) for name in "ab")
    plugin.reserve(plugin.pre_filter(first), first, "n")  # type: ignore[arg-type]
    answer = rejected(plugin, cluster, second.pod)
    problem = "allocation requires DRAOptionalNodeOperations feature on the node"
    assert {node: of.message for node, of in answer.items()} == {"m": f"resource claim default/c {problem}"}


# Shares


def shared(name: str, value: str = "10Gi", **policy: Any) -> dict[str, Any]:
    capacity = {"memory": {"value": value, **({"requestPolicy": policy} if policy else {})}}
    return device(name, allowMultipleAllocations=True, capacity=capacity)


def sized(amount: str | None, name: str = "r") -> dict[str, Any]:
    fields: dict[str, Any] = {"capacity": {"requests": {"memory": amount}}} if amount else {}
    return exactly(name=name, **fields)


RANGE = {"min": "2Gi", "max": "8Gi", "step": "2Gi"}


@pytest.mark.parametrize(
    ("policy", "requested", "consumed"),
    [
        ({}, None, "10Gi"),
        ({}, "3Gi", "3Gi"),
        ({}, "11Gi", None),
        ({"default": "1Gi"}, None, "1Gi"),
        ({"default": "2Gi", "validRange": RANGE}, "1Gi", "2Gi"),
        ({"default": "2Gi", "validRange": RANGE}, "3Gi", "4Gi"),
        ({"default": "2Gi", "validRange": RANGE}, "4Gi", "4Gi"),
        ({"default": "2Gi", "validRange": RANGE}, "9Gi", None),
        ({"default": "2Gi", "validRange": {"min": "2Gi"}}, "3Gi", "3Gi"),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "2Gi", "4Gi"),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "5Gi", None),
        ({"validRange": {"min": "2k", "step": "2k"}}, "3k", "4k"),
        ({"validRange": {"min": "976", "step": "1Ki"}}, "1500", "2000"),
        ({"validRange": {"min": "1Ki", "step": "1k"}}, "1025", "2024"),
        ({"validRange": {"min": "500m", "step": "250m"}}, "600m", "1"),
    ],
)
def test_capacity_consumed_by_a_share(policy: dict[str, Any], requested: str | None, consumed: str | None) -> None:
    """The requested amount is rounded up by the policy; invalid amounts are not allocated."""
    found = got(device_slice("n", [shared("d", **policy)]), claim("c", sized(requested)))
    if consumed is None:
        assert found == []
    else:
        result = found[0].devices.results[0]
        assert result.consumedCapacity == {"memory": consumed}
        assert result.shareID is not None
        assert len(result.shareID) == 36


def test_shares_are_limited_by_capacity() -> None:
    """A device has shares while capacity is left; each share has its own ID."""
    offered = device_slice("n", [shared("d")])
    found = got(offered, claim("c", sized("4Gi", "a"), sized("6Gi", "b")))
    assert names(found) == ["n/d", "n/d"]
    assert len({of.shareID for of in found[0].devices.results}) == 2
    assert got(offered, claim("c", sized("4Gi", "a"), sized("7Gi", "b"))) == []
    assert got(offered, claim("c", exactly(capacity={"requests": {"cores": "1"}}))) == []


@pytest.mark.parametrize(
    ("requested", "consumed"),
    [("100m", "500m"), ("600m", "750m"), ("900m", "1"), ("1900m", "2"), ("2100m", None), ("2500m", None)],
)
def test_fractional_ranges(requested: str, consumed: str | None) -> None:
    """With their gate, steps are counted in thousandths."""
    fraction = {"min": "500m", "step": "250m", "max": "2"}
    offered = device_slice("n", [shared("d", validRange=fraction)])
    found = got(offered, claim("c", sized(requested)), features=Features(dra_fractional_capacity_range=True))
    assert [of.devices.results[0].consumedCapacity for of in found] == ([{"memory": consumed}] if consumed else [])


UNFIT = "capacity request cannot be represented in the device's range arithmetic"


@pytest.mark.parametrize(
    ("devices", "requested", "fractional", "problem"),
    [
        ([shared("d", validRange={"min": "1", "step": "1"})], "10E", False, f"{UNFIT}: request 10E exceeds MaxInt64"),
        (
            [shared("d", validRange={"min": "1", "step": "9E"})],
            "9000000000000000002",
            False,
            f"{UNFIT}: rounding request 9000000000000000002 up to the next step passes MaxInt64",
        ),
        (
            [shared("d", validRange={"min": "500m", "step": "1m"})],
            "500001u",
            True,
            f"{UNFIT}: request 500001u is not a representable milli value",
        ),
        (
            [shared("d", validRange={"min": "1", "step": "9P"})],
            "9000000000000002",
            True,
            f"{UNFIT}: rounding request 9000000000000002 up to the next step passes the milli-value range",
        ),
        ([shared("d", default="-1Gi")], None, False, "capacity value is negative"),
        ([device("d", memory="-1Gi")], None, False, "capacity value is negative"),
        ([device("fits", memory="1Gi"), device("d", memory="-1Gi")], "1Gi", False, None),
    ],
)
@pytest.mark.parametrize("count", [1, 0], ids=["one", "all"])
def test_capacity_that_cannot_be_computed_is_an_error(
    devices: list[Any], requested: str | None, fractional: bool, problem: str | None, count: int
) -> None:
    """The device is not skipped. With mode All, the message names the device without its pool."""
    wanted = sized(requested)["exactly"]
    requested_count = {} if count else {"allocationMode": "All"}
    objects = device_slice("n", devices), claim("c", {"name": "r", "exactly": {**wanted, **requested_count}})
    cluster, plugin = cluster_of(*objects, features=Features(dra_fractional_capacity_range=fractional))
    answer = rejected(plugin, cluster, claiming("p", "c"))
    if problem is None:
        assert not answer
        return
    where = f"claim default/c, request r: checking capacity for device {f'{DRIVER}/n/d' if count else 'd'}"
    assert answer["n"].message == f'running "DynamicResources" filter plugin: {where}: capacity "memory": {problem}'


def test_all_devices_are_needed_even_if_their_capacity_is_in_use() -> None:
    """A device whose remaining capacity does not suffice makes mode All fail; one that is too small is left out."""
    small = device_slice("n", [shared("d0"), shared("d1", "1Gi")])
    everything = claim("c", exactly(0, capacity={"requests": {"memory": "4Gi"}}))
    assert names(got(small, everything)) == ["n/d0"]
    used = claim("used", status=sharing("d1", "8Gi"))
    offered = device_slice("n", [shared("d0"), shared("d1")])
    assert names(got(offered, everything)) == ["n/d0", "n/d1"]
    assert got(offered, used, everything) == []


def test_counters_of_a_share_without_capacity_are_charged_once() -> None:
    """A share counts as use of the device even if it consumes no capacity."""
    consumed = [{"counterSet": "gpu", "counters": {"units": {"value": "3"}}}]
    offered = device_slice(
        "n", [device("d", allowMultipleAllocations=True, consumesCounters=consumed)], name="b", slices=2
    )
    counters = device_slice("n", name="a", slices=2, **COUNTERS)
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": "d", "shareID": "s"}
    used = claim("used", status={"allocation": {"devices": {"results": [result]}}})
    assert names(got(offered, counters, used, claim("c", exactly(name="a"), exactly(name="b")))) == ["n/d", "n/d"]


def sharing(device: str, amount: str) -> dict[str, Any]:
    """Return the status of a claim with a share of a device."""
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": device}
    share = {"shareID": "s", "consumedCapacity": {"memory": amount}}
    return {"allocation": {"devices": {"results": [{**result, **share}]}}}


def test_shares_depend_on_remaining_capacity() -> None:
    """Devices of one kind are not equal if shares of them are in use."""
    offered = device_slice("n", [shared("d0"), shared("d1")])
    used = claim("used", status=sharing("d1", "1Gi"))
    found = got(offered, used, claim("c", sized("1Gi", "a"), sized("10Gi", "b")))
    assert names(found) == ["n/d1", "n/d0"]


def test_shares_of_a_device_that_is_no_longer_shared() -> None:
    """The device is not allocated as a whole while a share is in use."""
    cluster, plugin = cluster_of(device_slice("n", [device("d", memory="10Gi")]), claim("c"))
    assert not rejected(plugin, cluster, claiming("p", "c"))
    cluster.set_object(claim("used", status=sharing("d", "1Gi")))
    assert rejected(plugin, cluster, claiming("p", "c"))
    cluster.set_object(claim("used"))
    assert not rejected(plugin, cluster, claiming("p", "c"))


# Configuration


def opaque(word: str) -> dict[str, Any]:
    return {"opaque": {"driver": DRIVER, "parameters": {"say": word}}}


def test_configuration_of_an_allocation() -> None:
    """That of each class comes once, then that of the claim; requests are empty if it is for all of them."""
    configured = device_class("gpu", config=[opaque("class")])
    config = [
        opaque("all"),
        {"requests": ["a"], **opaque("a alone")},
        {"requests": ["b/x"], **opaque("not chosen")},
        {"requests": ["b/y"], **opaque("chosen")},
        {"requests": ["a", "b/x"], **opaque("one of two")},
        {"requests": ["b/y", "a"], **opaque("each")},
        {"requests": ["a", "b"], **opaque("both")},
    ]
    requested = [exactly(name="a"), either(option("x", 9), option("y"), name="b")]
    found = got(configured, device_slice("n", gpus(2)), claim("c", *requested, config=config))
    configuration = [
        (of.source, of.requests, bytes(of.opaque.parameters)) for of in found[0].devices.config if of.opaque
    ]
    assert configuration == [
        ("FromClass", (), b'{"say":"class"}'),
        ("FromClaim", (), b'{"say":"all"}'),
        ("FromClaim", ("a",), b'{"say":"a alone"}'),
        ("FromClaim", ("b/y",), b'{"say":"chosen"}'),
        ("FromClaim", ("a", "b/x"), b'{"say":"one of two"}'),
        ("FromClaim", (), b'{"say":"each"}'),
        ("FromClaim", (), b'{"say":"both"}'),
    ]


def test_configuration_of_a_class_for_some_requests() -> None:
    """The requests of the class are listed, and those of another class are not."""
    classes = device_class("gpu", config=[opaque("class")]), device_class("plain")
    requested = [exactly(name="a"), exactly(name="b", of="plain"), either(option("x"), name="c")]
    found = got(*classes, device_slice("n", gpus(3)), claim("c", *requested))
    assert [(of.source, of.requests) for of in found[0].devices.config] == [("FromClass", ("a", "c/x"))]
