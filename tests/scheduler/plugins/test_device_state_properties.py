"""After any sequence of events, the device state equals that of a cluster read from scratch."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubestow.api.devices import ResourceClaim, ResourceSlice
from kubestow.api.node import Node
from kubestow.config.plugin_args import DynamicResourcesArgs
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.results import Rejection
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.plugins.dynamic_resources import DynamicResources
from kubestow.testing import make_node
from support.plugins.device_world import DRIVER, allocated, claim, claiming, device, device_class, device_slice, exactly
from support.plugins.plugin_calls import rejected

NODES = ["n0", "n1", "n2"]
ZONES = ["a", "b"]
MODEL_A = f"device.attributes['{DRIVER}'].model == 'a'"
REQUESTED = {
    "one": claim("one"),
    "two": claim("two", exactly(2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
    "picky": claim("picky", exactly(1, MODEL_A)),
    "all": claim("all", exactly(0)),
}

names = st.sampled_from(NODES)
zones = st.sampled_from(ZONES)
models = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.booleans()), max_size=3)


def _devices(found: list[tuple[str, int, bool]], prefix: str = "d") -> list[dict[str, Any]]:
    consumed: list[Any] = [{"counterSet": "set", "counters": {"units": {"value": "1"}}}]
    return [
        device(f"{prefix}{number}", model=model, numa=numa, consumesCounters=consumed if counts else [])
        for number, (model, numa, counts) in enumerate(found)
    ]


class Cluster3(RuleBasedStateMachine):
    """Three nodes with pools of their own, and one pool that a zone shares."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[tuple[type, str], Any] = {}
        self.cluster = Cluster()
        self.plugin = DynamicResources(DynamicResourcesArgs(), offline_handle(self.cluster))
        for thing in (device_class(), *REQUESTED.values()):
            self._set(thing)

    def _set(self, thing: Any) -> None:
        self.objects[type(thing), thing.metadata.name] = thing
        (self.cluster.set_node if isinstance(thing, Node) else self.cluster.set_object)(thing)

    def _remove(self, kind: type, name: str) -> None:
        thing = self.objects.pop((kind, name), None)
        if isinstance(thing, Node):
            self.cluster.remove_node(name)
        elif thing is not None:
            self.cluster.remove_object(thing)

    @rule(name=names, zone=zones)
    def node(self, name: str, zone: str) -> None:
        self._set(make_node(name, zone=zone))

    @rule(name=names)
    def no_node(self, name: str) -> None:
        self._remove(Node, name)

    @rule(name=names, found=models, generation=st.integers(1, 2))
    def own_slice(self, name: str, found: list[tuple[str, int, bool]], generation: int) -> None:
        self._set(device_slice(name, _devices(found), name=f"own-{name}", slices=2, generation=generation))

    @rule(name=names, generation=st.integers(1, 2))
    def counters(self, name: str, generation: int) -> None:
        sets = [{"name": "set", "counters": {"units": {"value": "2"}}}]
        self._set(device_slice(name, name=f"sets-{name}", slices=2, generation=generation, sharedCounters=sets))

    @rule(zone=zones, found=models)
    def shared_slice(self, zone: str, found: list[tuple[str, int, bool]]) -> None:
        expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        plain = [(model, numa, False) for model, numa, _ in found]
        self._set(device_slice(devices=_devices(plain), pool="net", nodeSelector=selector))

    @rule(name=st.sampled_from([*(f"own-{node}" for node in NODES), "sets-n0", "slice-net"]))
    def no_slice(self, name: str) -> None:
        self._remove(ResourceSlice, name)

    @rule(number=st.integers(0, 3), pool=st.sampled_from([*NODES, "net"]), of=st.integers(0, 2))
    def allocation(self, number: int, pool: str, of: int) -> None:
        self._set(allocated(f"used{number}", pool, f"d{of}"))

    @rule(number=st.integers(0, 3))
    def deallocation(self, number: int) -> None:
        self._set(claim(f"used{number}"))

    @rule(number=st.integers(0, 3))
    def no_claim(self, number: int) -> None:
        self._remove(ResourceClaim, f"used{number}")

    @rule(expression=st.sampled_from(["true", MODEL_A]))
    def other_class(self, expression: str) -> None:
        self._set(device_class("gpu", expression))

    @rule()
    def numbers_run_out(self) -> None:
        """Reassign all numbers."""
        self.cluster.devices._max_numbers = 0

    @invariant()
    def same_as_fresh_state(self) -> None:
        """Compare the rejections of every claim with those of a fresh state."""
        fresh = Cluster()
        for thing in self.objects.values():
            (fresh.set_node if isinstance(thing, Node) else fresh.set_object)(thing)
        plugin = DynamicResources(DynamicResourcesArgs(), offline_handle(fresh))
        for name in REQUESTED:
            pod = claiming("p", name)
            found: dict[str, Rejection] = rejected(self.plugin, self.cluster, pod)
            assert found == rejected(plugin, fresh, pod)


TestDevicesHold = Cluster3.TestCase
TestDevicesHold.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
