"""The workloads that are measured: what nodes and pods each consists of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.model.meta import OwnerReference
from kubestow.model.node import Node
from kubestow.model.pod import Pod
from kubestow.model.topology import HOSTNAME_LABEL, ZONE_LABEL
from kubestow.model.workloads import ReplicaSet
from kubestow.testing.builders import make_node, make_pod

ZONES = 5
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_PER_FILLED_NODE = 4

Shape = dict[str, Any]
"""Arguments of make_pod."""


def node_name(number: int) -> str:
    return f"n{number:05d}"


def _node(number: int, cpu: str = "32") -> Node:
    resources = {"ephemeral-storage": "100Gi"}
    return make_node(node_name(number), cpu=cpu, memory="64Gi", resources=resources, zone=f"z{number % ZONES}")


def _affinity(kind: str, strength: str, terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"affinity": {kind: {strength: terms}}}


def _term(topology_key: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}


def _spread(action: str) -> dict[str, Any]:
    constraint = _term(ZONE_LABEL, {"app": "x"}) | {"maxSkew": 5, "whenUnsatisfiable": action}
    return {"spec": {"topologySpreadConstraints": [constraint]}}


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


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods to be scheduled on nodes, and what else is there."""

    shape: Callable[[int], Shape] = _basic
    node_cpu: str = "32"
    filled: bool = False
    """Every node runs four pods of low priority that leave no room."""
    never_fitting: bool = False
    """Beside every five pods there is one that fits nowhere."""
    gated: bool = False
    """Beside every pod there is one with a scheduling gate."""
    one_per_node: bool = False
    """Every pod is meant for one node, as those of a daemon set are."""
    churn: bool = False
    """Nodes and running pods come and go meanwhile."""
    replica_sets: int = 0
    """The pods belong to so many of them, and so are spread by the system's default constraints."""

    def nodes(self, count: int) -> list[Node]:
        return [_node(number, self.node_cpu) for number in range(count)]

    def owners(self) -> list[ReplicaSet]:
        """What the pods belong to."""
        return [_replica_set(number) for number in range(self.replica_sets)]

    def running(self, nodes: int) -> list[Pod]:
        """The pods that run already."""
        if not self.filled:
            return []
        return [
            make_pod(f"low{number}-{place}", cpu="900m", priority=0, node=node_name(number), grace_seconds=0)
            for number in range(nodes)
            for place in range(_PER_FILLED_NODE)
        ]

    def pods(self, count: int, nodes: int) -> list[Pod]:
        """The pods to be scheduled."""
        return [self._pod(number, nodes) for number in range(count)]

    def _pod(self, number: int, nodes: int) -> Pod:
        shape: Shape = {"cpu": "100m", "memory": "500Mi", "labels": {"app": "x"}} | self.shape(number)
        if self.one_per_node:
            field = {"key": "metadata.name", "operator": "In", "values": [node_name(number % nodes)]}
            terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            shape["spec"] = {"affinity": {"nodeAffinity": {_REQUIRED: terms}}}
        pod = make_pod(f"p{number:06d}", **shape)
        return _owned(pod, number % self.replica_sets) if self.replica_sets else pod

    def beside(self, count: int) -> list[Pod]:
        """Pods that will not be scheduled."""
        if self.never_fitting:
            return [make_pod(f"huge{number}", cpu="1000") for number in range(count // 5)]
        if self.gated:
            return [make_pod(f"gated{number}", cpu="100m", gates=["later"]) for number in range(count)]
        return []


WORKLOADS: dict[str, Workload] = {
    "basic": Workload(),
    "small": Workload(node_cpu="4"),
    "mixed-size": Workload(_mixed_size),
    "affinity": Workload(_affine),
    "antiaffinity": Workload(_apart),
    "pref-affinity": Workload(_rather_together),
    "spread": Workload(lambda _number: _spread("DoNotSchedule")),
    "soft-spread": Workload(lambda _number: _spread("ScheduleAnyway")),
    "node-affinity": Workload(_in_two_zones),
    "deployments": Workload(replica_sets=10),
    "preemption": Workload(_important, node_cpu="4", filled=True),
    "unschedulable": Workload(never_fitting=True),
    "churn": Workload(churn=True),
    "gated": Workload(gated=True),
    "daemonset": Workload(one_per_node=True),
}
