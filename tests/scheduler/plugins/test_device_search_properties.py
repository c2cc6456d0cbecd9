"""Random slices, allocated devices and claims: the results and errors are those of a search without optimizations."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.devices import ResourceClaim, ResourceSlice
from kubestow.config.features import Features
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.dynamic_resources import DynamicResources, requests, search
from kubestow.testing import make_node
from support.plugins import plain_allocation
from support.plugins.device_world import DRIVER, claim, claiming, device_class
from support.plugins.plain_allocation import Manifest, PlainAllocation, PlainAllocationError, pools_of
from support.plugins.plugin_calls import rejected

SELECTOR = {"cel": {"expression": f"device.attributes['{DRIVER}'].x == 1"}}
ASPECTS = [
    "access",
    "all",
    "alternatives",
    "capacity",
    "conditions",
    "constraints",
    "counters",
    "elsewhere",
    "groups",
    "incomplete",
    "missing",
    "negative",
    "operations",
    "places",
    "pools",
    "selectors",
    "shares",
    "taints",
    "twice",
]


class Chooser:
    """Random choices for a few aspects of devices; all others are kept simple."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw
        self.aspects = draw(st.sets(st.sampled_from(ASPECTS), min_size=2, max_size=7))

    def of(self, *values: Any) -> Any:
        return self._draw(st.sampled_from(values))

    def some(self, aspect: str, one_in: int = 2) -> bool:
        """Return True in one of `one_in` cases with this aspect."""
        return aspect in self.aspects and bool(self._draw(st.integers(1, one_in)) == one_in)

    def device(self, name: str) -> Manifest:
        found: Manifest = {"name": name, "attributes": {of: {"int": self.of(0, 1, 1)} for of in "xy"}}
        if self.some("missing", 6):
            del found["attributes"][self.of("x", "y")]
        if not self.aspects.isdisjoint(("counters", "groups")):
            consumed: Manifest = {"counterSet": "s", "counters": {"u": {"value": str(self.of(1, 1, 2))}}}
            if self.some("groups", 2):
                consumed["compatibilityGroups"] = self.of(["g"], ["h"], ["g", "h"], ["h", "i"])
            found["consumesCounters"] = [consumed]
        if self.some("taints", 3):
            found["taints"] = [{"key": "k", "effect": self.of("NoSchedule", "NoExecute", "None")}]
        if self.some("shares"):
            found["allowMultipleAllocations"] = True
        if self.some("capacity"):
            found["capacity"] = {"memory": {"value": "-1" if self.some("negative", 4) else self.of("3", "4")}}
        if self.some("conditions", 3):
            found["bindingConditions"] = ["ready"]
        return found

    def slices(self) -> list[Manifest]:
        found: list[Manifest] = []
        has_counters = not self.aspects.isdisjoint(("counters", "groups"))
        for pool in self.of("p", "pq") if "pools" in self.aspects else "p":
            count = self.of(1, 2)
            if has_counters:
                found.append(self.slice(pool, count + 1, sharedCounters=[self.counter_set()]))
            for number in range(count):
                devices = [self.device(f"d{number}{position}") for position in range(self.of(1, 2, 3))]
                if self.some("twice", 8):
                    devices.append({**devices[0]})
                found.append(self.slice(pool, count + has_counters, devices=devices))
        return found

    def counter_set(self) -> Manifest:
        return {"name": "s", "counters": {"u": {"value": str(self.of(2, 3, 5))}}}

    def slice(self, pool: str, count: int, **fields: Any) -> Manifest:
        spec: Manifest = {"driver": DRIVER, "devices": [], "nodeName": "n", **fields}
        spec["pool"] = {"name": pool, "generation": 1, "resourceSliceCount": count + self.some("incomplete", 8)}
        if self.some("operations", 3):
            spec["skipNodeOperations"] = ["*"]
        if self.some("elsewhere", 3):
            spec["nodeName"] = "m"
        elif self.some("places", 3):
            del spec["nodeName"]
            if spec["devices"] and self.some("places"):
                spec["perDeviceNodeSelection"] = True
                spec["devices"] = [of | self.of({"nodeName": "n"}, {"nodeName": "m"}) for of in spec["devices"]]
            else:
                spec["allNodes"] = True
        return spec

    def option(self, **fields: Any) -> Manifest:
        found = {"deviceClassName": "gpu", "selectors": [], **fields}
        found |= (
            {"allocationMode": "All"} if self.some("all") else {"allocationMode": "ExactCount", "count": self.of(1, 2)}
        )
        if self.some("selectors"):
            found["selectors"] = [SELECTOR]
        if self.some("taints"):
            found["tolerations"] = [{"operator": "Exists"}]
        if self.some("capacity"):
            found["capacity"] = {"requests": {"memory": str(self.of(1, 2, 3))}}
        return found

    def claim(self, name: str) -> Manifest:
        found: Manifest = {"name": name, "requests": [], "constraints": []}
        for number in range(self.of(1, 2)):
            if self.some("alternatives"):
                alternatives = [self.option(name=f"o{option}") for option in range(self.of(1, 2))]
                found["requests"].append({"name": f"r{number}", "firstAvailable": alternatives})
            else:
                exactly = self.option(**({"adminAccess": True} if self.some("access") else {}))
                found["requests"].append({"name": f"r{number}", "exactly": exactly})
        if "constraints" in self.aspects:
            covered = self.of([], [], ["r0"], ["r1"], ["r0/o0"])
            kind = self.of("matchAttribute", "distinctAttribute")
            found["constraints"].append({"requests": covered, kind: f"{DRIVER}/{self.of('x', 'y')}"})
        return found

    def features(self) -> Features:
        return Features(
            dra_device_compatibility_groups="groups" in self.aspects,
            dra_optional_node_operations=self.some("operations"),
        )


class World:
    """Node `n`, which claims are allocated on, with the same slices and claims for both searches."""

    def __init__(self, slices: Sequence[Manifest], features: Features, *, skips: bool) -> None:
        self.features, self.skips = features, skips
        self.pools = pools_of(slices, "n", features)
        self.held: dict[str, list[Manifest]] = {}
        """The allocated devices, by claim."""
        self.cluster = Cluster(features)
        node = make_node("n")
        declared = ("DRAOptionalNodeOperations",) if skips else ()
        self.cluster.set_node(replace(node, status=replace(node.status, declaredFeatures=declared)))
        self.cluster.set_object(device_class())
        for number, spec in enumerate(slices):
            self.cluster.set_object(convert(ResourceSlice, {"metadata": {"name": f"s{number:02}"}, "spec": spec}))
        self.plugin = DynamicResources(DynamicResourcesArgs(), offline_handle(self.cluster, features))

    def hold(self, name: str, *results: Manifest) -> None:
        """Allocate devices to a claim."""
        self.held[name] = list(results)
        allocation = {"devices": {"results": [{"request": "r", **result} for result in results]}}
        self.cluster.set_object(claim(name, status={"allocation": allocation}))

    def release(self, name: str) -> None:
        del self.held[name]
        self.cluster.set_object(claim(name))

    def expected(self, wanted: Sequence[Manifest]) -> Any:
        held = [result for results in self.held.values() for result in results]
        try:
            return PlainAllocation(self.features, self.pools, held, wanted, skips=self.skips).run()
        except PlainAllocationError as failure:
            return str(failure)

    def found(self, wanted: Sequence[Manifest]) -> Any:
        """Return the requests and devices of each claim, or the error; None if there is no solution."""
        for of in wanted:
            self.cluster.set_object(_claim(of))
        pod = PodInfo(claiming("p", *[of["name"] for of in wanted]))
        answer = rejected(self.plugin, self.cluster, pod.pod)
        if answer:
            message = answer["n"].message.removeprefix('running "DynamicResources" filter plugin: ')
            message = message.partition(". consider using CEL")[0]
            return None if message == "cannot allocate all claims" else message
        state: Any = self.plugin.pre_filter(pod)
        self.plugin.reserve(state, pod, "n")
        found = []
        for number, of in enumerate(wanted):
            self.cluster.devices.remove_pending(f"uid-{of['name']}")
            results = state.allocations[number].devices.results
            found.append([(one.request, (one.driver, one.pool, one.device)) for one in results])
        return found


def _claim(wanted: Manifest) -> ResourceClaim:
    return claim(wanted["name"], *wanted["requests"], constraints=wanted["constraints"])


def result_of(offered: tuple[Manifest, Manifest], number: int) -> Manifest:
    """Return the allocation of a device of a slice, or of a share of it."""
    spec, device = offered
    found = {"driver": DRIVER, "pool": spec["pool"]["name"], "device": device["name"]}
    if "allowMultipleAllocations" in device:
        found |= {"shareID": f"share-{number}"}
        found |= {"consumedCapacity": {"memory": "1"}} if "capacity" in device else {}
    return found


@pytest.fixture(autouse=True)
def few_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the maximum number of devices of a claim, so that random claims exceed it."""
    for module in (requests, search, plain_allocation):
        monkeypatch.setattr(module, "MAX_RESULTS", 3)


@settings(max_examples=600, deadline=None)
@given(skips=st.booleans(), data=st.data())
def test_results_are_those_of_a_plain_search(skips: bool, data: st.DataObject) -> None:
    """The same devices, the same error, or no solution; also while devices are allocated and released."""
    choose = Chooser(data.draw)
    slices = choose.slices()
    world = World(slices, choose.features(), skips=skips)
    offered = [(spec, device) for spec in slices for device in spec["devices"]]
    wanted = [choose.claim(f"c{number}") for number in range(choose.of(1, 2))]
    assert world.found(wanted) == world.expected(wanted)
    for number in range(choose.of(0, 2, 4)):
        if len(world.held) > 2:
            world.release(choose.of(*sorted(world.held)))
        else:
            world.hold(f"held-{number}", result_of(choose.of(*offered), number))
        assert world.found(wanted) == world.expected(wanted)
