"""The workloads of the benchmarks: nodes and pods of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from kubestow.api.meta import OwnerReference
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.api.workloads import ReplicaSet
from kubestow.testing.builders import make_node, make_pod, make_pod_group

ZONES = 5
RACK_LABEL = "example.com/rack"
_NODES_PER_RACK = 40
_GANG_SIZES = (8, 16, 32, 64, 128, 256, 512)
_GROUP_GATES = ",".join(f"{gate}=true" for gate in ("GenericWorkload", "TopologyAwareWorkloadScheduling"))
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_PER_FILLED_NODE = 4

Shape = dict[str, Any]
"""Arguments of make_pod."""


def node_name(number: int) -> str:
    return f"n{number:05d}"


def _node(number: int, cpu: str = "32") -> Node:
    resources = {"ephemeral-storage": "100Gi"}
    return make_node(
        node_name(number),
        cpu=cpu,
        memory="64Gi",
        resources=resources,
        zone=f"z{number % ZONES}",
        labels={RACK_LABEL: f"r{number // _NODES_PER_RACK}"},
    )


def _affinity(kind: str, strength: str, terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"affinity": {kind: {strength: terms}}}


def _term(topology_key: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}


def _spread(action: str) -> dict[str, Any]:
    constraint = _term(ZONE_LABEL, {"app": "x"}) | {"maxSkew": 5, "whenUnsatisfiable": action}
    return {"spec": {"topologySpreadConstraints": [constraint]}}


def _gangs(pods: int) -> dict[str, range]:
    """Return gangs of all sizes in turn: the numbers of their pods, by name."""
    found: dict[str, range] = {}
    start = 0
    while start < pods:
        end = min(start + _GANG_SIZES[len(found) % len(_GANG_SIZES)], pods)
        found[f"g{len(found)}"] = range(start, end)
        start = end
    return found


def _basic(_number: int) -> Shape:
    return {}


def _mixed_size(number: int) -> Shape:
    return {"cpu": f"{50 + number * 37 % 400}m", "memory": f"{64 + number * 53 % 900}Mi"}


def _affine(number: int) -> Shape:
    labels = {"app": f"g{number % 10}"}
    return {"labels": labels, "spec": _affinity("podAffinity", _REQUIRED, [_term(ZONE_LABEL, labels)])}


def _apart(_number: int) -> Shape:
    labels = {"color": "green"}
    return {"labels": labels, "spec": _affinity("podAntiAffinity", _REQUIRED, [_term(HOSTNAME_LABEL, labels)])}


def _rather_together(_number: int) -> Shape:
    labels = {"foo": "bar"}
    term = {"weight": 1, "podAffinityTerm": _term(HOSTNAME_LABEL, labels)}
    return {"labels": labels, "spec": _affinity("podAffinity", _PREFERRED, [term])}


def _in_two_zones(_number: int) -> Shape:
    expression = {"key": ZONE_LABEL, "operator": "In", "values": ["z0", "z1"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"spec": {"affinity": {"nodeAffinity": {_REQUIRED: selector}}}}


def _important(_number: int) -> Shape:
    return {"cpu": "3", "priority": 10}


def _replica_set(number: int) -> ReplicaSet:
    spec = {"selector": {"matchLabels": {"app": f"rs{number}"}}}
    return msgspec.convert({"metadata": {"name": f"rs{number}", "namespace": "default"}, "spec": spec}, ReplicaSet)


def _owned(pod: Pod, number: int) -> Pod:
    owner = OwnerReference("apps/v1", "ReplicaSet", f"rs{number}", f"uid-of-rs{number}", controller=True)
    return replace(pod, metadata=replace(pod.metadata, labels={"app": f"rs{number}"}, ownerReferences=(owner,)))


DRIVER = "gpu.example.com"
_SUITABLE = (
    f"device.attributes['{DRIVER}'].model == 'a100' && "
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
)
_PARTITIONS = {"whole": 8, "half": 4, "quarter": 2, "eighth": 1}
"""Memory slices of each kind of partition."""


def _claiming(number: int) -> Shape:
    return {"spec": {"resourceClaims": [{"name": "gpus", "resourceClaimName": f"c{number:06d}"}]}}


def _device(name: str, memory: int, **fields: Any) -> dict[str, Any]:
    attributes = {"model": {"string": "a100"}, "profile": {"string": name.rpartition("-")[0]}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": f"{memory}Gi"}}} | fields


def _whole_devices(pool: dict[str, Any], node: str) -> list[dict[str, Any]]:
    """Return eight devices, four on each of two NUMA nodes."""
    devices = [_device(f"gpu-{number}", 80) for number in range(8)]
    for number, device in enumerate(devices):
        device["attributes"]["numa"] = {"int": number // 4}
    return [{"pool": pool | {"resourceSliceCount": 1}, "nodeName": node, "devices": devices}]


def _partitionable_devices(pool: dict[str, Any], node: str) -> list[dict[str, Any]]:
    """Return two devices, each available whole or as halves, quarters and eighths that share its memory slices."""
    devices, counters = [], []
    for gpu in range(2):
        slices = {f"slice-{number}": {"value": "1"} for number in range(8)}
        counters.append({"name": f"gpu-{gpu}", "counters": slices})
        for profile, size in _PARTITIONS.items():
            for place in range(0, 8, size):
                taken = {f"slice-{number}": {"value": "1"} for number in range(place, place + size)}
                consumed = [{"counterSet": f"gpu-{gpu}", "counters": taken}]
                devices.append(_device(f"{profile}-{gpu}{place}", 10 * size, consumesCounters=consumed))
    both = pool | {"resourceSliceCount": 2}
    return [
        {"pool": both, "nodeName": node, "sharedCounters": counters},
        {"pool": both, "nodeName": node, "devices": devices},
    ]


@dataclass(frozen=True, slots=True)
class DeviceWorkload:
    """The devices of nodes, and the claim of each pod."""

    offer: Callable[[dict[str, Any], str], list[dict[str, Any]]]
    request: Callable[[int], dict[str, Any]]

    def objects(self, nodes: int, pods: int) -> list[Any]:
        meta = {"name": DRIVER}
        selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
        found: list[Any] = [convert(DeviceClass, {"metadata": meta, "spec": {"selectors": selectors}})]
        for node in map(node_name, range(nodes)):
            for place, spec in enumerate(self.offer({"name": node, "generation": 1}, node)):
                manifest = {"metadata": {"name": f"{node}-{place}"}, "spec": {"driver": DRIVER} | spec}
                found.append(convert(ResourceSlice, manifest))
        for number in range(pods):
            meta = {
                "name": f"c{number:06d}",
                "namespace": "default",
                "uid": f"uid-of-c{number}",
                "resourceVersion": "1",
            }
            found.append(convert(ResourceClaim, {"metadata": meta, "spec": {"devices": self.request(number)}}))
        return found


def _two_near_each_other(_number: int) -> dict[str, Any]:
    """Request two devices of a model with enough memory, on one NUMA node."""
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 2}
    exactly["selectors"] = [{"cel": {"expression": _SUITABLE}}]
    constraint = {"requests": ["gpus"], "matchAttribute": f"{DRIVER}/numa"}
    return {"requests": [{"name": "gpus", "exactly": exactly}], "constraints": [constraint]}


def _a_partition(number: int) -> dict[str, Any]:
    """Request a quarter or an eighth, in turn."""
    profile = ("quarter", "eighth")[number % 2]
    expression = f"device.attributes['{DRIVER}'].profile == '{profile}'"
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1}
    exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"requests": [{"name": "gpu", "exactly": exactly}]}


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods to schedule, the nodes, and other objects."""

    text: str
    """Description of the pods, for the tables."""
    shape: Callable[[int], Shape] = _basic
    node_cpu: str = "32"
    filled: bool = False
    """Every node is full with four pods of low priority."""
    never_fitting: bool = False
    """For every five pods there is one that fits no node."""
    gated: bool = False
    """For every pod there is one with a scheduling gate."""
    one_per_node: bool = False
    """Every pod is bound for one node, as those of a DaemonSet."""
    churn: bool = False
    """Nodes and running pods are added and removed during the run."""
    replica_sets: int = 0
    """Number of ReplicaSets that own the pods, which are then spread by the system's default constraints."""
    devices: DeviceWorkload | None = None
    """Every pod claims some of these devices."""
    gangs: bool = False
    """The pods belong to gangs of 8 to 512."""
    topology_key: str = ""
    """All pods of a gang must have the same value of this node label."""

    @property
    def feature_gates(self) -> str:
        return _GROUP_GATES if self.gangs else ""

    def nodes(self, count: int) -> list[Node]:
        return [_node(number, self.node_cpu) for number in range(count)]

    def others(self, nodes: int, pods: int) -> list[Any]:
        """Return the objects other than nodes and pods."""
        owners: list[Any] = [_replica_set(number) for number in range(self.replica_sets)]
        if self.gangs:
            owners += [
                make_pod_group(name, len(members), topology_key=self.topology_key)
                for name, members in _gangs(pods).items()
            ]
        return owners if self.devices is None else owners + self.devices.objects(nodes, pods)

    def running(self, nodes: int) -> list[Pod]:
        """Return the running pods."""
        if not self.filled:
            return []
        return [
            make_pod(f"low{number}-{place}", cpu="900m", priority=0, node=node_name(number), grace_seconds=0)
            for number in range(nodes)
            for place in range(_PER_FILLED_NODE)
        ]

    def pods(self, count: int, nodes: int) -> list[Pod]:
        """Return the pods to schedule."""
        group_of = {number: name for name, members in _gangs(count).items() for number in members} if self.gangs else {}
        return [self._pod(number, nodes, group_of.get(number)) for number in range(count)]

    def _pod(self, number: int, nodes: int, group: str | None) -> Pod:
        shape: Shape = {"cpu": "100m", "memory": "500Mi", "labels": {"app": "x"}, "group": group} | self.shape(number)
        if self.one_per_node:
            field = {"key": "metadata.name", "operator": "In", "values": [node_name(number % nodes)]}
            terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            shape["spec"] = {"affinity": {"nodeAffinity": {_REQUIRED: terms}}}
        pod = make_pod(f"p{number:06d}", **shape)
        return _owned(pod, number % self.replica_sets) if self.replica_sets else pod

    def beside(self, count: int) -> list[Pod]:
        """Return additional pods that cannot be scheduled."""
        if self.never_fitting:
            return [make_pod(f"huge{number}", cpu="1000") for number in range(count // 5)]
        if self.gated:
            return [make_pod(f"gated{number}", cpu="100m", gates=["later"]) for number in range(count)]
        return []


WORKLOADS: dict[str, Workload] = {
    "basic": Workload("equal pods on nodes with 32 cores"),
    "small": Workload("equal pods on nodes with 4 cores", node_cpu="4"),
    "mixed-size": Workload("pods of 3,600 sizes", _mixed_size),
    "affinity": Workload("ten groups, each required to be in one zone", _affine),
    "antiaffinity": Workload("at most one pod per node", _apart),
    "pref-affinity": Workload("pods that prefer the same node", _rather_together),
    "spread": Workload("a hard spread constraint over zones", lambda _number: _spread("DoNotSchedule")),
    "soft-spread": Workload("a soft spread constraint over zones", lambda _number: _spread("ScheduleAnyway")),
    "node-affinity": Workload("required node affinity for two of five zones", _in_two_zones),
    "deployments": Workload("pods of ten ReplicaSets, with the default spread constraints", replica_sets=10),
    "preemption": Workload(
        "all nodes are full of pods of low priority; each pod evicts three", _important, node_cpu="4", filled=True
    ),
    "unschedulable": Workload("for every five pods, one more fits nowhere", never_fitting=True),
    "churn": Workload("nodes and running pods come and go", churn=True),
    "gated": Workload("as many pods again have a scheduling gate", gated=True),
    "daemonset": Workload("each pod is for one given node", one_per_node=True),
    "gang": Workload("pod groups of 8 to 512", gangs=True),
    "gang-topology": Workload("pod groups of 8 to 512, each in one of 125 racks", gangs=True, topology_key=RACK_LABEL),
    "dra": Workload(
        "each pod claims two devices of a node that has eight",
        _claiming,
        devices=DeviceWorkload(_whole_devices, _two_near_each_other),
    ),
    "dra-partition": Workload(
        "each pod claims a partition of a device",
        _claiming,
        devices=DeviceWorkload(_partitionable_devices, _a_partition),
    ),
}
