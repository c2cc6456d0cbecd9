"""Benchmark of evaluating every node for one pod: PreFilter, Filter, PreScore and Score of all default plugins.

Nodes are in ten zones, with two running pods each; the evaluated pod is equal to the running ones. First, nothing is
shared between evaluations; then a whole cycle shares results with equal pods, and evaluates one changed row, that of
the previous pod.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from bench_rows import Row, micros, seconds_per_call
from kubestow import config
from kubestow.api.codec import convert
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.evaluation import Evaluation
from kubestow.scheduler.cycle.outcome import Placed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles, choose_at_random
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.telemetry.memory import keep_freed_memory

SIZES = (5_000, 50_000)

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ZONES = 10
_AIM_PLAIN, _AIM_OTHERS = 200, 500
"""Target in microseconds for the smaller size."""
_SELECTOR = {"matchLabels": {"app": "web"}}


def _spread(action: str) -> dict[str, Any]:
    constraint = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": _SELECTOR}
    return {"topologySpreadConstraints": [constraint]}


def _term(key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": _SELECTOR}


_ON_SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
_NODE_AFFINITY = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [_ON_SSD]}]}}}}
_TOLERATIONS = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}

WORKLOADS: dict[str, dict[str, Any]] = {
    "plain": {},
    "node affinity": _NODE_AFFINITY,
    "taints": _TOLERATIONS,
    "hard spread over zones": _spread("DoNotSchedule"),
    "soft spread over zones": _spread("ScheduleAnyway"),
    "required zone affinity": {"affinity": {"podAffinity": {REQUIRED: [_term(ZONE)]}}},
    "required hostname anti-affinity": {"affinity": {"podAntiAffinity": {REQUIRED: [_term(HOSTNAME)]}}},
    "preferred hostname affinity": {
        "affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": _term(HOSTNAME)}]}}
    },
    "mixed": _NODE_AFFINITY | _TOLERATIONS | _spread("DoNotSchedule"),
}


def rows(full: bool) -> Iterator[Row]:
    """Yield the rows of the section."""
    keep_freed_memory()
    sizes = SIZES if full else SIZES[:1]
    for size in sizes:
        for workload, spec in WORKLOADS.items():
            evaluate = evaluation_call(size, spec)
            aim = _AIM_PLAIN if workload == "plain" else _AIM_OTHERS
            note = f"aim: {aim} us" if size == SIZES[0] else f"{evaluate()} feasible"
            yield micros(f"{workload}: all {size:,} nodes", seconds_per_call(evaluate), note)
    for size in sizes:
        for workload, spec in WORKLOADS.items():
            yield micros(f"{workload}: one shared cycle at {size:,} nodes", seconds_per_call(cycle(size, spec)))


def cycle(size: int, spec: dict[str, Any]) -> Callable[[], object]:
    """Return a call that schedules one of many equal pods; a pod is removed when the next one is placed."""
    cluster, nominator, profile = _world(size, spec)
    cycles = SchedulingCycles(cluster, nominator, choose_at_random(random.Random(0)), 100)
    last: list[Placed] = []
    numbers = itertools.count()

    def schedule() -> None:
        pod = PodInfo(_pod(f"new-{next(numbers)}", spec))
        placed = cycles.run(profile, pod)
        assert isinstance(placed, Placed), placed
        last.append(placed)
        if len(last) > 1:
            cluster.forget(last.pop(0).pod.uid)

    return schedule


def evaluation_call(size: int, spec: dict[str, Any]) -> Callable[[], int]:
    """Return a call that evaluates all nodes of a cluster for a pod and returns the number of feasible ones."""
    cluster, nominator, profile = _world(size, spec)
    pod = PodInfo(_pod("new", spec))
    pod.prepare()

    def evaluate() -> int:
        evaluation = Evaluation(profile, cluster, nominator, pod)
        assert evaluation.pre_filter()
        feasible = evaluation.filter()
        evaluation.score(feasible)
        return len(feasible)

    return evaluate


def _world(size: int, spec: dict[str, Any]) -> tuple[Cluster, Nominator, Profile]:
    cluster = Cluster()
    for number in range(size):
        cluster.set_node(_node(number, tainted="tolerations" in spec and number % 4 == 1))
    apart = "podAntiAffinity" in spec.get("affinity", {})
    # Pods that keep apart leave half of the nodes free.
    for number in range(size // 2 if apart else 2 * size):
        cluster.set_pod(_pod(f"running-{number}", spec, on=f"node-{number % size}"))
    nominator = Nominator()
    handle = offline_handle(cluster, nominator=nominator)
    profile: Profile = next(iter(build_profiles(config.default(), in_tree_registry(), handle, lambda: 0.0).values()))
    return cluster, nominator, profile


def _node(number: int, *, tainted: bool) -> Node:
    name = f"node-{number}"
    labels = {HOSTNAME: name, ZONE: f"zone-{number % _ZONES}", "disk": "ssd" if number % 3 else "hdd"}
    taints = [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}] if tainted else []
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return convert(
        Node,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints},
            "status": {"allocatable": allocatable},
        },
    )


def _pod(name: str, spec: dict[str, Any], on: str = "") -> Pod:
    requests = {"cpu": "100m", "memory": "200Mi"}
    return convert(
        Pod,
        {
            "metadata": {"name": name, "uid": name, "namespace": "default", "labels": {"app": "web"}},
            "spec": {
                "nodeName": on,
                "containers": [{"name": "main", "image": "web:1", "resources": {"requests": requests}}],
                **spec,
            },
        },
    )
