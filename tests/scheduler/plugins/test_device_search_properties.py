"""Random pools, claims, taints, partitions and shares: allocations are valid, and found if they exist."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from kubestow.api.devices import AllocationResult
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import Code
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.dynamic_resources import DynamicResources
from kubestow.testing import make_node
from support.plugins.device_world import DRIVER, claim, claiming, device, device_class, device_slice, exactly
from support.plugins.plugin_calls import rejected

Manifest = dict[str, Any]

COUNTERS = 3
"""How many units the only counter of the pool has."""
MEMORY = 4
MODEL_A = f"device.attributes['{DRIVER}'].model == 'a'"

attributes = st.fixed_dictionaries({"model": st.sampled_from("ab")}, optional={"numa": st.integers(0, 1)})


@st.composite
def devices(draw: st.DrawFn) -> list[Manifest]:
    found = []
    for number in range(draw(st.integers(1, 5))):
        fields: Manifest = dict(draw(attributes))
        fields["taints"] = draw(st.sampled_from([(), (), ("worn:NoSchedule",), ("hot:NoExecute",), ("odd:None",)]))
        if draw(st.booleans()):
            consumed = {"units": {"value": str(draw(st.integers(1, COUNTERS)))}}
            fields["consumesCounters"] = [{"counterSet": "set", "counters": consumed}]
        if draw(st.integers(0, 3)) == 0:
            fields |= {"allowMultipleAllocations": True, "memory": f"{MEMORY}Gi"}
        found.append(device(f"d{number}", **fields))
    return found


@st.composite
def requests(draw: st.DrawFn, name: str) -> Manifest:
    fields: Manifest = {}
    if draw(st.booleans()):
        fields["tolerations"] = [{"operator": "Exists", "effect": draw(st.sampled_from(["", "NoSchedule"]))}]
    if draw(st.integers(0, 3)) == 0:
        fields["capacity"] = {"requests": {"memory": f"{draw(st.integers(1, 3))}Gi"}}
    selectors = draw(st.sampled_from([(), (MODEL_A,)]))
    return exactly(draw(st.integers(1, 2)), *selectors, name=name, **fields)


@st.composite
def claims(draw: st.DrawFn, name: str) -> Manifest:
    found: Manifest = {"name": name, "requests": [draw(requests(f"r{n}")) for n in range(draw(st.integers(1, 2)))]}
    kind = draw(st.sampled_from([None, "matchAttribute", "distinctAttribute"]))
    if kind is not None:
        found["constraints"] = [{"requests": draw(st.sampled_from([[], ["r0"]])), kind: f"{DRIVER}/numa"}]
    return found


class Taken(NamedTuple):
    """A device, or a share of it, for a request of a claim."""

    claim: str
    request: Manifest
    device: Manifest


def cluster_with_counters(offered: Sequence[Manifest]) -> tuple[Cluster, DynamicResources]:
    cluster = Cluster()
    cluster.set_node(make_node("n"))
    cluster.set_object(device_class())
    counters: Manifest = {"sharedCounters": [{"name": "set", "counters": {"units": {"value": str(COUNTERS)}}}]}
    cluster.set_object(device_slice("n", name="a", slices=2, **counters))
    cluster.set_object(device_slice("n", offered, name="b", slices=2))
    return cluster, DynamicResources(DynamicResourcesArgs(), offline_handle(cluster))


def allocate(
    cluster: Cluster, plugin: DynamicResources, wanted: Sequence[Manifest]
) -> dict[str, AllocationResult] | None:
    """Return the allocations for the claims of one pod, reserved and stored; None if there are none."""
    for manifest in wanted:
        cluster.set_object(claim(manifest["name"], *manifest["requests"], constraints=manifest.get("constraints", [])))
    names = [manifest["name"] for manifest in wanted]
    pod = claiming(f"pod-of-{names[0]}", *names)
    answer = rejected(plugin, cluster, pod)
    if answer:
        assert answer["n"].code is Code.UNRESOLVABLE
        return None
    state = plugin.pre_filter(PodInfo(pod))
    plugin.reserve(state, PodInfo(pod), "n")  # type: ignore[arg-type]
    return {names[number]: got for number, got in state.allocations.items()}  # type: ignore[union-attr]


def is_allowed(taken: Sequence[Taken], constraints: Mapping[str, Sequence[Manifest]]) -> bool:
    """Return whether the API allows these allocations; `constraints` are those of each claim."""
    whole = [of.device["name"] for of in taken if not of.device.get("allowMultipleAllocations")]
    if len(whole) != len(set(whole)):
        return False
    if not all(_suits(of.request["exactly"], of.device) for of in taken):
        return False
    used = {of.device["name"]: of.device for of in taken if "consumesCounters" in of.device}
    units = sum(int(of["consumesCounters"][0]["counters"]["units"]["value"]) for of in used.values())
    if units > COUNTERS:
        return False
    memory: dict[str, int] = {}
    for of in taken:
        if of.device.get("allowMultipleAllocations"):
            memory[of.device["name"]] = memory.get(of.device["name"], 0) + _memory(of.request["exactly"])
    if any(amount > MEMORY for amount in memory.values()):
        return False
    return all(_constrained(of, constraint, taken) for of, many in constraints.items() for constraint in many)


def _memory(request: Manifest) -> int:
    return int(request["capacity"]["requests"]["memory"][0]) if "capacity" in request else MEMORY


def _suits(request: Manifest, offered: Manifest) -> bool:
    if request["selectors"] and offered["attributes"]["model"] != {"string": "a"}:
        return False
    if "capacity" in request and "capacity" not in offered:
        return False
    for taint in offered["taints"]:
        tolerated = any(of["effect"] in ("", taint["effect"]) for of in request.get("tolerations", ()))
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerated:
            return False
    return True


def _constrained(name: str, constraint: Manifest, taken: Sequence[Taken]) -> bool:
    concerned = [
        of.device["attributes"].get("numa", {}).get("int")
        for of in taken
        if of.claim == name and (not constraint["requests"] or of.request["name"] in constraint["requests"])
    ]
    if None in concerned:
        return False
    return len(set(concerned)) <= 1 if "matchAttribute" in constraint else len(set(concerned)) == len(concerned)


def every_way(offered: Sequence[Manifest], wanted: Sequence[Manifest]) -> Iterator[list[Taken]]:
    requested = [(manifest["name"], request) for manifest in wanted for request in manifest["requests"]]
    choices = [combinations(offered, request["exactly"]["count"]) for _, request in requested]
    for chosen in product(*choices):
        yield [
            Taken(name, request, one) for (name, request), many in zip(requested, chosen, strict=True) for one in many
        ]


def as_taken(
    got: Mapping[str, AllocationResult], offered: Sequence[Manifest], wanted: Sequence[Manifest]
) -> list[Taken]:
    by_name = {one["name"]: one for one in offered}
    requests = {(of["name"], request["name"]): request for of in wanted for request in of["requests"]}
    return [
        Taken(name, requests[name, result.request], by_name[result.device])
        for name, allocation in got.items()
        for result in allocation.devices.results
    ]


@settings(max_examples=400, deadline=None)
@given(offered=devices(), wanted=st.lists(st.integers(0, 1), min_size=1, max_size=2), data=st.data())
def test_an_allocation_is_found_if_one_exists(offered: list[Manifest], wanted: list[int], data: st.DataObject) -> None:
    """Either the claims of a pod get valid allocations, or no valid allocation exists."""
    requested = [data.draw(claims(f"c{number}")) for number in range(len(wanted))]
    constraints = {manifest["name"]: manifest.get("constraints", []) for manifest in requested}
    got = allocate(*cluster_with_counters(offered), requested)
    if got is None:
        assert not any(is_allowed(way, constraints) for way in every_way(offered, requested))
        return
    taken = as_taken(got, offered, requested)
    assert is_allowed(taken, constraints)
    wanted_counts = {(of["name"], r["name"]): r["exactly"]["count"] for of in requested for r in of["requests"]}
    counts: dict[tuple[str, str], int] = {}
    for of in taken:
        counts[of.claim, of.request["name"]] = counts.get((of.claim, of.request["name"]), 0) + 1
    assert counts == wanted_counts


@settings(max_examples=150, deadline=None)
@given(offered=devices(), data=st.data())
def test_no_device_is_allocated_twice(offered: list[Manifest], data: st.DataObject) -> None:
    """The allocations of successive pods are valid together; released devices can be allocated again."""
    cluster, plugin = cluster_with_counters(offered)
    held: dict[str, list[Taken]] = {}
    constraints: dict[str, list[Manifest]] = {}
    for number in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()) and held:
            gone = data.draw(st.sampled_from(sorted(held)))
            del held[gone]
            cluster.devices.remove_pending(f"uid-{gone}")
            continue
        requested = [data.draw(claims(f"c{number}"))]
        got = allocate(cluster, plugin, requested)
        now = [taken for many in held.values() for taken in many]
        constraints[f"c{number}"] = requested[0].get("constraints", [])
        if got is None:
            ways = every_way(offered, requested)
            assert not any(is_allowed([*now, *way], constraints) for way in ways)
            continue
        held[f"c{number}"] = as_taken(got, offered, requested)
        assert is_allowed([*now, *held[f"c{number}"]], constraints)
